import assert from 'node:assert/strict';
import { test } from 'node:test';
import grpcJs from '@grpc/grpc-js';
import fc from 'fast-check';
import { connect } from '../dial/connect.ts';
import { grpcClient } from '../grpc/grpc-client.ts';
import { GrpcRoutes } from '../grpc/grpc-routes.ts';
import { decodeMessage, encodeMessage, formatTimeout, parseTimeout } from '../grpc/grpc-text.ts';
import type { GrpcCall, GrpcClient, GrpcClientCall, GrpcSink, GrpcStatus } from './grpc.ts';
import { listen } from '../server/listener.ts';

const TEXT = 'it failed: 100% — 失敗\n';

/** The methods that all peers call. */
function routes(calls: GrpcCall[] = [], cancels: string[] = []): GrpcRoutes {
  const made = new GrpcRoutes({ messageBytesMax: 100_000 });
  made.unary('/t.S/Echo', (bytes, start, end, out, at, call) => {
    if (end - start > 30_000) return call.reply(Buffer.from(bytes.subarray(start, end)));
    return at + bytes.copy(out, at, start, end);
  });
  made.unary('/t.S/Fail', (_bytes, _start, _end, _out, _at, call) => call.fail(9, TEXT));
  made.unary('/t.S/Later', (bytes, start, end, _out, _at, call) => {
    const text = `later ${bytes.toString('utf8', start, end)} ${call.metadata('x-meta') ?? '-'}`;
    return call.defer((later) => {
      setTimeout(() => {
        later.send(Buffer.from(text));
        later.finish(0, '', ['x-trailer', 'yes']);
      }, 5);
    });
  });
  made.call('/t.S/Sum', (call) => {
    let sum = 0;
    return {
      onMessage: (bytes, start) => void (sum += bytes[start] ?? 0),
      onHalfClose() {
        call.send(Buffer.from(String(sum)));
        call.finish(0);
      },
      onCancel: (reason) => cancels.push(reason),
    };
  });
  made.call('/t.S/Count', (call) => ({
    onMessage(bytes, start) {
      const count = bytes[start] ?? 0;
      for (let i = 0; i < count; i++) call.send(Buffer.alloc(i * 100, i));
    },
    onHalfClose: () => call.finish(0),
    onCancel: (reason) => cancels.push(reason),
  }));
  made.call('/t.S/Wait', (call) => ({
    onMessage: (bytes, start, end) => call.send(bytes, start, end),
    onHalfClose: () => undefined,
    onCancel: (reason) => cancels.push(reason),
  }));
  made.call('/t.S/Chat', (call) => {
    calls.push(call);
    return {
      onMessage: (bytes, start, end) => call.send(bytes, start, end),
      onHalfClose: () => call.finish(0, 'bye'),
      onCancel: (reason) => cancels.push(reason),
    };
  });
  return made;
}

