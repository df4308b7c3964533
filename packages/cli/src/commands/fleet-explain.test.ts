import assert from 'node:assert/strict';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { explain, Lines } from './fleet-explain.ts';

async function answers(...chunks: readonly (string | Buffer)[]): Promise<readonly string[]> {
  let text = '';
  const output = new Writable({
    highWaterMark: 1,
    write(chunk, _encoding, done): void {
      text += String(chunk);
      setImmediate(done);
    },
  });
  const input = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  assert.equal(await explain(input, output), 0);
  return text.split('\n');
}

test('each line gets one line, also the last one and those that are no question', async () => {
  const found = await answers('{"kind":"no', 'pe"}\n\n[]\r\n{"kind":\n', '{"kind":"constructor"}');
  assert.equal(found.length, 5);
  assert.match(found[0] ?? '', /^\{"error":"unknown kind \\"nope\\"/);
  assert.match(found[1] ?? '', /a question is a JSON object/);
  assert.match(found[2] ?? '', /JSON/);
  assert.match(found[3] ?? '', /unknown kind \\"constructor\\"/);
  assert.equal(found[4], '');
});

test('a letter that two chunks share stays whole', async () => {
  const letter = Buffer.from('ü');
  const found = await answers(
    Buffer.concat([Buffer.from('{"kind":"'), letter.subarray(0, 1)]),
    Buffer.concat([letter.subarray(1), Buffer.from('"}\n')]),
  );
  assert.match(found[0] ?? '', /unknown kind \\"ü\\"/);
});

test('a line over the limit is passed over, the ones around it are kept', () => {
  const lines = new Lines(4);
  assert.deepEqual(lines.push('abcd\nab'), ['abcd']);
  assert.deepEqual(lines.push('cde\nxy'), [undefined]);
  assert.deepEqual(lines.push('\n'), ['xy']);
});
