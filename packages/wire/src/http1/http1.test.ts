import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BodyBudget } from '../transport/body-budget.ts';
import type { Exchange, Handler, UpgradedStream } from '../http/exchange.ts';
import { HTTP1_FAILURES } from './http1-head.ts';
import { Http1Server, PIPELINED_MAX } from './http1-server.ts';
import { SERVER_LIMITS, type WireLimits } from '../limits.ts';
import { FakeTransport } from '../../test/fake-transport.ts';

const never: Handler = () => assert.fail('the handler was called');

interface ServeOptions {
  readonly limits?: Partial<WireLimits>;
  readonly streamsBody?: (method: string, path: string) => boolean;
  readonly onError?: (error: unknown) => void;
}

function serve(handler: Handler, options: ServeOptions = {}): FakeTransport {
  const transport = new FakeTransport();
  transport.protocol = new Http1Server(transport, {
    handler,
    streamsBody: options.streamsBody ?? (() => false),
    ...{ grpc: null, bodies: new BodyBudget(Infinity), onError: options.onError ?? assert.ifError },
    limits: { ...SERVER_LIMITS, ...options.limits },
  });
  return transport;
}

function echo(exchange: Exchange): void {
  const { method, path, body } = exchange;
  exchange.respond(200, 'text/plain', `${method} ${path} ${body.toString('latin1')}`);
}

const HOST = 'Host: a\r\n';

/** Bodies of counted answers, in order. */
function bodiesOf(text: string): string[] {
  const bodies: string[] = [];
  for (let at = 0; at < text.length;) {
    const headEnd = text.indexOf('\r\n\r\n', at) + 4;
    const length = Number(/content-length: (\d+)/.exec(text.slice(at, headEnd))?.[1] ?? 0);
    bodies.push(text.slice(headEnd, headEnd + length));
    at = headEnd + length;
  }
  return bodies;
}

test('a request is answered, and the connection stays', () => {
  const peer = serve(echo);
  peer.receive(`GET /a?b=c HTTP/1.1\r\n${HOST}\r\n`);
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\n';
  assert.equal(peer.text, `${head}GET /a?b=c `);
  assert.equal(peer.isEnded, false);
});

test('pipelined requests of one chunk are answered in order, in one write', () => {
  const peer = serve(echo);
  let chunk = '';
  const expected = [];
  for (let i = 0; i < 50; i++) {
    const body = 'x'.repeat(i);
    chunk += `POST /${i} HTTP/1.1\r\n${HOST}Content-Length: ${i}\r\n\r\n${body}`;
    expected.push(`POST /${i} ${body}`);
  }
  peer.receive(chunk);
  assert.deepEqual(bodiesOf(peer.text), expected);
  assert.equal(peer.writes.length, 1);
});

test('answers given in any order leave in the order of the requests', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6], { minLength: 7 }), (order) => {
      const exchanges: Exchange[] = [];
      const peer = serve((exchange) => exchanges.push(exchange));
      for (let i = 0; i < 7; i++) peer.receive(`GET /${i} HTTP/1.1\r\n${HOST}X-A: ${i}\r\n\r\n`);
      for (const index of order) {
        const exchange = exchanges[index];
        assert.ok(exchange);
        exchange.respond(200, null, `${exchange.path} ${exchange.header('x-a')}`);
        peer.settle();
      }
      assert.deepEqual(
        bodiesOf(peer.text),
        order.map((_, i) => `/${i} ${i}`),
      );
    }),
    { numRuns: 50 },
  );
});

const STREAM =
  `\r\nPOST /first?x HTTP/1.1\r\n${HOST}Content-Length: 5\r\n` +
  `X-Long: ${'v'.repeat(50)}\r\n\r\nhello` +
  `PUT /second HTTP/1.1\r\nhOST:a\r\ntransfer-encoding: Chunked\r\n\r\n` +
  `3;name="v"\r\nabc\r\n00a\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n` +
  `GET http://example.com/third HTTP/1.1\r\nHost:\t b \t\r\n\r\nDELETE /4 HTTP/1.1\r\n${HOST}\r\n`;
const STREAM_BODIES = [
  'POST /first?x hello',
  'PUT /second abc0123456789',
  'GET /third ',
  'DELETE /4 ',
];

