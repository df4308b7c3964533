/** A metrics API server behind this one: registered, found, asked as its users, and lost. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:http2';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { issueCertificate } from '../pki/certificates.ts';
import { runApiserver, type ApiserverService } from '../server/run.ts';

const DAY_MS = 86_400_000;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-aggregation-'));
const PLACE = '/apis/metrics.k8s.io/v1beta1';

function certificate(
  commonName: string,
  use: 'authority' | 'server',
  issuer: { certificate: string; key: string } | null,
) {
  const nowMs = Date.now();
  const times = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + DAY_MS };
  const names = ['metrics-server.kube-system.svc', 'localhost'];
  return issueCertificate({ commonName, use, names, ...times, serial: randomBytes(8) }, issuer);
}

/** Answers as a metrics server does, and notes who asked by which certificate. */
class MetricsServer {
  readonly authority = certificate('metrics-ca', 'authority', null);
  readonly asked: string[] = [];
  #server: Server | null = null;

  start(): Promise<number> {
    const serving = certificate('metrics', 'server', this.authority);
    const { key, certificate: cert } = serving;
    const options = { key, cert, requestCert: true, rejectUnauthorized: false };
    const server = createServer(options, (asked, answer) => this.#answer(asked, answer));
    this.#server = server;
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        resolve((server.address() as { port: number }).port);
      });
    });
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }

  #answer(asked: IncomingMessage, answer: ServerResponse): void {
    const path = asked.url ?? '';
    const { subject } = (asked.socket as TLSSocket).getPeerCertificate();
    const by = String(subject.CN);
    const { 'x-remote-user': user, 'x-remote-group': group, authorization } = asked.headers;
    this.asked.push([path, by, user, group, authorization ?? 'no token'].join(' '));
    const send = (object: object): void => {
      answer.writeHead(200, { 'content-type': 'application/json', 'x-from': 'metrics' });
      answer.end(JSON.stringify(object));
    };
    const groupVersion = 'metrics.k8s.io/v1beta1';
    if (path === PLACE) {
      const verbs = ['get', 'list'];
      const nodes = {
        name: 'nodes',
        singularName: '',
        namespaced: false,
        kind: 'NodeMetrics',
        verbs,
      };
      const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion };
      send({ ...list, resources: [nodes] });
    } else if (path.includes('/echo')) {
      let body = '';
      asked.on('data', (piece: Buffer) => (body += piece.toString()));
      asked.on('end', () => send({ method: asked.method, path, body }));
    } else if (path === '/openapi/v3') {
      send({ paths: { [PLACE.slice(1)]: { serverRelativeURL: `/openapi/v3${PLACE}?hash=AB` } } });
    } else if (path.startsWith('/openapi/v3/')) send({ openapi: '3.0.0', paths: {} });
    else send({ kind: 'NodeMetricsList', apiVersion: groupVersion, metadata: {}, items: [] });
  }
}

const metrics = new MetricsServer();
let service: ApiserverService | null = null;
let port = 0;

before(async () => {
  port = await metrics.start();
  service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    log: (level, message) => console.error(level, message),
  });
});

after(async () => {
  metrics.stop();
  await service?.stop();
  rmSync(dir, { recursive: true });
});

/** The administrator of the kubeconfig. */
function credentials(): { ca: string; cert: string; key: string } {
  const file = readFileSync(join(dir, 'kubeconfig'), 'utf8');
  const data = (name: string): string =>
    Buffer.from(new RegExp(`${name}: (\\S+)`).exec(file)?.[1] ?? '', 'base64').toString();
  return {
    ca: data('certificate-authority-data'),
    cert: data('client-certificate-data'),
    key: data('client-key-data'),
  };
}

/** One request as the administrator of the kubeconfig. */
function ask(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ code: number; text: string }> {
  const text = body === undefined ? '' : JSON.stringify(body);
  // Node tells it of POST, PUT and PATCH alone
  const length = text === '' ? {} : { 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const sent = request(`${service?.url}${path}`, {
      method,
      ...credentials(),
      headers: { 'content-type': 'application/json', ...length, ...headers },
    });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let text = '';
      answer.on('data', (piece: Buffer) => (text += piece.toString()));
      answer.on('end', () => resolve({ code: answer.statusCode ?? 0, text }));
    });
    sent.end(text);
  });
}

const SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';

