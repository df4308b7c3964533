import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { printerOf, rowOpening } from '@megaplane/machinery/printing';
import { appendRow, packRow } from './kept-rows.ts';
import { Sink } from '../sink/sink.ts';
import { MERGE, Rig } from '../testing/rig.sim.ts';

const START_MS = Date.UTC(2026, 0, 2);
const pods = printerOf('', 'Pod');

const time = fc.nat(1_000_000).map((seconds) => {
  return new Date(START_MS + seconds * 1000).toISOString().replace('.000', '');
});
/** Marks of ages, and what looks like some, may stand in the object's own texts. */
const text = fc.constantFrom('a', '', 'é', '\u0001', '\u00015\u0001', '\\u0001', '"', 'Evicted');
const shapes = fc.record({
  metadata: fc.record({ name: text, creationTimestamp: fc.oneof(time, fc.constantFrom('', 'x')) }),
  spec: fc.record({
    nodeName: text,
    containers: fc.array(fc.constant<JsonObject>({}), { maxLength: 2 }),
  }),
  status: fc.record({
    phase: fc.constantFrom('Running', 'Failed', 'Succeeded'),
    reason: text,
    containerStatuses: fc.array(
      fc.record({
        restartCount: fc.nat(3),
        lastState: fc.record({ terminated: fc.record({ finishedAt: time }) }),
        state: fc.record({ waiting: fc.record({ reason: text }) }),
      }),
      { maxLength: 2 },
    ),
  }),
});

test('a kept row is, at any later time, the row that is made then', () => {
  const sink = new Sink();
  let kept = 0;
  fc.assert(
    fc.property(shapes, fc.nat(10_000_000), (pod, laterSeconds) => {
      const packed = packRow(pods, pod);
      if (packed === null) return;
      kept++;
      const nowMs = START_MS + laterSeconds * 1000;
      sink.length = 0;
      appendRow(sink, packed, nowMs);
      assert.equal(sink.bytes.toString('utf8', 0, sink.length), rowOpening(pods.row(pod, nowMs)));
    }),
    { numRuns: 500 },
  );
  assert.ok(kept > 50, `${kept} of 500 were kept`);
});

test('a table that is asked for again has the ages of then', () => {
  const rig = new Rig();
  const container = { name: 'c', image: 'i' };
  for (const name of ['one', 'two']) {
    const pod = { metadata: { name }, spec: { containers: [container] } };
    assert.equal(rig.ask('POST', '/api/v1/namespaces/a/pods', pod).status, 201);
  }
  const rows = (include: string): readonly (readonly unknown[])[] => {
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const path = `/api/v1/pods?includeObject=${include}`;
    const table = JSON.parse(rig.ask('GET', path, undefined, { accept }).text) as {
      readonly rows: readonly {
        readonly cells: readonly unknown[];
        readonly object: { readonly kind: string } | null;
      }[];
    };
    return table.rows.map(({ cells, object }) => [cells[0], cells[4], object?.kind]);
  };
  const shown = (age: string, kind?: string): unknown => ['one', 'two'].map((n) => [n, age, kind]);
  assert.deepEqual(rows('Metadata'), shown('0s', 'PartialObjectMetadata'));
  rig.nowMs += 61_000;
  assert.deepEqual(rows('Metadata'), shown('61s', 'PartialObjectMetadata'));
  assert.deepEqual(rows('None'), shown('61s'));
  rig.nowMs += 3_600_000;
  assert.deepEqual(rows('Object'), shown('61m', 'Pod'));
  assert.deepEqual(rows('None'), shown('61m'));
});

test('a watched table has the ages of the moment in which a row is sent', () => {
  const rig = new Rig();
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const watches = [rig.ask('GET', '/api/v1/namespaces?watch=1', undefined, { accept })];
  rig.nowMs += 3_600_000;
  watches.push(rig.ask('GET', '/api/v1/namespaces?watch=1', undefined, { accept }));
  rig.ask('POST', '/api/v1/namespaces', { metadata: { name: 'late' } });
  rig.nowMs += 61_000;
  const labels = { a: 'b' };
  rig.ask('PATCH', '/api/v1/namespaces/late', { metadata: { labels } }, MERGE);
  for (const watch of watches) {
    const rows = watch.text
      .split('\n')
      .slice(0, -1)
      .flatMap((line) => {
        const { object } = JSON.parse(line) as {
          readonly object: { readonly rows: readonly { readonly cells: readonly unknown[] }[] };
        };
        return object.rows.map(({ cells }) => cells);
      });
    const late = rows.filter(([name]) => name === 'late');
    assert.deepEqual(late, [
      ['late', 'Active', '0s'],
      ['late', 'Active', '61s'],
    ]);
  }
});
