import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import fc from 'fast-check';
import { NodeScan } from './node-scan.ts';
import { EXISTS } from './node-flags.ts';
import { NodeTable } from './node-table.ts';
import { PodGc, QUARANTINE_MS } from '../nodelifecycle/pod-gc.ts';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { PodTable } from './pod-table.ts';
import { TaintEviction } from '../nodelifecycle/taint-eviction.ts';
import { staySeconds, taintOf } from '../framework/tolerations.ts';

interface World {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
}

function world(): World {
  const nodes = new NodeTable(new Random(1));
  return { nodes, pods: new PodTable(nodes, new Random(2)) };
}

const podScan = new ObjectScan();

function put(pods: PodTable, row: number, isNew: boolean, pod: unknown): boolean {
  const bytes = Buffer.from(JSON.stringify(pod));
  podScan.scan(bytes, 0, bytes.length);
  return pods.upsert(row, isNew, bytes, podScan);
}

function addNode(nodes: NodeTable, name: string, node: unknown = {}): number {
  const key = Buffer.from(name);
  const id = nodes.rowOf(key, 0, key.length);
  const scan = new NodeScan();
  const bytes = Buffer.from(JSON.stringify(node));
  assert(scan.scan(bytes, 0, bytes.length));
  nodes.bits.set(id, EXISTS | scan.bits);
  return id;
}

function listOf(pods: PodTable, node: number): number[] {
  const found: number[] = [];
  for (let pod = pods.first(node); pod >= 0; pod = pods.after(pod)) found.push(pod);
  return found.sort((a, b) => a - b);
}

test('the list of each node holds exactly its pods, whatever moves', () => {
  const step = fc.tuple(fc.nat(7), fc.constantFrom('', 'a', 'b', 'c', 'gone'));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { nodes, pods } = world();
      const model = new Map<number, string>();
      for (const [row, nodeName] of steps) {
        if (nodeName === 'gone') {
          if (model.delete(row)) pods.remove(row);
          continue;
        }
        const spec = nodeName === '' ? {} : { nodeName };
        put(pods, row, !model.has(row), { metadata: { name: `p${row}` }, spec });
        model.set(row, nodeName);
      }
      for (const name of ['a', 'b', 'c']) {
        const expected = [...model].filter(([, on]) => on === name).map(([row]) => row);
        const id = nodes.find(name);
        assert.deepEqual(
          id < 0 ? [] : listOf(pods, id),
          expected.sort((a, b) => a - b),
        );
      }
    }),
  );
});

test('a pod stays as long as its shortest used toleration, and not at all without one', () => {
  const taint = (key: string): ReturnType<typeof taintOf> => taintOf({ key, effect: 'NoExecute' });
  const k = { key: 'k', operator: 'Exists', tolerationSeconds: 60 };
  const j = { key: 'j', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 2 };
  assert.equal(staySeconds([k, j], [taint('k'), taint('j')]), 2);
  assert.equal(staySeconds([k, j], [taint('k')]), 60);
  assert.equal(staySeconds([k], [taint('k'), taint('j')]), 0);
  assert.equal(staySeconds([{ operator: 'Exists' }], [taint('x')]), Infinity);
  assert.equal(staySeconds([{ key: 'k', value: 'v' }], [taint('k')]), 0);
  assert.equal(staySeconds([{ key: 'k', tolerationSeconds: -5 }], [taint('k')]), 0);
  assert.equal(staySeconds([], []), Infinity);
});

/** A world whose evictions, and those called off, are written down. */
function evictions() {
  const { nodes, pods } = world();
  const log: string[] = [];
  const machine = new TaintEviction(pods, {
    evict: (pod) => log.push(`evict ${pod}`),
    cancel: (pod) => log.push(`cancel ${pod}`),
    due: () => {},
  });
  return { nodes, pods, machine, log };
}

test('evictions happen in time, and are called off when the taint goes', () => {
  const { nodes, pods, machine, log } = evictions();
  const node = addNode(nodes, 'n');
  const soon = { key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3 };
  const spec = (tolerations: unknown[]): unknown => ({ spec: { nodeName: 'n', tolerations } });
  put(pods, 0, true, spec([soon]));
  put(pods, 1, true, spec([{ operator: 'Exists' }]));
  put(pods, 2, true, spec([]));
  const taints = [{ key: 'k', effect: 'NoExecute' }];
  machine.taintsChanged(node, taints, 1_000);
  assert.deepEqual(log, ['evict 2']);
  machine.tick(2_000);
  machine.taintsChanged(node, [], 2_500);
  machine.tick(9_000);
  assert.deepEqual(log, ['evict 2', 'cancel 0']);
  machine.taintsChanged(node, taints, 10_000);
  machine.taintsChanged(node, [...taints, { key: 'k', value: 'x', effect: 'NoExecute' }], 12_000);
  machine.tick(12_999);
  assert.equal(machine.pending, 1);
  machine.tick(13_000);
  assert.deepEqual(log.slice(2), ['evict 0']);
  put(pods, 3, true, spec([]));
  machine.podChanged(3, 14_000);
  assert.deepEqual(log.slice(3), ['evict 3']);
});

