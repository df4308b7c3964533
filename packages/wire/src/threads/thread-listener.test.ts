import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Exchange, Handler } from '../http/exchange.ts';
import { listen } from '../server/listener.ts';
import { listenOnThreads, type ThreadedListener } from './thread-listener.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-threads-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const yes: Handler = (exchange) => exchange.respond(200, null, 'yes');

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pause(5);
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Asks on a connection of its own. */
async function ask(port: number, path = '/', body = ''): Promise<string> {
  const socket = await open(port);
  const head = `POST ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n`;
  socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  await once(socket, 'close');
  return said;
}

function session({ address: { port } }: ThreadedListener): ClientHttp2Session {
  const made = connectHttp2(`http://127.0.0.1:${port}`);
  made.on('error', () => undefined);
  return made;
}

async function askHttp2(client: ClientHttp2Session, path: string): Promise<string> {
  const stream = client.request({ ':path': path });
  let said = '';
  stream.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  await once(stream, 'end');
  return said;
}

test('long bodies pass both ways, over both versions of HTTP', async () => {
  const echo: Handler = (exchange) => {
    const body = exchange.keepBody();
    exchange.respond(200, null, Buffer.concat([body, body]));
  };
  const listener = await listenOnThreads({ threads: 2, handler: echo });
  const body = 'abcdefg'.repeat(300_000);
  const said = await ask(listener.address.port, '/', body);
  assert(said.endsWith(body + body));
  const client = session(listener);
  const stream = client.request({ ':method': 'POST', ':path': '/' });
  stream.end(body);
  const pieces: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => void pieces.push(chunk));
  await once(stream, 'end');
  assert(Buffer.concat(pieces).toString('latin1') === body + body);
  client.destroy();
  await listener.close();
  assert.equal(listener.connections, 0);
});

test('whoever does not read keeps its producer waiting, and nobody else', async () => {
  const piece = Buffer.alloc(64 * 1024, 120);
  let written = 0;
  const handler: Handler = (exchange) => {
    if (exchange.path !== '/endless') return yes(exchange);
    exchange.open(200, null);
    const write = (): void => {
      while (exchange.writable() > 0 && written < 2 ** 30) {
        exchange.write(piece);
        written += piece.length;
      }
    };
    exchange.onWritable = write;
    write();
  };
  const listener = await listenOnThreads({ threads: 1, handler });
  const slow = await open(listener.address.port);
  slow.pause();
  slow.write('GET /endless HTTP/1.1\r\nhost: a\r\n\r\n');
  for (let before = -1; before !== written || written === 0;) {
    before = written;
    for (let count = 0; count < 20; count++) {
      assert.match(await ask(listener.address.port), /yes$/);
    }
  }
  // what the kernel's buffers and the budget of one connection take
  assert(written < 64 * 1024 * 1024, `${written} octets`);
  const stoodAt = written;
  slow.resume();
  await until(() => written > stoodAt + 8 * 1024 * 1024);
  slow.destroy();
  await until(() => listener.connections === 0);
  await listener.close();
});

