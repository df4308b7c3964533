import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { createServer as createTcp } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { listen } from '@megaplane/wire/listener';
import { openPki } from '../pki/pki-files.ts';
import type { WebhookResponse } from './webhook-call.ts';
import { WebhookPool } from './webhook-pool.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-webhooks-'));
const pki = openPki(dir, [], Date.now());
rmSync(dir, { recursive: true });
const { key, certificate: cert } = pki.serving;
const foreignCa = pki.frontProxyAuthority;

function call(
  pool: WebhookPool,
  port: number,
  timeoutMs = 5000,
  caBundle = pki.authority.certificate,
  path = '/check?timeout=5s',
): Promise<WebhookResponse> {
  const target = {
    host: '127.0.0.1',
    port,
    serverName: 'localhost',
    authority: `localhost:${port}`,
    path,
    caBundle,
  };
  return new Promise((done) => pool.call(target, Buffer.from('{"a":1}'), timeoutMs, done));
}

test('calls share a connection of HTTP/2, and find webhooks that speak HTTP/1.1 only', async () => {
  const pool = new WebhookPool();
  const connections = new Set<number>();
  const modern = await listen({
    host: '127.0.0.1',
    port: 0,
    tls: { key, cert },
    handler: (exchange) => {
      connections.add(exchange.connection.id);
      exchange.respond(200, 'application/json', `${exchange.path} ${exchange.body.toString()}`, []);
    },
    onError: (error) => assert.fail(String(error)),
  });
  const plain = createServer({ key, cert }, (request, response) => {
    request.resume().on('end', () => response.end(request.httpVersion));
  });
  await new Promise<void>((done) => plain.listen(0, '127.0.0.1', done));
  try {
    const all = await Promise.all(
      Array.from({ length: 20 }, () => call(pool, modern.address.port ?? 0)),
    );
    for (const one of all) {
      assert.equal(one.ok && one.body.toString(), '/check?timeout=5s {"a":1}');
    }
    assert.equal(connections.size, 1);
    const { port } = plain.address() as { port: number };
    for (let round = 0; round < 3; round++) {
      const answer = await call(pool, port);
      assert.equal(answer.ok && answer.body.toString(), '1.1', JSON.stringify(answer));
    }
  } finally {
    pool.close();
    await modern.close(100);
    plain.close();
  }
});

test('a webhook that is slow, absent or strange fails in words that operators know', async () => {
  const pool = new WebhookPool();
  const silent = createServer({ key, cert }, () => {
    // never answers
  });
  const broken = createTcp((socket) => socket.end('hello\r\n'));
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
  await new Promise<void>((done) => broken.listen(0, '127.0.0.1', done));
  const port = (server: { address(): unknown }): number =>
    (server.address() as { port: number }).port;
  const why = async (answer: Promise<WebhookResponse>): Promise<string> => {
    const found = await answer;
    return found.ok ? `answered ${found.status}` : found.why;
  };
  try {
    assert.equal(await why(call(pool, port(silent), 200)), 'context deadline exceeded');
    const foreign = why(call(pool, port(silent), 2000, foreignCa));
    assert.match(await foreign, /^tls: failed to verify certificate: x509: /);
    const closed = port(broken);
    assert.notEqual(await why(call(pool, closed, 2000)), 'context deadline exceeded');
    broken.close();
    const refused = why(call(pool, closed, 2000));
    assert.equal(await refused, `dial tcp 127.0.0.1:${closed}: connect: connection refused`);
  } finally {
    pool.close();
    silent.closeAllConnections();
    silent.close();
    broken.close();
  }
});

test('a webhook that speaks in the clear is told as Go tells it', async () => {
  const clear = createTcp((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  });
  await new Promise<void>((done) => clear.listen(0, '127.0.0.1', done));
  const pool = new WebhookPool();
  const { port } = clear.address() as { port: number };
  const answer = await call(pool, port);
  assert.ok(!answer.ok);
  assert.equal(answer.why, 'http: server gave HTTP response to HTTPS client');
  pool.close();
  await new Promise((done) => clear.close(done));
});

test('a webhook that begins an answer and does not end it is told so', async () => {
  const half = createServer({ key, cert }, (asked, answer) => {
    answer.writeHead(200, { 'content-length': 1000 });
    answer.write('{');
    if (asked.url === '/cut') setTimeout(() => asked.socket.destroy(), 20);
  });
  await new Promise<void>((done) => half.listen(0, '127.0.0.1', done));
  const { port } = half.address() as { port: number };
  const pool = new WebhookPool();
  try {
    const late = await call(pool, port, 1000);
    assert.deepEqual(late, { ok: false, why: 'context deadline exceeded', isCut: true });
    const cut = await call(pool, port, 5000, undefined, '/cut');
    assert.deepEqual(cut, { ok: false, why: 'unexpected EOF', isCut: true });
  } finally {
    pool.close();
    half.closeAllConnections();
    half.close();
  }
});
