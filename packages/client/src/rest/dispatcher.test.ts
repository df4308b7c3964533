import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeConnection, type FakeRequest } from '../../test/fake-connection.ts';
import { FakeTimers } from '../../test/fake-timers.ts';
import { CONTENT, STATUS_NONE, type ClientLimits, type StreamSink } from './client.ts';
import { Dispatcher } from './dispatcher.ts';

const LIMITS: ClientLimits = {
  connections: 1,
  inFlightMax: 10,
  queueMax: 10,
  requestTimeoutMs: 60_000,
  retriesMax: 3,
  answerBytesMax: 1000,
};

interface Bench {
  readonly client: Dispatcher;
  readonly timers: FakeTimers;
  readonly connections: FakeConnection[];
  readonly answers: string[];
  /** Requests that the servers of all connections hold, oldest first. */
  readonly requests: () => FakeRequest[];
  readonly send: (path: string, tag?: number) => boolean;
}

let token = 'secret';

function bench(limits: Partial<ClientLimits> = {}): Bench {
  const timers = new FakeTimers();
  const connections: FakeConnection[] = [];
  const answers: string[] = [];
  const client = new Dispatcher({
    dial: () => {
      const connection = new FakeConnection();
      connections.push(connection);
      return connection;
    },
    token: () => token,
    userAgent: 'test/1',
    pathPrefix: '/prefix',
    serverName: 'https://server',
    timers,
    random: () => 0.5,
    limits: { ...LIMITS, ...limits },
  });
  return {
    client,
    timers,
    connections,
    answers,
    requests: () => connections.flatMap((connection) => [...connection.requests]),
    send: (path, tag = 0) =>
      client.send(
        'PUT',
        path,
        CONTENT.json,
        Buffer.from(`body of ${path}`),
        (status, bytes, start, end, own) => {
          const text = Buffer.from(bytes.subarray(start, end)).toString();
          answers.push(`${own} ${status} ${text}`);
        },
        tag,
      ),
  };
}

test('requests wait for the connection, then carry body, fields and prefix', () => {
  const { client, connections, requests, answers, send } = bench();
  assert.equal(send('/a', 7), true);
  assert.equal(client.metrics.requestsQueued, 1);
  connections[0]?.opened();
  const [request] = requests();
  assert.ok(request);
  assert.equal(request.path, '/prefix/a');
  assert.equal(request.body, 'body of /a');
  assert.equal(
    request.fields.join(' '),
    'user-agent test/1 accept application/json;managedfields=omit ' +
      'content-type application/json authorization Bearer secret',
  );
  request.answer(200, 'the answer');
  assert.deepEqual(answers, ['7 200 the answer']);
  assert.equal(client.metrics.requestsInFlight, 0);
});

test('a changed token is used by the next request', () => {
  const { connections, requests, send } = bench();
  send('/a');
  connections[0]?.opened();
  token = 'second';
  send('/b');
  token = 'secret';
  assert.ok(requests()[1]?.fields.includes('Bearer second'));
});

test('requests that follow each other share a connection, crowds take turns with all', () => {
  const { connections, send } = bench({ connections: 2, inFlightMax: 1000, queueMax: 1000 });
  send('/first');
  for (const connection of connections) connection.opened();
  const counts = (): number[] => connections.map(({ requests }) => [...requests].length);
  for (let i = 0; i < 10; i++) send('/a');
  assert.deepEqual(counts(), [11, 0]);
  for (let i = 0; i < 90; i++) send('/b');
  assert.ok(Math.min(...counts()) >= 32, counts().join());
  // one that the server drains is not asked any more, whose turn ever it is
  const [first = 0, second] = counts();
  connections[1]?.draining();
  for (let i = 0; i < 20; i++) send('/c');
  assert.deepEqual(counts().slice(0, 2), [first + 20, second]);
});

test('fields of one kind of request are not those of another that came before', () => {
  const { client, connections, requests } = bench();
  const done = (): void => {};
  const kinds = (): string[] => requests().map(({ fields }) => fields.slice(2).join(' '));
  client.send('PUT', '/a', CONTENT.json, 'a', done);
  connections[0]?.opened();
  client.send('PUT', '/a', CONTENT.json, 'a', done, 0, 'jane');
  client.send('PUT', '/a', CONTENT.json, 'a', done);
  client.send('PATCH', '/a', CONTENT.mergePatch, 'a', done);
  client.send('GET', '/a', '', null, done);
  token = 'second';
  client.send('GET', '/a', '', null, done);
  token = 'secret';
  const lean = 'accept application/json;managedfields=omit';
  const bearer = 'authorization Bearer secret';
  assert.deepEqual(kinds(), [
    `${lean} content-type application/json ${bearer}`,
    `${lean} content-type application/json ${bearer} impersonate-user jane`,
    `${lean} content-type application/json ${bearer}`,
    `${lean} content-type application/merge-patch+json ${bearer}`,
    `${lean} ${bearer}`,
    `${lean} authorization Bearer second`,
  ]);
});

