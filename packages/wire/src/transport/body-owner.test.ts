/** Who is not known gets little room for bodies, who is not let in none, and nobody for ever. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTransport as Http1Socket } from '../../test/fake-transport.ts';
import { ACK, FakeTransport, HELLO, block, frame } from '../../test/scripted-peer.ts';
import { BodyBudget, shareOfPeer } from './body-budget.ts';
import type { BodyOwner, Connection, Exchange } from '../http/exchange.ts';
import { FRAMES } from '../http2/frames.ts';
import { GrpcRoutes } from '../grpc/grpc-routes.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { Http1Server } from '../http1/http1-server.ts';
import { Http2Server, type Http2ServerOptions } from '../server/http2-server.ts';
import { SERVER_LIMITS } from '../limits.ts';
import type { ServerOptions } from './transport.ts';

const MIB = 1024 * 1024;
const HEAD = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n';

/** Lets in who sends no `x-who: nobody`. */
const owner: BodyOwner = (exchange) => {
  const who = exchange.header('x-who') ?? '';
  if (who !== 'nobody') return { name: who, isStranger: who === '' };
  exchange.respond(401, null, 'who?');
  return null;
};

function optionsOf(bodies: BodyBudget, bodyOwner: BodyOwner = owner): ServerOptions {
  return {
    handler: (exchange: Exchange) => exchange.respond(200, null, `${exchange.body.length}`),
    streamsBody: () => false,
    limits: SERVER_LIMITS,
    onError: assert.ifError,
    ...{ grpc: null, bodies, bodyOwner },
  };
}

function http1(options: ServerOptions): Http1Socket {
  const socket = new Http1Socket();
  socket.protocol = new Http1Server(socket, options);
  return socket;
}

function http2(options: Http2ServerOptions): FakeTransport {
  const socket = new FakeTransport();
  socket.protocol = new Http2Server(socket, options);
  socket.send(Buffer.concat([HELLO, ACK]));
  return socket;
}

function firstStatus(socket: FakeTransport): string {
  const head = socket.frames().find(({ type }) => type === FRAMES.headers);
  if (head === undefined) return '';
  const decoder = new HpackDecoder(4096, 1 << 16);
  decoder.decode(head.payload, 0, head.payload.length);
  return decoder.fields[1] ?? '';
}

test('nobody holds more than what is free for others, and strangers little of it', () => {
  const bodies = new BodyBudget(80 * MIB);
  const user = { name: 'a', isStranger: false };
  const fill = (name: string, isStranger: boolean): number => {
    let count = 0;
    while (bodies.take({ name, isStranger }, MIB)) count++;
    return count;
  };
  assert.equal(fill('10.0.0.1', true), 5, 'half of an eighth');
  assert.equal(fill('10.0.0.2', true), 2);
  assert.equal(fill('a', false), 36);
  assert.equal(fill('b', false), 18);
  assert.equal(fill('c', false), 9);
  bodies.give(user, 36 * MIB);
  assert.equal(fill('d', false), 23);
  assert.equal(bodies.holders, 5);
});

