import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { Informer } from '@megaplane/client/informer';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { WorkloadApi } from '../../test/workload-api.ts';
import { NodeController } from './controller.ts';
import {
  SharedInformers,
  type Collection,
  type CollectionHandler,
} from '../framework/shared-informers.ts';

const LEASES = '/apis/coordination.k8s.io/v1/leases';
const READING_MS = 10_000;
const NODES = ['n0', 'n1', 'n2'] as const;
const SILENT = 1;

/** Informers that say what the test says, as of a cluster too large to be watched. */
class Told extends SharedInformers {
  readonly #handlers = new Map<string, CollectionHandler>();
  readonly #scan = new ObjectScan();

  override subscribe({ path }: Collection, handler: CollectionHandler): Informer {
    this.#handlers.set(path, handler);
    const keyOf = (row: number): string => (path === LEASES ? 'kube-node-lease/' : '') + NODES[row];
    const informer = { keyOf, isPolling: true, resourceVersionOf: () => 1, idLimit: 0 };
    return informer as unknown as Informer;
  }

  of(path: string): CollectionHandler {
    const handler = this.#handlers.get(path);
    assert(handler !== undefined);
    return handler;
  }

  show(path: string, row: number, object: object): void {
    const bytes = Buffer.from(JSON.stringify(object));
    assert(this.#scan.scan(bytes, 0, bytes.length));
    this.of(path).onUpsert(row, true, bytes, 0, bytes.length, this.#scan);
  }
}

function nodeOf(name: string): object {
  const types = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];
  const others = types.map((type) => ({ type, status: 'False' }));
  const conditions = [{ type: 'Ready', status: 'True' }, ...others];
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: {}, status: { conditions } };
}

test('of leases that are known by silence alone only the silent one loses its node', async () => {
  const api = new WorkloadApi();
  const informers = new Told(api, (text) => assert.fail(text));
  const part = new NodeController({
    client: api,
    informers,
    onError: (error) => assert.fail(String(error)),
    random: new Random(1),
    rules: {
      ...{ periodMs: 5000, graceMs: 50_000, startupGraceMs: 60_000 },
      ...{ evictionRate: 0.1, secondaryEvictionRate: 0.01 },
      ...{ unhealthyThreshold: 0.55, largeClusterSize: 50 },
    },
    terminatedPodThreshold: 0,
    ...{ isLifecycle: true, isEviction: false, isPodGc: false, isTtl: false },
    announce: () => () => {},
    monotonicMs: () => api.timers.nowMs(),
    now: () => new Date(api.timers.nowMs()).toISOString(),
    log: () => {},
  });
  const renewTime = '2026-01-02T03:04:05.000006Z';
  const lease = (name: string) => ({ metadata: { name }, spec: { renewTime } });
  for (const [row, name] of NODES.entries()) {
    await api.request({ method: 'POST', path: '/api/v1/nodes', body: { ...nodeOf(name) } });
    const path = LEASES.replace('leases', 'namespaces/kube-node-lease/leases');
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...lease(name) };
    await api.request({ method: 'POST', path, body });
    informers.show('/api/v1/nodes', row, nodeOf(name));
    informers.show(LEASES, row, { metadata: { name }, spec: { renewTime: 'of before' } });
  }
  part.start();
  const leases = informers.of(LEASES);
  const marked = (): string[] => api.log.filter((line) => line.includes('/status'));
  const read = async (isSilent: boolean): Promise<void> => {
    for (const [row, name] of NODES.entries()) {
      const bytes = Buffer.from(JSON.stringify(lease(name)));
      if (isSilent && row === SILENT) leases.onStill?.(row, bytes, 0, bytes.length);
      else leases.onMoved?.(row);
    }
    leases.onSynced?.();
    await api.advance(READING_MS);
  };
  for (let reading = 0; reading < 4; reading++) await read(false);
  assert.deepEqual(marked(), []);
  // that it moved was read at 30 s; since 40 s it is known to rest since 20 s
  for (let reading = 0; reading < 3; reading++) await read(true);
  assert.deepEqual(marked(), [], 'it has its grace, until 70 s');
  for (let reading = 0; reading < 3; reading++) await read(true);
  assert.equal(marked().length, 1);
  assert.match(marked()[0] ?? '', /nodes\/n1\/status/);
  part.stop();
});
