import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { dial } from './forward-target.ts';

test('a slow client gets all that the target sent before it left', async () => {
  const sent = Buffer.alloc(100_000, 'x');
  const target = createServer((socket) => void socket.end(sent)).listen(0, '127.0.0.1');
  await once(target, 'listening');
  const targetGone = new Promise<void>((resolve) => {
    target.on('connection', (socket) => socket.on('close', () => resolve()));
  });
  let got = 0;
  const near = new Duplex({
    writableHighWaterMark: 1_000_000,
    read() {},
    write(bytes: Buffer, _, done) {
      void targetGone.then(() =>
        setImmediate(() => {
          got += bytes.length;
          done();
        }),
      );
    },
  });
  // the client has said all that it has to say
  near.push(null);
  const { port } = target.address() as AddressInfo;
  dial({ address: '127.0.0.1', port }, near, assert.fail);
  await new Promise((resolve) => near.on('close', resolve));
  target.close();
  assert.equal(got, sent.length);
});
