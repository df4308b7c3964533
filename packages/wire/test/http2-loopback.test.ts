import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ClientConnection, RequestFailure, ResponseSink } from '../src/http/client.ts';
import { prepareFields } from '../src/http/client.ts';
import { connect } from '../src/dial/connect.ts';
import type { ConnectOptions } from '../src/dial/connect.ts';
import type { Exchange, Handler } from '../src/http/exchange.ts';
import { listen } from '../src/server/listener.ts';
import type { Listener, ListenOptions } from '../src/server/listener.ts';
import type { FieldList } from '../src/fields.ts';

interface Answer {
  status: number;
  fields: FieldList;
  body: string;
  failure: RequestFailure | null;
  trailers: FieldList;
}

const PLAIN = prepareFields(['accept', 'text/plain', 'user-agent', 'test']);

/** One request as a promise, whatever becomes of it. */
function ask(
  client: ClientConnection,
  method: string,
  path: string,
  body: string | Uint8Array | null = null,
): Promise<Answer> {
  return new Promise((resolve) => {
    const answer: Answer = { status: 0, fields: [], body: '', failure: null, trailers: [] };
    const sink: ResponseSink = {
      onHead(_stream, status, fields) {
        answer.status = status;
        answer.fields = fields;
      },
      onData(_stream, bytes, start, end) {
        answer.body += bytes.toString('latin1', start, end);
      },
      onEnd(_stream, failure, trailers) {
        answer.failure = failure;
        answer.trailers = trailers;
        resolve(answer);
      },
    };
    client.request(method, path, PLAIN, body, sink);
  });
}

async function serving(
  handler: Handler,
  run: (client: ClientConnection, listener: Listener) => Promise<void>,
  more: Partial<ListenOptions> = {},
  how: Partial<ConnectOptions> = {},
): Promise<void> {
  const listener = await listen({ handler, ...more });
  const where =
    more.unixPath === undefined ? { port: listener.address.port } : { unixPath: more.unixPath };
  const client = connect({ ...where, ...how });
  try {
    await run(client, listener);
  } finally {
    client.destroy();
    await listener.close();
  }
}

const echo: Handler = (exchange) => {
  const text = `${exchange.method} ${exchange.path} ${exchange.body.length}`;
  exchange.respond(200, 'text/plain', text, ['x-test', exchange.header('accept') ?? '-']);
};

for (const protocol of ['h2', 'h1'] as const) {
  test(`requests and bodies of many sizes come and go over ${protocol}`, async () => {
    await serving(
      echo,
      async (client) => {
        const sizes = [0, 1, 100, 16_384, 16_385, 70_000, 3_000_000];
        const answers = await Promise.all(
          sizes.map((size) => ask(client, 'POST', `/${size}`, 'x'.repeat(size))),
        );
        for (const [i, size] of sizes.entries()) {
          assert.equal(answers[i]?.body, `POST /${size} ${size}`);
          assert.equal(answers[i]?.failure, null);
          const at = answers[i]?.fields.indexOf('x-test') ?? -1;
          assert.equal(answers[i]?.fields[at + 1], 'text/plain');
        }
        const get = await ask(client, 'GET', '/nothing');
        assert.equal(get.body, 'GET /nothing 0');
      },
      {},
      { protocol },
    );
  });
}

test('requests and answers that differ in path and audit-id alone keep their own', async () => {
  const handler: Handler = (exchange) => {
    const name = exchange.path.slice(1);
    const kind = ['x-kind', name.endsWith('7') ? 'audit-id' : 'other'];
    exchange.respond(200, 'text/plain', exchange.path, [...kind, 'audit-id', `id-of-${name}`]);
  };
  await serving(handler, async (client) => {
    for (let turn = 0; turn < 3; turn++) {
      const names = Array.from({ length: 40 }, (_, i) => `${turn}-${i}`);
      const answers = await Promise.all(names.map((name) => ask(client, 'PUT', `/${name}`)));
      for (const [i, name] of names.entries()) {
        assert.equal(answers[i]?.body, `/${name}`);
        const fields = answers[i]?.fields ?? [];
        const kind = name.endsWith('7') ? 'audit-id' : 'other';
        // the last one is the date
        assert.deepEqual(fields.slice(-6, -2), ['x-kind', kind, 'audit-id', `id-of-${name}`]);
      }
    }
  });
});

