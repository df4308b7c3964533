/** Clients that mean no good, against an API server of its own: others must not feel them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { parse } from 'yaml';
import { processUsage } from '../src/observe/process-usage.ts';
import { eventually, SERVER_ONLY, startCluster, type Cluster } from './cluster.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const WATCHES = IS_LONG ? 10_000 : 2000;
const WATCH_CONNECTIONS = 20;
const WATCH_KIB_MAX = 32;
const LISTS = 100;
const TRICKLES = 200;
const GROWTH_MIB_MAX = 150;
const MAPS = '/api/v1/namespaces/default/configmaps';
const SECRETS = '/api/v1/namespaces/default/secrets';

let cluster: Cluster;
let client: Client;
let pid: number;
const sockets: TLSSocket[] = [];

before(async () => {
  cluster = await startCluster(SERVER_ONLY);
  client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  pid = cluster.pidOf('apiserver');
});
after(async () => {
  client?.close();
  for (const socket of sockets) socket.destroy();
  await cluster?.remove();
});

const rssMib = (): number => processUsage(pid)?.rssMib ?? NaN;

/** An HTTP/1.1 connection as the administrator; its answer collects in `text` unless paused. */
async function open(): Promise<{ readonly socket: TLSSocket; readonly text: () => string }> {
  const config = parse(readFileSync(cluster.kubeconfig, 'utf8'));
  const decode = (text: string): string => Buffer.from(text, 'base64').toString();
  const { user } = config.users[0];
  const socket = connectTls({
    host: '127.0.0.1',
    port: Number(new URL(config.clusters[0].cluster.server).port),
    ca: decode(config.clusters[0].cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
    ALPNProtocols: ['http/1.1'],
  });
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('error', () => socket.destroy());
  sockets.push(socket);
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  return { socket, text: () => text };
}

async function othersAreServed(): Promise<void> {
  const { code } = await client.request({ method: 'GET', path: '/api/v1/namespaces/default' });
  assert.equal(code, 200);
}

test('a head without end is refused before it is large', async () => {
  const { socket, text } = await open();
  socket.write('GET /api HTTP/1.1\r\nhost: x\r\n');
  for (let index = 0; index < 4000 && !socket.destroyed; index++) {
    socket.write(`x-${index}: ${'y'.repeat(400)}\r\n`);
    if (index % 100 === 0) await sleep(1);
  }
  await eventually('the end', () => socket.destroyed || socket.readableEnded || undefined);
  assert.match(text(), /^HTTP\/1\.1 431 /);
  await othersAreServed();
});

test('bodies that trickle in keep nobody waiting', async () => {
  const slow = await Promise.all(Array.from({ length: TRICKLES }, open));
  for (const { socket } of slow) {
    socket.write(`POST ${MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n{`);
  }
  for (let round = 0; round < 5; round++) {
    for (const { socket } of slow) socket.write(' ');
    await othersAreServed();
  }
  for (const { socket } of slow) socket.destroy();
});

test('lists that nobody reads wait in the store, not in memory', async () => {
  const data = { blob: 'x'.repeat(200_000) };
  for (let index = 0; index < 50; index++) {
    const body = { metadata: { name: `large-${index}` }, data };
    assert.equal((await client.request({ method: 'POST', path: MAPS, body })).code, 201);
  }
  const stuck: Awaited<ReturnType<typeof open>>[] = [];
  const ask = async (): Promise<number> => {
    const fresh = await Promise.all(Array.from({ length: LISTS }, open));
    for (const { socket } of fresh) {
      socket.pause();
      socket.write(`GET ${MAPS} HTTP/1.1\r\nhost: x\r\n\r\n`);
    }
    stuck.push(...fresh);
    await sleep(1000);
    await othersAreServed();
    return rssMib();
  };
  // The first hundred bring garbage of their own, which the next ones find room in.
  const before = await ask();
  const grown = (await ask()) - before;
  assert(grown < GROWTH_MIB_MAX, `${LISTS} lists of 10 MB that nobody reads: ${grown} MiB more`);
  for (const { socket } of stuck) socket.destroy();
});

test('thousands of watches of one user cost some kilobytes each', async () => {
  const limits = { connections: 1 };
  const { kubeconfig } = cluster;
  const clients = await Promise.all(
    Array.from({ length: WATCH_CONNECTIONS }, () => createKubeClient({ kubeconfig, limits })),
  );
  let opened = 0;
  let events = 0;
  const before = rssMib();
  for (let index = 0; index < WATCHES; index++) {
    clients[index % WATCH_CONNECTIONS]?.stream(`${SECRETS}?watch=true&resourceVersion=0`, {
      onHead: (status) => (opened += status === 200 ? 1 : 0),
      onData: (bytes, start, end) => {
        const piece = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        if (piece.includes('"last-one"')) events++;
      },
      onEnd: () => undefined,
    });
  }
  await eventually('all are open', () => opened === WATCHES || undefined);
  const kib = ((rssMib() - before) * 1024) / WATCHES;
  await othersAreServed();
  const body = { metadata: { name: 'last-one' } };
  assert.equal((await client.request({ method: 'POST', path: SECRETS, body })).code, 201);
  await eventually('all are told', () => events >= WATCHES || undefined);
  for (const one of clients) one.close();
  assert(kib < WATCH_KIB_MAX, `${kib.toFixed(1)} KiB a watch`);
});