test('a further taint makes a limited stay neither shorter nor longer, unless it ends it', () => {
  const { nodes, pods, machine, log } = evictions();
  const node = addNode(nodes, 'n');
  const tolerations = [
    { key: 'k', operator: 'Exists', tolerationSeconds: 60 },
    { key: 'j', operator: 'Exists', tolerationSeconds: 2 },
  ];
  for (const row of [0, 1]) put(pods, row, true, { spec: { nodeName: 'n', tolerations } });
  const [k, j, x] = ['k', 'j', 'x'].map((key) => ({ key, effect: 'NoExecute' }));
  assert(k !== undefined && j !== undefined && x !== undefined);
  machine.taintsChanged(node, [k], 0);
  machine.taintsChanged(node, [k, j], 1_000);
  machine.tick(59_999);
  assert.deepEqual(log, []);
  machine.podRemoved(1);
  pods.remove(1);
  assert.deepEqual(log, ['cancel 1'], 'a pod that goes by itself is told of');
  machine.taintsChanged(node, [k, x], 59_999);
  assert.deepEqual(log.slice(1), ['cancel 0', 'evict 0']);
});

function gcLog(setup: World, threshold: number): { readonly gc: PodGc; readonly log: string[] } {
  const log: string[] = [];
  const gc = new PodGc(setup.nodes, setup.pods, threshold, {
    confirmGone: (node) => log.push(`confirm ${setup.nodes.nameOf(node)}`),
    orphaned: (pod) => log.push(`orphaned ${pod}`),
    unscheduled: (pod) => log.push(`unscheduled ${pod}`),
    outOfService: (pod) => log.push(`outOfService ${pod}`),
    terminated: (pod) => log.push(`terminated ${pod}`),
  });
  return { gc, log };
}

test('pods of a missing node go after the quarantine and only if the server confirms', () => {
  const setup = world();
  const { gc, log } = gcLog(setup, 0);
  addNode(setup.nodes, 'here');
  put(setup.pods, 0, true, { spec: { nodeName: 'gone' } });
  put(setup.pods, 1, true, { spec: { nodeName: 'here' } });
  gc.pass(0, 2);
  gc.pass(QUARANTINE_MS - 1, 2);
  assert.deepEqual(log, []);
  gc.pass(QUARANTINE_MS, 2);
  assert.deepEqual(log, ['confirm gone']);
  const gone = setup.nodes.find('gone');
  gc.nodeFound(gone, QUARANTINE_MS);
  gc.pass(QUARANTINE_MS + 20_000, 2);
  assert.equal(log.length, 1);
  gc.pass(2 * QUARANTINE_MS, 2);
  gc.nodeGone(gone);
  assert.deepEqual(log, ['confirm gone', 'confirm gone', 'orphaned 0']);
});

test('a missing node that gets the number of a forgotten one has a quarantine of its own', () => {
  const setup = world();
  const { gc, log } = gcLog(setup, 0);
  setup.nodes.released = (node) => gc.forget(node);
  put(setup.pods, 0, true, { spec: { nodeName: 'first' } });
  gc.pass(0, 1);
  const first = setup.nodes.find('first');
  setup.pods.remove(0);
  put(setup.pods, 0, true, { spec: { nodeName: 'second' } });
  assert.equal(setup.nodes.find('second'), first, 'the number is used again');
  gc.pass(QUARANTINE_MS, 1);
  assert.deepEqual(log, []);
  gc.pass(2 * QUARANTINE_MS, 1);
  assert.deepEqual(log, ['confirm second']);
});

test('pods being deleted where no kubelet will end them are ended', () => {
  const setup = world();
  const { gc, log } = gcLog(setup, 0);
  addNode(setup.nodes, 'n', {
    spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] },
    status: { conditions: [{ type: 'Ready', status: 'False' }] },
  });
  const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  put(setup.pods, 0, true, { metadata, spec: {} });
  put(setup.pods, 1, true, { metadata, spec: { nodeName: 'n' } });
  put(setup.pods, 2, true, { metadata: {}, spec: { nodeName: 'n' } });
  gc.pass(0, 3);
  assert.deepEqual(log, ['unscheduled 0', 'outOfService 1']);
});

test('of too many ended pods the evicted go first, then the oldest', () => {
  const setup = world();
  const { gc, log } = gcLog(setup, 2);
  const ended = (hour: number, phase: string, reason?: string): unknown => ({
    metadata: { creationTimestamp: `2026-01-01T0${hour}:00:00Z` },
    spec: {},
    status: { phase, reason },
  });
  put(setup.pods, 0, true, ended(3, 'Succeeded'));
  put(setup.pods, 1, true, ended(1, 'Succeeded'));
  put(setup.pods, 2, true, ended(2, 'Failed'));
  put(setup.pods, 3, true, ended(5, 'Failed', 'Evicted'));
  put(setup.pods, 4, true, ended(0, 'Running'));
  gc.pass(0, 5);
  assert.deepEqual(log, ['terminated 3', 'terminated 1']);
});
