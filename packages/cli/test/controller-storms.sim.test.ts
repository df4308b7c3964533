/**
 * All controllers in each kind of weather while things are made, changed and deleted: afterwards
 * everything is as if the sky had been clear, and no object was asked for too often.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { CONTENT } from '@megaplane/client/client';
import { Manager } from '@megaplane/controllers/manager';
import { chosenControllers } from '@megaplane/controllers/options';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ClusterSimulation } from './cluster-simulation.ts';
import { SimulatedFleet } from './simulated-fleet.ts';
import { StormyClient, type Weather } from './stormy-client.ts';

const MINUTE_MS = 60_000;
const STORM_MS = MINUTE_MS;
/** Pauses double: what has failed for so long comes again within as long, and some has two steps. */
const CALM_MS = 3 * MINUTE_MS;
const RENEW_MS = 30_000;
const NODES = 3;
/** Pauses that double from 5 ms on let 14 tries into a minute; two steps of one owner are two. */
const FOR_ONE_A_MINUTE_MAX = 30;
/** Where some of it is done, each step of a rollout takes so many tries. */
const TRIES_MAX = 3;

const APPS = '/apis/apps/v1';
const BATCH = '/apis/batch/v1';
const SPEC = { containers: [{ name: 'c', image: 'i:1', resources: { requests: { cpu: '1m' } } }] };

function labelled(app: string, more: JsonObject = {}): JsonObject {
  const matchLabels = { app };
  const template = { metadata: { labels: matchLabels }, spec: SPEC };
  return { selector: { matchLabels }, template, ...more };
}

const claim = (name: string): JsonObject => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
});

const PORTS: JsonObject[] = [{ port: 80 }];

/** Something for each controller to do: collection, name, and what it is beside. */
const OBJECTS: readonly (readonly [path: string, name: string, more: JsonObject])[] = [
  [`${APPS}/namespaces/work/deployments`, 'deployment', { spec: labelled('d', { replicas: 3 }) }],
  [`${APPS}/namespaces/work/daemonsets`, 'daemon', { spec: labelled('a') }],
  [
    `${APPS}/namespaces/work/statefulsets`,
    'stateful',
    {
      spec: labelled('s', {
        replicas: 2,
        serviceName: 's',
        volumeClaimTemplates: [claim('data')],
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
      }),
    },
  ],
  [
    '/api/v1/namespaces/work/replicationcontrollers',
    'controller',
    {
      spec: {
        replicas: 2,
        selector: { app: 'r' },
        template: { metadata: { labels: { app: 'r' } }, spec: SPEC },
      },
    },
  ],
  [
    `${BATCH}/namespaces/work/jobs`,
    'job',
    {
      spec: {
        completions: 2,
        ttlSecondsAfterFinished: 1,
        template: { spec: { ...SPEC, restartPolicy: 'Never' } },
      },
    },
  ],
  [
    `${BATCH}/namespaces/work/cronjobs`,
    'cron',
    {
      spec: {
        schedule: '0 0 1 1 *',
        jobTemplate: { spec: { template: { spec: { ...SPEC, restartPolicy: 'Never' } } } },
      },
    },
  ],
  ['/api/v1/namespaces/work/services', 's', { spec: { selector: { app: 's' }, ports: PORTS } }],
  ['/api/v1/namespaces/work/services', 'bare', { spec: { ports: PORTS } }],
  [
    '/api/v1/namespaces/work/endpoints',
    'bare',
    { subsets: [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }] },
  ],
  [
    '/apis/policy/v1/namespaces/work/poddisruptionbudgets',
    'budget',
    { spec: { minAvailable: 1, selector: { matchLabels: { app: 'd' } } } },
  ],
  [
    '/apis/autoscaling/v2/namespaces/work/horizontalpodautoscalers',
    'scaler',
    {
      spec: {
        minReplicas: 3,
        maxReplicas: 5,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'deployment' },
      },
    },
  ],
  ['/api/v1/namespaces/work/resourcequotas', 'quota', { spec: { hard: { pods: '50' } } }],
  [
    '/api/v1/namespaces/work/secrets',
    'token',
    {
      type: 'kubernetes.io/service-account-token',
      metadata: { annotations: { 'kubernetes.io/service-account.name': 'default' } },
    },
  ],
  [
    '/api/v1/persistentvolumes',
    'volume',
    {
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        claimRef: { namespace: 'work', name: 'held' },
      },
    },
  ],
  ['/api/v1/namespaces/work/persistentvolumeclaims', 'held', claim('held')],
  [
    '/api/v1/namespaces/work/pods',
    'ephemeral',
    {
      spec: {
        ...SPEC,
        volumes: [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: claim('')['spec'] } } }],
      },
    },
  ],
  [
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    'part',
    {
      metadata: { labels: { part: 'yes' } },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
    },
  ],
  [
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    'whole',
    { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: 'yes' } }] } },
  ],
  ['/apis/networking.k8s.io/v1/servicecidrs', 'more', { spec: { cidrs: ['10.77.0.0/24'] } }],
];

/** What is compared at the end of each step. */
const COLLECTIONS: readonly string[] = [
  '/api/v1/namespaces',
  '/api/v1/nodes',
  '/api/v1/pods',
  '/api/v1/serviceaccounts',
  '/api/v1/configmaps',
  `${APPS}/replicasets`,
  `${APPS}/controllerrevisions`,
  '/apis/discovery.k8s.io/v1/endpointslices',
  '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ...OBJECTS.map(([path]) => path.replace('/namespaces/work', '')),
];

