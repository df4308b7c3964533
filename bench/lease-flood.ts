/**
 * Writes leases as fast as a server takes them, each over the version that was written before, as
 * Kubernetes does: to an API server, or as its transactions to etcd.
 *
 *     node bench/lease-flood.ts --kubeconfig F --num-keys 100000 --workers 64 --seconds 10
 *     node bench/lease-flood.ts --endpoints http://127.0.0.1:2379 --num-keys 100000 --workers 64
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LatencyHistogram } from '@megaplane/base/histogram';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { CONTENT, type Client } from '@megaplane/client/client';
import { resourceVersionOf } from '@megaplane/machinery/scan';
import { leaseBody, microTime } from '@megaplane/nodes/lease-object';
import { flagsOf, namespaceOf, prefixOf, usage, whole } from './load/flags.ts';
import { openClients } from './load/requests.ts';
import { machine, printTable, writeResults } from './harness.ts';

const values = flagsOf(
  {
    kubeconfig: { type: 'string' },
    endpoints: { type: 'string' },
    'num-keys': { type: 'string', default: '100' },
    namespace: { type: 'string', default: 'kube-node-lease' },
    'key-prefix': { type: 'string', default: 'flood-' },
    /** Requests at once. */
    workers: { type: 'string', default: '10' },
    /** Connections to the API server. */
    clients: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '10' },
    /** Plain puts into an etcd, without the version of before. */
    'no-compare': { type: 'boolean', default: false },
    output: { type: 'string' },
    help: { type: 'boolean' },
  },
  'bench lease-flood: leases as fast as they are taken',
);
const KEYS = whole('num-keys', values['num-keys'], 1);
const workers = whole('workers', values.workers, 1);
const seconds = whole('seconds', values.seconds, 1);
const clientCount = whole('clients', values.clients, 1);
const namespace = namespaceOf(values.namespace);
prefixOf('key-prefix', values['key-prefix'], KEYS);
const isCompared = !values['no-compare'];
if (!isCompared && values.endpoints === undefined) {
  usage('--no-compare is for --endpoints: API servers take no lease without its version');
}
const FAILURE_TEXT_MAX = 500;
const FAILED_MS = 5;
const UID = '5f0c3a8e-7d0b-4a60-9d39-0d5f5b0f8d11';
const versions = new Float64Array(KEYS);
const latencyMs = new LatencyHistogram();
const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
let written = 0;
let conflicts = 0;
let failures = 0;
let isOver = false;

/** Writes a lease for a worker and resolves with what came of it. */
type Write = (index: number, worker: number) => Promise<'written' | 'conflict' | 'failed'>;

function bodyOf(index: number, version: number): string {
  const name = `${values['key-prefix']}${index}`;
  const now = microTime(Date.now());
  const body = leaseBody(name, UID, version, 40, now);
  return body.replaceAll('"kube-node-lease"', JSON.stringify(namespace));
}

/**
 * A worker keeps to one client: those of a connection that is slow would otherwise gather there,
 * above what its client takes.
 */
function throughApi(clients: readonly Client[]): Write {
  return (index, worker) =>
    new Promise((resolve) => {
      const version = versions[index] ?? 0;
      const isNew = version === 0;
      const path = isNew ? collection : `${collection}/${values['key-prefix']}${index}`;
      const client = clients[worker % clients.length];
      const body = bodyOf(index, isCompared ? version : 0);
      const done = (status: number, bytes: Uint8Array, start: number, end: number): void => {
        if (status === 200 || status === 201) {
          versions[index] = resourceVersionOf(bytes, start, end);
          resolve('written');
        } else if (status === 409) void look(client, index).then(() => resolve('conflict'));
        else {
          tellFailure(`${status}: ${Buffer.from(bytes.subarray(start, end)).toString('utf8')}`);
          resolve('failed');
        }
      };
      const isTaken = client?.send(isNew ? 'POST' : 'PUT', path, CONTENT.json, body, done);
      if (isTaken !== true) {
        tellFailure('this side has no room for the request');
        resolve('failed');
      }
    });
}

