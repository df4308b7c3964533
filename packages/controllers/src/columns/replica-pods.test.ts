import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { mapSelector } from '@megaplane/machinery/selectors';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import fc from 'fast-check';
import { rowsToDelete } from './replica-order.ts';
import { PHASE_RUNNING, REPLICA_DELETING, REPLICA_READY, ReplicaPods } from './replica-pods.ts';

const scan = new ObjectScan();

function scanOf(bytes: Buffer): ObjectScan {
  scan.scan(bytes, 0, bytes.length);
  return scan;
}

interface Pod {
  readonly namespace: string;
  readonly app: string;
  readonly owner: string;
}

function bytesOf({ namespace, app, owner }: Pod): Buffer {
  const other = { kind: 'Node', uid: 'not-this' };
  const mine = { kind: 'ReplicaSet', uid: owner, controller: true };
  const metadata = {
    name: 'p',
    namespace,
    labels: { app },
    ownerReferences: owner === '' ? [other] : [other, mine],
  };
  return Buffer.from(JSON.stringify({ kind: 'Pod', metadata, spec: {}, status: {} }));
}

const pod: fc.Arbitrary<Pod> = fc.record({
  namespace: fc.constantFrom('a', 'ab', 'b'),
  app: fc.constantFrom('x', 'y', 'z'),
  owner: fc.constantFrom('', 'u1', 'u2', 'u3'),
});
const change = fc.record({
  row: fc.nat({ max: 12 }),
  pod: fc.option(pod, { nil: undefined }),
});

/** What the table says of owners and label sets, as plain lists. */
function listed(table: ReplicaPods, owner: string): number[] {
  const rows: number[] = [];
  const id = table.findOwner(owner);
  for (let row = table.firstOfOwner(id); row >= 0; row = table.nextOfOwner(row)) rows.push(row);
  return rows.toSorted((a, b) => a - b);
}

function selected(table: ReplicaPods, namespace: string, app: string): number[] {
  const program = new LabelProgram(mapSelector({ app }));
  const rows: number[] = [];
  for (let set = table.firstSet(namespace); set >= 0; set = table.nextSet(set)) {
    assert.equal(table.namespaceOfSet(set), namespace);
    if (!table.matches(set, program)) continue;
    for (let row = table.firstOfSet(set); row >= 0; row = table.nextOfSet(row)) rows.push(row);
  }
  return rows.toSorted((a, b) => a - b);
}

test('owners and selectors find exactly their pods, whatever comes and goes', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const table = new ReplicaPods(new Random(1));
      const model: Map<number, Pod> = new Map();
      for (const { row, pod: next } of changes) {
        const before = model.get(row);
        if (next === undefined) {
          if (before !== undefined) table.remove(row);
          model.delete(row);
        } else {
          const bytes = bytesOf(next);
          table.upsert(row, before === undefined, bytes, scanOf(bytes));
          model.set(row, next);
        }
        if (before !== undefined && before.owner !== '') {
          assert.equal(table.uidOf(table.ownerBefore), before.owner);
        }
      }
      const rowsOf = (is: (one: Pod) => boolean): number[] =>
        [...model].flatMap(([row, one]) => (is(one) ? [row] : [])).toSorted((a, b) => a - b);
      for (const uid of ['u1', 'u2', 'u3']) {
        assert.deepEqual(
          listed(table, uid),
          rowsOf((one) => one.owner === uid),
        );
      }
      for (const namespace of ['a', 'ab', 'b']) {
        for (const app of ['x', 'y', 'z']) {
          const expected = rowsOf((one) => one.namespace === namespace && one.app === app);
          assert.deepEqual(selected(table, namespace, app), expected);
        }
      }
    }),
    { numRuns: 200 },
  );
});

function upsert(table: ReplicaPods, row: number, pod: object): void {
  const bytes = Buffer.from(JSON.stringify(pod));
  table.upsert(row, true, bytes, scanOf(bytes));
}

const NOW_S: number = Date.UTC(2026, 0, 1) / 1000;

/** Ages in seconds. */
function replica(
  node: string,
  phase: string,
  more: { ready?: number; restarts?: number; cost?: string; created?: number } = {},
): object {
  const at = (age: number): string => new Date((NOW_S - age) * 1000).toISOString();
  const { ready, restarts = 0, cost, created = 1_000 } = more;
  return {
    metadata: {
      namespace: 'a',
      creationTimestamp: at(created).replace('.000', ''),
      annotations: cost === undefined ? {} : { 'controller.kubernetes.io/pod-deletion-cost': cost },
    },
    spec: node === '' ? {} : { nodeName: node },
    status: {
      phase,
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        {
          type: 'Ready',
          status: ready === undefined ? 'False' : 'True',
          lastTransitionTime: at(ready ?? 0).replace('.000', ''),
        },
      ],
      containerStatuses: [{ restartCount: 0 }, { restartCount: restarts }],
    },
  };
}

test('of a pod are kept phase, readiness, deletion, restarts and cost', () => {
  const table = new ReplicaPods(new Random(1));
  upsert(table, 3, replica('n', 'Running', { ready: 40, restarts: 7, cost: '-12' }));
  assert.equal(table.phaseOf(3), PHASE_RUNNING);
  assert.equal(table.flags.get(3) & REPLICA_READY, REPLICA_READY);
  assert.equal(table.flags.get(3) & REPLICA_DELETING, 0);
  assert.equal(table.readyS.get(3), NOW_S - 40);
  assert.equal(table.restarts.get(3), 7);
  assert.equal(table.deletionCost.get(3), -12);
  assert(table.isActive(3));
  upsert(table, 4, replica('n', 'Failed'));
  assert(!table.isActive(4));
});

test('those replicas go first that nobody would miss', () => {
  const table = new ReplicaPods(new Random(1));
  const inOrder = [
    replica('', 'Pending'),
    replica('n1', 'Pending'),
    replica('n1', 'Running'),
    replica('n1', 'Running', { ready: 500, cost: '-1' }),
    replica('crowded', 'Running', { ready: 500 }),
    replica('n1', 'Running', { ready: 10 }),
    replica('n1', 'Running', { ready: 500, restarts: 3 }),
    replica('n1', 'Running', { ready: 500, created: 600 }),
    replica('n1', 'Running', { ready: 500, created: 3_000 }),
    replica('n1', 'Running', { ready: 500, cost: '10' }),
  ];
  for (const [row, one] of inOrder.entries()) upsert(table, row, one);
  const rows = inOrder.map((_, row) => row);
  const neighbours = new Map([[table.node.get(4), 5]]);
  for (let count = 1; count <= rows.length; count++) {
    const found = rowsToDelete(table, rows.toReversed(), count, neighbours, NOW_S);
    assert.deepEqual(
      found.toSorted((a, b) => a - b),
      rows.slice(0, count),
    );
  }
});
