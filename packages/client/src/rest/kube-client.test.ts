import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { listen } from '@megaplane/wire/listener';
import { ApiOverWire } from '../../test/api-over-wire.ts';
import { FakeServer } from '../../test/fake-server.ts';
import { CONTENT, type ClientLimits } from './client.ts';
import { createInformer } from '../cache/informer.ts';
import { unixEndpoint, type Endpoint } from '../clientcmd/kubeconfig.ts';
import { createKubeClient, readKubeconfig, type KubeClient } from './kube-client.ts';

function directory(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'megaplane-client-'));
  context.after(() => rmSync(path, { recursive: true }));
  return path;
}

async function clientOf(
  context: TestContext,
  endpoint: Endpoint,
  limits: Partial<ClientLimits> = {},
): Promise<KubeClient> {
  const client = await createKubeClient({ endpoint, limits });
  context.after(() => client.close());
  return client;
}

async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 2000 && !isSo(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(isSo(), 'it did not come about in time');
}

test('tens of thousands of requests go over two connections of a Unix socket', async (context) => {
  const api = new ApiOverWire(new FakeServer());
  const unixPath = join(directory(context), 'api.sock');
  await api.start({ unixPath });
  context.after(() => api.stop());
  const limits = { connections: 2, inFlightMax: 500, queueMax: 500 };
  const client = await clientOf(context, unixEndpoint(unixPath), limits);
  const total = 20_000;
  const wrong: string[] = [];
  let sent = 0;
  let answered = 0;
  await new Promise<void>((resolve) => {
    const produce = (): void => {
      while (sent < total && client.send('PUT', `/x/${sent}`, CONTENT.json, 'body', done, sent)) {
        sent++;
      }
    };
    const done = (
      status: number,
      bytes: Uint8Array,
      start: number,
      end: number,
      tag: number,
    ): void => {
      const text = Buffer.from(bytes.subarray(start, end)).toString();
      if (status !== 200 || text !== `PUT /x/${tag}`) wrong.push(`${status} ${text}`);
      if (++answered === total) resolve();
    };
    client.onRoom(produce);
    produce();
  });
  assert.deepEqual(wrong, []);
  assert.equal(client.metrics.connects, 2);
  assert.equal(client.metrics.answersByClass[2], total);
});

test('an informer over real sockets outlives restarts of the server', async (context) => {
  const server = new FakeServer();
  const api = new ApiOverWire(server);
  await api.start();
  context.after(() => api.stop());
  for (let i = 0; i < 500; i++) server.put('a', `pod-${i}`, `text ${i}`);
  const { port } = api;
  const tcp: Endpoint = {
    ...unixEndpoint(''),
    server: `http://127.0.0.1:${port}`,
    address: { kind: 'tcp', host: '127.0.0.1', port },
  };
  const client = await clientOf(context, tcp);
  let deletes = 0;
  const informer = createInformer({
    client,
    path: '/api/v1/pods',
    handler: { onUpsert: () => {}, onDelete: () => deletes++ },
  });
  context.after(() => informer.stop());
  informer.start();
  await until(() => informer.isSynced);
  assert.equal(informer.size, 500);
  await api.stop();
  server.delete('a', 'pod-7');
  server.put('b', 'fresh', 'x');
  await api.start({ port });
  await until(() => informer.find('b', 'fresh') >= 0);
  assert.equal(informer.size, 500);
  assert.equal(deletes, 1);
  assert.equal(informer.metrics.lists, 1);
});

test('a server that is not there is named with what is wrong', async (context) => {
  const path = join(directory(context), 'none.sock');
  const client = await clientOf(context, unixEndpoint(path), { requestTimeoutMs: 300 });
  const response = await client.request({ method: 'GET', path: '/x' });
  assert.equal(response.ok, false);
  assert.match(
    response.ok ? '' : (response.status.message ?? ''),
    /GET \/x: cannot reach unix:\/\/.*none\.sock: .*(ENOENT|no such|not exist)/,
  );
});

test('a port where nobody listens is tried again with pauses, not in a loop', async (context) => {
  const tcp: Endpoint = {
    ...unixEndpoint(''),
    server: 'http://127.0.0.1:1',
    address: { kind: 'tcp', host: '127.0.0.1', port: 1 },
  };
  const client = await clientOf(context, tcp, { requestTimeoutMs: 300 });
  const response = await client.request({ method: 'GET', path: '/x' });
  assert.match(response.ok ? '' : (response.status.message ?? ''), /ECONNREFUSED 127\.0\.0\.1:1/);
  assert.ok(client.metrics.connectFailures >= 2 && client.metrics.connectFailures < 10);
  assert.equal(client.metrics.connects, 0);
});

