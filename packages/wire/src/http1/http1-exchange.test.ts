import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyBudget } from '../transport/body-budget.ts';
import type { Exchange } from '../http/exchange.ts';
import { Http1Server } from './http1-server.ts';
import { SERVER_LIMITS } from '../limits.ts';
import { FakeTransport } from '../../test/fake-transport.ts';

test('a body that was kept outlives the chunk that it came in, any other does not', () => {
  const exchanges: Exchange[] = [];
  const peer = new FakeTransport();
  peer.protocol = new Http1Server(peer, {
    handler: (exchange) => {
      exchanges.push(exchange);
      if (exchange.path === '/kept') exchange.keepBody();
    },
    streamsBody: () => false,
    bodies: new BodyBudget(Infinity),
    limits: SERVER_LIMITS,
    onError: assert.ifError,
  });
  const chunk = Buffer.from(
    ['/kept', '/lost']
      .map((path) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody`)
      .join(''),
  );
  peer.receive(chunk);
  // the next chunk is read into the same memory
  chunk.fill('x');
  assert.deepEqual(
    exchanges.map(({ body }) => body.toString('latin1')),
    ['body', ''],
  );
});