async function serving(
  made: GrpcRoutes,
  run: (port: number, client: GrpcClient) => Promise<void>,
): Promise<void> {
  const handler = (): never => assert.fail('no plain request is made');
  const listener = await listen({ handler, grpc: made });
  const connection = connect({ port: listener.address.port });
  try {
    await run(listener.address.port, grpcClient(connection));
  } finally {
    connection.destroy();
    await listener.close();
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 6000 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert(holds(), 'it did not come true in half a minute');
}

interface Outcome {
  messages: Buffer[];
  status: GrpcStatus;
}

function outcome(begin: (sink: GrpcSink) => GrpcClientCall): Promise<Outcome> {
  return new Promise((resolve) => {
    const messages: Buffer[] = [];
    begin({
      onMessage: (_call, bytes, start, end) =>
        messages.push(Buffer.from(bytes.subarray(start, end))),
      onStatus: (_call, status) => resolve({ messages, status }),
    });
  });
}

test('unary calls of many sizes are answered in place or not', async () => {
  await serving(routes(), async (_port, client) => {
    for (const size of [0, 1, 100, 16_370, 16_384, 29_000, 40_000, 99_000]) {
      const message = Buffer.alloc(size, 7);
      const got = await outcome((sink) => client.unary('/t.S/Echo', message, sink));
      assert.equal(got.status.code, 0);
      assert.equal(got.messages.length, 1);
      assert(got.messages[0]?.equals(message));
    }
  });
});

test('a thousand unary calls at once are each answered', async () => {
  await serving(routes(), async (_port, client) => {
    const asked = Array.from({ length: 3000 }, (_, i) =>
      outcome((sink) => client.unary('/t.S/Echo', Buffer.from(`m${i}`), sink)),
    );
    for (const [i, got] of (await Promise.all(asked)).entries()) {
      assert.equal(got.messages[0]?.toString(), `m${i}`);
    }
  });
});

test('failures carry code and message, unknown methods are unimplemented', async () => {
  await serving(routes(), async (_port, client) => {
    const none = Buffer.alloc(0);
    const failed = await outcome((sink) => client.unary('/t.S/Fail', none, sink));
    assert.equal(failed.status.code, 9);
    assert.equal(failed.status.message, TEXT);
    const method = await outcome((sink) => client.unary('/t.S/Nope', none, sink));
    assert.equal(method.status.code, 12);
    assert.equal(method.status.message, 'unknown method Nope for service t.S');
    const service = await outcome((sink) => client.unary('/x.Y/Nope', none, sink));
    assert.equal(service.status.message, 'unknown service x.Y');
  });
});

test('a message over the limit is exhausted resources, by either kind of method', async () => {
  await serving(routes(), async (_port, client) => {
    const large = Buffer.alloc(100_001);
    for (const path of ['/t.S/Echo', '/t.S/Sum']) {
      const got = await outcome((sink) => client.unary(path, large, sink));
      assert.equal(got.status.code, 8, path);
      assert.equal(got.status.message, 'received message larger than max (100001 vs. 100000)');
    }
  });
});

test('a deferred answer comes later with its trailers', async () => {
  await serving(routes(), async (_port, client) => {
    const got = await outcome((sink) => client.unary('/t.S/Later', Buffer.from('x'), sink));
    assert.equal(got.messages[0]?.toString(), 'later x -');
    assert.deepEqual(got.status.trailers.slice(-2), ['x-trailer', 'yes']);
  });
});

test('client, server and bidirectional streams work', async () => {
  const cancels: string[] = [];
  await serving(routes([], cancels), async (_port, client) => {
    const sum = await outcome((sink) => {
      const call = client.open('/t.S/Sum', sink);
      for (let i = 1; i <= 50; i++) call.send(Buffer.from([i]));
      call.halfClose();
      return call;
    });
    assert.equal(sum.messages[0]?.toString(), '1275');
    const count = await outcome((sink) => client.unary('/t.S/Count', Buffer.from([200]), sink));
    assert.equal(count.messages.length, 200);
    for (const [i, message] of count.messages.entries()) {
      assert(message.equals(Buffer.alloc(i * 100, i)));
    }
    const chat = await new Promise<string[]>((resolve) => {
      const seen: string[] = [];
      const call = client.open('/t.S/Chat', {
        onMessage(_call, bytes, start, end) {
          seen.push(bytes.toString('utf8', start, end));
          if (seen.length === 3) call.halfClose();
          else call.send(Buffer.from(`n${seen.length}`));
        },
        onStatus(_call, status) {
          resolve([...seen, `${status.code} ${status.message}`]);
        },
      });
      call.send(Buffer.from('n0'));
    });
    assert.deepEqual(chat, ['n0', 'n1', 'n2', '0 bye']);
    assert.deepEqual(cancels, []);
  });
});

test('a deadline ends the call at both ends, a cancellation reaches the handler', async () => {
  const cancels: string[] = [];
  await serving(routes([], cancels), async (_port, client) => {
    const late = await outcome((sink) => client.open('/t.S/Chat', sink, { timeoutMs: 50 }));
    assert.equal(late.status.code, 4);
    await until(() => cancels.length === 1);
    const gone = await outcome((sink) => {
      const call = client.open('/t.S/Chat', sink);
      setTimeout(() => call.cancel(), 30);
      return call;
    });
    assert.equal(gone.status.code, 1);
    await until(() => cancels.length === 2);
    assert.equal(cancels[1], 'cancelled');
  });
});

test('texts survive percent-encoding, and timeouts their 8 digits', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const coded = encodeMessage(text);
      assert.match(coded, /^[ -~]*$/);
      assert.equal(decodeMessage(coded), text);
    }),
  );
  assert.equal(decodeMessage('100%'), '100%');
  assert.equal(decodeMessage('%zz%41'), '%zzA');
  for (const ms of [0, 1, 1500, 99_999_999, 100_000_000, 1e10]) {
    const text = formatTimeout(ms);
    assert.match(text, /^\d{1,8}[mS]$/);
    assert(parseTimeout(text) >= ms && parseTimeout(text) <= ms + 1000);
  }
  assert.equal(parseTimeout('5S'), 5000);
  assert.equal(parseTimeout('1H'), 3_600_000);
  assert.equal(parseTimeout('123456789m'), -1);
  assert.equal(parseTimeout('m'), -1);
  assert.equal(parseTimeout(undefined), Infinity);
});

function foreign(port: number): grpcJs.Client {
  return new grpcJs.Client(`127.0.0.1:${port}`, grpcJs.credentials.createInsecure());
}

const same = (bytes: Buffer): Buffer => bytes;

