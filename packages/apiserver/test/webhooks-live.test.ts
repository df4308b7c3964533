import { test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueCertificate, type KeyAndCertificate } from '../src/pki/certificates.ts';
import { runApiserver } from '../src/server/run.ts';

const REQUESTS = 40;
const MAPS = '/api/v1/namespaces/default/configmaps';

/** Knows every token, allows everything, and takes its time. */
async function startWebhook(serving: KeyAndCertificate): Promise<{ url: string; stop(): void }> {
  const server = createServer({ key: serving.key, cert: serving.certificate }, (asked, answer) => {
    const chunks: Buffer[] = [];
    asked.on('data', (chunk: Buffer) => chunks.push(chunk));
    asked.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString()) as {
        kind: string;
        spec: { token?: string };
      };
      const status =
        review.kind === 'TokenReview'
          ? { authenticated: true, user: { username: `user-${review.spec.token}` } }
          : { allowed: true };
      setTimeout(() => answer.end(JSON.stringify({ ...review, status })), 20);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `https://127.0.0.1:${port}/`, stop: () => server.close() };
}

const bodyOf = (name: string): string =>
  JSON.stringify({ metadata: { name }, data: { name, padding: name.repeat(50) } });

/** One POST over HTTP/1.1; resolves with the answer's code and text. */
function post1(port: number, agent: Agent, name: string): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${name}`, 'content-type': 'application/json' };
    const where = { host: '127.0.0.1', port, path: MAPS, method: 'POST', agent, headers };
    const asked = request({ ...where, rejectUnauthorized: false }, (answer) => {
      let text = '';
      answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
      answer.on('end', () => resolve([answer.statusCode ?? 0, text]));
    });
    asked.on('error', reject);
    asked.end(bodyOf(name));
  });
}

/** The same over one connection of HTTP/2. */
async function post2(port: number, names: readonly string[]): Promise<[number, string][]> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  const asked = names.map(async (name): Promise<[number, string]> => {
    const stream = session.request({
      ':method': 'POST',
      ':path': MAPS,
      authorization: `Bearer ${name}`,
      'content-type': 'application/json',
    });
    stream.end(bodyOf(name));
    let status = 0;
    let text = '';
    stream.on('response', (fields) => (status = Number(fields[':status'])));
    for await (const chunk of stream) text += String(chunk);
    return [status, text];
  });
  const answers = await Promise.all(asked);
  session.close();
  return answers;
}

test('requests that wait for webhooks keep their bodies, over both protocols', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-webhooks-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const about = {
    commonName: 'hook',
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + 600_000,
    serial: Buffer.from('12345678'),
  };
  const authority = issueCertificate({ ...about, use: 'authority' }, null);
  const names = ['127.0.0.1'];
  const hook = await startWebhook(issueCertificate({ ...about, use: 'server', names }, authority));
  t.after(() => hook.stop());
  const kubeconfig = join(dir, 'hook.kubeconfig');
  const ca = Buffer.from(authority.certificate).toString('base64');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: hook.url, 'certificate-authority-data': ca } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    }),
  );
  const service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    authenticationTokenWebhookConfigFile: kubeconfig,
    authorizationMode: 'RBAC,Webhook',
    authorizationWebhookConfigFile: kubeconfig,
    authorizationWebhookVersion: 'v1',
    log: (level, message) => console.error(level, message),
  });
  t.after(() => service.stop());
  const port = Number(new URL(service.url).port);
  // connections are few, so that each carries several requests that wait
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  t.after(() => agent.destroy());
  const numbers = Array.from({ length: REQUESTS }, (_, index) => index);
  const one = await Promise.all(numbers.map((index) => post1(port, agent, `one-${index}`)));
  const two = await post2(
    port,
    numbers.map((index) => `two-${index}`),
  );
  for (const [prefix, answers] of [
    ['one', one],
    ['two', two],
  ] as const) {
    for (const [index, [status, text]] of answers.entries()) {
      assert.equal(status, 201, text);
      const { data } = JSON.parse(text) as { data: { name: string; padding: string } };
      const name = `${prefix}-${index}`;
      assert.deepEqual(data, { name, padding: name.repeat(50) });
    }
  }
});