test('a stream of requests means the same however it is cut in two', () => {
  for (let cut = 0; cut <= STREAM.length; cut++) {
    const peer = serve(echo);
    peer.receive(STREAM.slice(0, cut));
    peer.receive(STREAM.slice(cut));
    assert.deepEqual(bodiesOf(peer.text), STREAM_BODIES, `cut at ${cut}`);
  }
});

test('a stream of requests means the same however it is cut in many', () => {
  const cuts = fc.array(fc.nat(STREAM.length), { maxLength: 40, size: 'max' });
  fc.assert(
    fc.property(cuts, fc.boolean(), (points, isSlow) => {
      const peer = serve(echo);
      peer.isSlow = isSlow;
      let from = 0;
      for (const to of [...points.sort((a, b) => a - b), STREAM.length]) {
        peer.receive(STREAM.slice(from, to));
        if (isSlow && to % 3 === 0) peer.drain();
        from = to;
      }
      peer.drain();
      peer.drain();
      assert.deepEqual(bodiesOf(peer.text), STREAM_BODIES);
    }),
    { numRuns: 300 },
  );
});

type Refusal = [request: string, failure: keyof typeof HTTP1_FAILURES];
const CODED = `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n`;
const REFUSALS: Refusal[] = [
  [`GET  / HTTP/1.1\r\n${HOST}\r\n`, 'startLine'],
  [`GET / HTTP/1.1 \r\n${HOST}\r\n`, 'lineEnd'],
  [`GET / HTTP/1.1\n${HOST}\r\n`, 'lineEnd'],
  [`GET / HTTP/1.1\r\nHost: a\n\r\n`, 'lineEnd'],
  [`GET / HTTP/1.1\r\nHost: a\r\n\n`, 'lineEnd'],
  [`GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n`, 'lineEnd'],
  [`GET / HTTP/2.0\r\n${HOST}\r\n`, 'version'],
  [`GET / HTTQ/1.1\r\n${HOST}\r\n`, 'startLine'],
  [`GET /\x01 HTTP/1.1\r\n${HOST}\r\n`, 'startLine'],
  [`GET /\xe4 HTTP/1.1\r\n${HOST}\r\n`, 'startLine'],
  [`GET a HTTP/1.1\r\n${HOST}\r\n`, 'target'],
  [`CONNECT a:443 HTTP/1.1\r\n${HOST}\r\n`, 'target'],
  [`GET / HTTP/1.1\r\n\r\n`, 'host'],
  [`GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, 'host'],
  [`GET / HTTP/1.1\r\nHost: a b\r\n\r\n`, 'hostValue'],
  [`GET / HTTP/1.1\r\nHost: a/b\r\n\r\n`, 'hostValue'],
  [`GET / HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n`, 'folded'],
  [`GET / HTTP/1.1\r\n ${HOST}\r\n`, 'folded'],
  [`GET / HTTP/1.1\r\n${HOST}X : a\r\n\r\n`, 'name'],
  [`GET / HTTP/1.1\r\n${HOST}: a\r\n\r\n`, 'name'],
  [`GET / HTTP/1.1\r\n${HOST}X\r\n\r\n`, 'name'],
  [`GET / HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`, 'value'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`, 'lengthTwice'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\na`, 'lengthTwice'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1, 1\r\n\r\na`, 'lengthValue'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length: +1\r\n\r\na`, 'lengthValue'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length: 0x1\r\n\r\na`, 'lengthValue'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length:\r\n\r\n`, 'lengthValue'],
  [`POST / HTTP/1.1\r\n${HOST}Content-Length: 99999999999999999999\r\n\r\n`, 'lengthValue'],
  [
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'lengthAndCoding',
  ],
  [`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n`, 'coding'],
  [`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, identity\r\n\r\n`, 'coding'],
  [`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n`, 'value'],
  [`${CODED}${CODED.slice(CODED.indexOf('Transfer'))}\r\n`, 'codingTwice'],
  [`POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n`, 'codingVersion'],
  [`POST / HTTP/1.1\r\n${HOST}Expect: cake\r\n\r\n`, 'expectation'],
];
const CHUNKED = `${CODED}\r\n`;
for (const [chunks, failure] of [
  ['g\r\n', 'chunkSize'],
  ['-1\r\n', 'chunkSize'],
  ['0x1\r\na\r\n0\r\n\r\n', 'chunkSize'],
  ['1 \r\na\r\n', 'chunkSize'],
  ['1\na\r\n', 'chunkSize'],
  ['1;a\nb\r\n', 'chunkSize'],
  ['\r\n', 'chunkSize'],
  ['1234567890123\r\n', 'chunkSize'],
  ['1\r\nab\r\n', 'chunkEnd'],
  ['1\r\na\n', 'chunkEnd'],
  ['1\r\na\rb', 'chunkEnd'],
  [`1;${'x'.repeat(2000)}\r\n`, 'chunkLine'],
  ['0\r\nContent-Length: 3\r\n\r\n', 'lengthTwice'],
  ['0\r\nX : 3\r\n\r\n', 'name'],
] as const) {
  REFUSALS.push([CHUNKED + chunks, failure]);
}

test('what could be read in two ways is refused and ends the connection, also byte by byte', () => {
  for (const [request, failure] of REFUSALS) {
    for (const isSplit of [false, true]) {
      let handled = 0;
      const peer = serve(() => handled++);
      if (isSplit) for (const byte of request) peer.receive(byte);
      else peer.receive(`${request}GET /smuggled HTTP/1.1\r\n${HOST}\r\n`);
      // A head that comes in pieces is judged at its end at the latest.
      if (isSplit && peer.text === '') peer.receive('\n\r\n');
      const { status, text } = HTTP1_FAILURES[failure];
      const label = JSON.stringify(request);
      assert.ok(peer.text.startsWith(`HTTP/1.1 ${status} `), `${label}: ${peer.text}`);
      assert.ok(peer.text.endsWith(`: ${text}\n`), `${label}: ${peer.text}`);
      assert.equal(handled, 0, label);
      assert.equal(peer.isEnded, true, label);
    }
  }
});

test('a refusal waits for the answers before it', () => {
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => exchanges.push(exchange));
  peer.receive(`GET /1 HTTP/1.1\r\n${HOST}\r\nGET /2 HTTP/1.1\r\n\r\n`);
  assert.equal(peer.text, '');
  exchanges[0]?.respond(200, null, 'one');
  peer.settle();
  assert.match(peer.text, /^HTTP\/1.1 200 OK\r\ncontent-length: 3\r\n\r\noneHTTP\/1.1 400 /);
  assert.equal(peer.isEnded, true);
});

test('heads, lines, fields and bodies over their limits are refused', () => {
  const limits = { headBytesMax: 2000, bodyBytesMax: 10 };
  const cases: [string, number][] = [
    [`GET / HTTP/1.1\r\n${HOST}X: ${'a'.repeat(3000)}\r\n\r\n`, 431],
    [`GET / HTTP/1.1\r\n${HOST}X: ${'a'.repeat(3000)}`, 431],
    [`GET /${'a'.repeat(3000)}`, 431],
    [`POST / HTTP/1.1\r\n${HOST}Content-Length: 11\r\n\r\n`, 413],
    [`POST / HTTP/1.1\r\n${HOST}Content-Length: 11\r\nExpect: 100-continue\r\n\r\n`, 413],
    [`${CHUNKED}6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n`, 413],
    [`${CHUNKED}0\r\nX: ${'a'.repeat(3000)}\r\n\r\n`, 431],
  ];
  for (const [request, status] of cases) {
    const peer = serve(never, { limits });
    peer.receive(request);
    assert.ok(peer.text.startsWith(`HTTP/1.1 ${status} `), `${request.slice(0, 80)}: ${peer.text}`);
    assert.equal(peer.isEnded, true);
  }
});

test('any bytes give an answer or silence, never an exception', () => {
  const pieces = fc.array(
    fc.oneof(
      fc.constantFrom('GET / HTTP/1.1\r\n', HOST, '\r\n', 'Content-Length: 3\r\n', '\r\n\r\n', '0'),
      fc.constantFrom('Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n', 'Connection: close\r\n'),
      fc.constantFrom(
        'Upgrade: x\r\nConnection: upgrade\r\n',
        'Expect: 100-continue\r\n',
        '\n',
        ' ',
      ),
      fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    ),
    { maxLength: 20, size: 'max' },
  );
  fc.assert(
    fc.property(pieces, fc.boolean(), (chunks, endsEarly) => {
      const peer = serve(echo);
      for (const chunk of chunks) peer.receive(chunk);
      if (endsEarly) peer.protocol?.ended();
      peer.settle();
      if (!peer.isEnded) peer.protocol?.tick(1e9);
      peer.settle();
    }),
    { numRuns: 500 },
  );
});

test('HTTP/1.0 ends after the answer unless it asks to stay', () => {
  const plain = serve(echo);
  plain.receive('GET / HTTP/1.0\r\n\r\n');
  assert.match(plain.text, /connection: close\r\n/);
  assert.equal(plain.isEnded, true);
  const kept = serve(echo);
  kept.receive('GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n');
  assert.match(kept.text, /connection: keep-alive\r\n/);
  assert.equal(kept.isEnded, false);
});

test('nothing is read after a request that closes', () => {
  const peer = serve(echo);
  peer.receive(
    `GET /1 HTTP/1.1\r\n${HOST}Connection: foo, CLOSE\r\n\r\nGET /2 HTTP/1.1\r\n${HOST}\r\n`,
  );
  assert.deepEqual(bodiesOf(peer.text), ['GET /1 ']);
  assert.equal(peer.isEnded, true);
});

test('100 Continue comes before the body is asked for, and after earlier answers', () => {
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => exchanges.push(exchange));
  const expecting = `POST /2 HTTP/1.1\r\n${HOST}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n`;
  peer.receive(`GET /1 HTTP/1.1\r\n${HOST}\r\n${expecting}`);
  assert.equal(peer.text, '');
  exchanges[0]?.respond(204, null, null);
  peer.settle();
  assert.equal(peer.text, 'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
  peer.receive('ab');
  exchanges[1]?.respond(200, null, null);
  peer.settle();
  assert.match(peer.text, /Continue\r\n\r\nHTTP\/1.1 200 OK\r\ncontent-length: 0\r\n\r\n$/);
  assert.equal(peer.isEnded, false);
});

test('a streamed answer is chunked, flushes at once, and the next answer follows its end', () => {
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => exchanges.push(exchange));
  peer.receive(`GET /watch HTTP/1.1\r\n${HOST}\r\nGET /2 HTTP/1.1\r\n${HOST}\r\n`);
  const [watch, second] = exchanges;
  assert.ok(watch && second);
  watch.open(200, 'application/json', ['x-a', 'b']);
  second.respond(200, null, 'two');
  peer.settle();
  const head =
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-a: b\r\n' +
    'transfer-encoding: chunked\r\n\r\n';
  assert.equal(peer.text, head);
  watch.write(Buffer.from('event one\n'));
  watch.write(Buffer.from('..event two\n'), 2);
  peer.settle();
  assert.equal(peer.text, `${head}a\r\nevent one\n\r\na\r\nevent two\n\r\n`);
  watch.end(['x-sum', '1']);
  peer.settle();
  assert.match(peer.text, /0\r\nx-sum: 1\r\n\r\nHTTP\/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo$/);
});

test('HEAD is answered with the head alone', () => {
  const peer = serve((exchange) => {
    if (exchange.path === '/1') return exchange.respond(200, 'a/b', 'four');
    exchange.open(200, 'a/b');
    exchange.write(Buffer.from('nothing of this'));
    exchange.end();
  });
  peer.receive(`HEAD /1 HTTP/1.1\r\n${HOST}\r\nHEAD /2 HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(
    peer.text,
    'HTTP/1.1 200 OK\r\ncontent-type: a/b\r\ncontent-length: 4\r\n\r\n' +
      'HTTP/1.1 200 OK\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n',
  );
});

