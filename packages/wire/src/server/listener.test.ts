import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Handler } from '../http/exchange.ts';
import { listen } from './listener.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-listener-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const handler = (): void => undefined;

test('a file that is no socket is never taken away for one', async () => {
  const file = join(folder, 'notes');
  writeFileSync(file, 'buy milk');
  await assert.rejects(listen({ unixPath: file, handler }), /notes: it exists and is no socket/);
  assert.equal(readFileSync(file, 'utf8'), 'buy milk');
  const directory = join(folder, 'directory');
  mkdirSync(directory);
  await assert.rejects(listen({ unixPath: directory, handler }), /directory: it exists and is no/);
  const long = join(folder, 'x'.repeat(108));
  await assert.rejects(listen({ unixPath: long, handler }), /the path has more bytes than/);
});

test('a socket of a process that was killed is replaced, a living one is not', async () => {
  const path = join(folder, 'socket');
  const kill = "() => process.kill(process.pid, 'SIGKILL')";
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, ${kill})`;
  spawnSync(process.execPath, ['-e', script]);
  assert(existsSync(path));
  const listener = await listen({ unixPath: path, handler });
  await assert.rejects(listen({ unixPath: path, handler }), /another process listens there/);
  await listener.close();
});

/** What a port says to some octets until it has answered "yes", or ends the connection. */
function told(port: number, bytes: string): Promise<{ said: string; isEnded: boolean }> {
  return new Promise((resolve) => {
    let said = '';
    const socket = connect(port, '127.0.0.1');
    let isEnded = false;
    socket.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1');
      if (said.endsWith('yes')) socket.destroy();
    });
    socket.on('end', () => (isEnded = true));
    socket.on('error', () => (isEnded = true));
    socket.on('close', () => resolve({ said, isEnded }));
    // in two pieces: the line is judged when it is whole
    socket.write(bytes.slice(0, 4));
    setTimeout(() => socket.write(bytes.slice(4)), 10);
  });
}

test('a silent port ends what opens neither version of HTTP, without a word', async () => {
  const answer: Handler = (exchange) => exchange.respond(200, null, 'yes');
  const silent = await listen({ handler: answer, isSilent: true });
  const other = await listen({ handler: answer });
  const { port } = silent.address;
  for (const line of ['INVALID CONNECTION PREFACE', 'GET / HTTP/2.0', 'GET /', 'PRX *', '']) {
    const bytes = `${line}\r\n\r\n`;
    assert.deepEqual(await told(port, bytes), { said: '', isEnded: true }, line);
    if (line === '') continue;
    assert.match((await told(other.address.port, bytes)).said, /^HTTP\/1\.1 (400|505)/, line);
  }
  assert.match((await told(port, 'GET / HTTP/1.0\r\n\r\n')).said, /^HTTP\/1\.1 200/);
  assert.match((await told(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')).said, /^HTTP\/1\.1 200/);
  const long = `GET /${'x'.repeat(9000)} HTTP/1.1\r\nhost: a\r\n\r\n`;
  assert.match((await told(port, long)).said, /^HTTP\/1\.1 200/);
  await Promise.all([silent.close(), other.close()]);
});

test('every answer tells when it left, once, over both versions of HTTP', async () => {
  const passed = 'Thu, 01 Jan 2026 00:00:00 GMT';
  const answer: Handler = (exchange) => {
    if (exchange.path === '/stream') {
      exchange.open(200, 'text/plain');
      exchange.write(Buffer.from('yes'));
      exchange.end();
    } else exchange.respond(200, null, 'yes', exchange.path === '/own' ? ['date', passed] : []);
  };
  const listener = await listen({ handler: answer });
  const { port } = listener.address;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  for (const path of ['/', '/stream', '/own']) {
    const { said } = await told(port, `GET ${path} HTTP/1.0\r\n\r\n`);
    const lines = said.split('\r\n').filter((line) => line.startsWith('date: '));
    const stream = session.request({ ':path': path });
    const [head] = (await once(stream.resume(), 'response')) as [Record<string, string>];
    const dates = [lines[0]?.slice('date: '.length), head['date']];
    assert.equal(lines.length, 1, said);
    for (const date of dates) {
      assert.equal(new Date(date ?? '').toUTCString(), date);
      assert.equal(date === passed, path === '/own');
    }
  }
  session.destroy();
  await listener.close();
});

test('one address has no more connections than it may, and others have theirs', async () => {
  const listener = await listen({
    ...{ host: '::', port: 0, limits: { connectionsPerSourceMax: 2 } },
    handler: (exchange) => exchange.respond(200, null, null, []),
  });
  const { port } = listener.address;
  const open = async (host: string): Promise<Socket> => {
    const socket = connect({ host, port });
    await once(socket, 'connect');
    return socket;
  };
  const [first, second] = [await open('127.0.0.1'), await open('127.0.0.1')];
  const third = await open('127.0.0.1');
  await once(third.resume(), 'close');
  const other = await open('::1');
  other.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  assert.match(String((await once(other, 'data'))[0]), /^HTTP\/1.1 200/);
  first?.destroy();
  // its place is free once the server has seen its end
  for (let isServed = false; !isServed;) {
    const next = await open('127.0.0.1');
    next.on('error', () => {});
    next.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const ended = once(next, 'close').then(() => false);
    isServed = await Promise.race([once(next, 'data').then(() => true), ended]);
    next.destroy();
  }
  for (const socket of [second, other]) socket?.destroy();
  await listener.close();
});
