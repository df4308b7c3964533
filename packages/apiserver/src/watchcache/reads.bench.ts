/**
 * What reads cost the server, without sockets: lists by node, label, shard and page out of many
 * pods, and an event shown to many watches.
 *
 *     node packages/apiserver/src/watchcache/reads.bench.ts [pods] [nodes] [pattern] [times]
 */
import { shardOf } from '@megaplane/machinery/sharding/selector';
import { Store } from '@megaplane/store/store';
import { createApiServer } from '../server/assembly.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';

const PODS = Number(process.argv[2] ?? 200_000);
const NODES = Number(process.argv[3] ?? PODS / 50);
/** Which lines to measure. */
const ONLY = new RegExp(process.argv[4] ?? '');
/** Times this as often. */
const TIMES = Number(process.argv[5] ?? 1);
const IMAGE = 'registry.example.com/team/service:'.padEnd(700, 'x');

/** Counts what is sent, and takes all of it. */
class Counter extends ExchangeModel {
  bytesSent = 0;
  override write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.bytesSent += end - start;
  }
}

const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
const later: (() => void)[] = [];
let nowMs = 0;
const api = createApiServer({
  storage: new EmbeddedStorage(store, () => Promise.resolve()),
  edge: {
    nowMs: () => nowMs,
    below: () => 0,
    uuid: () => crypto.randomUUID(),
    defer: (work) => void later.push(work),
    deferPiece: (work) => void later.push(work),
  },
  address: '127.0.0.1:6443',
});

function settle(): void {
  store.flush();
  for (let work = later.shift(); work !== undefined; work = later.shift()) work();
}

function ask(path: string): Counter {
  const exchange = new Counter('GET', path);
  api.handle(exchange);
  settle();
  return exchange;
}

function nameOf(index: number): string {
  return `pod-${String(index).padStart(7, '0')}`;
}

function podText(index: number, node: number, phase: string): string {
  const name = nameOf(index);
  const labels = { app: `app-${index % 100}`, tier: 'web', 'pod-template-hash': `${index % 977}` };
  const metadata = { name, namespace: `ns-${index % 20}`, uid: uids[index], labels };
  const spec = { nodeName: `node-${node}`, containers: [{ name: 'c', image: IMAGE }] };
  return JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec, status: { phase } });
}

function put(index: number, node: number, phase: string): void {
  const name = nameOf(index);
  const key = Buffer.from(`/registry/pods/ns-${index % 20}/${name}`);
  const value = Buffer.from(podText(index, node, phase));
  store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
}

/** Processor time of this process in milliseconds: others may be at work on the machine. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const uids = Array.from({ length: PODS }, () => crypto.randomUUID());
for (let index = 0; index < PODS; index++) {
  put(index, index % NODES, 'Running');
  if (index % 1000 === 0) settle();
}
settle();

function measure(name: string, times: number, run: (time: number) => Counter): void {
  if (!ONLY.test(name)) return;
  const startedMs = cpuMs();
  run(0);
  const firstMs = cpuMs() - startedMs;
  const took: number[] = [];
  let bytes = 0;
  for (let time = 1; time <= times * TIMES; time++) {
    const startMs = cpuMs();
    bytes = run(time % times).bytesSent;
    took.push(cpuMs() - startMs);
  }
  took.sort((a, b) => a - b);
  const median = took[took.length >> 1] ?? NaN;
  const size = `${(bytes / 1024).toFixed(0)} KiB`;
  const first = firstMs.toFixed(2).padStart(9);
  const then = median.toFixed(3).padStart(9);
  console.log(`${name.padEnd(44)} first ${first} ms, then ${then} ms  ${size}`);
}

const shard = (index: number, count: number): string =>
  `shardSelector=${encodeURIComponent(shardOf(index, count))}`;

console.log(`${PODS} pods on ${NODES} nodes`);
measure('GET by field selector metadata.name', 20, (time) =>
  ask(`/api/v1/namespaces/ns-1/pods?fieldSelector=metadata.name%3D${nameOf(1 + 20 * time)}`),
);
measure('list spec.nodeName=', 50, (time) =>
  ask(`/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-${time}`),
);
measure('page of 500', 20, () => ask('/api/v1/pods?limit=500'));
measure('label that 1 % have', 3, (time) => ask(`/api/v1/pods?labelSelector=app%3Dapp-${time}`));
measure('a shard of 1/64', 10, (time) => ask(`/api/v1/pods?${shard(time, 64)}`));
measure('a shard of 1/8', 3, (time) => ask(`/api/v1/pods?${shard(time, 8)}`));
measure('page of 500 of a shard of 1/64', 10, (time) =>
  ask(`/api/v1/pods?limit=500&${shard(time, 64)}`),
);
measure('all', 1, () => ask('/api/v1/pods'));

/** Microseconds that one change of a pod costs, the write not counted. */
function costOfEvent(events: number): number {
  let spentMs = 0;
  for (let event = 0; event < events; event++) {
    put(event, event % NODES, event % 2 === 0 ? 'Running' : 'Pending');
    const startMs = cpuMs();
    store.flush();
    spentMs += cpuMs() - startMs;
  }
  return (spentMs / events) * 1000;
}

function watched(name: string, count: number, query: (index: number) => string): void {
  if (!ONLY.test(name)) return;
  const watches = Array.from({ length: count }, (_, index) => {
    const watch = new Counter(
      'GET',
      `/api/v1/pods?watch=1&resourceVersion=${store.publishedRevision}&${query(index)}`,
    );
    api.handle(watch);
    return watch;
  });
  settle();
  costOfEvent(2000);
  const cost = costOfEvent(10_000);
  for (const watch of watches) watch.cancel();
  settle();
  console.log(`event, ${name.padEnd(34)} ${cost.toFixed(2).padStart(9)} us`);
}

nowMs = 1;
watched('no watch', 0, () => '');
watched('1 of everything', 1, () => '');
for (const count of [1, 4, 16, 64, 1024])
  watched(`${count} shards`, count, (index) => shard(index, count));
for (const count of [1000, 20_000, 100_000]) {
  watched(
    `${count} of a node each`,
    count,
    (index) => `fieldSelector=spec.nodeName%3Dnode-${index}`,
  );
}
watched('10000 of a label each', 10_000, (index) => `labelSelector=app%3Dapp-${index}`);
watched('10000 of a namespace each', 10_000, () => 'fieldSelector=metadata.namespace%3Dns-none');
