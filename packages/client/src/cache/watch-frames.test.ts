import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as frames from './watch-frames.ts';

const NAMES = ['', 'ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR', 'GARBAGE'];

/** Types and objects found in `chunks`. */
function read(chunks: readonly Uint8Array[]): [type: string, object: string][] {
  const splitter = new frames.WatchFrames();
  const found: [string, string][] = [];
  for (const bytes of chunks) {
    const chunk = Buffer.concat([Buffer.from('##'), bytes, Buffer.from('##\n')]);
    splitter.push(chunk, 2, chunk.length - 3);
    while (splitter.next()) {
      const { objectStart, objectEnd, type } = splitter;
      found.push([NAMES[type] ?? '?', splitter.bytes.toString('utf8', objectStart, objectEnd)]);
    }
    chunk.fill(1);
  }
  return found;
}

const event = fc.tuple(
  fc.constantFrom(...NAMES.slice(1, 6)),
  fc.jsonValue(),
  fc.integer({ min: 0, max: 2 }),
);

test('events are found whatever they hold and however their bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(event), fc.array(fc.nat(100)), (events, sizes) => {
      const expected: [string, string][] = [];
      let stream = '';
      for (const [type, value, form] of events) {
        const object = JSON.stringify({ value });
        expected.push([type, object]);
        if (form === 0) stream += `{"type":"${type}","object":${object}}\n`;
        else if (form === 1) stream += `{"object": ${object}, "type" :"${type}"}\r\n\n`;
        else stream += `{"type":"${type}","object":${object},"more":[1]}\n`;
      }
      const bytes = Buffer.from(stream);
      const chunks: Uint8Array[] = [];
      let at = 0;
      for (const size of [...sizes, bytes.length]) {
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      assert.deepEqual(read(chunks), expected);
    }),
    { numRuns: 300 },
  );
});

test('lines that are no events are told apart', () => {
  for (const line of [
    'x',
    '[]',
    '{}',
    '{"type":"ADDED"}',
    '{"type":"ADDED","object":{}',
    '{"type":"ADDED","object":{}} x',
    '{"type":"LATER","object":{}}',
    '{"object":{}}',
  ]) {
    assert.equal(read([Buffer.from(`${line}\n`)])[0]?.[0], 'GARBAGE', line);
  }
});

test('a frame over the limit is reported, not collected', () => {
  const splitter = new frames.WatchFrames();
  const chunk = Buffer.alloc(1 << 20, 'x');
  for (let i = 0; i < 17; i++) {
    splitter.push(chunk, 0, chunk.length);
    assert.equal(splitter.next(), false);
  }
  assert.equal(splitter.isTooLong, true);
});
