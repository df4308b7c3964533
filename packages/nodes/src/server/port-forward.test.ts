import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { constants, createDeflate } from 'node:zlib';
import { servePortForward } from './port-forward.ts';
import { SPDY_DICTIONARY } from './spdy-dictionary.ts';

const UNREAD_BYTES_MAX: number = 1024 * 1024;

test('what a forwarded port sends waits for a client that does not read', async () => {
  const [near, far] = duplexPair();
  const headers = { upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'portforward.k8s.io' };
  const request = { headers } as unknown as IncomingMessage;
  const forever = { ports: [80], command: ['cat', '/dev/zero'], target: null, httpRoutes: [] };
  servePortForward(
    ...([request, near, Buffer.alloc(0), 'p/default'] as const),
    new URLSearchParams(),
    () => forever,
  );
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY });
  const blocks: Buffer[] = [];
  deflate.on('data', (block: Buffer) => blocks.push(block));
  for (const [id, type] of [
    [1, 'error'],
    [3, 'data'],
  ] as const) {
    const words = ['streamtype', type, 'port', '80', 'requestid', '0'];
    const text = Buffer.concat([
      Buffer.from([0, 0, 0, words.length / 2]),
      ...words.flatMap((word) => [Buffer.from([0, 0, 0, word.length]), Buffer.from(word)]),
    ]);
    deflate.write(text);
    await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve));
    const block = Buffer.concat(blocks.splice(0));
    const head = Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 0]);
    head.writeUIntBE(block.length + 10, 5, 3);
    far.write(Buffer.concat([head, Buffer.from([0, 0, 0, id, 0, 0, 0, 0, 0, 0]), block]));
  }
  // the answer's head, and then what the command says
  while (near.writableLength < near.writableHighWaterMark) await pause(1);
  for (let looks = 0; looks < 200; looks++) {
    await pause(1);
    assert(near.writableLength < UNREAD_BYTES_MAX, `${near.writableLength} bytes wait`);
  }
  // it goes on for who reads
  let read = 0;
  far.on('data', (bytes: Buffer) => (read += bytes.length));
  while (read < 2 * UNREAD_BYTES_MAX) await pause(1);
  const closed = once(near, 'close');
  near.destroy();
  await closed;
});