/** The condition of the metrics API, once it is as wanted. */
async function condition(wanted: string): Promise<{ reason: string; message: string }> {
  for (let tries = 0; tries < 1000; tries++) {
    const { text } = await ask('GET', `${SERVICES}/v1beta1.metrics.k8s.io`);
    const { status } = JSON.parse(text) as {
      status?: { conditions?: { status: string; reason: string; message: string }[] };
    };
    const [found] = status?.conditions ?? [];
    if (found?.reason === wanted) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the condition never became ${wanted}`);
}

async function register(): Promise<void> {
  await ask('POST', SERVICES, {
    metadata: { name: 'v1beta1.metrics.k8s.io' },
    spec: {
      service: { name: 'metrics-server', namespace: 'kube-system', port },
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      caBundle: Buffer.from(metrics.authority.certificate).toString('base64'),
    },
  });
}

test('what this server serves has APIServices of its own, ordered as upstream', async () => {
  const { text } = await ask('GET', SERVICES);
  const { items } = JSON.parse(text) as {
    items: {
      metadata: { name: string };
      spec: { groupPriorityMinimum: number; versionPriority: number };
    }[];
  };
  const priorities = new Map(
    items.map(({ metadata, spec }) => [
      metadata.name,
      [spec.groupPriorityMinimum, spec.versionPriority],
    ]),
  );
  assert.deepEqual(priorities.get('v1.'), [18_000, 1]);
  assert.deepEqual(priorities.get('v1.apps'), [17_800, 15]);
  assert.deepEqual(priorities.get('v2.autoscaling'), [17_500, 30]);
  assert.deepEqual(priorities.get('v1.flowcontrol.apiserver.k8s.io'), [16_100, 21]);
  assert.equal(priorities.has('v1.apiregistration.k8s.io'), false);
});

test('a service that is not there is not available, and says why', async () => {
  await register();
  const { message } = await condition('ServiceNotFound');
  assert.equal(message, 'service/metrics-server in "kube-system" is not present');
  const refused = await ask('GET', `${PLACE}/nodes`);
  assert.deepEqual([refused.code, refused.text], [503, 'service unavailable\n']);
  const { text } = await ask('GET', '/metrics');
  assert.match(text, /^aggregator_unavailable_apiservice\{name="v1beta1.metrics.k8s.io"\} 1$/m);
  assert.match(text, /^aggregator_unavailable_apiservice\{name="v1.apps"\} 0$/m);
  // who asks has a certificate that expires
  assert.match(text, /^apiserver_client_certificate_expiration_seconds_count [1-9]/m);
});

test('a service that answers is asked as its users, found and explained', async () => {
  const spec = { type: 'ExternalName', externalName: 'localhost' };
  const path = '/api/v1/namespaces/kube-system/services';
  await ask('POST', path, { metadata: { name: 'metrics-server' }, spec });
  await condition('Passed');
  metrics.asked.length = 0;
  const spoof = { 'x-remote-user': 'mallory', 'x-remote-group': 'system:masters' };
  const list = await ask('GET', `${PLACE}/nodes?limit=1`, undefined, spoof);
  assert.equal(list.code, 200, list.text);
  assert.equal((JSON.parse(list.text) as { kind: string }).kind, 'NodeMetricsList');
  const groups = 'system:masters, system:authenticated';
  assert.deepEqual(
    metrics.asked.filter((line) => line.includes('/nodes')),
    [`${PLACE}/nodes?limit=1 front-proxy-client kubernetes-admin ${groups} no token`],
  );
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const found = JSON.parse((await ask('GET', '/apis', undefined, { accept })).text) as {
    items: { metadata: { name: string }; versions: { resources: object[]; freshness: string }[] }[];
  };
  const group = found.items.find(({ metadata }) => metadata.name === 'metrics.k8s.io');
  assert.deepEqual(group?.versions[0]?.resources, [
    {
      resource: 'nodes',
      // a client takes the list's group and version
      responseKind: { group: '', version: '', kind: 'NodeMetrics' },
      scope: 'Cluster',
      singularResource: '',
      verbs: ['get', 'list'],
    },
  ]);
  const legacy = await ask('GET', '/apis/metrics.k8s.io');
  assert.equal(legacy.code, 200, legacy.text);
  const other = await ask('GET', '/apis/metrics.k8s.io/v9');
  assert.deepEqual([other.code, other.text], [404, '404 page not found\n']);
  for (let tries = 0; tries < 1000; tries++) {
    if ((await ask('GET', '/openapi/v3')).text.includes('metrics.k8s.io/v1beta1?hash=AB')) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const document = await ask('GET', `/openapi/v3${PLACE}?hash=AB`);
  assert.deepEqual(JSON.parse(document.text), { openapi: '3.0.0', paths: {} });
});

test('what is asked for arrives whole, as it was understood here', async () => {
  const seen = async (method: string, path: string, body?: object): Promise<unknown> =>
    JSON.parse((await ask(method, `${PLACE}${path}`, body)).text);
  const options = { kind: 'DeleteOptions', propagationPolicy: 'Background' };
  const body = JSON.stringify(options);
  // a length that nobody told would end the request before its body
  for (const method of ['DELETE', 'GET', 'POST', 'PATCH']) {
    const told = await seen(method, '/echo/a', options);
    assert.deepEqual(told, { method, path: `${PLACE}/echo/a`, body });
  }
  const odd = await seen('GET', '/echo/a%2Fb%20%3F?z=1&a=%20x&z=0&c;d=1&e=%zz');
  const path = `${PLACE}/echo/a/b%20%3F?a=+x&z=1&z=0`;
  assert.deepEqual(odd, { method: 'GET', path, body: '' });
});

test('bodies that come one after the other on a connection are passed on unmixed', async () => {
  const client = connect(service?.url ?? '', credentials());
  const echo = (index: number): Promise<boolean> => {
    const sent = client.request({ ':method': 'POST', ':path': `${PLACE}/echo/${index}` });
    const body = String.fromCharCode(97 + index).repeat(3000);
    sent.end(body);
    let text = '';
    sent.on('data', (piece: Buffer) => (text += piece.toString()));
    return new Promise((resolve, reject) => {
      sent.on('error', reject);
      sent.on('end', () => resolve((JSON.parse(text) as { body: string }).body === body));
    });
  };
  const found = await Promise.all(Array.from({ length: 20 }, (_, index) => echo(index)));
  client.close();
  assert.deepEqual(
    found,
    found.map(() => true),
  );
});

test('a connection that is used again and again gathers no listeners', async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error): unknown => warnings.push(name);
  process.on('warning', note);
  for (let i = 0; i < 15; i++) {
    assert.equal((await ask('GET', `${PLACE}/nodes?limit=${i}`)).code, 200);
  }
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  assert.deepEqual(warnings, []);
});

test('who may not ask is refused here, and the extension hears nothing', async () => {
  metrics.asked.length = 0;
  const as = { 'impersonate-user': 'jane' };
  const refused = await ask('GET', `${PLACE}/nodes`, undefined, as);
  assert.equal(refused.code, 403);
  assert.match(refused.text, /User \\"jane\\" cannot list resource \\"nodes\\"/);
  assert.deepEqual(
    metrics.asked.filter((line) => line.includes('/nodes')),
    [],
  );
});

test('kubectl finds the metrics API', async (context) => {
  if (spawnSync('kubectl', ['version', '--client']).status !== 0) {
    context.skip('needs kubectl: apt-get install kubernetes-client');
    return;
  }
  const { execFile } = await import('node:child_process');
  const env = { ...process.env, HOME: dir, KUBECONFIG: join(dir, 'kubeconfig') };
  const args = ['api-resources', '--api-group=metrics.k8s.io', '--no-headers'];
  const text = await new Promise<string>((resolve) => {
    execFile('kubectl', args, { env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
  assert.match(text, /^nodes +metrics\.k8s\.io\/v1beta1 +false +NodeMetrics/m);
});

test('nobody is sent to a service that has gone, nor when it is deleted', async () => {
  metrics.stop();
  // a change of the spec has it looked at again at once
  await ask(
    'PATCH',
    `${SERVICES}/v1beta1.metrics.k8s.io`,
    { spec: { versionPriority: 90 } },
    { 'content-type': 'application/merge-patch+json' },
  );
  const { message } = await condition('FailedDiscoveryCheck');
  assert.match(message, /^failing or missing response from https:\/\/localhost:\d+\/apis\/metrics/);
  assert.equal((await ask('GET', `${PLACE}/nodes`)).code, 503);
  await ask('DELETE', `${SERVICES}/v1beta1.metrics.k8s.io`);
  for (let tries = 0; tries < 1000; tries++) {
    if ((await ask('GET', `${PLACE}/nodes`)).code === 404) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail('requests are still passed on');
});

test('groups of other servers are listed by priority, then by name', async () => {
  const wanted = { 'y.example.com': 1000, 'x.example.com': 1000, 'w.example.com': 2000 };
  for (const [group, groupPriorityMinimum] of Object.entries(wanted)) {
    const service = { name: 'nobody', namespace: 'kube-system' };
    const spec = { service, group, version: 'v1', groupPriorityMinimum, versionPriority: 1 };
    await ask('POST', SERVICES, {
      metadata: { name: `v1.${group}` },
      spec: { ...spec, insecureSkipTLSVerify: true },
    });
  }
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  let ours: { metadata: { name: string }; versions: object[] }[] = [];
  // what was put together stands for a moment
  for (let tries = 0; tries < 1000 && ours.length < 3; tries++) {
    const { text } = await ask('GET', '/apis', undefined, { accept });
    const { items } = JSON.parse(text) as { items: typeof ours };
    ours = items.filter(({ metadata }) => metadata.name in wanted);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const names = ours.map(({ metadata }) => metadata.name);
  assert.deepEqual(names, ['w.example.com', 'x.example.com', 'y.example.com']);
  assert.deepEqual(ours[0]?.versions, [{ version: 'v1', freshness: 'Stale' }]);
});
