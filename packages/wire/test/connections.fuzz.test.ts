/** Arbitrary bytes on connections in HTTP/1.1, HTTP/2 and gRPC: what is counted is given back. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fuzz } from '@megaplane/base/fuzz.sim';
import { readCorpus } from '@megaplane/base/mutation.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { GrpcRoutes } from '../src/grpc/grpc-routes.ts';
import type { Exchange } from '../src/http/exchange.ts';
import { Http1Server } from '../src/http1/http1-server.ts';
import { SERVER_LIMITS } from '../src/limits.ts';
import { Http2Server } from '../src/server/http2-server.ts';
import { BodyBudget } from '../src/transport/body-budget.ts';
import { FakeTransport as Http1Transport } from './fake-transport.ts';
import { FakeTransport as Http2Transport } from './scripted-peer.ts';

/** More than unfinished heads and bodies may hold. */
const BYTES_MAX: number = 1024 * 1024;
const BUDGET_BYTES: number = 2 * 1024 * 1024;
const PIECES = [1 << 30, 65_536, 777] as const;
const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;

function corpus(name: string): readonly Buffer[] {
  return readCorpus(join(import.meta.dirname, 'corpus', `${name}.jsonl`));
}

function fail(error: unknown): void {
  throw error;
}

/** Answers at once, when it is closed, or never, by the first letter of the path's end. */
function answer(open: Set<Exchange>, exchange: Exchange): void {
  open.add(exchange);
  exchange.onClose = () => void open.delete(exchange);
  if (exchange.path.length % 3 === 0) return;
  open.delete(exchange);
  exchange.respond(200, 'text/plain', exchange.body.subarray(0, 100).toString('latin1'));
}

const options = {
  streamsBody: () => false,
  limits: SERVER_LIMITS,
  onError: fail,
};

test('bytes of HTTP/1.1', { timeout }, () =>
  fuzz({
    corpus: corpus('http1'),
    bytesMax: BYTES_MAX,
    // a socket gives it in pieces, and other connections have their turns between
    turnsMax: 4,
    trials: 300,
    read(input) {
      const bodies = new BodyBudget(BUDGET_BYTES);
      const open = new Set<Exchange>();
      const handler = (exchange: Exchange): void => answer(open, exchange);
      const transport = new Http1Transport();
      const server = new Http1Server(transport, { ...options, handler, bodies });
      transport.protocol = server;
      const size = PIECES[input.length % PIECES.length] ?? input.length;
      for (let at = 0; at < input.length && !transport.isPaused; at += size) {
        if (transport.isEnded || transport.isDestroyed) break;
        transport.receive(input.subarray(at, at + size));
      }
      server.closed();
      assert.equal(bodies.used, 0, 'bytes of bodies');
      assert.equal(open.size, 0, 'exchanges');
    },
  }),
);

function grpcMethods(calls: Set<object>): GrpcRoutes {
  const methods = new GrpcRoutes();
  methods.call('/a.B/C', (call) => {
    calls.add(call);
    return {
      onMessage: () => undefined,
      onHalfClose: () => {
        calls.delete(call);
        call.finish(0, '');
      },
      onCancel: () => void calls.delete(call),
    };
  });
  return methods;
}

test('bytes of HTTP/2 and gRPC', { timeout }, () =>
  fuzz({
    corpus: corpus('http2'),
    bytesMax: BYTES_MAX,
    // a socket gives it in pieces, and other connections have their turns between
    turnsMax: 4,
    trials: 300,
    read(input) {
      const bodies = new BodyBudget(BUDGET_BYTES);
      const open = new Set<Exchange>();
      const calls = new Set<object>();
      const handler = (exchange: Exchange): void => answer(open, exchange);
      const transport = new Http2Transport();
      const grpc = grpcMethods(calls);
      const server = new Http2Server(transport, { ...options, handler, grpc, bodies });
      transport.protocol = server;
      const size = PIECES[input.length % PIECES.length] ?? input.length;
      for (let at = 0; at < input.length && !transport.paused && !transport.ended; at += size) {
        transport.send(Buffer.from(input.subarray(at, at + size)));
      }
      server.closed();
      assert.equal(bodies.used, 0, 'bytes of bodies');
      assert.equal(open.size, 0, 'exchanges');
      assert.equal(calls.size, 0, 'calls');
      assert.equal(server.streams.count, 0, 'streams');
    },
  }),
);
