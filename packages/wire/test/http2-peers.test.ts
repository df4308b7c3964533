import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http2 from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { prepareFields } from '../src/http/client.ts';
import { connect } from '../src/dial/connect.ts';
import type { Handler } from '../src/http/exchange.ts';
import { listen } from '../src/server/listener.ts';
import type { Listener, ListenTls } from '../src/server/listener.ts';

const run = promisify(execFile);

const handler: Handler = (exchange) => {
  if (exchange.path === '/certificate') {
    const found = exchange.connection.peerCertificate();
    const text = `${found?.commonName} ${found?.organizations.join(',')} ${found?.trusted}`;
    return exchange.respond(200, 'text/plain', text);
  }
  if (exchange.path === '/large') return exchange.respond(200, 'text/plain', 'L'.repeat(1_000_000));
  return exchange.respond(200, 'text/plain', `${exchange.method} ${exchange.body.length}\n`);
};

function has(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((path) => existsSync(join(path, program)));
}

let directory = '';
let tls: ListenTls;
let plain: Listener;
let secure: Listener;
const pem = (name: string): string => readFileSync(join(directory, name), 'utf8');
const noOpenssl = has('openssl') ? false : 'openssl is missing: apt-get install openssl';
const noCurl = has('curl') ? false : 'curl is missing: apt-get install curl';
const noNghttp = has('nghttp') ? false : 'nghttp is missing: apt-get install nghttp2-client';

function openssl(...words: string[]): void {
  execFileSync('openssl', words, { cwd: directory, stdio: 'ignore' });
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'megaplane-wire-'));
  plain = await listen({ handler });
  if (noOpenssl !== false) return;
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=ca');
  for (const [name, subject] of [
    ['server', '/CN=localhost'],
    ['client', '/O=system:masters/O=second/CN=admin'],
  ] as const) {
    const san = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
    const issue = ['-CA', 'ca.crt', '-CAkey', 'ca.key', ...san];
    const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`, '-subj', subject];
    openssl('req', '-x509', ...key, ...issue, ...files);
  }
  tls = { key: pem('server.key'), cert: pem('server.crt'), clientCa: pem('ca.crt') };
  secure = await listen({ handler, tls });
});

after(async () => {
  await plain.close();
  await secure?.close();
  rmSync(directory, { recursive: true, force: true });
});

test('node:http2 as client: many requests, large answers, a ping', async () => {
  const session = http2.connect(`http://127.0.0.1:${plain.address.port}`);
  const ask = (path: string, body?: Buffer): Promise<string> =>
    new Promise((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST';
      const stream = session.request({ ':path': path, ':method': method });
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => resolve(Buffer.concat(chunks).toString()));
      stream.on('error', reject);
      stream.end(body);
    });
  const sizes = Array.from({ length: 100 }, (_, i) => i * 997);
  const answers = await Promise.all(sizes.map((size) => ask('/', Buffer.alloc(size))));
  for (const [i, size] of sizes.entries()) assert.equal(answers[i], `POST ${size}\n`);
  const large = await Promise.all([ask('/large'), ask('/large'), ask('/large')]);
  for (const text of large) assert.equal(text.length, 1_000_000);
  await new Promise<void>((resolve, reject) => {
    session.ping((error) => (error === null ? resolve() : reject(error)));
  });
  await new Promise<void>((resolve) => session.close(resolve));
});