for (const protocol of ['h2', 'h1'] as const) {
  test(`answers that were copied may be overwritten at once over ${protocol}`, async () => {
    const shared = Buffer.alloc(200_000);
    const handler: Handler = (exchange) => {
      const length = Number(exchange.path.slice(1));
      shared.fill('y');
      exchange.respondCopy(200, 'text/plain', shared, length);
      shared.fill('n');
    };
    const run = async (client: ClientConnection): Promise<void> => {
      const sizes = [0, 1, 5000, 70_000, 200_000];
      const answers = await Promise.all(sizes.map((size) => ask(client, 'GET', `/${size}`)));
      for (const [i, size] of sizes.entries()) {
        assert.equal(answers[i]?.failure, null);
        assert.equal(answers[i]?.body, 'y'.repeat(size));
      }
      const head = await ask(client, 'HEAD', '/300');
      assert.equal(head.fields[head.fields.indexOf('content-length') + 1], '300');
      assert.equal(head.body, '');
    };
    await serving(handler, run, {}, { protocol });
  });
}

test('answers carry their own fields, whatever others carried before them', async () => {
  const fieldsOf = (path: string): FieldList => {
    const number = Number(path.slice(1));
    const fields = ['x-id', path, 'cache-control', 'no-store', 'x-sort', `sort-${number % 7}`];
    for (let more = 0; more < number % 4; more++) fields.push(`x-more-${more}`, `${number % 5}`);
    if (number % 11 === 0) fields.push('x-long', 'l'.repeat(2000));
    return fields.slice(0, number % 13 === 0 ? 4 : undefined);
  };
  const handler: Handler = (exchange) => {
    exchange.respond(200, null, exchange.path, fieldsOf(exchange.path));
  };
  await serving(handler, async (client) => {
    for (let number = 0; number < 300; number++) {
      const path = `/${number % 97}`;
      const { fields, body } = await ask(client, 'GET', path);
      assert.equal(body, path);
      const own = fieldsOf(path);
      assert.deepEqual(fields.slice(-own.length - 2, -2), own, path);
    }
  });
});

test('a Unix socket serves, also where a dead one was left', async () => {
  const unixPath = join(tmpdir(), `megaplane-wire-${process.pid}.sock`);
  await serving(
    (exchange) => exchange.respond(200, null, String(exchange.connection.unix)),
    async (client) => assert.equal((await ask(client, 'GET', '/')).body, 'true'),
    { unixPath },
  );
  rmSync(unixPath, { force: true });
});

test('what many are sent is held once, in order with what each is sent', async () => {
  const waiting: Exchange[] = [];
  let copies = 0;
  const tell = (text: string): void => {
    const sink = Buffer.from(text);
    const kept = Buffer.from(text);
    const shared = { kept: () => (copies++, kept) };
    for (const exchange of waiting) exchange.write(sink, 0, sink.length, shared);
    sink.fill(0);
  };
  const handler: Handler = (exchange) => {
    exchange.open(200, null);
    exchange.write(Buffer.from(exchange.path));
    if (waiting.push(exchange) < 20) return;
    tell('a'.repeat(100_000));
    for (const one of waiting) one.write(Buffer.from(`|${one.path}|`));
    tell('b'.repeat(700_000));
    for (const one of waiting) one.end();
  };
  const expected = (path: string): string =>
    `${path}${'a'.repeat(100_000)}|${path}|${'b'.repeat(700_000)}`;
  const run = async (client: ClientConnection): Promise<void> => {
    const paths = Array.from({ length: 20 }, (_, index) => `/${index}`);
    const answers = await Promise.all(paths.map((path) => ask(client, 'GET', path)));
    for (const [index, { body }] of answers.entries()) assert(body === expected(`/${index}`));
  };
  await serving(handler, run, {}, { protocol: 'h2' });
  assert.equal(copies, 40);
});

test('large answers reach a client of small windows, and many at once', async () => {
  const text = 'abcdefghij'.repeat(200_000);
  await serving(
    (exchange) => exchange.respond(200, 'text/plain', text),
    async (client) => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => ask(client, 'GET', `/${i}`)),
      );
      for (const answer of answers) assert(answer.body === text);
    },
    {},
    { limits: { streamWindowBytes: 20_000, connectionWindowBytes: 70_000 } },
  );
});

