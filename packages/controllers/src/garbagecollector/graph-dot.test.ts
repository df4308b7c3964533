import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { dumpGraph } from './graph-dot.ts';
import { GarbageGraph } from './garbage-graph.ts';

const uidOf = (n: number): string => `0000000${n}-0000-4000-8000-000000000000`;

/** Config maps `c0`, `c1` ... of one namespace, each with its owners by number. */
function graphOf(owners: readonly (readonly number[])[]): GarbageGraph {
  const graph = new GarbageGraph(new Random(1), {
    check: () => {},
    locate: (_resource, _row, { name }) =>
      Number(name.slice(1)) < owners.length ? [0, Number(name.slice(1))] : undefined,
    calledHash: () => 1,
    placeHash: () => 1,
  });
  graph.addResource(0);
  const scan = new ObjectScan();
  for (const [row, own] of owners.entries()) {
    const ownerReferences = own.map((n) => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', name: `c${n}`, uid: uidOf(n) },
    }));
    const bytes = Buffer.from(JSON.stringify({ metadata: { uid: uidOf(row), ownerReferences } }));
    scan.scan(bytes, 0, bytes.length);
    graph.upsert(0, row, true, bytes, scan);
  }
  return graph;
}

function dump(graph: GarbageGraph, rowEnd: number, ...uids: string[]): string {
  const nameOf = (row: number): [string, string] => ['n', `c${row}`];
  const kinds = [{ group: '', version: 'v1', kind: 'ConfigMap', rowEnd, nameOf }];
  return [...dumpGraph(graph, kinds, uids)].join('');
}

// The form is that of kube-controller-manager v1.36.1.
test('the graph of owners is written for Graphviz, without what stands alone', () => {
  const graph = graphOf([[], [0], []]);
  const node = (n: number): string =>
    [
      `  "${uidOf(n)}" [`,
      `    label="uid=${uidOf(n)}\\nnamespace=n\\nConfigMap.v1/c${n}\\n"`,
      '    group=""',
      '    version="v1"',
      '    kind="ConfigMap"',
      '    namespace="n"',
      `    name="c${n}"`,
      `    uid="${uidOf(n)}"`,
      '    missing="false"',
      '    beingDeleted="false"',
      '    deletingDependents="false"',
      '    virtual="false"',
      '  ];\n',
    ].join('\n');
  const edges = `  // Edge definitions.\n  "${uidOf(1)}" -> "${uidOf(0)}";\n`;
  const nodes = `  // Node definitions.\n${node(0)}${node(1)}`;
  assert.equal(dump(graph, 3), `strict digraph full {\n${nodes}${edges}}\n`);
  assert.equal(dump(graphOf([[], []]), 2), 'strict digraph full {\n}\n');
});

test('around a uid only what hangs together with it is shown, and owners that are missing', () => {
  const graph = graphOf([[], [0], [1], [], [3], [9]]);
  const shown = (...uids: string[]): number[] =>
    [...dump(graph, 6, ...uids).matchAll(/name="c(\d)"/g)]
      .map(([, n]) => Number(n))
      .toSorted((a, b) => a - b);
  assert.deepEqual(shown(uidOf(1)), [0, 1, 2]);
  assert.deepEqual(shown(uidOf(4)), [3, 4]);
  assert.deepEqual(shown('nobody'), []);
  const lost = dump(graph, 6, uidOf(5));
  assert.match(lost, /missingFromGraph/);
  assert.match(lost, new RegExp(`"${uidOf(5)}" -> "${uidOf(9)}"`));
});
