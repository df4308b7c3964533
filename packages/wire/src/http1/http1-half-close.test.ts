import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTransport } from '../../test/fake-transport.ts';
import { SERVER_LIMITS } from '../limits.ts';
import { BodyBudget } from '../transport/body-budget.ts';
import { Http1Server } from './http1-server.ts';

test('who waits with nothing answered hears that the peer sends nothing more', () => {
  const told: string[] = [];
  const peer = new FakeTransport();
  peer.protocol = new Http1Server(peer, {
    handler: (exchange) => {
      exchange.onHalfClose = () => told.push(exchange.path);
      if (exchange.path === '/b') exchange.respond(200, null, 'b');
    },
    streamsBody: () => false,
    bodies: new BodyBudget(Infinity),
    onError: assert.ifError,
    limits: SERVER_LIMITS,
  });
  for (const path of ['/a', '/b', '/c']) peer.receive(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  peer.protocol.ended();
  assert.deepEqual(told, ['/a', '/c']);
});
