import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameReader } from './websocket-frames.ts';

const MASK = [0x12, 0x34, 0x56, 0x78] as const;

/** A frame as clients send it; `first`: the byte with its end and kind. */
function frame(first: number, data: string | Buffer, length: number = data.length): Buffer {
  const head =
    length < 126
      ? Buffer.from([first, 0x80 | length])
      : Buffer.from([first, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
  if (length >= 126) head.writeUInt32BE(length, 6);
  const masked = Buffer.from(data).map((byte, at) => byte ^ (MASK[at & 3] ?? 0));
  return Buffer.concat([head, Buffer.from(MASK), masked]);
}

/** What a reader tells of bytes that come in pieces of `size`; pieces of one message are joined. */
function told(bytes: Buffer, size: number = bytes.length): string[] {
  const lines: string[] = [];
  const reader = new FrameReader({
    onData: (piece, isContinued) => {
      if (isContinued) lines[lines.length - 1] += piece.toString();
      else lines.push(piece.toString());
    },
    onReply: (reply) => lines.push(`reply ${reply.toString('hex')}`),
    onClose: () => lines.push('closed'),
  });
  for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
  return lines;
}

test('messages come whole, in frames and with control frames between, however they are cut', () => {
  const parts = [
    ...[frame(0x82, 'one'), frame(0x02, ''), frame(0x00, 't'), frame(0x80, 'wo')],
    ...[frame(0x89, 'ping'), frame(0x8a, ''), frame(0x81, ''), frame(0x82, 'x'.repeat(300))],
    frame(0x88, Buffer.from([3, 232, 98])),
  ];
  const wanted = [
    ...['one', 'two', 'reply 8a0470696e67', 'x'.repeat(300)],
    ...['reply 880203e8', 'closed'],
  ];
  const bytes = Buffer.concat(parts);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: bytes.length }), (size) => {
      assert.deepEqual(told(bytes, size), wanted);
    }),
  );
});

test('who breaks the rules is told why, and nothing follows', () => {
  const after = frame(0x82, 'after');
  const wrong: readonly (readonly [string, Buffer, number])[] = [
    ['no mask', Buffer.from([0x82, 1, 65]), 1002],
    ['reserved bits', frame(0xc2, 'a'), 1002],
    ['an unknown kind', frame(0x83, 'a'), 1002],
    ['an unknown control frame', frame(0x8b, ''), 1002],
    ['a control frame in parts', frame(0x09, 'a'), 1002],
    ['a long control frame', frame(0x89, 'a', 126), 1002],
    ['a part of no message', frame(0x80, 'a'), 1002],
    ['a message within one', Buffer.concat([frame(0x02, ''), frame(0x82, 'b')]), 1002],
    ['a huge frame', frame(0x82, '', 2 ** 25), 1009],
  ];
  for (const [what, bytes, code] of wrong) {
    const reply = `reply 8802${code.toString(16).padStart(4, '0')}`;
    assert.deepEqual(told(Buffer.concat([bytes, after])), [reply, 'closed'], what);
  }
});

test('a frame of megabytes that trickles in costs its length', () => {
  const before = process.cpuUsage();
  const bytes = frame(0x82, Buffer.alloc(8_000_000, 'a'));
  let size = 0;
  const reader = new FrameReader({
    onData: (piece) => (size += piece.length),
    onReply: () => {},
    onClose: () => {},
  });
  for (let at = 0; at < bytes.length; at += 500) reader.read(bytes.subarray(at, at + 500));
  assert.equal(size, 8_000_000);
  const { user, system } = process.cpuUsage(before);
  assert(user + system < 3_000_000, `${(user + system) / 1000} ms`);
});
