/**
 * Whatever comes to the store's ports, plain or over TLS, as bytes, requests or calls of every
 * method with damaged messages, the store answers others afterwards and watches for nobody.
 */
import { execFileSync } from 'node:child_process';
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  ask,
  besiege,
  plainDoor,
  tlsDoor,
  type HostilePort,
} from '@megaplane/base/hostile-client.sim';
import { messageBytes, type MessageField } from '@megaplane/base/hostile-message.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { openStore, type OpenStore } from '@megaplane/store/open';
import { GATEWAY_ROUTES, messageOf } from '../src/codec/schema.ts';
import { serveEtcd, type EtcdServer } from '../src/server/run-store.ts';

const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-hostile-calls-'));
let opened: OpenStore;
let server: EtcdServer;

before(async () => {
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const files = ['-nodes', '-keyout', 'key', '-out', 'cert', '-days', '30', '-subj', '/CN=a'];
  execFileSync('openssl', [...request, ...files], { cwd: dir, stdio: 'ignore' });
  const tls = { key: readFileSync(join(dir, 'key')), cert: readFileSync(join(dir, 'cert')) };
  opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  server = await serveEtcd(opened, {
    listen: [{ port: 0 }, { port: 0, tls }, { port: 0, tls, alsoPlain: true }],
    listenMetrics: [{ port: 0 }],
    auth: { bcryptCost: 4 },
  });
});

after(async () => {
  await server?.close();
  await opened?.close();
  rmSync(dir, { recursive: true, force: true });
});

function fieldsOf(name: string): readonly MessageField[] {
  return messageOf(name).fields.map(({ number, kind }): MessageField => {
    if (typeof kind === 'string') {
      return { number, kind: kind === 'bytes' || kind === 'string' ? 'bytes' : 'varint' };
    }
    if ('enum' in kind) return { number, kind: 'varint' };
    return { number, kind: 'message', fields: () => fieldsOf(kind.message) };
  });
}

const CALLS = [...GATEWAY_ROUTES.values()].map(({ method, request }) => ({
  path: method,
  message: messageBytes(fieldsOf(request)),
}));
const HEALTH = ['Check', 'Watch'].map((name) => ({
  path: `/grpc.health.v1.Health/${name}`,
  message: messageBytes([{ number: 1, kind: 'bytes' }]),
}));

const ROOTS = ['/v3/kv/range', '/v3/kv/txn', '/v3/watch', '/v3/lease/keepalive', '/metrics'];

function portOf(name: string, port: number, open: HostilePort['open']): HostilePort {
  return {
    ...{ name, port, open, calls: [...CALLS, ...HEALTH], roots: ROOTS },
    answers: async () => assert.match(await ask(open, '/version'), /^HTTP\/1\.1 200 /),
    held: () => (opened.store.hub.size === 0 ? [] : [`${opened.store.hub.size} watches`]),
  };
}

test('whatever comes to a port of the store, others are served', { timeout }, async () => {
  const [plain, tls, both] = server.addresses.map(({ port }) => port);
  const [metrics] = server.metricsAddresses.map(({ port }) => port);
  assert(plain !== undefined && tls !== undefined && both !== undefined && metrics !== undefined);
  const ports = [
    portOf('plain', plain, plainDoor(plain)),
    portOf('TLS', tls, tlsDoor(tls)),
    portOf('either, plain', both, plainDoor(both)),
    portOf('either, TLS', both, tlsDoor(both)),
    {
      ...{ name: 'metrics', port: metrics, open: plainDoor(metrics), roots: ['/metrics'] },
      answers: async () =>
        assert.match(await ask(plainDoor(metrics), '/metrics'), /^HTTP\/1\.1 200 /),
    },
  ];
  const ended = await besiege(ports, { runs: 60 });
  // not all of it is refused at the door
  assert(ended.size > 5 && [...ended.values()].some((codes) => codes.has('0')));
});