test('the queue refuses at its limit and says when there is room again', () => {
  const { client, connections, requests, send } = bench();
  let calls = 0;
  client.onRoom(() => calls++);
  let accepted = 0;
  while (send('/a')) accepted++;
  assert.equal(accepted, 20);
  assert.equal(client.room(), 0);
  assert.equal(client.metrics.requestsRefused, 1);
  connections[0]?.opened();
  assert.equal(client.metrics.requestsInFlight, 10);
  assert.equal(calls, 0);
  for (let i = 0; i < 4; i++) requests()[0]?.answer(200);
  assert.equal(calls, 0);
  requests()[0]?.answer(200);
  assert.equal(calls, 1);
  assert.equal(client.room(), 5);
});

test('a producer that looks at the room alone is told too', () => {
  const { client, connections, requests, send } = bench();
  let calls = 0;
  client.onRoom(() => calls++);
  while (client.room() > 0) send('/a');
  connections[0]?.opened();
  for (let i = 0; i < 5; i++) requests()[0]?.answer(200);
  assert.equal(calls, 1);
});

test('control-plane requests find a place beside hot producers', async () => {
  const { client, connections, requests, send } = bench();
  while (send('/a'));
  const response = client.request({ method: 'GET', path: '/mine' });
  connections[0]?.opened();
  for (let i = 0; i < 30; i++) requests()[0]?.answer(200, '{}');
  assert.equal((await response).ok, true);
});

test('what the server surely did not do is repeated, what it may have done is not', () => {
  const { client, connections, requests, answers, send } = bench();
  send('/refused', 1);
  send('/reset', 2);
  send('/lost', 3);
  connections[0]?.opened();
  const [refused, reset] = requests();
  refused?.fail('refused');
  reset?.fail('reset', 'internal error');
  requests()
    .find((request) => request.path === '/prefix/refused')
    ?.answer(201);
  connections[0]?.lose('gone');
  assert.deepEqual(answers.toSorted(), ['1 201 ', '2 0 internal error', '3 0 gone']);
  assert.equal(client.metrics.retries, 1);
  assert.equal(requests().length, 0);
});

test('a GET that is broken off again and again goes out at once, then ever later', async () => {
  const { client, timers, connections, requests } = bench();
  const response = client.request({ method: 'GET', path: '/x' });
  connections[0]?.opened();
  requests()[0]?.fail('reset');
  assert.equal(requests().length, 1);
  const pausesMs: number[] = [];
  for (let i = 0; i < 2; i++) {
    requests()[0]?.fail('reset');
    let passedMs = 0;
    for (; requests().length === 0; passedMs += 100) timers.advance(100);
    pausesMs.push(passedMs);
  }
  assert.deepEqual(pausesMs, [100, 200]);
  requests()[0]?.answer(200, '{}');
  assert.equal((await response).ok, true);
});

test('a GET is repeated over the next connection', async () => {
  const { client, timers, connections, requests } = bench();
  const response = client.request({ method: 'GET', path: '/x' });
  connections[0]?.opened();
  connections[0]?.lose('reset by peer');
  timers.advance(200);
  assert.equal(connections.length, 2);
  connections[1]?.opened();
  requests()[0]?.answer(200, '{"kind":"X"}');
  assert.deepEqual((await response).ok && (await response), {
    ok: true,
    code: 200,
    object: { kind: 'X' },
    bytes: Buffer.from('{"kind":"X"}'),
    etag: '',
  });
});

test('connections are made again after growing pauses', () => {
  const { timers, connections, send } = bench();
  send('/a');
  let tries = 0;
  for (let ms = 0; ms < 20_000; ms += 10) {
    const last = connections.at(-1);
    if (last?.state === 'connecting') {
      last.lose('connection refused');
      tries++;
    }
    timers.advance(10);
  }
  assert.ok(tries >= 12 && tries <= 20, `${tries} tries in 20 s`);
});

test('a request that no connection carries ends at its deadline with the reason', () => {
  const { timers, connections, answers, send } = bench();
  send('/a');
  for (let second = 0; second < 70; second++) {
    for (const connection of connections) connection.lose('ECONNREFUSED');
    timers.advance(1000);
  }
  assert.deepEqual(answers, ['0 0 cannot reach https://server: ECONNREFUSED']);
});

test('a request without an answer ends at its deadline', () => {
  const { client, timers, connections, answers, send } = bench();
  send('/a');
  connections[0]?.opened();
  timers.advance(59_000);
  assert.deepEqual(answers, []);
  timers.advance(2000);
  assert.deepEqual(answers, ['0 0 https://server did not answer in time']);
  assert.equal(client.metrics.requestsInFlight, 0);
  assert.equal(client.metrics.answersByClass[STATUS_NONE], 1);
});

