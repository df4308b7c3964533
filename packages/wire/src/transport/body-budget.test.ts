/** Many connections, each within its own bound, must not fill the memory together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTransport as Http1Socket } from '../../test/fake-transport.ts';
import { ACK, FakeTransport, HELLO, block, frame } from '../../test/scripted-peer.ts';
import { BodyBudget } from './body-budget.ts';
import type { Exchange } from '../http/exchange.ts';
import { FRAMES } from '../http2/frames.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { Http1Server } from '../http1/http1-server.ts';
import { Http2Server } from '../server/http2-server.ts';
import { SERVER_LIMITS } from '../limits.ts';
import type { ServerOptions } from './transport.ts';

/** All come from one address, which may have half of it. */
const BYTES_MAX = 400_000;
const PIECE = Buffer.alloc(16_384, 'x');

function optionsOf(bodies: BodyBudget): ServerOptions {
  return {
    handler: (exchange: Exchange) => exchange.respond(200, null, `${exchange.body.length}`),
    streamsBody: () => false,
    limits: SERVER_LIMITS,
    onError: assert.ifError,
    ...{ grpc: null, bodies },
  };
}

function http2(bodies: BodyBudget): FakeTransport {
  const socket = new FakeTransport();
  socket.protocol = new Http2Server(socket, optionsOf(bodies));
  socket.send(Buffer.concat([HELLO, ACK]));
  return socket;
}

/** A body that is not complete: `count` frames of it. */
function upload(socket: FakeTransport, id: number, count: number): void {
  socket.send(frame(FRAMES.headers, 4, id, block('/', 'POST')));
  for (let i = 0; i < count; i++) socket.send(frame(FRAMES.data, 0, id, PIECE));
}

function http1(bodies: BodyBudget): Http1Socket {
  const socket = new Http1Socket();
  socket.protocol = new Http1Server(socket, optionsOf(bodies));
  socket.receive('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  return socket;
}

function statuses(socket: FakeTransport): string[] {
  const heads = socket.frames().filter(({ type }) => type === FRAMES.headers);
  return heads.map(({ payload, id }) => {
    const decoder = new HpackDecoder(4096, 1 << 16);
    decoder.decode(payload, 0, payload.length);
    return `${id} ${decoder.fields[1]}`;
  });
}

test('unfinished bodies of all HTTP/2 connections share one bound', () => {
  const bodies = new BodyBudget(BYTES_MAX);
  const [first, second] = [http2(bodies), http2(bodies)];
  upload(first, 1, 4);
  upload(second, 1, 2);
  const before = bodies.used;
  upload(second, 3, 12);
  assert.deepEqual(statuses(second), ['3 503']);
  assert.equal(bodies.used, before, 'what was refused is given back');
  first.send(frame(FRAMES.data, 1, 1, PIECE));
  assert.deepEqual(statuses(first), ['1 200']);
  upload(second, 5, 2);
  second.send(frame(FRAMES.rstStream, 0, 5, Buffer.alloc(4)));
  upload(second, 7, 2);
  assert(bodies.used > 0);
  second.protocol?.closed();
  assert.equal(bodies.used, 0);
});

test('those of HTTP/1.1 share it with them', () => {
  const bodies = new BodyBudget(BYTES_MAX);
  const sockets = Array.from({ length: 4 }, () => http1(bodies));
  for (const socket of sockets) socket.receive('8\r\nabcdefgh\r\n');
  const [first, second, third, fourth] = sockets;
  assert.match(fourth?.text ?? '', /^HTTP\/1.1 503 /);
  first?.receive('0\r\n\r\n');
  assert.match(first?.text ?? '', /\r\n\r\n8$/);
  const late = http1(bodies);
  late.receive('8\r\nabcdefgh\r\n');
  assert.equal(late.text, '');
  second?.receive('no chunk');
  third?.destroy();
  late.destroy();
  assert.equal(bodies.used, 0);
});