test('more requests than the server allows streams wait for their turn', async () => {
  await serving(
    echo,
    async (client) => {
      const paths = Array.from({ length: 500 }, (_, i) => `/${i}`);
      const answers = await Promise.all(paths.map((path) => ask(client, 'GET', path)));
      for (const [i, answer] of answers.entries()) assert.equal(answer.body, `GET ${paths[i]} 0`);
      assert.equal(client.inFlight, 0);
    },
    { limits: { streamsMax: 7 } },
  );
});

test('a body over the limit is answered 413 and the connection goes on', async () => {
  await serving(
    echo,
    async (client) => {
      const large = await ask(client, 'POST', '/large', 'x'.repeat(300_000));
      assert.equal(large.status, 413);
      assert.equal((await ask(client, 'POST', '/small', 'x')).body, 'POST /small 1');
    },
    { limits: { bodyBytesMax: 100_000 } },
  );
});

test('fields over the limit are answered 431', async () => {
  await serving(
    echo,
    async (client) => {
      const status = await new Promise((resolve) => {
        const fields = prepareFields(['x-large', 'y'.repeat(5000)]);
        client.request('GET', '/', fields, null, {
          onHead: (_stream, found) => resolve(found),
          onData: () => undefined,
          onEnd: () => resolve(0),
        });
      });
      assert.equal(status, 431);
      assert.equal((await ask(client, 'GET', '/')).status, 200);
    },
    { limits: { headBytesMax: 4096 } },
  );
});

test('a header block of many frames is read as one', async () => {
  await serving(
    (exchange) => exchange.respond(200, 'text/plain', String(exchange.path.length)),
    async (client) => {
      const answer = await ask(client, 'GET', `/${'a'.repeat(500_000)}`);
      assert.equal(answer.body, '500001');
    },
  );
});

test('a streamed answer is pulled, with trailers at its end', async () => {
  let left = 400;
  const piece = Buffer.alloc(10_000, 'p');
  const handler: Handler = (exchange) => {
    exchange.open(200, 'text/plain');
    const produce = (): void => {
      while (left > 0 && exchange.writable() > 0) {
        exchange.write(piece);
        left--;
      }
      if (left === 0) exchange.end(['x-sum', '42']);
      if (left === 0) left = -1;
    };
    exchange.onWritable = produce;
    produce();
    assert(left > 0, 'the budget stops the producer');
  };
  await serving(handler, async (client) => {
    const answer = await ask(client, 'GET', '/');
    assert.equal(answer.body.length, 4_000_000);
    assert.deepEqual(answer.trailers, ['x-sum', '42']);
  });
});

test('a small event passes a large list on the same connection', async () => {
  let watch: Exchange | null = null;
  const handler: Handler = (exchange) => {
    if (exchange.path === '/list') {
      exchange.respond(200, 'text/plain', Buffer.alloc(20_000_000, 'l'));
    } else {
      exchange.open(200, 'text/plain');
      watch = exchange;
    }
  };
  await serving(handler, async (client) => {
    let listed = 0;
    let listedAtEvent = -1;
    const done = new Promise<void>((resolve) => {
      client.request('GET', '/watch', PLAIN, null, {
        onHead: () => {
          client.request('GET', '/list', PLAIN, null, {
            onHead: () => undefined,
            onData(_stream, _bytes, start, end) {
              if (listed === 0) watch?.write(Buffer.from('event'));
              listed += end - start;
            },
            onEnd: () => resolve(),
          });
        },
        onData() {
          listedAtEvent = listed;
        },
        onEnd: () => undefined,
      });
    });
    await done;
    assert(listedAtEvent > 0 && listedAtEvent < 10_000_000, `after ${listedAtEvent} octets`);
  });
});