test('an address of IPv6 stands for its network', () => {
  const nameOf = (remoteAddress: string): string =>
    shareOfPeer({ remoteAddress } as Connection, true).name;
  assert.equal(nameOf('10.1.2.3'), '10.1.2.3');
  assert.equal(nameOf('::ffff:10.1.2.3'), '::ffff:10.1.2.3');
  assert.equal(nameOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2');
  assert.equal(nameOf('2001:db8:1:2::6'), '2001:db8:1:2');
  assert.equal(nameOf('2001:db8::6'), '2001:db8:0:0');
  assert.equal(nameOf('::1'), '0:0:0:0');
  assert.equal(nameOf('fe80::1%eth0'), 'fe80:0:0:0');
});

test('a body of nobody is not kept: HTTP/1.1 answers before it and ends', () => {
  const bodies = new BodyBudget(80 * MIB);
  for (const [fields, rest] of [
    ['X-Who: nobody\r\n', 'a piece'],
    ['X-Who: nobody\r\nExpect: 100-continue\r\n', ''],
  ] as const) {
    const socket = http1(optionsOf(bodies));
    socket.receive(`${HEAD}${fields}\r\n${rest}`);
    assert.match(socket.text, /^HTTP\/1\.1 401 .*connection: close\r\n\r\nwho\?$/s);
    assert(!socket.text.includes('100 Continue'));
    socket.receive('more of it, which nobody reads');
    assert.equal(socket.isEnded, true);
  }
  const silent = http1(optionsOf(bodies));
  silent.receive(`${HEAD}X-Who: nobody\r\n\r\n`);
  assert.equal(silent.text, '');
  silent.protocol?.tick(1000);
  silent.settle();
  assert.match(silent.text, /^HTTP\/1\.1 401 /);
  assert.equal(bodies.used, 0);
});

test('a body of nobody is not kept: HTTP/2 resets its stream alone', () => {
  const bodies = new BodyBudget(80 * MIB);
  const socket = http2(optionsOf(bodies));
  const fields = ['x-who', 'nobody'];
  socket.send(frame(FRAMES.headers, 4, 1, block('/', 'POST', fields)));
  socket.send(frame(FRAMES.data, 0, 1, Buffer.alloc(100)));
  assert.match(firstStatus(socket), /401/);
  const resets = socket.frames().filter(({ type }) => type === FRAMES.rstStream);
  assert.deepEqual([resets[0]?.id, resets[0]?.payload.readUInt32BE(0)], [1, 0]);
  socket.send(frame(FRAMES.data, 1, 1, Buffer.alloc(100)));
  socket.send(frame(FRAMES.headers, 4, 3, block('/', 'POST', ['x-who', 'b'])));
  socket.send(frame(FRAMES.data, 0, 3, Buffer.alloc(100)));
  assert(bodies.used > 0);
  socket.send(frame(FRAMES.data, 1, 3, Buffer.alloc(100)));
  const heads = socket.frames().filter(({ type, id }) => type === FRAMES.headers && id === 3);
  assert.equal(heads.length, 1);
  const silent = http2(optionsOf(bodies));
  silent.send(frame(FRAMES.headers, 4, 1, block('/', 'POST', fields)));
  silent.protocol?.tick((silent.timeMs += 1000));
  silent.settle();
  assert.match(firstStatus(silent), /401/);
  assert.equal(bodies.used, 0);
});

test('many strangers with large bodies leave room for users', () => {
  const bodies = new BodyBudget(512 * MIB);
  const options = optionsOf(bodies);
  const piece = Buffer.alloc(MIB, 'x');
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3145728\r\n';
  const strangers = Array.from({ length: 190 }, () => http1(options));
  for (const socket of strangers) {
    socket.receive(`${head}\r\n`);
    for (let count = 0; count < 2; count++) socket.receive(piece);
  }
  assert(bodies.used <= 64 * MIB, `${bodies.used} octets`);
  const refused = strangers.filter(({ text }) => text.startsWith('HTTP/1.1 503 '));
  assert(refused.length > 150, `${refused.length} are refused`);
  const user = http1(options);
  user.receive(`${head}X-Who: jane\r\n\r\n`);
  for (let count = 0; count < 3; count++) user.receive(piece);
  assert.match(user.text, /^HTTP\/1\.1 200 .*3145728$/s);
  for (const socket of strangers) socket.destroy();
  assert.equal(bodies.used, 0);
  assert.equal(bodies.holders, 0);
});

test('a body that comes octet by octet has an end', () => {
  const bodies = new BodyBudget(80 * MIB);
  const slow = http1(optionsOf(bodies));
  slow.receive(`${HEAD}X-Who: jane\r\n\r\n`);
  for (; slow.text === '' && slow.timeMs < 10 * SERVER_LIMITS.bodyMsMax; slow.timeMs += 20_000) {
    slow.receive('x');
    slow.protocol?.tick(slow.timeMs);
    slow.settle();
  }
  assert.match(slow.text, /^HTTP\/1\.1 408 .*the body of the request took longer than 60000 ms/s);
  const other = http2(optionsOf(bodies));
  other.send(frame(FRAMES.headers, 4, 1, block('/', 'POST')));
  const resets = (): unknown[] =>
    other.frames().filter(({ type, id }) => type === FRAMES.rstStream && id === 1);
  for (let count = 0; resets().length === 0 && count < 20; count++) {
    other.send(frame(FRAMES.data, 0, 1, Buffer.from('x')));
    other.protocol?.tick((other.timeMs += 20_000));
    other.settle();
  }
  assert.equal(resets().length, 1);
  assert.equal(bodies.used, 0);
});

test('a gRPC message in part takes room, and has an end', () => {
  const bodies = new BodyBudget(MIB);
  const grpc = new GrpcRoutes({ messageBytesMax: 4 * MIB, messageTooLargeText: () => 'large' });
  const cancelled: string[] = [];
  grpc.call('/t.S/both', () => ({
    onMessage: () => {},
    onHalfClose: () => {},
    onCancel: (reason) => cancelled.push(reason),
  }));
  const socket = http2({ ...optionsOf(bodies), grpc });
  const fields = ['content-type', 'application/grpc', 'te', 'trailers'];
  const prefix = Buffer.from([0, 0, 0x30, 0, 0]);
  for (const id of [1, 3]) {
    socket.send(frame(FRAMES.headers, 4, id, block('/t.S/both', 'POST', fields)));
    socket.send(frame(FRAMES.data, 0, id, prefix));
  }
  assert(bodies.used > 0);
  for (let count = 0; count < 40; count++) {
    socket.send(frame(FRAMES.data, 0, 3, Buffer.alloc(16_000)));
  }
  assert.deepEqual(cancelled, ['aborted'], 'no more than half of all for one address');
  for (let count = 0; cancelled.length === 1 && count < 20; count++) {
    socket.send(frame(FRAMES.data, 0, 1, Buffer.from('x')));
    socket.protocol?.tick((socket.timeMs += 10_000));
    socket.settle();
  }
  assert.equal(cancelled.length, 2);
  assert.equal(bodies.used, 0);
});