test('429 and 503 with Retry-After are repeated in their time, others are answers', () => {
  const { client, timers, connections, requests, answers, send } = bench();
  send('/a');
  connections[0]?.opened();
  requests()[0]?.answer(429, 'later', ['retry-after', '2']);
  timers.advance(1900);
  assert.equal(requests().length, 0);
  timers.advance(500);
  requests()[0]?.answer(503, 'still', ['retry-after', '1']);
  timers.advance(2500);
  requests()[0]?.answer(429, 'no time given');
  assert.deepEqual(answers, ['0 429 no time given']);
  assert.equal(client.metrics.throttled, 2);
});

test('repeating ends after so many tries', () => {
  const { timers, connections, requests, answers, send } = bench();
  send('/a');
  connections[0]?.opened();
  for (let i = 0; i < 10; i++) {
    requests()[0]?.answer(429, 'busy', ['retry-after', '1']);
    timers.advance(5000);
  }
  assert.deepEqual(answers, ['0 429 busy']);
});

test('who is put off again and again waits twice as long each time, up to eight seconds', () => {
  const { client, timers, connections, requests, send } = bench({ retriesMax: 20 });
  client.send('PUT', '/a', CONTENT.json, null, () => {});
  connections[0]?.opened();
  const pausesS: number[] = [];
  for (let i = 0; i < 6; i++) {
    requests()[0]?.answer(429, 'busy', ['retry-after', i < 5 ? '1' : '20']);
    let passedMs = 0;
    for (; requests().length === 0; passedMs += 100) timers.advance(100);
    pausesS.push(passedMs / 1000);
  }
  // a quarter of jitter, of which the random numbers of the test take half
  assert.deepEqual(pausesS, [1.2, 2.3, 4.5, 9, 9, 22.5]);
  assert.equal(send('/b'), true);
});

test('what is put off takes room, and the producer is told when it has gone', () => {
  const { client, timers, connections, requests, answers, send } = bench();
  let calls = 0;
  client.onRoom(() => calls++);
  connections[0]?.opened();
  let sent = 0;
  for (let round = 0; round < 10; round++) {
    while (send('/a')) sent++;
    for (const request of requests()) request.answer(429, 'busy', ['retry-after', '1']);
    connections[0]?.opened();
  }
  assert.equal(sent, 20);
  assert.equal(client.room(), 0);
  assert.equal(calls, 0);
  timers.advance(1500);
  while (answers.length < 20) requests()[0]?.answer(200);
  assert.equal(client.room(), 20);
  assert.ok(calls > 0);
});

test('the end of a request tells what the server wishes', () => {
  const { client, connections, requests } = bench({ retriesMax: 0 });
  const told: number[] = [];
  const done = (): void => void told.push(client.retryAfterSeconds);
  for (let i = 0; i < 2; i++) client.send('PUT', '/a', CONTENT.json, null, done);
  connections[0]?.opened();
  requests()[0]?.answer(429, 'busy', ['retry-after', '7']);
  requests()[0]?.answer(200);
  assert.deepEqual(told, [7, 0]);
});

test('an answer larger than the limit is given up', () => {
  const { connections, requests, answers, send } = bench();
  send('/a');
  connections[0]?.opened();
  requests()[0]?.answer(200, 'x'.repeat(3000));
  assert.deepEqual(answers, ['0 0 the answer is larger than 1000 bytes']);
});

test('failures come as Status values, decoded or made up', async () => {
  const { client, connections, requests } = bench();
  const status =
    '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}';
  const answers = [status, 'plain text', ''].map((_, i) =>
    client.request({ method: 'DELETE', path: `/${i}` }),
  );
  connections[0]?.opened();
  const [first, second, third] = requests();
  first?.answer(404, status);
  second?.answer(403, 'plain text');
  third?.answer(500);
  const [a, b, c] = await Promise.all(answers);
  assert.ok(a?.ok === false && a.status.reason === 'NotFound');
  assert.ok(b?.ok === false && b.status.reason === 'Forbidden');
  assert.ok(b?.ok === false && b.status.message === 'plain text');
  assert.ok(c?.ok === false && c.status.message === 'the server answered 500');
});

function sinkOf(lines: string[]): StreamSink {
  return {
    onHead: (status, retryAfterSeconds) => lines.push(`head ${status} ${retryAfterSeconds}`),
    onData: (bytes, start, end) =>
      lines.push(`data ${Buffer.from(bytes).toString('utf8', start, end)}`),
    onEnd: (error) => lines.push(`end ${error}`),
  };
}