test('a producer that pulls never queues more than the budget, and gets all across', () => {
  const total = 300_000;
  let sent = 0;
  const produce = (exchange: Exchange): void => {
    for (let room = exchange.writable(); room > 0 && sent < total; room = exchange.writable()) {
      const size = Math.min(room, 1000, total - sent);
      exchange.write(Buffer.alloc(size, 120));
      sent += size;
    }
    if (sent === total) exchange.end();
  };
  const peer = serve(
    (exchange) => {
      exchange.open(200, null);
      exchange.onWritable = () => produce(exchange);
      produce(exchange);
    },
    { limits: { outputBytesMax: 10_000 } },
  );
  peer.isSlow = true;
  peer.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.ok(sent < 12_000);
  for (let turn = 0; turn < 100 && !peer.text.endsWith('0\r\n\r\n'); turn++) peer.drain();
  for (const write of peer.writes) assert.ok(write.length < 12_000);
  assert.equal(peer.text.match(/x/g)?.length, total);
});

test('a reader that asks without reading answers is no longer read', () => {
  let handled = 0;
  const peer = serve(
    (exchange) => {
      handled++;
      exchange.respond(200, null, 'x'.repeat(1000));
    },
    { limits: { outputBytesMax: 10_000 } },
  );
  peer.isSlow = true;
  const request = `GET / HTTP/1.1\r\n${HOST}\r\n`;
  peer.receive(request.repeat(100));
  assert.equal(peer.isPaused, true);
  assert.ok(handled < 20);
  for (let i = 0; i < 50; i++) peer.drain();
  assert.equal(handled, 100);
  assert.equal(peer.isPaused, false);
  assert.equal(bodiesOf(peer.text).length, 100);
});

