import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import fc from 'fast-check';
import { isCrowded } from './outstanding.ts';
import { SocketTransport } from './socket-transport.ts';
import { WaitingWrites } from './waiting-writes.ts';

const SIZE = fc.oneof(fc.integer({ min: 1, max: 9000 }), fc.integer({ min: 9000, max: 200_000 }));
const STEP = fc.oneof(SIZE, fc.constant('take' as const));
const PRE_SHARED = { ciphers: 'PSK', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;

/** Bytes that tell where in the stream they stand. */
function numbered(from: number, length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, at) => (from + at) % 251));
}

function scribble(bytes: Buffer): void {
  bytes.fill(0xff);
}

const HOST = { rounds: null, choose: () => null, forget: () => undefined };

/** The two ends of a secure connection; the client's is not connected yet. */
async function connecting() {
  const psk = Buffer.from('0123456789abcdef');
  const server = createServer({ ...PRE_SHARED, pskCallback: () => psk });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>;
  const client = connect({
    ...PRE_SHARED,
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    pskCallback: () => ({ psk, identity: 'test' }),
    checkServerIdentity: () => undefined,
  });
  return { accepted, client, server };
}

/** A secure connection, and the transport at its accepting end. */
async function connected() {
  const { accepted, client, server } = await connecting();
  const [socket] = await accepted;
  return { transport: new SocketTransport(socket, false, HOST), client, server };
}

test('what waits leaves whole and in order, and its memory is free when it is said to be', () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 60 }), (steps) => {
      const waiting = new WaitingWrites();
      let added = 0;
      let left = 0;
      let lent = 0;
      const take = (): void => {
        const next = waiting.take();
        if (next === null) return;
        assert.deepEqual(next.bytes, numbered(left, next.bytes.length));
        left += next.bytes.length;
        next.done();
      };
      for (const step of steps) {
        if (step === 'take') take();
        else {
          const bytes = numbered(added, step);
          const isCopied = waiting.add(bytes, 0, step, () => {
            lent--;
            scribble(bytes);
          });
          if (isCopied) scribble(bytes);
          else lent++;
          added += step;
        }
        assert.equal(waiting.size, added - left);
      }
      while (waiting.size > 0) take();
      assert.equal(left, added);
      assert.equal(lent, 0);
    }),
    { numRuns: 25 },
  );
});

test('a block that TLS was given may change as soon as the write has returned', async () => {
  const { transport, client, server } = await connected();
  let received = 0;
  client.on('data', (bytes: Buffer) => {
    assert.deepEqual(bytes, numbered(received, bytes.length));
    received += bytes.length;
  });
  let sent = 0;
  for (const [index, size] of [
    10, 131_072, 20_000, 100, 7, 131_072, 300_000, 5, 90_000,
  ].entries()) {
    const block = numbered(sent, size);
    if (transport.write(block, 0, size, () => scribble(block))) scribble(block);
    sent += size;
    if (index === 3) await once(client, 'data');
  }
  assert(transport.pending() > 0);
  transport.end();
  await once(client, 'close');
  assert.equal(received, sent);
  server.close();
});

test('a block may change after the write also while the connection is being made', async () => {
  for (const isReached of [false, true]) {
    const { accepted, client, server } = await connecting();
    const transport = new SocketTransport(client, false, HOST);
    if (isReached) await once(client, 'connect');
    let sent = 0;
    for (const size of [100, 9000, 7]) {
      const block = numbered(sent, size);
      if (transport.write(block, 0, size, () => scribble(block))) scribble(block);
      sent += size;
    }
    const [socket] = await accepted;
    const chunks: Buffer[] = [];
    socket.on('data', (bytes: Buffer) => chunks.push(bytes));
    transport.end();
    await once(socket, 'end');
    assert.deepEqual(Buffer.concat(chunks), numbered(0, sent));
    server.close();
  }
});

test('what waits leaves in few large writes', () => {
  const waiting = new WaitingWrites();
  const block = Buffer.alloc(128 * 1024);
  let given = 0;
  for (let count = 0; count < 9; count++) waiting.add(block, 0, block.length, () => given++);
  const sizes: number[] = [];
  for (let next = waiting.take(); next !== null; next = waiting.take()) {
    sizes.push(next.bytes.length / block.length);
    next.done();
  }
  assert.deepEqual(sizes, [4, 4, 1]);
  assert.equal(given, 9);
});

test('bytes that a peer does not take are counted until its connection ends', async () => {
  const { transport, client, server } = await connected();
  client.pause();
  const block = Buffer.alloc(128 * 1024);
  for (let count = 0; count < 600; count++) transport.write(block, 0, block.length, () => {});
  assert(isCrowded());
  transport.destroy();
  await once(transport.socket, 'close');
  assert(!isCrowded());
  client.destroy();
  server.close();
});
