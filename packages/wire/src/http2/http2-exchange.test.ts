import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTransport, frame, get, HELLO, number } from '../../test/scripted-peer.ts';
import type { Exchange } from '../http/exchange.ts';
import { SERVER_LIMITS } from '../limits.ts';
import { Http2Server } from '../server/http2-server.ts';
import { BodyBudget } from '../transport/body-budget.ts';
import { ERRORS, FRAMES } from './frames.ts';

/** Exchanges that nobody has answered yet, and the peer who asked. */
function asked(count: number): { peer: FakeTransport; server: Http2Server; all: Exchange[] } {
  const all: Exchange[] = [];
  const peer = new FakeTransport();
  const server = new Http2Server(peer, {
    handler: (exchange) => void all.push(exchange),
    streamsBody: () => false,
    limits: SERVER_LIMITS,
    onError: (error) => assert.fail(String(error)),
    grpc: null,
    bodies: new BodyBudget(Infinity),
  });
  peer.protocol = server;
  const requests = Array.from({ length: count }, (_, index) => get(2 * index + 1));
  peer.send(Buffer.concat([HELLO, ...requests]));
  return { peer, server, all };
}

const ANSWERS: readonly ((exchange: Exchange) => void)[] = [
  (exchange) => exchange.respond(200, null, 'late'),
  (exchange) => exchange.respondCopy(200, null, Buffer.from('late'), 4),
  (exchange) => {
    exchange.open(200, null);
    exchange.write(Buffer.from('late'));
    exchange.end();
  },
];

test('an answer to who has left is ignored, however they left', () => {
  const leave = {
    reset: ({ peer }: ReturnType<typeof asked>) =>
      peer.send(frame(FRAMES.rstStream, 0, 1, number(ERRORS.cancel))),
    closed: ({ server }: ReturnType<typeof asked>) => server.closed(),
    'reset by us': ({ all }: ReturnType<typeof asked>) => all[0]?.reset(),
  };
  for (const go of Object.values(leave)) {
    for (const answer of ANSWERS) {
      const world = asked(1);
      const [exchange] = world.all;
      assert(exchange !== undefined);
      go(world);
      assert(exchange.closed);
      answer(exchange);
      assert(!world.peer.frames().some(({ type }) => type === FRAMES.data));
    }
  }
});

test('an answer that comes twice is a mistake of the program', () => {
  const { peer, all } = asked(1);
  const [exchange] = all;
  assert(exchange !== undefined);
  exchange.open(200, null);
  assert.throws(() => exchange.respond(200, null, 'again'), /answered once/);
  exchange.end();
  assert.deepEqual(peer.resets(), []);
});
