import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EventReader } from './event-stream.ts';

const STREAM =
  ': still here\n\nevent: hello\ndata: {"a":1}\n\ndata: one\ndata: two\n\nevent: none\n\n';

test('events are the same however the stream is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 8 }), (cuts) => {
      const reader = new EventReader();
      const edges = [0, ...cuts.toSorted((a, b) => a - b), STREAM.length];
      const events = edges.flatMap((edge, index) =>
        reader.push(STREAM.slice(edges[index - 1] ?? 0, edge)),
      );
      assert.deepEqual(events, [
        { event: 'hello', data: '{"a":1}' },
        { event: 'message', data: 'one\ntwo' },
      ]);
    }),
  );
});
