import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import fc from 'fast-check';
import type { CollectionHandler, SharedInformers } from '../framework/shared-informers.ts';
import { DaemonRows } from './daemon-rows.ts';

const HOSTNAME = 'kubernetes.io/hostname';

test('nodes that differ in their names alone are of one class, and are shown whole', () => {
  let handler: CollectionHandler | null = null;
  const informers = {
    subscribe: (_: object, given: CollectionHandler) => {
      handler = given;
      return { keyOf: (row: number) => `n${row}` };
    },
  } as unknown as SharedInformers;
  let changes = 0;
  const rows = new DaemonRows(informers, new Random(1), () => void changes++);
  const scan = new ObjectScan();
  const see = (row: number, isNew: boolean, node: object): void => {
    const bytes = Buffer.from(JSON.stringify(node));
    assert(scan.scan(bytes, 0, bytes.length));
    handler?.onUpsert(row, isNew, bytes, 0, bytes.length, scan);
  };
  const labels = fc.dictionary(fc.constantFrom('a', HOSTNAME, 'zone', 'é'), fc.string(), {
    noNullPrototype: true,
  });
  const taint = fc.record({ key: fc.constantFrom('x', 'y'), effect: fc.constant('NoSchedule') });
  const node = fc.record({ labels: fc.option(labels), taints: fc.option(fc.array(taint)) });
  const classes = new Map<string, number>();
  let row = 0;
  fc.assert(
    fc.property(node, (one) => {
      const metadata = one.labels === null ? {} : { labels: one.labels };
      const spec = one.taints === null ? {} : { taints: one.taints };
      see(row, true, { metadata, spec });
      const before = changes;
      see(row, false, { metadata: { ...metadata, annotations: { a: 'b' } }, spec, status: {} });
      assert.equal(changes, before, 'nothing that matters has changed');
      const shown = rows.nodeOf(row, rows.classOf(row));
      const others = { ...one.labels };
      delete others[HOSTNAME];
      assert.deepEqual(shown.labels, { ...others, [HOSTNAME]: `n${row}` });
      assert.equal(shown.taints.length, one.taints?.length ?? 0);
      const key = JSON.stringify([others, one.taints ?? []]);
      const known = classes.get(key);
      if (known !== undefined) assert.equal(rows.classOf(row), known);
      classes.set(key, rows.classOf(row));
      row++;
    }),
  );
  assert.equal(new Set(classes.values()).size, classes.size, 'others are of other classes');
});
