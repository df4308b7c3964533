import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { readInPlace } from './socket-read.ts';

test('both ends of a connection read into the same memory, in order, up to the end', async () => {
  const memories = new Set<Buffer>();
  let text = '';
  const server = createServer({ allowHalfOpen: true }, (socket: Socket) => {
    const isInPlace = readInPlace(socket, null, (bytes, count) => {
      memories.add(bytes);
      text += bytes.latin1Slice(0, count);
    });
    assert.ok(isInPlace, 'this Node has other fields: reads cost a Buffer each again');
    socket.resume();
    socket.on('end', () => socket.end(text.toUpperCase()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let answer = '';
  const isInPlace = readInPlace(client, null, (bytes, count) => {
    memories.add(bytes);
    answer += bytes.latin1Slice(0, count);
  });
  assert.ok(isInPlace);
  client.resume();
  client.write('a');
  await new Promise((resolve) => setTimeout(resolve, 5));
  client.end('bc');
  await once(client, 'end');
  assert.equal(answer, 'ABC');
  assert.equal(memories.size, 1);
  server.close();
  await once(server, 'close');
});
