import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { openStreams } from './remote-streams.ts';

/** A frame as clients send it, with a mask that changes nothing. */
function frame(data: string): Buffer {
  return Buffer.concat([Buffer.from([0x82, 0x80 | data.length, 0, 0, 0, 0]), Buffer.from(data)]);
}

test('a terminal tells its size in pieces and in any order; a long tale is no size', async () => {
  const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const headers = { upgrade: 'websocket', 'sec-websocket-protocol': 'v5.channel.k8s.io' };
  const wanted = { stdin: true, stdout: true, stderr: false, tty: true };
  const request = { headers } as unknown as IncomingMessage;
  const streams = await openStreams(request, socket, Buffer.alloc(0), wanted);
  assert(streams !== null);
  const sizes: string[] = [];
  streams.onResize = (columns, rows) => sizes.push(`${columns}x${rows}`);
  const stdin: string[] = [];
  streams.onStdin = (bytes) => stdin.push(bytes.toString());
  streams.begin();
  const first = frame('\x04{"Width":80,"Height":24}\n');
  for (const byte of first) socket.emit('data', Buffer.from([byte]));
  socket.emit('data', frame('\x04{"Height":50,"Width":132}'));
  socket.emit('data', frame(`\x04{"Width":${'0'.repeat(90)}`));
  socket.emit('data', frame('\x00typed'));
  assert.deepEqual(sizes, ['80x24', '132x50']);
  assert.deepEqual(stdin, ['typed']);
  socket.destroy();
});
