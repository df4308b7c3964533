import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG_END_STREAM, FRAMES, writeFrameHead } from './frames.ts';
import { Output } from './output.ts';
import type { Transport } from '../transport/transport.ts';
import { BLOCK_BYTES, COPY_BYTES_MAX } from '../limits.ts';

test('what waits, and is small, holds no block, and leaves in order with what came after', () => {
  const output = new Output();
  const sent: string[] = [];
  const transport = {
    write: (bytes: Buffer, start: number, end: number) => {
      sent.push(bytes.latin1Slice(start, end));
      return true;
    },
  } as unknown as Transport;
  const put = (text: string): void => {
    output.reserve(text.length);
    output.at += output.bytes.write(text, output.at, 'latin1');
  };
  const large = 'c'.repeat(20_000);
  put('a');
  output.park();
  assert(output.bytes.length <= COPY_BYTES_MAX);
  put('b');
  output.park();
  assert(output.bytes.length <= COPY_BYTES_MAX);
  output.flush(transport);
  output.expect(large.length);
  put('c');
  output.park();
  assert(output.bytes.length <= COPY_BYTES_MAX);
  put(large);
  output.park();
  assert.equal(output.bytes.length, BLOCK_BYTES);
  assert.equal(output.size, large.length + 1);
  output.flush(transport);
  assert.deepEqual(sent, ['ab', `c${large}`]);
  output.reserve(1);
  output.park();
  assert.equal(output.bytes.length, 0);
  assert.equal(output.size, 0);
});

test('what follows on a stream grows its last frame, up to the limit and to other frames', () => {
  const output = new Output();
  const send = (stream: number, size: number): void => {
    output.reserveData(stream, size, 100);
    output.at += size;
  };
  const frames = (): string[] => {
    const found: string[] = [];
    for (let at = 0; at < output.at;) {
      const length = output.bytes.readUIntBE(at, 3);
      found.push(`${output.bytes.readUInt32BE(at + 5)}:${length}/${output.bytes[at + 4]}`);
      at += 9 + length;
    }
    return found;
  };
  send(1, 40);
  send(1, 60);
  send(1, 1);
  send(3, 5);
  send(1, 7);
  // A frame of another kind, here without a payload.
  output.reserve(9);
  output.at = writeFrameHead(output.bytes, output.at, 0, FRAMES.ping, 0, 0);
  send(1, 2);
  send(1, 3);
  output.closeData(FLAG_END_STREAM);
  send(1, 4);
  assert.deepEqual(frames(), ['1:100/0', '1:1/0', '3:5/0', '1:7/0', '0:0/0', '1:5/1', '1:4/0']);
});
