import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import * as http from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { Handler } from '../http/exchange.ts';
import { listen, type Listener } from '../server/listener.ts';

const run = promisify(execFile);

/** What a foreign peer may meet: echo, a stream, a body that is streamed, an upgrade. */
const handler: Handler = (exchange) => {
  const { method, path } = exchange;
  if (path === '/count') {
    exchange.open(200, 'text/plain');
    for (let i = 0; i < 1000; i++) exchange.write(Buffer.from(`${i}\n`));
    exchange.end();
  } else if (exchange.upgradeProtocol === 'echo') {
    const stream = exchange.upgrade([]);
    stream.onData = (bytes, start, end) => stream.write(bytes, start, end);
    stream.onEnd = () => stream.end();
  } else {
    const { body } = exchange;
    exchange.respond(200, 'text/plain', `${method} ${path} ${body.length}`, ['x-seen', 'yes']);
  }
};

async function serve(context: TestContext): Promise<Listener> {
  const listener = await listen({ port: 0, handler });
  context.after(() => listener.close());
  return listener;
}

function urlOf(listener: Listener, path: string): string {
  return `http://127.0.0.1:${listener.address.port}${path}`;
}

async function text(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

test('node:http keeps its connections over many requests, counted and chunked', async (context) => {
  const listener = await serve(context);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  context.after(() => agent.destroy());
  const ask = (method: string, path: string, body: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const request = http.request(urlOf(listener, path), { method, agent }, (response) => {
        resolve(text(response));
      });
      request.on('error', reject);
      for (const part of body) request.write(part);
      request.end();
    });
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) => ask('POST', `/${i}`, ['x'.repeat(i), 'y'.repeat(i)])),
  );
  assert.deepEqual(
    answers,
    Array.from({ length: 50 }, (_, i) => `POST /${i} ${2 * i}`),
  );
  assert.ok(listener.connections <= 2);
  assert.equal((await ask('GET', '/count', [])).split('\n').length, 1001);
  const big = 'z'.repeat(100_000);
  assert.equal(
    await ask(
      'PUT',
      '/big',
      Array.from({ length: 50 }, () => big),
    ),
    'PUT /big 5000000',
  );
});

test('node:http is asked for its body by 100 Continue', async (context) => {
  const listener = await serve(context);
  const request = http.request(urlOf(listener, '/c'), {
    method: 'POST',
    headers: { expect: '100-continue', 'content-length': 3 },
  });
  request.on('continue', () => request.end('abc'));
  request.flushHeaders();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  assert.equal(await text(response), 'POST /c 3');
});

test('node:http upgrades a connection and talks over it', async (context) => {
  const listener = await serve(context);
  const request = http.request(urlOf(listener, '/up'), {
    headers: { connection: 'Upgrade', upgrade: 'echo' },
  });
  request.end();
  const [response, socket] = (await once(request, 'upgrade')) as [http.IncomingMessage, Socket];
  assert.equal(response.statusCode, 101);
  socket.write('hello');
  const [echoed] = (await once(socket, 'data')) as [Buffer];
  assert.equal(echoed.toString(), 'hello');
  socket.end();
  await once(socket, 'close');
});

test('garbage on the port is answered and cut, and hurts nobody else', async (context) => {
  const listener = await serve(context);
  for (const garbage of [
    '\x16\x03\x01\x02\x00\x01\x00',
    'SSH-2.0-x\r\n',
    '\0\0\0',
    'PRX\r\n\r\n',
  ]) {
    const socket = connect(listener.address.port, '127.0.0.1');
    socket.write(garbage, 'latin1');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1.1 400 Bad Request/);
    socket.end();
    await once(socket, 'close');
  }
  const response = await fetch(urlOf(listener, '/after'));
  assert.equal(await response.text(), 'GET /after 0');
});

function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    // Absent: the test says so.
    return false;
  }
}

test(
  'curl speaks to the server in each way that it knows',
  { skip: hasCurl() ? false : 'needs curl (apt-get install curl)' },
  async (context) => {
    const listener = await serve(context);
    const curl = async (...args: string[]): Promise<string> => {
      const { stdout } = await run('curl', ['-sS', '--max-time', '10', '--noproxy', '*', ...args]);
      return stdout;
    };
    const url = urlOf(listener, '/a');
    assert.equal(await curl('--http1.1', url, urlOf(listener, '/b')), 'GET /a 0GET /b 0');
    assert.match(await curl('--http1.0', '-i', url), /connection: close/);
    assert.match(await curl('--http1.1', '-I', url), /content-length: 9/);
    const body = ['--http1.1', '-d', 'x'.repeat(5000)];
    assert.equal(await curl(...body, url), 'POST /a 5000');
    assert.equal(await curl(...body, '-H', 'Transfer-Encoding: chunked', url), 'POST /a 5000');
    assert.equal(await curl(...body, '-H', 'Expect: 100-continue', url), 'POST /a 5000');
    assert.equal((await curl('--http1.1', urlOf(listener, '/count'))).length, 3890);
  },
);
