// Flags of kube-apiserver that hold for a whole process, through a process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connect } from 'node:tls';
import { ENTRY } from './cluster.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-serving-flags-'));
const flags = [
  ...['--data-dir', dir, '--secure-port', '0', '--allow-privileged=false'],
  ...['--disable-http2-serving', '--min-request-timeout=1'],
  '--disable-admission-plugins=ServiceAccount',
  String.raw`--cors-allowed-origins=^https://[a-z]+\.good\.example$`,
  '--strict-transport-security-directives=max-age=31536000,includeSubDomains',
];
const server = spawn(process.execPath, [ENTRY, 'apiserver', ...flags], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
let log = '';
server.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
after(async () => {
  const exited = once(server, 'exit');
  server.kill('SIGTERM');
  await exited;
  rmSync(dir, { recursive: true, force: true });
});

const port = await new Promise<number>((resolve, reject) => {
  server.stdout.on('data', (chunk: Buffer) => {
    const found = /^ready in .*:(\d+)/.exec(chunk.toString());
    if (found !== null) resolve(Number(found[1]));
  });
  server.once('exit', () => reject(new Error(log)));
});
const field = (name: string): Buffer => {
  const text = new RegExp(`^\\s*${name}: *(\\S+)`, 'm').exec(
    readFileSync(join(dir, 'kubeconfig'), 'utf8'),
  )?.[1];
  return Buffer.from(text ?? '', 'base64');
};
const identity = { cert: field('client-certificate-data'), key: field('client-key-data') };

function ask(
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly text: string }> {
  const method = body === undefined ? 'GET' : 'POST';
  const headers = { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers, ...identity };
    const sent = request({ ...options, rejectUnauthorized: false, agent: false }, (answer) => {
      let text = '';
      answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

test('privileged containers are refused with --allow-privileged=false', async () => {
  const podWith = (securityContext: object): object => ({
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i', securityContext }] },
  });
  const pods = '/api/v1/namespaces/default/pods?dryRun=All';
  const refused = await ask(pods, podWith({ privileged: true }));
  assert.equal(refused.status, 422);
  const why = /securityContext\.privileged: Forbidden: disallowed by cluster policy/;
  assert.match(refused.text, why);
  assert.doesNotMatch((await ask(pods, podWith({ privileged: false }))).text, why);
});

test('--disable-http2-serving leaves HTTP/1.1', async () => {
  const socket = connect({
    ...{ host: '127.0.0.1', port, rejectUnauthorized: false },
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  await once(socket, 'secureConnect');
  assert.equal(socket.alpnProtocol, 'http/1.1');
  socket.destroy();
});

test('watches end by themselves after --min-request-timeout, and not before', async () => {
  const startMs = performance.now();
  const { status } = await ask('/api/v1/namespaces/default/configmaps?watch=1');
  assert.equal(status, 200);
  assert(performance.now() - startMs >= 900);
});

function answerTo(
  method: string,
  origin: string,
): Promise<{ readonly status: number; readonly fields: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/version', method, headers: { origin } };
    const sent = request({ ...options, rejectUnauthorized: false, agent: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, fields: answer.headers }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

test('pages of --cors-allowed-origins may read answers, and others not', async () => {
  const origin = 'https://www.good.example';
  const good = await answerTo('GET', origin);
  assert.equal(good.fields['access-control-allow-origin'], origin);
  assert.equal(good.fields['access-control-allow-credentials'], 'true');
  // asked before credentials are sent, so answered without any
  const asked = await answerTo('OPTIONS', origin);
  assert.equal(asked.status, 204);
  assert.match(asked.fields['access-control-allow-methods'] ?? '', /\bPATCH\b/);
  const bad = await answerTo('GET', `${origin}.evil.example`);
  assert.equal(bad.status, good.status);
  assert.equal(bad.fields['access-control-allow-origin'], undefined);
});

test('answers tell --strict-transport-security-directives', async () => {
  const { fields } = await answerTo('GET', '');
  assert.equal(fields['strict-transport-security'], 'max-age=31536000; includeSubDomains');
});