/** The first one says what is wrong; the others are counted. */
function tellFailure(text: string): void {
  if (failures === 0) process.stderr.write(`failed: ${text.slice(0, FAILURE_TEXT_MAX)}\n`);
}

async function look(client: Client | undefined, index: number): Promise<void> {
  const path = `${collection}/${values['key-prefix']}${index}`;
  const answer = await client?.request({ method: 'GET', path });
  if (answer?.ok === true)
    versions[index] = resourceVersionOf(answer.bytes, 0, answer.bytes.length);
}

function throughEtcd(client: EtcdClient): Write {
  return async (index) => {
    const name = `${values['key-prefix']}${index}`;
    const key = Buffer.from(`/registry/leases/${namespace}/${name}`);
    const value = Buffer.from(bodyOf(index, 0));
    if (!isCompared) return (await client.put(key, value)).ok ? 'written' : 'failed';
    const answer = await client.write({ key, expected: versions[index] ?? 0, value });
    if (!answer.ok) return 'failed';
    const { succeeded, revision, found } = answer.value;
    versions[index] = succeeded ? revision : (found?.modRevision ?? 0);
    return succeeded ? 'written' : 'conflict';
  };
}

/** Writes the leases that are its own, by turns: nobody else writes over them. */
async function work(write: Write, worker: number, count: number): Promise<void> {
  for (let index = worker; !isOver; index = index + count < KEYS ? index + count : worker) {
    const startMs = performance.now();
    const outcome = await write(index, worker);
    if (outcome === 'written') {
      written++;
      latencyMs.record(performance.now() - startMs);
    } else if (outcome === 'conflict') conflicts++;
    else if (++failures > 1000 && written === 0) throw new Error('the server takes no lease');
    // a failure of this side comes at once, and would come again before anything else happens
    if (outcome === 'failed') await sleep(FAILED_MS);
  }
}

async function flood(write: Write): Promise<void> {
  const startMs = performance.now();
  const count = Math.min(workers, KEYS);
  const running = Promise.all(
    Array.from({ length: count }, (_, worker) => work(write, worker, count)),
  );
  for (let second = 0, before = 0; second < seconds; second++) {
    await Promise.race([sleep(1000), running]);
    process.stderr.write(`${written - before} leases/s\n`);
    before = written;
  }
  isOver = true;
  await running;
  const passed = (performance.now() - startMs) / 1000;
  const ms = (part: number): string => `${latencyMs.quantile(part).toFixed(2)} ms`;
  process.stdout.write(`${machine()}\n`);
  printTable(
    ['leases/s', 'p50', 'p99', 'p99.9', 'max', 'conflicts', 'failures'],
    [
      [
        ...[(written / passed).toFixed(0), ms(0.5), ms(0.99), ms(0.999)],
        ...[`${latencyMs.max.toFixed(2)} ms`, String(conflicts), String(failures)],
      ],
    ],
  );
  const p99Ms = latencyMs.quantile(0.99);
  writeResults(values.output, { perSecond: written / passed, p99Ms, conflicts, failures });
  if (written > 0) return;
  process.stderr.write(`no lease was written; ${failures} tries failed\n`);
  process.exit(1);
}

if ((values.kubeconfig === undefined) === (values.endpoints === undefined)) {
  usage('one of --kubeconfig (an API server) and --endpoints (etcd) is needed');
}
if (values.kubeconfig !== undefined) {
  const clients = await openClients(
    values.kubeconfig,
    clientCount,
    Math.ceil(workers / clientCount) + 1,
  );
  await flood(throughApi(clients));
  for (const client of clients) client.close();
} else {
  const client = new EtcdClient({
    endpoints: parseEndpoints('--endpoints', values.endpoints ?? ''),
    tls: () => null,
    log: (message) => process.stderr.write(`${message}\n`),
  });
  await flood(throughEtcd(client));
  process.exit(0);
}