test('only so many requests of a connection wait for answers, and little is read ahead', () => {
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => exchanges.push(exchange));
  peer.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(2 * PIPELINED_MAX));
  assert.equal(exchanges.length, PIPELINED_MAX);
  assert.equal(peer.isPaused, false, 'a peer that leaves is heard');
  const more = 1000;
  peer.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(more));
  assert.equal(exchanges.length, PIPELINED_MAX);
  assert.equal(peer.isPaused, true);
  for (let i = 0; i < 2 * PIPELINED_MAX + more; i++) {
    exchanges[i]?.respond(200, null, `${i}`);
    peer.settle();
  }
  assert.equal(bodiesOf(peer.text).length, 2 * PIPELINED_MAX + more);
  assert.equal(peer.isPaused, false);
});

test('held answers leave at the release, in one write', () => {
  const peer = serve((exchange) => {
    if (exchange.path === '/1') exchange.connection.hold();
    echo(exchange);
    if (exchange.path === '/3') exchange.connection.release();
  });
  peer.receive(`GET /1 HTTP/1.1\r\n${HOST}\r\n`);
  peer.receive(`GET /2 HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(peer.writes.length, 0);
  peer.receive(`GET /3 HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(peer.writes.length, 1);
  assert.deepEqual(bodiesOf(peer.text), ['GET /1 ', 'GET /2 ', 'GET /3 ']);
});

test('a body that is streamed arrives in pieces and can be held up', () => {
  let received = '';
  let isComplete = false;
  let paused: Exchange | null = null;
  const peer = serve(
    (exchange) => {
      exchange.onBody = (bytes, start, end) => {
        received += bytes.toString('latin1', start, end);
        if (received.length === 3) {
          exchange.pauseBody();
          paused = exchange;
        }
      };
      exchange.onBodyEnd = () => {
        isComplete = true;
        exchange.respond(200, null, received);
      };
    },
    { streamsBody: (_, path) => path === '/s' },
  );
  peer.receive(
    `POST /s HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n`,
  );
  peer.receive('0\r\n\r\n');
  assert.deepEqual([received, isComplete, peer.isPaused], ['abc', false, true]);
  (paused as Exchange | null)?.resumeBody();
  peer.settle();
  assert.deepEqual(bodiesOf(peer.text), ['abcde']);
});

test('an upgrade hands over the connection with what came behind the request', () => {
  const streams: UpgradedStream[] = [];
  let received = '';
  let isOver = false;
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => {
    if (exchange.upgradeProtocol === undefined) return exchanges.push(exchange);
    const stream = exchange.upgrade(['x-stream', 'v4']);
    streams.push(stream);
    stream.onData = (bytes, start, end): void => {
      received += bytes.toString('latin1', start, end);
    };
    stream.onEnd = (): void => {
      isOver = true;
    };
    return undefined;
  });
  const upgrade = `GET /exec HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n`;
  peer.receive(`GET /1 HTTP/1.1\r\n${HOST}\r\n${upgrade}early`);
  assert.equal(streams.length, 0);
  exchanges[0]?.respond(204, null, null);
  peer.settle();
  assert.ok(
    peer.text.endsWith(
      'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n' +
        'upgrade: spdy/3.1\r\nx-stream: v4\r\n\r\n',
    ),
  );
  peer.receive(' late');
  assert.equal(received, 'early late');
  streams[0]?.write(Buffer.from('raw'));
  peer.settle();
  assert.ok(peer.text.endsWith('\r\n\r\nraw'));
  peer.protocol?.ended();
  assert.equal(isOver, true);
  streams[0]?.end();
  peer.settle();
  assert.equal(peer.isEnded, true);
});