test('whoever sends faster than it is read waits, and what it sent arrives whole', async () => {
  const taken: Exchange[] = [];
  let bytes = 0;
  const handler: Handler = (exchange) => {
    taken.push(exchange);
    exchange.pauseBody();
    exchange.onBody = (_, start, end) => (bytes += end - start);
    exchange.onBodyEnd = () => exchange.respond(200, null, String(bytes));
  };
  const listener = await listenOnThreads({ threads: 1, handler, streamsBody: () => true });
  const body = 'x'.repeat(32 * 1024 * 1024);
  const socket = await open(listener.address.port);
  socket.write(`POST / HTTP/1.0\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(body);
  await until(() => taken.length > 0);
  await pause(100);
  assert(bytes < 1024 * 1024, `${bytes} octets while the body is paused`);
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  taken[0]?.resumeBody();
  await until(() => said.endsWith(String(body.length)));
  socket.destroy();
  await listener.close();
});

test('a port that another one listens on is refused, though threads share theirs', async () => {
  const listener = await listenOnThreads({ threads: 2, handler: yes });
  const { port } = listener.address;
  const busy = /another process listens there/;
  await assert.rejects(listenOnThreads({ threads: 2, port, handler: yes }), busy);
  await assert.rejects(listen({ port, handler: yes }), busy);
  await listener.close();
  const again = await listenOnThreads({ threads: 2, port, handler: yes });
  await again.close();
  const elsewhere = { threads: 1, host: '192.0.2.1', port: 0, handler: yes };
  await assert.rejects(listenOnThreads(elsewhere), /this machine does not have that address/);
});

test('limits of connections are those of all threads together', async () => {
  const limits = { connectionsMax: 5, connectionsPerSourceMax: 3 };
  const listener = await listenOnThreads({ threads: 2, host: '::', handler: yes, limits });
  const { port } = listener.address;
  const sockets = await Promise.all(Array.from({ length: 12 }, () => open(port)));
  let closed = 0;
  for (const socket of sockets) socket.resume().on('close', () => closed++);
  await until(() => closed === 9);
  assert.equal(listener.connections, 3);
  for (const socket of sockets) socket.destroy();
  await until(() => listener.connections === 0);
  assert.match(await ask(port), /yes$/);
  await listener.close();
});

test('what is under way is finished at the end, and what is not is cut', async () => {
  const waiting: Exchange[] = [];
  const handler: Handler = (exchange) => void waiting.push(exchange);
  const listener = await listenOnThreads({ threads: 2, handler });
  const answered = ask(listener.address.port);
  const client = session(listener);
  const late = askHttp2(client, '/').then(
    (said) => said,
    () => 'cut',
  );
  await until(() => waiting.length === 2);
  const closing = listener.close(300);
  await assert.rejects(ask(listener.address.port));
  waiting.find(({ connection }) => connection.protocol === 'http/1.1')?.respond(200, null, 'late');
  assert.match(await answered, /late$/);
  await closing;
  assert.notEqual(await late, 'late');
  assert.equal(listener.connections, 0);
});

/** Threads that end, or whose event loop stops, when the file is there. */
function mortal(sign: string): URL {
  const thread = new URL('./connection-thread.ts', import.meta.url).href;
  const text = `
    import { existsSync, unlinkSync } from 'node:fs';
    import ${JSON.stringify(thread)};
    setInterval(() => {
      for (const [name, act] of [['die', () => process.exit(1)], ['hang', () => { for (;;); }]]) {
        try { unlinkSync(${JSON.stringify(sign)} + name); } catch { continue; }
        act();
      }
    }, 5);`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

for (const [name, told] of [
  ['die', 'has ended'],
  ['hang', 'stands still'],
] as const) {
  const does = name === 'die' ? 'ends' : 'hangs';
  test(`a thread that ${does} takes its own connections along, and starts again`, async () => {
    const sign = join(folder, `${name}-`);
    const errors: string[] = [];
    const listener = await listenOnThreads({
      ...{ threads: 2, handler: yes, entry: mortal(sign), stillLooksMax: 4 },
      onError: (error) => errors.push((error as Error).message),
    });
    const { port } = listener.address;
    const sockets = await Promise.all(Array.from({ length: 32 }, () => open(port)));
    let closed = 0;
    for (const socket of sockets) socket.resume().on('close', () => closed++);
    const isSpread = (): boolean => {
      const counts = listener.connectionsByThread();
      return counts.length === 2 && counts.reduce((sum, each) => sum + each, 0) === 32;
    };
    await until(isSpread);
    const before = listener.connectionsByThread();
    assert.equal(listener.fault(), null);
    writeFileSync(sign + name, '');
    const faults = new Set<string>();
    const isTold = (text: string): boolean => {
      const fault = listener.fault();
      if (fault !== null) faults.add(fault);
      return errors.some((error) => error.includes(text));
    };
    await until(() => isTold(told) && isTold('has ended') && faults.size > 0);
    await until(() => listener.listeningThreads === 2 && closed + listener.connections === 32);
    assert.equal(listener.fault(), null);
    const what = `${closed} closed of ${String(before)}`;
    // on a busy machine the other one may have stood still for as long
    if (name === 'die') assert(before.includes(closed), what);
    else assert(closed >= Math.min(...before), what);
    assert.equal(existsSync(sign + name), false);
    for (let count = 0; count < 8; count++) assert.match(await ask(port), /yes$/);
    for (const socket of sockets) socket.destroy();
    await listener.close();
  });
}

test('clients of one thread are asked to come again, until others have their share', async () => {
  const listener = await listenOnThreads({ threads: 2, handler: yes });
  const counts = (): number[] => listener.connectionsByThread();
  // a client's own port decides: those that came to the first thread stay, others leave
  const stay: ClientHttp2Session[] = [];
  let asked = 0;
  while (asked === 0) {
    const before = counts()[0] ?? 0;
    const client = session(listener);
    client.on('goaway', () => asked++);
    await askHttp2(client, '/');
    if ((counts()[0] ?? 0) > before) stay.push(client);
    else client.destroy();
    if (stay.length > 400) client.destroy();
  }
  assert(asked < stay.length);
  for (const client of stay) client.destroy();
  await listener.close();
});
