/**
 * Whatever comes to the ports of kubelets, scheduler, controllers and the page, with and without
 * credentials: they answer others afterwards, and keep nothing of those who left.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runApiserver } from '@megaplane/apiserver/run';
import {
  ask,
  besiege,
  plainDoor,
  tlsDoor,
  type HostilePort,
} from '@megaplane/base/hostile-client.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import type { SecureAddress } from '@megaplane/client/secure-endpoint';
import { runControllers } from '@megaplane/controllers/run';
import { readKwokFiles } from '@megaplane/nodes/stages/kwok-files';
import { runNodes } from '@megaplane/nodes/simulator';
import { runScheduler } from '@megaplane/scheduler/run-scheduler';
import { parse } from 'yaml';
import { startPage } from '../src/page/start-page.ts';
import { makeServingCertificate } from '../src/service/serving-certificate.ts';

const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;
const RUNS = 40;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-hostile-ports-'));
const errors: string[] = [];
const services: { stop(): Promise<void> }[] = [];
const ports: HostilePort[] = [];
/** Of the administrator, for doors that want one. */
const identity: { cert?: string; key?: string } = {};

const log = (level: string, message: string): void => {
  if (level === 'error') errors.push(message);
};

async function started<Made extends { stop(): Promise<void> }>(making: Promise<Made>) {
  const made = await making;
  services.unshift(made);
  return made;
}

/** The first port behind the word in what a program says that it listens on. */
function portBehind(listens: string, word: string): number {
  const port = Number(new RegExp(`${word} \\w+://[^ ]*?:(\\d+)`).exec(listens)?.[1]);
  assert(port > 0, `${word} in: ${listens}`);
  return port;
}

function portOf(
  name: string,
  port: number,
  open: HostilePort['open'],
  target: string,
  more: Partial<HostilePort> = {},
): HostilePort {
  return {
    ...{ name, port, open },
    answers: async () => assert.match(await ask(open, target), /^HTTP\/1\.1 200 /, name),
    ...more,
  };
}

/** HTTPS of a component, with authorities and permissions asked for at the API server. */
function secureAddress(): SecureAddress {
  return {
    ...{ host: '127.0.0.1', port: 0, openPaths: ['/healthz'], clientCa: '', looksUp: true },
    ...{ authenticationKubeconfig: '', authorizationKubeconfig: '' },
    ...{ tokenMs: 10_000, allowedMs: 10_000, deniedMs: 10_000 },
    ...makeServingCertificate([]),
  };
}

before(async () => {
  const server = await started(
    runApiserver({
      ...{ dataDir: join(dir, 'data'), bindAddress: '127.0.0.1', securePort: 0, log },
    }),
  );
  assert(server.url !== '');
  const kubeconfig = join(dir, 'data', 'kubeconfig');
  const [{ user }] = parse(readFileSync(kubeconfig, 'utf8')).users;
  const decode = (text: string): string => Buffer.from(text, 'base64').toString();
  identity.cert = decode(user['client-certificate-data']);
  identity.key = decode(user['client-key-data']);
  await startNodes(kubeconfig);
  await startComponents(kubeconfig);
  const page = await started(
    startPage({ kubeconfig, listenAddress: { host: '127.0.0.1', port: 0 }, metrics: [] }),
  );
  const link = new URL(page.listens);
  const [port, token] = [Number(link.port), link.searchParams.get('token') ?? ''];
  const host = `127.0.0.1:${port}`;
  const credential = { host, authorization: `Bearer ${token}` };
  const words = ['stream', 'kinds', 'field?by=ready&', 'table', 'object', 'explain', 'chaos'];
  ports.push({
    ...{ name: 'page', port, open: plainDoor(port), credential },
    ...{ roots: ['/api/', '/api/stream', '/api/table', '/api/object', '/api/field'], words },
    answers: async () => {
      const text = await ask(plainDoor(port), `/?token=${token}`, { host });
      assert.match(text, /^HTTP\/1\.1 200 /);
    },
  });
});

async function startNodes(kubeconfig: string): Promise<void> {
  const none = { labelSelector: '', annotationSelector: '', singleNode: '' };
  const shard = { shard: '', enableCrds: [], metricsApi: false };
  const nodes = await started(
    runNodes({
      ...{ kubeconfig, create: 2, zones: ['a'], cidr: '10.0.0.0/9', connections: 1, log },
      ...{ ...none, ...shard, disregardAnnotations: '', disregardLabels: '' },
      ...{ files: readKwokFiles('--config', ['fast', 'metrics']), leaseDurationSeconds: 40 },
      ...{
        serverAddress: '127.0.0.1:0',
        tls: { ...makeServingCertificate([]), clientCa: undefined },
      },
      ...{ fidelity: 'lean', kubeletCalls: '' },
      endpoint: { port: 0, hostname: '', nodeIp: '127.0.0.1' },
    }),
  );
  const port = portBehind(nodes.listens, 'kubelets');
  const roots = [
    ...['/containerLogs/default/p/c', '/exec/default/p/c', '/attach/default/p/c', '/pods'],
    ...['/portForward/default/p', '/stats/summary', '/metrics/nodes/node-0/metrics/resource'],
    ...['/apis/metrics.k8s.io/v1beta1/', '/metrics/field'],
  ];
  const words = ['node-0', 'pods', '?command=ls&stdin=1', '?port=80'];
  const credential = { 'x-forwarded-uri': '/api/v1/nodes/node-0/proxy' };
  const known = { roots, words, credential };
  ports.push(
    portOf('kubelets, plain', port, plainDoor(port), '/healthz', known),
    portOf('kubelets, nobody', port, tlsDoor(port), '/healthz', known),
    portOf('kubelets, masters', port, tlsDoor(port, identity), '/healthz', known),
  );
}

async function startComponents(kubeconfig: string): Promise<void> {
  const shared = { kubeconfig, leaderElect: false, log, metricsAddress: '127.0.0.1:0' };
  const scheduler = await started(
    runScheduler({
      ...{ ...shared, seed: 1, connections: 1, eventsPerSecondMax: 0 },
      ...{ podMaxInUnschedulableMs: 300_000, secure: secureAddress() },
    }),
  );
  const controllers = await started(runControllers({ ...shared, secure: secureAddress() }));
  const roots = ['/metrics', '/healthz', '/configz', '/flagz', '/statusz', '/readyz/ping'];
  const metrics = portBehind(scheduler.listens, 'metrics');
  const secure = portBehind(scheduler.listens, 'secure');
  ports.push(
    portOf('scheduler, plain', metrics, plainDoor(metrics), '/metrics', { roots }),
    portOf('scheduler, nobody', secure, tlsDoor(secure), '/healthz', { roots }),
    portOf('scheduler, masters', secure, tlsDoor(secure, identity), '/healthz', { roots }),
  );
  const plain = portBehind(controllers.listens, 'metrics');
  const tls = portBehind(controllers.listens, ',');
  ports.push(
    portOf('controllers, plain', plain, plainDoor(plain), '/metrics', { roots }),
    portOf('controllers, masters', tls, tlsDoor(tls, identity), '/healthz', {
      roots: [...roots, '/debug/graph'],
    }),
  );
}

after(async () => {
  for (const service of services) await service.stop();
  rmSync(dir, { recursive: true, force: true });
});

test('whatever comes to a port of a component, others are served', { timeout }, async () => {
  await besiege(ports, { runs: RUNS, errors });
});
