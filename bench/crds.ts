/**
 * Thousands of CustomResourceDefinitions: what each costs, how fast they come, what others feel
 * meanwhile, and how discovery, OpenAPI and a restart feel afterwards.
 *
 *     node bench/crds.ts --crds 10000 --objects 100000
 *     node bench/crds.ts --folder ./my-crds
 *     node bench/crds.ts --crds 300 --serial 50 --peer ./kube-apiserver
 *
 * The first and the last `--serial` definitions are applied one after the other, each waited for
 * until its first list is answered; all between with `--in-flight` at once. A second client reads
 * one Lease every 5 ms all the while: its longest wait is the stall. The server has one core. With
 * `--peer` the same is played with that program afterwards, on an etcd of its own (`etcd` on PATH).
 */
import { execFile, fork } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { parseAllDocuments } from 'yaml';
import { cpuSecondsOf, rssMibOf, type Started } from './apiserver-load.ts';
import { flagsOf } from './flags.ts';
import { definitionAt, type Shape } from './crd-shapes.ts';
import * as harness from './harness.ts';
import { startKubeApiserver } from './kube-apiserver.ts';

const values = flagsOf({
  crds: { type: 'string', default: '2000' },
  bytes: { type: 'string', default: '10000' },
  sharing: { type: 'string', default: 'shared' },
  serial: { type: 'string', default: '200' },
  'in-flight': { type: 'string', default: '16' },
  objects: { type: 'string', default: '0' },
  folder: { type: 'string' },
  peer: { type: 'string' },
  output: { type: 'string' },
  role: { type: 'string', default: '' },
  kubeconfig: { type: 'string', default: '' },
  pid: { type: 'string', default: '0' },
});
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const SHAPE: Shape = {
  sharing: values.sharing === 'distinct' ? 'distinct' : 'shared',
  bytes: Number(values.bytes),
};
const own = values.folder === undefined ? null : readFolder(values.folder);
const COUNT = own === null ? Number(values.crds) : own.length;
/** Definitions that are applied at once before anything is measured of those that follow. */
const WARMING_MAX = 1000;
const SERIAL = Math.min(Number(values.serial), Math.floor(COUNT / 3));

function definition(index: number): JsonObject {
  return own?.[index] ?? definitionAt(index, SHAPE);
}

/** All definitions in the files of a folder. */
function readFolder(folder: string): JsonObject[] {
  const files = readdirSync(folder).filter((name) => /\.(ya?ml|json)$/.test(name));
  return files
    .flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')))
    .map((document) => document.toJS() as JsonObject)
    .filter((one) => one['kind'] === 'CustomResourceDefinition');
}

/** Where the objects of a definition are listed. */
function collection(one: JsonObject): string {
  const group = stringAt(one, 'spec', 'group');
  const version = stringAt(listAt(one, 'spec', 'versions')[0] ?? null, 'name');
  const plural = stringAt(one, 'spec', 'names', 'plural');
  const isNamespaced = stringAt(one, 'spec', 'scope') === 'Namespaced';
  return `/apis/${group}/${version}${isNamespaced ? '/namespaces/default' : ''}/${plural}`;
}

