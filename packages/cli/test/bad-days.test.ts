import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { processUsage } from '../src/observe/process-usage.ts';
import { SERVER_ONLY, startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';

const CONNECTIONS = 5000;
const STUCK_WATCHES = 20;
const STUCK_EVENTS = 150;
/** Queues without end would hold 20 times 300 events of 100 KB more, some 570 MiB. */
const RSS_GROWTH_MIB_MAX = 150;

interface Access {
  readonly port: number;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

function access(cluster: Cluster): Access {
  const config = parse(readFileSync(cluster.kubeconfig, 'utf8'));
  const decode = (text: string): string => Buffer.from(text, 'base64').toString();
  const { cluster: server } = config.clusters[0];
  const { user } = config.users[0];
  return {
    port: Number(new URL(server.server).port),
    ca: decode(server['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Connections are kept for the credential that they were made with. */
const agents = new Map<string, Agent>();

function call(who: Access, method: string, path: string, body?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const key = `${who.port} ${who.cert}`;
    const agent = agents.get(key) ?? new Agent({ keepAlive: true, maxSockets: 2 });
    agents.set(key, agent);
    const outgoing = request(
      { ...who, host: '127.0.0.1', method, path, headers, agent },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

let cluster: Cluster;
let admin: Access;

before(async () => {
  cluster = await startCluster(['--nodes', '3', '--listen-client-urls', 'http://127.0.0.1:0']);
  admin = access(cluster);
});
after(async () => {
  for (const agent of agents.values()) agent.destroy();
  await cluster.remove();
});

test('nothing answers without a credential except version and health', async () => {
  const stranger = { ...admin, cert: '', key: '' };
  const get = (path: string): Promise<Answer> => call(stranger, 'GET', path);
  assert.equal((await get('/version')).status, 200);
  assert.equal((await get('/readyz')).status, 200);
  for (const path of ['/api/v1/nodes', '/apis', '/metrics', '/api/v1/namespaces/default/secrets']) {
    const { status, body } = await get(path);
    assert(status === 401 || status === 403, `${path}: ${status}`);
    assert.equal(JSON.parse(body).kind, 'Status');
  }
});

test('a certificate of another cluster is no credential', async () => {
  const other = await startCluster(SERVER_ONLY);
  try {
    const { cert, key } = access(other);
    const { status, body } = await call({ ...admin, cert, key }, 'GET', '/api/v1/nodes');
    assert.equal(status, 401, body);
    assert.equal(JSON.parse(body).reason, 'Unauthorized');
  } finally {
    await other.remove();
  }
});

test('garbage on a port hurts nobody', async () => {
  const ports = [admin.port, ...cluster.server.matchAll(/:(\d+)/g).map(([, port]) => Number(port))];
  for (const port of ports) {
    for (const garbage of [Buffer.alloc(70_000, 0x16), Buffer.from('GET / HTTP/9.9\r\n\r\n\r\n')]) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => socket.destroy());
      socket.write(garbage);
      await sleep(20);
      socket.destroy();
    }
  }
  assert.equal((await call(admin, 'GET', '/api/v1/nodes')).status, 200);
});

test('five thousand connections leave the server answering', async () => {
  const sockets: Socket[] = [];
  for (let index = 0; index < CONNECTIONS; index++) {
    const socket = connect(admin.port, '127.0.0.1');
    socket.on('error', () => socket.destroy());
    sockets.push(socket);
  }
  await sleep(1000);
  assert.equal((await call(admin, 'GET', '/api/v1/nodes/node-0')).status, 200);
  for (const socket of sockets) socket.destroy();
});

/** A watch whose reader never reads. */
async function stuckWatch(path: string): Promise<Socket> {
  const stuck = connectTls({ ...admin, host: '127.0.0.1', ALPNProtocols: ['http/1.1'] });
  await new Promise((resolve) => stuck.once('secureConnect', resolve));
  stuck.pause();
  stuck.write(`GET ${path}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n`);
  return stuck;
}

test('watches that are not read cost bounded memory and slow nobody down', async () => {
  const path = '/api/v1/namespaces/default/configmaps';
  const stuck = await Promise.all(Array.from({ length: STUCK_WATCHES }, () => stuckWatch(path)));
  const pid = cluster.pidOf('apiserver');
  const data = { blob: 'x'.repeat(100_000) };
  const made = await call(admin, 'POST', path, { metadata: { name: 'big' }, data });
  assert.equal(made.status, 201, made.body);
  const write = async (label: string): Promise<number> => {
    for (let round = 0; round < STUCK_EVENTS; round++) {
      const labels = { [label]: String(round) };
      const body = { metadata: { name: 'big', labels }, data };
      const { status } = await call(admin, 'PUT', `${path}/big`, body);
      assert.equal(status, 200);
    }
    return processUsage(pid)?.rssMib ?? 0;
  };
  // First they come to be as far behind as they may: 4 MiB each, in buffers that double.
  const beforeMib = await write('before');
  await write('round');
  const grownMib = (await write('again')) - beforeMib;
  assert(grownMib < RSS_GROWTH_MIB_MAX, `${grownMib} MiB more for watches that nobody reads`);
  for (const socket of stuck) socket.destroy();
});

test('an API server that is killed comes back where it was, and the cluster goes on', async () => {
  const before = cluster.pidOf('apiserver');
  process.kill(before, 'SIGKILL');
  const path = '/api/v1/namespaces/default/configmaps';
  const endMs = Date.now() + 60_000;
  const isBack = async (): Promise<boolean> => {
    const answer = await call(admin, 'GET', path).catch(() => undefined);
    return answer?.status === 200;
  };
  while (!(await isBack()) && Date.now() < endMs) await sleep(100);
  assert.notEqual(cluster.pidOf('apiserver'), before);
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0';
  const version = async (): Promise<string> =>
    JSON.parse((await call(admin, 'GET', lease)).body).metadata.resourceVersion;
  const first = await version();
  while ((await version()) === first && Date.now() < endMs) await sleep(200);
  assert.notEqual(await version(), first, 'the simulated nodes found the server again');
});

test('what was acknowledged survives a kill -9 of everything', async () => {
  const path = '/api/v1/namespaces/default/configmaps';
  for (let index = 0; index < 20; index++) {
    const { status } = await call(admin, 'POST', path, { metadata: { name: `kept-${index}` } });
    assert.equal(status, 201);
  }
  await cluster.kill();
  const again = await startCluster(SERVER_ONLY, cluster.dataDir);
  try {
    const { body } = await call(access(again), 'GET', path);
    const names = JSON.parse(body).items.map(
      (item: { metadata: { name: string } }) => item.metadata.name,
    );
    for (let index = 0; index < 20; index++)
      assert(names.includes(`kept-${index}`), join('kept', `${index}`));
  } finally {
    await again.stop();
  }
});
