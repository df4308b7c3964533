// shell
/**
 * Memory that objects take at rest, without sockets and without a log:
 *
 *     node --expose-gc packages/apiserver/src/server/at-rest.bench.ts [pods 200000]
 *
 * An API server over a store in memory; the figure is by how much the heap and all buffers grew for
 * each object of the last three quarters, once the store has packed what rests (the resident set
 * goes up and down by 60 MB meanwhile, by what the allocator keeps for later). Kinds: pods (2 KB as
 * sent, of a hundred makes that take turns), nodes (6 KB), leases.
 */
import { randomUUID } from 'node:crypto';
import { openStore } from '@megaplane/store/open';
import { createApiServer } from './assembly.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';

const DEFAULT = '/api/v1/namespaces/default';
const TURN = 500;
/** Deployments that the pods are of. */
const MAKES = 100;
const opened = openStore({
  dataDir: null,
  durability: 'none',
  prefixes: [],
  historyBytesMax: 16 * 1024 * 1024,
  packAfterMs: 200,
});
const storage = new EmbeddedStorage(opened.store, () => opened.close());
let drawn = 0;
let later: (() => void)[] = [];
const api = createApiServer({
  storage,
  edge: {
    nowMs: () => Date.now(),
    below: (n) => ++drawn % n,
    uuid: () => randomUUID(),
    defer: (work) => void later.push(work),
    deferPiece: (work) => void later.push(work),
  },
  address: '127.0.0.1:6443',
  authorizers: [() => ({ allowed: true, reason: '' })],
});
const connection = new ConnectionModel();

function make(path: string, object: object): void {
  const headers = { 'content-type': 'application/json' };
  const exchange = new ExchangeModel('POST', path, object, headers, connection);
  api.handle(exchange);
  if (exchange.status !== 201) throw new Error(`${exchange.status}: ${exchange.text}`);
}

async function settle(): Promise<void> {
  opened.store.flush();
  for (let work = later; work.length > 0; work = later) {
    later = [];
    for (const one of work) one();
  }
  await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until what was written is packed, in the store's own time. */
async function rest(): Promise<void> {
  for (let quietMs = 0; quietMs < 2000; quietMs += 100) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await settle();
    if (opened.store.sweep.isPacking) quietMs = 0;
  }
}

/** Bytes of the heap and of buffers, those of the store included. */
async function held(): Promise<number> {
  await settle();
  await rest();
  globalThis.gc?.();
  await new Promise((resolve) => setTimeout(resolve, 100));
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** The object with an annotation that brings its text to so many bytes. */
function padded<T extends { readonly metadata: object }>(object: T, bytes: number): object {
  const pad = 'x'.repeat(Math.max(1, bytes - JSON.stringify(object).length - 26));
  return { ...object, metadata: { ...object.metadata, annotations: { pad } } };
}

const KINDS: Readonly<Record<string, (index: number) => void>> = {
  pods: (index) => {
    const team = index % MAKES;
    const env = Array.from({ length: 27 }, (_, n) => ({
      name: `SETTING_${n}`,
      value: `value-${team * 97 + n * 13}-of-the-setting-${n * team}`,
    }));
    const containers = [{ name: 'main', image: 'registry.k8s.io/pause:3.10', env }];
    const metadata = { name: `pod-${index}`, labels: { app: `rest-${team}` } };
    make(`${DEFAULT}/pods`, padded({ metadata, spec: { containers } }, 2000));
  },
  nodes: (index) => {
    // those of the pods that run there
    const images = Array.from({ length: 30 }, (_, n) => {
      const image = (index * 7 + n * 11) % 300;
      return { names: [`registry.k8s.io/image-${image}:v1.${image}`], sizeBytes: 1e6 + image };
    });
    const address = `10.${128 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
    const addresses = [{ type: 'InternalIP', address }];
    const capacity = { cpu: '32', memory: '256Gi', pods: '110' };
    const status = { capacity, allocatable: capacity, addresses, images };
    make('/api/v1/nodes', padded({ metadata: { name: `node-${index}` }, status }, 6000));
  },
  leases: (index) => {
    const name = `node-${index}`;
    const renewTime = '2026-01-02T03:04:05.000006Z';
    const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime };
    const owner = { apiVersion: 'v1', kind: 'Node', name, uid: randomUUID() };
    const metadata = { name, ownerReferences: [owner] };
    make('/apis/coordination.k8s.io/v1/namespaces/default/leases', { metadata, spec });
  },
};

bootstrap(api.parts.world, { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 6443 });
make(`${DEFAULT}/serviceaccounts`, { metadata: { name: 'default' } });
const [kind = 'pods', count = '200000'] = process.argv.slice(2);
const one = KINDS[kind];
if (one === undefined) throw new Error(`kinds: ${Object.keys(KINDS).join(', ')}`);
const all = Number(count);
let first = 0;
for (let index = 0; index < all; index++) {
  if (index === Math.floor(all / 4)) first = await held();
  one(index);
  if (index % TURN === TURN - 1) await settle();
}
const grown = (await held()) - first;
const each = Math.round(grown / (all - Math.floor(all / 4)));
process.stdout.write(`${kind}: ${each} bytes each, of ${all}\n`);
await storage.close();