test('a request to upgrade may be answered in the common way, and the connection goes on', () => {
  const peer = serve(echo);
  const upgrade = `GET /ws HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
  peer.receive(`${upgrade}GET /2 HTTP/1.1\r\n${HOST}\r\n`);
  assert.deepEqual(bodiesOf(peer.text), ['GET /ws ', 'GET /2 ']);
});

test('a client that goes away closes its exchanges, each once, with the reason', () => {
  const reasons: string[] = [];
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => {
    exchanges.push(exchange);
    exchange.onClose = (reason) => reasons.push(`${exchange.path} ${reason}`);
  });
  peer.receive(`GET /1 HTTP/1.1\r\n${HOST}\r\nGET /2 HTTP/1.1\r\n${HOST}\r\n`);
  exchanges[0]?.open(200, null);
  peer.protocol?.ended();
  peer.protocol?.closed();
  assert.deepEqual(reasons, ['/1 cancelled', '/2 cancelled']);
  exchanges[0]?.write(Buffer.from('ignored'));
  exchanges[1]?.respond(200, null, 'ignored');
  assert.ok(exchanges.every((exchange) => exchange.closed));
});

test('a client that only half-closes still gets its answers', () => {
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => exchanges.push(exchange));
  peer.receive(
    `GET /1 HTTP/1.1\r\n${HOST}\r\nPOST /2 HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\nab`,
  );
  peer.protocol?.ended();
  exchanges[0]?.respond(200, null, 'one');
  peer.settle();
  assert.deepEqual(bodiesOf(peer.text), ['one']);
  assert.equal(peer.isEnded, true);
});

test('draining finishes what is in flight and says so', () => {
  const exchanges: Exchange[] = [];
  const peer = serve((exchange) => exchanges.push(exchange));
  peer.receive(`GET /1 HTTP/1.1\r\n${HOST}\r\nGET /2 HTTP/1.1\r\n${HOST}\r\n`);
  peer.protocol?.drain();
  for (const exchange of exchanges) exchange.respond(204, null, null);
  peer.settle();
  assert.equal(peer.text.match(/connection: close/g)?.length, 1);
  assert.ok(peer.text.endsWith('connection: close\r\n\r\n'));
  assert.equal(peer.isEnded, true);
  const idle = serve(echo);
  idle.protocol?.drain();
  idle.settle();
  assert.equal(idle.isEnded, true);
});

test('slow heads, silent bodies, idle connections and stalled readers run into their times', () => {
  const head = serve(echo);
  head.receive('GET / HT');
  head.protocol?.tick(SERVER_LIMITS.headMsMax + 1);
  head.settle();
  assert.match(head.text, /^HTTP\/1.1 408 /);
  const body = serve(echo);
  body.receive(`POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\na`);
  body.protocol?.tick(SERVER_LIMITS.bodyIdleMsMax + 1);
  body.settle();
  assert.match(body.text, /^HTTP\/1.1 408 /);
  const idle = serve(echo);
  idle.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  idle.protocol?.tick(SERVER_LIMITS.idleMsMax + 1);
  idle.settle();
  assert.equal(idle.isEnded, true);
  const late: Exchange[] = [];
  const slow = serve((exchange) => late.push(exchange));
  slow.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  slow.timeMs = SERVER_LIMITS.idleMsMax;
  late[0]?.respond(204, null, null);
  slow.protocol?.tick(SERVER_LIMITS.idleMsMax + 1000);
  slow.settle();
  assert.equal(slow.isEnded, false, 'idleness counts from the answer');
  const stalled = serve(echo);
  stalled.isSlow = true;
  stalled.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  stalled.protocol?.tick(SERVER_LIMITS.stallMsMax + 1);
  assert.equal(stalled.isDestroyed, true);
});

test('a handler that throws answers 500 and the error is reported', () => {
  const errors: unknown[] = [];
  const broken = (): void => {
    throw new Error('bug');
  };
  const peer = serve(broken, { onError: (error) => errors.push(error) });
  peer.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(peer.text, 'HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n');
  assert.equal(errors.length, 1);
});

test('header values of an answer cannot break its head', () => {
  const errors: unknown[] = [];
  const onError = (error: unknown): number => errors.push(error);
  const peer = serve((one) => one.respond(200, null, null, ['x', 'a\r\nb: c']), { onError });
  peer.receive(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(errors.length, 1);
  assert.doesNotMatch(peer.text, /b: c/);
});