async function answered<T>(cluster: ClusterSimulation, asked: Promise<T>): Promise<T> {
  let isDone = false;
  void asked.finally(() => (isDone = true));
  while (!isDone) await cluster.settle();
  return asked;
}

/** All objects by name, with what of their status says whether the work is done. */
async function summaryOf(cluster: ClusterSimulation): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const path of new Set(COLLECTIONS)) {
    const answer = await answered(cluster, cluster.ask('GET', path));
    assert(answer.ok, path);
    for (const one of listAt(answer.object, 'items') as JsonObject[]) {
      const made = stringAt(one, 'metadata', 'generateName');
      const name = made === '' ? stringAt(one, 'metadata', 'name') : `${made}*`;
      const counts = ['replicas', 'readyReplicas', 'numberReady', 'succeeded', 'expectedPods'];
      const told = counts.map((field) => numberAt(one, 'status', field)).join(' ');
      const hash = /-[0-9a-z]{6,10}(?=-\*$|$)/;
      const owners = listAt(one, 'metadata', 'ownerReferences').length;
      const taints = listAt(one, 'spec', 'taints').length;
      const rules = listAt(one, 'rules').length;
      const going = stringAt(one, 'metadata', 'deletionTimestamp') === '' ? '' : ' going';
      const phase = stringAt(one, 'status', 'phase');
      const parts = [told, phase, `${owners} owners, ${taints} taints, ${rules} rules${going}`];
      lines.push(`${path} ${name.replace(hash, '-#')}: ${parts.join(', ')}`);
    }
  }
  return lines.toSorted();
}

interface Lived {
  readonly steps: readonly (readonly string[])[];
  readonly mostForOne: number;
  readonly worst: string;
}

async function live(weather: Weather | 'restart'): Promise<Lived> {
  const cluster = new ClusterSimulation(7);
  const client = new StormyClient(cluster);
  const ask = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: JsonObject) => {
    const type = method === 'PATCH' ? CONTENT.mergePatch : CONTENT.json;
    const answer = await answered(cluster, cluster.ask(method, path, body, type));
    assert(answer.ok || answer.code === 404, `${method} ${path}: ${JSON.stringify(answer)}`);
  };
  const namespaces = ['default', 'kube-system', 'kube-node-lease', 'kube-public', 'work'];
  for (const name of namespaces) await ask('POST', '/api/v1/namespaces', { metadata: { name } });
  const fleet = new SimulatedFleet(cluster, new Random(7), RENEW_MS);
  for (let i = 0; i < NODES; i++) {
    await answered(cluster, fleet.addNode(`node-${i}`, 'zone'));
  }
  const chosen = chosenControllers(['*', 'token-cleaner-controller']);
  assert(typeof chosen !== 'string');
  const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
  const grace = { nodeMonitorGracePeriodMs: 5 * RENEW_MS, nodeStartupGracePeriodMs: 6 * RENEW_MS };
  const options = { kubeconfig: '', log, ...grace };
  const manager = new Manager({
    ...{ client, chosen, options, rootCa: 'PEM', random: new Random(1), log },
    monotonicMs: () => cluster.timers.nowMs(),
  });
  manager.start();
  await cluster.advance(20_000);
  const steps: (readonly string[])[] = [];
  const storm = async (deeds: () => Promise<void>): Promise<void> => {
    if (typeof weather === 'number') cluster.cut();
    if (weather !== 'restart') client.weather = weather;
    await deeds();
    for (let passedMs = 0; passedMs < STORM_MS; passedMs += 10_000) {
      if (weather === 'restart') cluster.restart();
      await cluster.advance(10_000);
    }
    client.clear();
    await cluster.advance(CALM_MS);
    steps.push(await summaryOf(cluster));
  };
  await storm(async () => {
    for (const [path, name, more] of OBJECTS) {
      const metadata = { ...(more['metadata'] as JsonObject | undefined), name };
      await ask('POST', path, { ...more, metadata });
    }
  });
  await storm(async () => {
    const image = { template: { spec: { containers: [{ name: 'c', image: 'i:2' }] } } };
    const change = (path: string, spec: JsonObject): Promise<void> => ask('PATCH', path, { spec });
    await change(`${APPS}/namespaces/work/deployments/deployment`, { ...image, replicas: 4 });
    await change(`${APPS}/namespaces/work/daemonsets/daemon`, image);
    await change(`${APPS}/namespaces/work/statefulsets/stateful`, { replicas: 1 });
    await change('/api/v1/namespaces/work/replicationcontrollers/controller', { replicas: 0 });
    await ask('DELETE', '/apis/rbac.authorization.k8s.io/v1/clusterroles/part');
    await ask('DELETE', '/apis/networking.k8s.io/v1/servicecidrs/more');
    await ask('DELETE', '/api/v1/namespaces/work/endpoints/bare');
  });
  await storm(async () => ask('DELETE', '/api/v1/namespaces/work'));
  manager.stop();
  return { steps, mostForOne: client.mostForOne, worst: client.worst };
}

let clear: Promise<Lived> | undefined;

for (const weather of [500, 403, 429, 0, 'slow', 'half', 'lost', 'stale', 'restart'] as const) {
  test(`controllers outlive: ${weather}`, async () => {
    clear ??= live('clear');
    const expected = await clear;
    const { steps, mostForOne, worst } = await live(weather);
    assert.deepEqual(steps, expected.steps);
    const isPartial = weather === 'half' || weather === 'lost';
    const most = isPartial ? TRIES_MAX * expected.mostForOne : FOR_ONE_A_MINUTE_MAX;
    assert(mostForOne <= most, `${mostForOne} of ${worst}`);
  });
}