async function must(client: Client, method: 'GET' | 'POST', path: string, body?: JsonObject) {
  const accept = 'application/json';
  const answer = await client.request({ method, path, accept, ...(body ? { body } : {}) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status.message ?? answer.code}`);
  return answer;
}

/** One after the other, until the first list of each is answered; milliseconds of each. */
async function applySerially(client: Client, from: number, to: number): Promise<number[]> {
  const times: number[] = [];
  for (let index = from; index < to; index++) {
    const one = definition(index);
    const startMs = performance.now();
    const { object } = await must(client, 'POST', DEFINITIONS, one);
    if (!isEstablished(object)) await established(client, one);
    await must(client, 'GET', collection(one));
    times.push(performance.now() - startMs);
  }
  return times;
}

function isEstablished(object: JsonObject): boolean {
  const conditions = listAt(object, 'status', 'conditions');
  return conditions.some(
    (one) => stringAt(one, 'type') === 'Established' && stringAt(one, 'status') === 'True',
  );
}

async function established(client: Client, one: JsonObject): Promise<void> {
  const path = `${DEFINITIONS}/${stringAt(one, 'metadata', 'name')}`;
  for (;;) {
    const { object } = await must(client, 'GET', path);
    if (isEstablished(object)) return;
    await sleep(5);
  }
}

async function applyAtOnce(client: Client, from: number, to: number): Promise<void> {
  let next = from;
  const work = async (): Promise<void> => {
    while (next < to) {
      const one = definition(next++);
      const { object } = await must(client, 'POST', DEFINITIONS, one);
      if (!isEstablished(object)) await established(client, one);
    }
  };
  await Promise.all(Array.from({ length: Number(values['in-flight']) }, work));
}

/** How long the other client waited, and what the server's main thread worked meanwhile. */
interface Wait {
  readonly clockMs: number;
  readonly cpuMs: number;
}

/** The other client, a process of its own: reads a little every few milliseconds until told. */
async function ping(): Promise<void> {
  harness.pinSelf(1);
  const client = await createKubeClient({ kubeconfig: values.kubeconfig });
  const waits: Wait[] = [];
  process.on('message', () => {
    process.send?.(waits, () => process.exit());
  });
  for (;;) {
    const startMs = performance.now();
    const startCpuMs = harness.mainThreadMs(Number(values.pid));
    await client.request({ method: 'GET', path: '/api/v1/namespaces/default' });
    const cpuMs = harness.mainThreadMs(Number(values.pid)) - startCpuMs;
    waits.push({ clockMs: performance.now() - startMs, cpuMs });
    await sleep(5);
  }
}

/** Starts it; `stop` gives its waits. */
function startPinging(kubeconfig: string, pid: number): { stop: () => Promise<Wait[]> } {
  const flags = ['--role', 'ping', '--kubeconfig', kubeconfig, '--pid', String(pid)];
  const child = fork(import.meta.filename, flags, { execArgv: [] });
  return {
    stop: () =>
      new Promise((resolve) => {
        child.once('message', (waits) => resolve(waits as Wait[]));
        child.send('stop');
      }),
  };
}

const FETCH = { answerBytesMax: 2 ** 30 };

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

async function fetchRaw(client: Client, path: string, accept: string): Promise<number> {
  return timed(
    () =>
      new Promise<void>((resolve, reject) => {
        client.stream(
          path,
          {
            onHead: (status) => {
              if (status !== 200) reject(new Error(`GET ${path}: ${status}`));
            },
            onData: () => {},
            onEnd: () => resolve(),
          },
          accept,
        );
      }),
  );
}

/** `kubectl get` of a custom resource with an empty cache; NaN where there is no kubectl. */
async function kubectlMs(kubeconfig: string, resource: string): Promise<number> {
  const home = mkdtempSync(join(tmpdir(), 'megaplane-kubectl-'));
  const env = { ...process.env, HOME: home, KUBECONFIG: kubeconfig };
  const startMs = performance.now();
  const worked = await new Promise<boolean>((resolve) => {
    execFile('kubectl', ['get', resource], { env }, (error) => resolve(error === null));
  });
  const tookMs = performance.now() - startMs;
  rmSync(home, { recursive: true, force: true });
  return worked ? tookMs : NaN;
}

/** Objects of 1 KB, spread over a hundred of the definitions. */
async function fill(client: Client, count: number): Promise<void> {
  const text = 'x'.repeat(700);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      const one = definition(index % Math.min(COUNT, 100));
      const path = collection(one);
      const kind = stringAt(one, 'spec', 'names', 'kind');
      const [, , group = '', version = ''] = path.split('/');
      const metadata = { name: `o-${index}`, annotations: { text } };
      const body = { apiVersion: `${group}/${version}`, kind, metadata, spec: { forProvider: {} } };
      await must(client, 'POST', path, body);
    }
  };
  await Promise.all(Array.from({ length: 64 }, work));
}

interface Row {
  readonly what: string;
  readonly unit: string;
  /** Of this server, then of the peer. */
  readonly figures: number[];
}

const rows: Row[] = [];
/** Which of the rows is reported next. */
let reported = 0;

function report(what: string, figure: number, unit: string): void {
  const row = (rows[reported++] ??= { what, unit, figures: [] });
  row.figures.push(figure);
}

function shown(figure: number | undefined, unit: string): string {
  if (figure === undefined || Number.isNaN(figure)) return '-';
  return `${figure.toFixed(figure < 10 ? 2 : 1)} ${unit}`;
}

function reportTimes(what: string, times: readonly number[]): void {
  const sorted = times.toSorted((a, b) => a - b);
  report(`${what}, p50`, harness.quantile(sorted, 0.5), 'ms');
  report(`${what}, p99`, harness.quantile(sorted, 0.99), 'ms');
}

async function applyAll(client: Client, { kubeconfig, pids }: Started): Promise<void> {
  reportTimes(`first ${SERIAL}, serially`, await applySerially(client, 0, SERIAL));
  const lastSerial = COUNT - SERIAL;
  // the runtime's own memory grows with the first burst, whatever it is made of, and then no more
  const first = SERIAL + Math.min(WARMING_MAX, Math.floor((lastSerial - SERIAL) / 4));
  await applyAtOnce(client, SERIAL, first);
  await sleep(8000);
  const pings = startPinging(kubeconfig, pids[0] ?? 0);
  await sleep(1000);
  const beforeMib = rssMibOf(pids);
  const cpu = cpuSecondsOf(pids);
  const tookMs = await timed(() => applyAtOnce(client, first, lastSerial));
  const waits = await pings.stop();
  const count = lastSerial - first;
  report(`${count} at once, all Established`, tookMs / 1000, 's');
  report(
    'processor time of the server for each',
    ((cpuSecondsOf(pids) - cpu) / count) * 1000,
    'ms',
  );
  const inOrder = (what: keyof Wait): number[] =>
    waits.map((wait) => wait[what]).sort((one, other) => one - other);
  const clock = inOrder('clockMs');
  const worked = inOrder('cpuMs');
  report('longest wait of another client meanwhile', clock.at(-1) ?? NaN, 'ms');
  report('its p99', harness.quantile(clock, 0.99), 'ms');
  // of a program of many threads nobody knows which of them the wait was for
  const isOurs = pids.length === 1;
  const [most = NaN, usual] = [worked.at(-1), harness.quantile(worked, 0.99)];
  report('what the server worked during a wait, most', isOurs ? most : NaN, 'ms');
  report('its p99', isOurs ? usual : NaN, 'ms');
  await sleep(8000);
  report('resident growth for each', ((rssMibOf(pids) - beforeMib) / count) * 1024, 'KiB');
  reportTimes(`last ${SERIAL}, serially`, await applySerially(client, lastSerial, COUNT));
}

async function readAll(client: Client, kubeconfig: string): Promise<void> {
  report('aggregated discovery, cold', await fetchRaw(client, '/apis', AGGREGATED), 'ms');
  const cached: number[] = [];
  for (let run = 0; run < 5; run++) cached.push(await fetchRaw(client, '/apis', AGGREGATED));
  report('the same, cached', harness.median(cached), 'ms');
  const one = definition(0);
  const resource = stringAt(one, 'metadata', 'name');
  report('first kubectl get with an empty cache', await kubectlMs(kubeconfig, resource), 'ms');
  const group = collection(one).split('/').slice(1, 4).join('/');
  const json = 'application/json';
  report(
    'OpenAPI v3 of one group, cold',
    await fetchRaw(client, `/openapi/v3/${group}`, json),
    'ms',
  );
  report('OpenAPI v2, first', await fetchRaw(client, '/openapi/v2', json), 'ms');
}

async function startOwn(dataDir: string): Promise<Started> {
  const flags = ['apiserver', '--data-dir', dataDir, '--secure-port', '0'];
  const server = await harness.startMegaplane(flags, 0);
  return { ...server, pids: [server.pid], kubeconfig: join(dataDir, 'kubeconfig') };
}

async function run(start: (dataDir: string) => Promise<Started>): Promise<void> {
  reported = 0;
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  let server = await start(dataDir);
  try {
    const { kubeconfig } = server;
    const client = await createKubeClient({ kubeconfig, limits: FETCH });
    await applyAll(client, server);
    await readAll(client, kubeconfig);
    const objects = Number(values.objects);
    if (objects > 0) {
      const tookMs = await timed(() => fill(client, objects));
      report(`${objects} custom resources created, per second`, (objects / tookMs) * 1000, '/s');
    }
    client.close();
    await server.stop();
    server = await start(dataDir);
    report(`start with ${COUNT} definitions and ${objects} objects`, server.readyMs, 'ms');
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

if (values.role === 'ping') await ping();
const bytes = Array.from({ length: Math.min(COUNT, 500) }, (_, index) => {
  return JSON.stringify(definition(index)).length;
});
const mean = bytes.reduce((sum, one) => sum + one, 0) / bytes.length;
process.stdout.write(`${harness.machine()}\n`);
process.stdout.write(`${COUNT} definitions, ${(mean / 1000).toFixed(1)} KB each on average\n\n`);
harness.pinSelf(1);
await run(startOwn);
const { peer } = values;
if (peer !== undefined) await run((dataDir) => startKubeApiserver(peer, dataDir, 0));
harness.printTable(
  peer === undefined ? ['', ''] : ['', '', 'peer'],
  rows.map(({ what, unit, figures }) => {
    const [figure, theirs] = figures;
    const cells = [what, shown(figure, unit)];
    return peer === undefined ? cells : [...cells, shown(theirs, unit)];
  }),
);
harness.writeResults(values.output, { count: COUNT, meanBytes: mean, rows });
process.exit();
