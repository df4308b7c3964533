/**
 * A namespace with work in it is deleted while the controllers, or the server, begin anew after each
 * single change that the controllers make: every step of its end is one that a crash comes after.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Manager } from '@megaplane/controllers/manager';
import { chosenControllers } from '@megaplane/controllers/options';
import { listAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ClusterSimulation } from './cluster-simulation.ts';
import { SimulatedFleet } from './simulated-fleet.ts';

const CHOSEN = [
  'namespace-controller',
  'garbage-collector-controller',
  'replicaset-controller',
  'deployment-controller',
  'statefulset-controller',
  'endpointslice-controller',
  'persistentvolumeclaim-protection-controller',
];
const APPS = '/apis/apps/v1/namespaces/work';
const CORE = '/api/v1/namespaces/work';
const LEFT = ['pods', 'persistentvolumeclaims', 'services', 'configmaps', 'secrets'];
const LEFT_OF_APPS = ['deployments', 'replicasets', 'statefulsets', 'controllerrevisions'];
const RENEW_MS = 30_000;
/** More steps than there are is an endless loop of them. */
const STEPS_MAX = 200;

function workload(app: string, more: JsonObject): JsonObject {
  const template = {
    metadata: { labels: { app } },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  };
  const spec = { replicas: 2, selector: { matchLabels: { app } }, template, ...more };
  return { metadata: { name: app }, spec };
}

const CLAIM: JsonObject = {
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
};

const OBJECTS: readonly (readonly [path: string, body: JsonObject])[] = [
  [`${APPS}/deployments`, workload('web', {})],
  [`${APPS}/statefulsets`, workload('db', { serviceName: 'db', volumeClaimTemplates: [CLAIM] })],
  [
    `${CORE}/services`,
    { metadata: { name: 'db' }, spec: { selector: { app: 'db' }, ports: [{ port: 1 }] } },
  ],
  [`${CORE}/configmaps`, { metadata: { name: 'map' } }],
  [`${CORE}/secrets`, { metadata: { name: 'secret' } }],
];

async function answered<T>(cluster: ClusterSimulation, asked: Promise<T>): Promise<T> {
  let isDone = false;
  void asked.finally(() => (isDone = true));
  while (!isDone) await cluster.settle();
  return asked;
}

function managerOf(cluster: ClusterSimulation): Manager {
  const chosen = chosenControllers(CHOSEN);
  assert(typeof chosen !== 'string');
  const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
  const manager = new Manager({
    ...{ client: cluster, chosen, options: { kubeconfig: '', log }, rootCa: '', log },
    random: new Random(1),
    monotonicMs: () => cluster.timers.nowMs(),
  });
  manager.start();
  return manager;
}

async function clusterWithWork(): Promise<ClusterSimulation> {
  const cluster = new ClusterSimulation(3);
  const make = async (path: string, body: JsonObject): Promise<void> => {
    const answer = await answered(cluster, cluster.ask('POST', path, body));
    assert(answer.ok, JSON.stringify(answer));
  };
  for (const name of ['default', 'kube-node-lease', 'work']) {
    await make('/api/v1/namespaces', { metadata: { name } });
  }
  await make(`${CORE}/serviceaccounts`, { metadata: { name: 'default' } });
  const fleet = new SimulatedFleet(cluster, new Random(3), RENEW_MS);
  await answered(cluster, fleet.addNode('node', 'zone'));
  for (const [path, body] of OBJECTS) await make(path, body);
  return cluster;
}

for (const who of ['controllers', 'servers'] as const) {
  test(`a namespace is deleted although ${who} begin anew after each change`, async () => {
    const cluster = await clusterWithWork();
    let manager = managerOf(cluster);
    await cluster.advance(30_000);
    const pods = await answered(cluster, cluster.ask('GET', `${CORE}/pods`));
    assert(pods.ok && listAt(pods.object, 'items').length === 4, 'there is work');
    let isChanged = false;
    cluster.faultOf = ({ method }) => {
      // what is made in a namespace that goes is refused anyway
      if (method === 'GET' || method === 'POST') return 'none';
      // whoever ended says nothing more
      if (isChanged) return 'unreachable';
      isChanged = true;
      return 'lost';
    };
    const deleted = await answered(cluster, cluster.ask('DELETE', '/api/v1/namespaces/work'));
    assert(deleted.ok);
    let steps = 0;
    for (let isThere = true; isThere; steps++) {
      assert(steps < STEPS_MAX, 'it never ends');
      for (let waitedS = 0; !isChanged && waitedS < 120; waitedS++) await cluster.advance(1_000);
      if (who === 'servers') cluster.restart();
      else {
        manager.stop();
        manager = managerOf(cluster);
      }
      isChanged = false;
      const found = await answered(cluster, cluster.ask('GET', '/api/v1/namespaces/work'));
      isThere = found.ok;
    }
    assert(steps > 15, `${steps} steps`);
    const left = [
      ...LEFT.map((one) => `/api/v1/${one}`),
      ...LEFT_OF_APPS.map((one) => `/apis/apps/v1/${one}`),
    ];
    for (const path of left) {
      const found = await answered(cluster, cluster.ask('GET', path));
      assert(found.ok && listAt(found.object, 'items').length === 0, path);
    }
    manager.stop();
  });
}
