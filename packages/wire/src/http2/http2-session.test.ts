import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTransport, get, HELLO } from '../../test/scripted-peer.ts';
import { BodyBudget } from '../transport/body-budget.ts';
import type { Handler } from '../http/exchange.ts';
import { FRAMES } from './frames.ts';
import { Http2Server } from '../server/http2-server.ts';
import { SERVER_LIMITS } from '../limits.ts';

test('a chunk of many requests is handled for a while, and its rest in the next rounds', () => {
  for (const rest of ['late', 'never'] as const) {
    const handled: number[] = [];
    const peer = new FakeTransport();
    const handler: Handler = (exchange) => {
      peer.timeMs += 1;
      handled.push(peer.timeMs);
      exchange.connection.rest = rest;
      exchange.respond(200, null, exchange.path);
    };
    const server = new Http2Server(peer, {
      handler,
      streamsBody: () => false,
      limits: { ...SERVER_LIMITS, readMsMax: 10 },
      onError: (error) => assert.fail(String(error)),
      grpc: null,
      bodies: new BodyBudget(Infinity),
    });
    peer.protocol = server;
    peer.send(HELLO);
    const requests = Array.from({ length: 100 }, (_, at) => get(2 * at + 1, `/${at}`));
    const chunk = Buffer.concat([...requests, get(201, '/100').subarray(0, 5)]);
    server.receive(chunk, 0, chunk.length);
    chunk.fill(0xee);
    const most = rest === 'late' ? 13 : 100;
    assert(handled.length >= Math.min(10, most) && handled.length <= most, `${handled.length}`);
    assert.equal(peer.paused, rest === 'late');
    // what is read meanwhile comes after what waits
    const next = Buffer.concat([get(201, '/100').subarray(5), get(203, '/101')]);
    server.receive(next, 0, next.length);
    server.flush();
    peer.settle();
    assert(!peer.paused);
    assert.equal(handled.length, 102);
    const bodies = peer.frames().filter(({ type }) => type === FRAMES.data);
    const paths = bodies.map(({ payload }) => payload.toString());
    assert.deepEqual(
      paths,
      Array.from({ length: 102 }, (_, at) => `/${at}`),
    );
  }
});