test('@grpc/grpc-js calls this server in all four shapes', async () => {
  const cancels: string[] = [];
  await serving(routes([], cancels), async (port) => {
    const peer = foreign(port);
    const metadata = new grpcJs.Metadata();
    metadata.set('x-meta', 'm');
    const unary = (path: string, message: Buffer): Promise<Buffer | grpcJs.ServiceError> =>
      new Promise((resolve) => {
        const options = { deadline: Date.now() + 5000 };
        peer.makeUnaryRequest(path, same, same, message, metadata, options, (error, value) =>
          resolve(error ?? value ?? Buffer.alloc(0)),
        );
      });
    const message = Buffer.alloc(20_000, 'g');
    for (let i = 0; i < 5; i++) assert.deepEqual(await unary('/t.S/Echo', message), message);
    assert.equal(String(await unary('/t.S/Later', Buffer.from('g'))), 'later g m');
    const failed = (await unary('/t.S/Fail', message)) as grpcJs.ServiceError;
    assert.equal(failed.code, 9);
    assert.equal(failed.details, TEXT);
    assert.equal(((await unary('/t.S/No', message)) as grpcJs.ServiceError).code, 12);
    const sum = await new Promise<Buffer | undefined>((resolve, reject) => {
      const call = peer.makeClientStreamRequest('/t.S/Sum', same, same, (error, value) => {
        if (error !== null) reject(error);
        else resolve(value);
      });
      for (let i = 1; i <= 10; i++) call.write(Buffer.from([i]));
      call.end();
    });
    assert.equal(String(sum), '55');
    const counted = peer.makeServerStreamRequest('/t.S/Count', same, same, Buffer.from([250]));
    let pieces = 0;
    for await (const piece of counted) assert.equal((piece as Buffer).length, 100 * pieces++);
    assert.equal(pieces, 250);
    const chat = peer.makeBidiStreamRequest('/t.S/Chat', same, same);
    chat.write(Buffer.from('hello'));
    const heard = await new Promise((resolve) => chat.once('data', resolve));
    assert.equal(String(heard), 'hello');
    chat.end();
    // It half-closes what it cancels, so that only a call that waits longer is cancelled here.
    const wait = peer.makeBidiStreamRequest('/t.S/Wait', same, same);
    wait.on('error', () => undefined);
    wait.write(Buffer.from('hello'));
    await new Promise((resolve) => wait.once('data', resolve));
    wait.cancel();
    await until(() => cancels.length > 0);
    assert.deepEqual(cancels, ['cancelled']);
    peer.close();
  });
});

test('a message that @grpc/grpc-js compressed is read', async () => {
  await serving(routes(), async (port) => {
    const peer = new grpcJs.Client(`127.0.0.1:${port}`, grpcJs.credentials.createInsecure(), {
      'grpc.default_compression_algorithm': 2,
    });
    const sent = Buffer.alloc(1000, 'x');
    const answer = await new Promise((resolve) => {
      peer.makeUnaryRequest('/t.S/Echo', same, same, sent, (error, found) =>
        resolve(error ?? found),
      );
    });
    assert.deepEqual(answer, sent);
    peer.close();
  });
});

test('this client calls a server of @grpc/grpc-js', async () => {
  const server = new grpcJs.Server();
  const method = {
    path: '/t.S/Echo',
    requestStream: false,
    responseStream: false,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  } as const;
  const chat = { ...method, path: '/t.S/Chat', requestStream: true, responseStream: true };
  const fail = { ...method, path: '/t.S/Fail' };
  server.addService(
    { Echo: method, Chat: chat, Fail: fail },
    {
      Echo: ((call, done) => done(null, call.request)) as grpcJs.handleUnaryCall<Buffer, Buffer>,
      Fail: ((_call, done) => done({ code: 5, details: TEXT })) as grpcJs.handleUnaryCall<
        Buffer,
        Buffer
      >,
      Chat: ((call) => {
        call.on('data', (message: Buffer) => call.write(message));
        call.on('end', () => call.end());
      }) as grpcJs.handleBidiStreamingCall<Buffer, Buffer>,
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    const plain = grpcJs.ServerCredentials.createInsecure();
    server.bindAsync('127.0.0.1:0', plain, (error, found) =>
      error === null ? resolve(found) : reject(error),
    );
  });
  const connection = connect({ port });
  const client = grpcClient(connection);
  for (const size of [0, 10, 100_000, 1_000_000]) {
    const message = Buffer.alloc(size, 3);
    const got = await outcome((sink) => client.unary('/t.S/Echo', message, sink));
    assert.equal(got.status.code, 0);
    assert(got.messages[0]?.equals(message), `${size}`);
  }
  const failed = await outcome((sink) => client.unary('/t.S/Fail', Buffer.alloc(1), sink));
  assert.equal(failed.status.code, 5);
  assert.equal(failed.status.message, TEXT);
  const talked = await outcome((sink) => {
    const call = client.open('/t.S/Chat', sink);
    for (let i = 0; i < 20; i++) call.send(Buffer.from(`m${i}`));
    call.halfClose();
    return call;
  });
  assert.equal(talked.messages.length, 20);
  assert.equal(talked.status.code, 0);
  connection.destroy();
  server.forceShutdown();
});