test('node:http2 as server: this client reads large answers and sends large bodies', async () => {
  const server = http2.createServer((request, response) => {
    let size = 0;
    request.on('data', (chunk: Buffer) => (size += chunk.length));
    request.on('end', () => response.end(`${size} ${'x'.repeat(500_000)}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const client = connect({ port });
  const lengths = await Promise.all(
    [0, 100, 200_000, 1_000_000].map(
      (size) =>
        new Promise<string>((resolve) => {
          let text = '';
          client.request('POST', '/', prepareFields([]), Buffer.alloc(size), {
            onHead: () => undefined,
            onData: (_stream, bytes, start, end) =>
              void (text += bytes.toString('latin1', start, end)),
            onEnd: (_stream, failure) =>
              resolve(failure?.message ?? text.slice(0, 10) + text.length),
          });
        }),
    ),
  );
  const wanted = [0, 100, 200_000, 1_000_000].map((size) => {
    const text = `${size} ${'x'.repeat(500_000)}`;
    return text.slice(0, 10) + text.length;
  });
  assert.deepEqual(lengths, wanted);
  client.destroy();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

test('curl speaks both protocols on one port', { skip: noCurl }, async () => {
  const url = `http://127.0.0.1:${plain.address.port}/x`;
  for (const version of ['--http2-prior-knowledge', '--http1.1']) {
    const { stdout } = await run('curl', ['-s', version, '-d', 'hello', url]);
    assert.equal(stdout, 'POST 5\n');
  }
});

test('curl chooses by ALPN and shows its certificate', { skip: noCurl || noOpenssl }, async () => {
  const base = `https://127.0.0.1:${secure.address.port}`;
  const trust = ['--cacert', join(directory, 'ca.crt'), '-s', '-w', ' %{http_version}'];
  for (const [version, name] of [
    ['--http2', '2'],
    ['--http1.1', '1.1'],
  ] as const) {
    const { stdout } = await run('curl', [...trust, version, '-d', 'hey', `${base}/`]);
    assert.equal(stdout, `POST 3\n ${name}`);
  }
  const own = ['--cert', join(directory, 'client.crt'), '--key', join(directory, 'client.key')];
  const { stdout } = await run('curl', [...trust, '--http2', ...own, `${base}/certificate`]);
  assert.equal(stdout, 'admin system:masters,second true 2');
});

test('nghttp and h2load are served', { skip: noNghttp }, async () => {
  const url = `http://127.0.0.1:${plain.address.port}`;
  const { stdout } = await run('nghttp', ['-v', `${url}/large`], { maxBuffer: 1 << 24 });
  assert.match(stdout, /recv \(stream_id=\d+\) :status: 200/);
  const load = await run('h2load', ['-c', '5', '-m', '50', '-n', '5000', url]);
  assert.match(load.stdout, /5000 succeeded, 0 failed, 0 errored/);
});

test(
  'this client speaks TLS with ALPN, and refuses a foreign CA',
  { skip: noOpenssl },
  async () => {
    const { port } = secure.address;
    const ask = (trust: object): Promise<string> =>
      new Promise((resolve) => {
        const client = connect({ port, tls: trust });
        let text = '';
        client.request('GET', '/certificate', prepareFields([]), null, {
          onHead: () => undefined,
          onData: (_stream, bytes, start, end) =>
            void (text += bytes.toString('latin1', start, end)),
          onEnd(_stream, failure) {
            resolve(failure === null ? text : `${failure.kind}: ${failure.message}`);
            client.destroy();
          },
        });
      });
    const own = { ca: pem('ca.crt'), cert: pem('client.crt'), key: pem('client.key') };
    assert.equal(await ask(own), 'admin system:masters,second true');
    assert.equal(await ask({ ca: pem('ca.crt') }), 'undefined undefined undefined');
    assert.match(await ask({ ca: pem('client.crt') }), /^refused: .*cannot connect: .*certificate/);
  },
);

test(
  'sockets that rest after each read give all bodies, with TLS too',
  { skip: noOpenssl },
  async () => {
    for (const ends of [{}, { tls }]) {
      const listener = await listen({ handler, ...ends, limits: { readMsMax: 0 } });
      const trust = 'tls' in ends ? { tls: { ca: pem('ca.crt') } } : {};
      const client = connect({ port: listener.address.port, ...trust });
      const sizes = [3_000_000, 0, 1, 70_000, 3_000_000, 16_384];
      const answers = sizes.map(
        (size) =>
          new Promise<string>((resolve) => {
            let text = '';
            client.request('PUT', '/', prepareFields([]), Buffer.alloc(size, 'b'), {
              onHead: () => undefined,
              onData: (_stream, bytes, start, end) =>
                void (text += bytes.toString('latin1', start, end)),
              onEnd: (_stream, failure) => resolve(failure?.message ?? text),
            });
          }),
      );
      assert.deepEqual(
        await Promise.all(answers),
        sizes.map((size) => `PUT ${size}\n`),
      );
      client.destroy();
      await listener.close(0);
    }
  },
);

test('plain HTTP on a port of TLS is told of', { skip: noOpenssl }, async () => {
  for (const request of ['GET / HTTP/1.1\r\n\r\n', 'POST /x HTTP/1.1\r\n\r\nbody']) {
    const text = await new Promise<string>((resolve) => {
      const socket = connectSocket(secure.address.port, '127.0.0.1');
      let all = '';
      socket.on('data', (chunk: Buffer) => (all += chunk.toString()));
      socket.on('close', () => resolve(all));
      socket.write(request);
    });
    assert.match(
      text,
      /^HTTP\/1\.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS/,
    );
  }
});

test('new TLS connections see a reloaded certificate', { skip: noOpenssl }, async () => {
  const listener = await listen({ handler, tls });
  const seen = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const { port } = listener.address;
      const socket = connectTls({ port, rejectUnauthorized: false, ALPNProtocols: ['h2'] }, () => {
        resolve(String(socket.getPeerX509Certificate()?.subject));
        socket.destroy();
      });
      socket.on('error', reject);
    });
  assert.equal(await seen(), 'CN=localhost');
  listener.reloadTls({ key: pem('client.key'), cert: pem('client.crt') });
  assert.match(await seen(), /CN=admin/);
  await listener.close();
});

test(
  'garbage on a port is answered or cut, and others are served',
  { skip: noOpenssl },
  async () => {
    const garbage = [
      Buffer.from('\x16\x03\x01\x02\x00garbage that is no TLS'),
      Buffer.alloc(100_000, 0xfe),
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + '\xff'.repeat(100), 'latin1'),
      Buffer.from('PRI * HTTP/1.1\r\n\r\n'),
    ];
    for (const listener of [plain, secure]) {
      for (const bytes of garbage) {
        await new Promise<void>((resolve) => {
          const socket = connectSocket(listener.address.port, '127.0.0.1');
          socket.on('close', () => resolve());
          socket.on('error', () => undefined);
          socket.on('data', () => undefined);
          socket.on('end', () => socket.end());
          socket.end(bytes);
        });
      }
    }
    const session = http2.connect(`http://127.0.0.1:${plain.address.port}`);
    const stream = session.request({ ':path': '/' });
    await new Promise((resolve) => stream.on('response', resolve));
    session.destroy();
  },
);

test('a client cannot ask for another handshake', { skip: noOpenssl }, async () => {
  const trust = { ca: pem('ca.crt'), host: '127.0.0.1', maxVersion: 'TLSv1.2' as const };
  const socket = connectTls({ ...trust, port: secure.address.port });
  await once(socket, 'secureConnect');
  const told = await new Promise((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error ?? 'done'));
  });
  assert.match(String(told), /NO_RENEGOTIATION|ECONNRESET|closed/i);
  socket.destroy();
});