test('a kubeconfig is read from its file, and a token from its own', async (context) => {
  const api = new ApiOverWire(new FakeServer());
  const home = directory(context);
  const unixPath = join(home, 'api.sock');
  await api.start({ unixPath });
  context.after(() => api.stop());
  writeFileSync(join(home, 'token'), 'secret\n');
  const kubeconfig = join(home, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    `current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "unix://${unixPath}"}}]
users: [{name: u, user: {tokenFile: token}}]
`,
  );
  const client = await createKubeClient({ kubeconfig });
  context.after(() => client.close());
  assert.equal(client.server, `unix://${unixPath}`);
  const response = await client.request({ method: 'PUT', path: '/objects/a/b', body: 'text' });
  assert.equal(response.ok, true);
  assert.deepEqual([...api.tokens], ['Bearer secret']);
});

function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    // Absent: the test says so.
    return false;
  }
}

/** A CA, a server's and a client's certificate in `home`. */
function makeCertificates(home: string, ca: string): void {
  const openssl = (...words: string[]): void => {
    execFileSync('openssl', words, { cwd: home, stdio: 'ignore' });
  };
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const root = ['-keyout', `${ca}.key`, '-out', `${ca}.crt`, '-subj', `/CN=${ca}`];
  openssl('req', '-x509', ...key, ...root);
  for (const [name, subject] of Object.entries({ server: '/CN=kubernetes', client: '/CN=admin' })) {
    const san = ['-addext', 'subjectAltName=DNS:kubernetes'];
    const issue = ['-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-subj', subject, ...san];
    openssl('req', '-x509', ...key, ...issue, '-keyout', `${name}.key`, '-out', `${name}.crt`);
  }
}

test(
  'over TLS both sides prove who they are, and a foreign CA is refused with the reason',
  { skip: hasOpenssl() ? false : 'needs openssl (apt-get install openssl)' },
  async (context) => {
    const home = directory(context);
    makeCertificates(home, 'ca');
    const pem = (name: string): string => readFileSync(join(home, name), 'utf8');
    const names: string[] = [];
    const listener = await listen({
      port: 0,
      tls: { key: pem('server.key'), cert: pem('server.crt'), clientCa: pem('ca.crt') },
      handler: (exchange) => {
        const certificate = exchange.connection.peerCertificate();
        names.push(`${certificate?.commonName} ${certificate?.trusted}`);
        exchange.respond(200, 'application/json', '{}');
      },
    });
    context.after(() => listener.close());
    const foreign = directory(context);
    makeCertificates(foreign, 'other');
    const kubeconfig = (authority: string, name: string): string => {
      const path = join(home, 'kubeconfig');
      const server = `https://127.0.0.1:${listener.address.port}`;
      writeFileSync(
        path,
        `current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters:
- {name: c, cluster: {server: "${server}", certificate-authority: ${authority}, ${name}}}
users: [{name: u, user: {client-certificate: client.crt, client-key: client.key}}]
`,
      );
      return path;
    };
    const ask = async (path: string): Promise<string> => {
      const limits = { requestTimeoutMs: 10_000 };
      const client = await createKubeClient({ kubeconfig: path, limits });
      const response = await client.request({ method: 'GET', path: '/' });
      client.close();
      return response.ok ? 'ok' : (response.status.message ?? '');
    };
    assert.equal(await ask(kubeconfig('ca.crt', 'tls-server-name: kubernetes')), 'ok');
    assert.deepEqual(names, ['admin true']);
    const foreignCa = join(foreign, 'other.crt');
    const noMatch = await ask(kubeconfig(foreignCa, 'tls-server-name: kubernetes'));
    assert.match(noMatch, /certificate|self.signed/i);
    const other = await ask(kubeconfig('ca.crt', 'tls-server-name: other'));
    assert.match(other, /certificate is valid for kubernetes, not other/);
    assert.equal(await ask(kubeconfig(foreignCa, 'insecure-skip-tls-verify: true')), 'ok');
  },
);

test('a kubeconfig that is not there is refused with its path', async () => {
  assert.throws(() => readKubeconfig('/no/such/file'), /cannot read kubeconfig \/no\/such\/file/);
  await assert.rejects(createKubeClient({ kubeconfig: '/no/such/file' }), /cannot read kubeconfig/);
});