test('streams take turns with requests, can be held up and given up', () => {
  const { client, connections, requests } = bench();
  const lines: string[] = [];
  const stream = client.stream('/watch', sinkOf(lines));
  stream.pause();
  connections[0]?.opened();
  const [request] = requests();
  assert.equal(request?.isPaused, true);
  stream.resume();
  assert.equal(request?.isPaused, false);
  request?.head(200, ['retry-after', '5']);
  request?.data('event');
  stream.cancel();
  stream.cancel();
  request?.data('late');
  assert.deepEqual(lines, ['head 200 5', 'data event']);
  assert.equal(request?.closed, true);
  assert.equal(client.metrics.streamsOpen, 0);
});

test('streams are told at once that no connection can be made', () => {
  const { client, connections } = bench();
  const lines: string[] = [];
  client.stream('/watch', sinkOf(lines));
  connections[0]?.lose('ECONNREFUSED');
  assert.deepEqual(lines, ['end cannot reach https://server: ECONNREFUSED']);
});

test('watches beyond what one connection carries open another', () => {
  const { client, connections } = bench();
  const open = (): void => void client.stream('/watch', sinkOf([]));
  open();
  connections[0]?.opened();
  for (let i = 0; i < 149; i++) open();
  assert.equal(connections.length, 2);
  connections[1]?.opened();
  assert.deepEqual(
    connections.map((each) => each.requests.size),
    [75, 75],
  );
});

test('watches leave room for requests, however many they are', () => {
  const { client, connections, answers, send } = bench();
  client.stream('/watch', sinkOf([]));
  connections[0]?.opened();
  for (let i = 0; i < 5000; i++) {
    client.stream('/watch', sinkOf([]));
    connections.at(-1)?.opened();
  }
  const open = connections.reduce((sum, { requests }) => sum + requests.size, 0);
  assert.equal(open, 5001);
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 5; i++) send('/a');
    for (const request of connections[0]!.requests) {
      if (request.path === '/prefix/a') request.answer(200);
    }
  }
  assert.equal(answers.length, 50);
  assert.equal(connections[0]!.requests.size, 75);
});

test('a server that drains keeps its requests, and new ones go over a new connection', () => {
  const { connections, requests, answers, send } = bench();
  send('/old', 1);
  connections[0]?.opened();
  connections[0]?.draining();
  send('/new', 2);
  connections[1]?.opened();
  assert.deepEqual(
    requests().map((request) => request.path),
    ['/prefix/old', '/prefix/new'],
  );
  for (const request of requests()) request.answer(200, request.path);
  assert.deepEqual(answers, ['1 200 /prefix/old', '2 200 /prefix/new']);
});

test('closing ends everything, once', () => {
  const { client, timers, connections, answers, send } = bench();
  const lines: string[] = [];
  send('/flying');
  connections[0]?.opened();
  client.stream('/watch', sinkOf(lines));
  connections[0]?.draining();
  send('/queued');
  client.close();
  client.close();
  assert.equal(answers.length, 2);
  assert.deepEqual(lines, []);
  assert.equal(send('/late'), false);
  assert.ok(connections.every((connection) => connection.state === 'closed'));
  timers.advance(1e6);
  assert.equal(answers.length, 2);
});

const step = fc.oneof(
  fc.constantFrom('send', 'send', 'send', 'open', 'answer', 'answer', 'throttle', 'refuse'),
  fc.constantFrom('lose', 'drain', 'reset', 'advance', 'stream'),
);

test('under any schedule each accepted request ends exactly once', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200 }),
      fc.integer({ min: 1, max: 3 }),
      (steps, count) => {
        const { client, timers, connections, requests, answers, send } = bench({
          connections: count,
        });
        const ends = new Map<number, number>();
        let sent = 0;
        const act: Record<string, () => void> = {
          send: () => {
            if (send('/a', sent)) ends.set(sent++, 0);
          },
          stream: () => client.stream('/w', sinkOf([])),
          open: () => connections.find((each) => each.state === 'connecting')?.opened(),
          answer: () => requests()[0]?.answer(200),
          throttle: () => requests()[0]?.answer(429, '', ['retry-after', '1']),
          refuse: () => requests()[0]?.fail('refused'),
          reset: () => requests()[0]?.fail('reset'),
          lose: () => connections.find((each) => each.state === 'open')?.lose('lost'),
          drain: () => connections.find((each) => each.state === 'open')?.draining(),
          advance: () => timers.advance(700),
        };
        for (const name of steps) act[name]?.();
        timers.advance(1e6);
        for (const line of answers) {
          const tag = Number(line.split(' ')[0]);
          ends.set(tag, (ends.get(tag) ?? 0) + 1);
        }
        assert.deepEqual(
          [...ends.values()].filter((n) => n !== 1),
          [],
        );
        assert.equal(client.metrics.requestsInFlight, 0);
        assert.equal(client.metrics.requestsQueued, 0);
      },
    ),
    { numRuns: 300 },
  );
});
