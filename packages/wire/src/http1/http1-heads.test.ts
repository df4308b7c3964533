import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyBudget } from '../transport/body-budget.ts';
import type { Handler } from '../http/exchange.ts';
import { Http1Server } from './http1-server.ts';
import { fieldValue } from '../http2/http2-head.ts';
import { SERVER_LIMITS } from '../limits.ts';
import { FakeTransport } from '../../test/fake-transport.ts';

const HOST = 'Host: a\r\n';

function serve(handler: Handler, bodies = new BodyBudget(Infinity)): FakeTransport {
  const transport = new FakeTransport();
  transport.protocol = new Http1Server(transport, {
    ...{ handler, bodies, grpc: null, limits: SERVER_LIMITS },
    streamsBody: () => false,
    onError: assert.ifError,
  });
  return transport;
}

const never: Handler = () => assert.fail('the handler was called');

test('a head may be as long as kube-apiserver takes it, in any number of fields', () => {
  const path = `/${'a'.repeat(200_000)}`;
  const fields = Array.from({ length: 2000 }, (_, n) => `X-${n}: ${n}\r\n`).join('');
  const head = `GET ${path} HTTP/1.1\r\n${HOST}${fields}\r\n`;
  const seen: string[] = [];
  const peer = serve((exchange) => {
    seen.push(`${exchange.path.length} ${exchange.header('x-1999')}`);
    exchange.respond(200, 'text/plain', 'ok');
  });
  for (let at = 0; at < head.length; at += 16_384) peer.receive(head.slice(at, at + 16_384));
  assert.deepEqual(seen, ['200001 1999']);
  peer.receive(`GET / HTTP/1.1\r\n${HOST}X: ${'a'.repeat(1_100_000)}\r\n\r\n`);
  assert.match(peer.text, /HTTP\/1\.1 431 /);
});

test('of several credentials and types the first counts, other fields are joined', () => {
  const twice = (name: string): string => `${name}: a\r\n${name}: b\r\n`;
  const names = ['Authorization', 'Content-Type', 'Accept', 'X-Remote-Group'];
  const seen: unknown[] = [];
  const peer = serve((exchange) => {
    for (const name of names) seen.push(exchange.header(name.toLowerCase()));
    exchange.respond(200, 'text/plain', 'ok');
  });
  peer.receive(`GET / HTTP/1.1\r\n${HOST}${names.map(twice).join('')}\r\n`);
  assert.deepEqual(seen, ['a', 'a', 'a', 'a, b']);
  const fields = names.flatMap((name) => [name.toLowerCase(), 'a', name.toLowerCase(), 'b']);
  const again = names.map((name) => fieldValue(fields, name.toLowerCase()));
  assert.deepEqual(again, seen);
});

test('unfinished long heads share the room of bodies, and give it back', () => {
  // nobody knows who sends them: half of an eighth
  const bodies = new BodyBudget(16 * 200_000);
  const start = `GET /${'a'.repeat(150_000)}`;
  const first = serve((exchange) => exchange.respond(200, 'text/plain', 'ok'), bodies);
  first.receive(start);
  assert.equal(bodies.used > 80_000, true);
  const second = serve(never, bodies);
  second.receive(start);
  const third = serve(never, bodies);
  third.receive(start);
  assert.match(third.text, /^HTTP\/1\.1 503 /);
  second.protocol?.closed();
  first.receive(` HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(bodies.used, 0);
});