test('held answers stay back until the release, in order', async () => {
  const held: Exchange[] = [];
  const handler: Handler = (exchange) => {
    exchange.connection.hold();
    exchange.respond(200, null, exchange.path);
    held.push(exchange);
  };
  await serving(handler, async (client) => {
    const order: string[] = [];
    const both = ['/a', '/b'].map((path) =>
      ask(client, 'GET', path).then((answer) => order.push(answer.body)),
    );
    while (held.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(order, []);
    held[0]?.connection.release();
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(order, []);
    held[1]?.connection.release();
    await Promise.all(both);
    assert.deepEqual(order, ['/a', '/b']);
  });
});

test('a cancelled request tells the handler, a lost connection tells all', async () => {
  const reasons: string[] = [];
  const handler: Handler = (exchange) => {
    exchange.open(200, null);
    exchange.onClose = (reason) => reasons.push(`${exchange.path} ${reason}`);
  };
  await serving(handler, async (client, listener) => {
    const heads = ['/one', '/two'].map(
      (path) =>
        new Promise<void>((resolve) => {
          const stream = client.request('GET', path, PLAIN, null, {
            onHead() {
              if (path === '/one') stream.cancel();
              resolve();
            },
            onData: () => undefined,
            onEnd: () => undefined,
          });
        }),
    );
    await Promise.all(heads);
    while (reasons.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(reasons, ['/one cancelled']);
    client.destroy();
    while (listener.connections > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(reasons, ['/one cancelled', '/two disconnected']);
  });
});

test('a draining server finishes what is in flight and refuses the rest', async () => {
  const slow: Exchange[] = [];
  const handler: Handler = (exchange) => {
    if (exchange.path === '/slow') slow.push(exchange);
    else exchange.respond(200, null, 'fast');
  };
  await serving(handler, async (client, listener) => {
    const answer = ask(client, 'GET', '/slow');
    await ask(client, 'GET', '/fast');
    const closed = new Promise<string>((resolve) => (client.onClosed = resolve));
    const draining = new Promise<void>((resolve) => (client.onDraining = resolve));
    const closing = listener.close(5000);
    await draining;
    assert.equal((await ask(client, 'GET', '/late')).failure?.kind, 'refused');
    slow[0]?.respond(200, null, 'done');
    assert.equal((await answer).body, 'done');
    await closed;
    await closing;
  });
});

test('a server that is not there refuses with its address', async () => {
  const client = connect({ port: 1 });
  const answer = await ask(client, 'GET', '/');
  assert.equal(answer.failure?.kind, 'refused');
  assert.match(answer.failure?.message ?? '', /127\.0\.0\.1:1: cannot connect: .*ECONNREFUSED/);
  assert.equal(client.state, 'closed');
});

test('a streamed request body arrives in pieces and may be paused', async () => {
  const seen: number[] = [];
  const handler: Handler = (exchange) => {
    let total = 0;
    exchange.onBody = (_bytes, start, end) => {
      total += end - start;
      seen.push(end - start);
      exchange.pauseBody();
      setTimeout(() => exchange.resumeBody(), 1);
    };
    exchange.onBodyEnd = () => exchange.respond(200, null, String(total));
  };
  await serving(
    handler,
    async (client) => {
      const answer = await ask(client, 'PUT', '/', Buffer.alloc(500_000));
      assert.equal(answer.body, '500000');
      assert(seen.length > 10);
    },
    { streamsBody: () => true, limits: { streamWindowBytes: 65_535 } },
  );
});

test('a thousand connections at once are served, and none beyond the limit', async () => {
  const listener = await listen({ handler: echo, limits: { connectionsMax: 1000 } });
  const { port } = listener.address;
  const clients = Array.from({ length: 1000 }, () => connect({ port }));
  const answers = await Promise.all(clients.map((client) => ask(client, 'GET', '/')));
  for (const answer of answers) assert.equal(answer.body, 'GET / 0');
  const late = await ask(connect({ port }), 'GET', '/');
  assert.notEqual(late.failure, null);
  assert.equal(listener.connections, 1000);
  for (const client of clients) client.destroy();
  while (listener.connections > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const next = connect({ port });
  assert.equal((await ask(next, 'GET', '/')).status, 200);
  next.destroy();
  await listener.close();
});

test('requests in a row with the same fields give one list of them, others another', async () => {
  const lists: FieldList[] = [];
  const handler: Handler = (exchange) => {
    lists.push(exchange.fields());
    exchange.respond(204, null, null);
  };
  await serving(handler, async (client) => {
    await ask(client, 'GET', '/a');
    await ask(client, 'PUT', '/b');
    await ask(client, 'PUT', '/b', 'with a length');
    await ask(client, 'GET', '/a');
  });
  const [first, second, third, fourth] = lists;
  assert.equal(first, second);
  assert.notEqual(second, third);
  assert.deepEqual(fourth, first);
  assert.deepEqual(first, ['accept', 'text/plain', 'user-agent', 'test']);
});
