import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import fc from 'fast-check';
import { WorkloadApi } from '../../test/workload-api.ts';
import { Manager } from './manager.ts';
import { chosenControllers } from '../framework/options.ts';

const NAMES = ['replicaset-controller', 'deployment-controller', 'endpointslice-controller'];
const MERGE = 'application/merge-patch+json';
const APPS = '/apis/apps/v1/namespaces/default';
const CORE = '/api/v1/namespaces/default';
const SETS = '/apis/apps/v1/replicasets';
const PODS = '/api/v1/pods';

function startManager(api: WorkloadApi): Manager {
  const chosen = chosenControllers([...NAMES, 'endpoints-controller']);
  assert(typeof chosen !== 'string');
  const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
  const manager = new Manager({
    client: api,
    chosen,
    options: { kubeconfig: '', log },
    rootCa: '',
    random: new Random(1),
    monotonicMs: () => api.timers.nowMs(),
    log,
  });
  manager.start();
  return manager;
}

function deployment(replicas: number, strategy: JsonObject): JsonObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas,
      strategy,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'c', image: 'img:1' }] },
      },
    },
  };
}

function imageOf(image: string): JsonObject {
  return { spec: { template: { spec: { containers: [{ name: 'c', image }] } } } };
}

const ROLLING = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };

/** Lets time pass until nothing changes any more, with a kubelet that brings pods up. */
async function settle(api: WorkloadApi): Promise<void> {
  for (let quiet = 0, round = 0; quiet < 3 && round < 60; round++) {
    const before = api.log.length;
    await api.bringUp();
    await api.advance(70_000);
    quiet = api.log.length === before ? quiet + 1 : 0;
  }
}

async function change(api: WorkloadApi, body: JsonObject): Promise<void> {
  const path = `${APPS}/deployments/web`;
  const faultOf = api.faultOf;
  api.faultOf = () => 'none';
  const answer = await api.request({ method: 'PATCH', path, contentType: MERGE, body });
  api.faultOf = faultOf;
  assert(answer.ok);
}

function current(api: WorkloadApi): JsonObject {
  return api.all('/apis/apps/v1/deployments')[0] ?? {};
}

/** What must hold at rest, however it came about. */
function assertAtRest(api: WorkloadApi, replicas: number, image: string): void {
  const sets = api.all(SETS);
  const active = sets.filter((set) => numberAt(set, 'spec', 'replicas') > 0);
  assert.equal(active.length, replicas > 0 ? 1 : 0, 'one active set');
  const pods = api.all(PODS);
  assert.equal(pods.length, replicas, 'as many pods as wanted');
  for (const pod of pods) {
    assert.equal(stringAt(listAt(pod, 'spec', 'containers')[0], 'image'), image);
    assert.equal(listAt(pod, 'metadata', 'ownerReferences').length, 1);
  }
  const web = current(api);
  assert.equal(numberAt(web, 'status', 'replicas'), replicas);
  assert.equal(numberAt(web, 'status', 'availableReplicas'), replicas);
  assert.equal(
    numberAt(web, 'status', 'observedGeneration'),
    numberAt(web, 'metadata', 'generation'),
  );
  const hashes = sets.map((set) => stringAt(set, 'metadata', 'labels', 'pod-template-hash'));
  assert.equal(new Set(hashes).size, hashes.length, 'a hash for each set');
  const revisions = sets.map((set) =>
    stringAt(set, 'metadata', 'annotations', 'deployment.kubernetes.io/revision'),
  );
  assert.equal(new Set(revisions).size, revisions.length, 'a revision for each set');
}

test('a Deployment is made, updated, scaled and rolled back', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  await api.request({
    method: 'POST',
    path: `${APPS}/deployments`,
    body: deployment(4, ROLLING),
  });
  await settle(api);
  assertAtRest(api, 4, 'img:1');
  await change(api, imageOf('img:2'));
  await settle(api);
  assertAtRest(api, 4, 'img:2');
  await change(api, { spec: { replicas: 7 } });
  await settle(api);
  assertAtRest(api, 7, 'img:2');
  await change(api, imageOf('img:1'));
  await settle(api);
  assertAtRest(api, 7, 'img:1');
  assert.equal(api.all(SETS).length, 2, 'the first set serves again');
  const history = api
    .all(SETS)
    .map((set) => stringAt(set, 'metadata', 'annotations', 'deployment.kubernetes.io/revision'));
  assert.deepEqual(history.toSorted(), ['2', '3']);
  manager.stop();
});

test('a rollout tells of its set although the first status that does is lost', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  const body = deployment(2, { type: 'Recreate' });
  await api.request({ method: 'POST', path: `${APPS}/deployments`, body });
  await settle(api);
  let isMade = false;
  let lost = 0;
  api.faultOf = ({ method, path }) => {
    if (method === 'POST' && path === `${APPS}/replicasets`) isMade = true;
    const isTold = isMade && path === `${APPS}/deployments/web/status`;
    return isTold && lost++ === 0 ? 'conflict' : 'none';
  };
  await change(api, imageOf('img:2'));
  await settle(api);
  assertAtRest(api, 2, 'img:2');
  const [set] = api.all(SETS).filter((one) => numberAt(one, 'spec', 'replicas') > 0);
  const told = listAt(current(api), 'status', 'conditions').map((one) => stringAt(one, 'message'));
  const name = stringAt(set, 'metadata', 'name');
  assert(told.includes(`ReplicaSet "${name}" has successfully progressed.`), told.join());
  assert(lost > 1);
  manager.stop();
});

test('pods on their way out are told until they are gone', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  const { spec, ...web } = deployment(3, ROLLING);
  assert(isObject(spec));
  const metadata = { labels: { app: 'web' }, finalizers: ['example.com/held'] };
  const template = { ...objectAt(spec, 'template'), metadata };
  await api.request({
    method: 'POST',
    path: `${APPS}/deployments`,
    body: { ...web, spec: { ...spec, template } },
  });
  await settle(api);
  const told = (): unknown[] =>
    [...api.all(SETS), current(api)].map((one) => objectAt(one, 'status')?.['terminatingReplicas']);
  assert.deepEqual(told(), [0, 0]);
  await change(api, { spec: { replicas: 1 } });
  await settle(api);
  assert.deepEqual(told(), [2, 2]);
  const body = { metadata: { finalizers: null } };
  for (const pod of api.all(PODS)) {
    const path = `${CORE}/pods/${stringAt(pod, 'metadata', 'name')}`;
    if (stringAt(pod, 'metadata', 'deletionTimestamp') === '') continue;
    await api.request({ method: 'PATCH', path, contentType: MERGE, body });
  }
  await settle(api);
  assert.deepEqual(told(), [0, 0]);
  manager.stop();
});

test('a server that knows no count of pods on their way out is not told twice', async () => {
  const api = new (class extends WorkloadApi {
    override request(request: ClientRequest): Promise<ClientResponse> {
      const body = (request.body ?? {}) as JsonObject;
      if (!request.path.endsWith('/replicasets/r/status')) return super.request(request);
      const { terminatingReplicas: _, ...status } = objectAt(body, 'status') ?? {};
      return super.request({ ...request, body: { ...body, status } });
    }
  })();
  const manager = startManager(api);
  await api.advance(100);
  const { spec } = deployment(1, ROLLING);
  const { replicas, selector, template } = spec as JsonObject;
  const set = { replicas, selector, template };
  const body = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'r' }, spec: set };
  await api.request({ method: 'POST', path: `${APPS}/replicasets`, body });
  await settle(api);
  const before = api.log.length;
  const path = `${APPS}/replicasets/r`;
  const patch = { metadata: { labels: { touched: 'yes' } } };
  await api.request({ method: 'PATCH', path, contentType: MERGE, body: patch });
  await settle(api);
  assert.equal(api.log.length, before + 1);
  manager.stop();
});

test('a rolling update keeps to its limits at every step', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  await api.request({
    method: 'POST',
    path: `${APPS}/deployments`,
    body: deployment(10, {
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 2, maxUnavailable: 3 },
    }),
  });
  await settle(api);
  await change(api, imageOf('img:2'));
  for (let step = 0; step < 40; step++) {
    await api.advance(1_000);
    const pods = api.all(PODS);
    const ready = pods.filter((pod) => listAt(pod, 'status', 'conditions').length > 0);
    assert(pods.length <= 12, `${pods.length} pods`);
    assert(ready.length >= 7, `${ready.length} ready`);
    await api.bringUp(1);
  }
  await settle(api);
  assertAtRest(api, 10, 'img:2');
  manager.stop();
});

test('two pods that become ready at once are two steps of a rolling update', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  const strategy = {
    type: 'RollingUpdate',
    rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' },
  };
  await api.request({
    method: 'POST',
    path: `${APPS}/deployments`,
    body: deployment(4, strategy),
  });
  await settle(api);
  await change(api, imageOf('img:2'));
  await api.advance(1_000);
  const fresh = api.all(PODS).filter((pod) => listAt(pod, 'status', 'conditions').length === 0);
  assert.equal(fresh.length, 2);
  api.holdWatches('/api/v1/pods');
  await api.bringUp();
  api.releaseWatches();
  await settle(api);
  assertAtRest(api, 4, 'img:2');
  const [old, last] = api
    .all(SETS)
    .toSorted((a, b) => numberAt(a, 'spec', 'replicas') - numberAt(b, 'spec', 'replicas'));
  assert.equal(numberAt(old, 'metadata', 'generation'), 5, 'from 4 to 3, 2, 1 and 0');
  assert.equal(numberAt(last, 'metadata', 'generation'), 4, 'from 1 to 2, 3 and 4');
  manager.stop();
});

/** Whoever resizes a set hears of it two seconds later. */
class SlowApi extends WorkloadApi {
  override async request(request: ClientRequest): Promise<ClientResponse> {
    const answer = await super.request(request);
    const isResize = request.method === 'PATCH' && /\/replicasets\/[^/]+$/.test(request.path);
    if (isResize) await new Promise<void>((resolve) => this.timers.after(2_000, resolve));
    return answer;
  }
}

test('pods that become ready while a step is under way are a step each', async () => {
  const api = new SlowApi();
  const manager = startManager(api);
  await api.advance(100);
  await api.request({ method: 'POST', path: `${APPS}/deployments`, body: deployment(4, ROLLING) });
  await settle(api);
  await change(api, imageOf('img:2'));
  const fresh = (): number =>
    api.all(PODS).filter((pod) => listAt(pod, 'status', 'conditions').length === 0).length;
  while (fresh() < 2) await api.advance(10);
  for (let pod = 0; pod < 2; pod++) {
    await api.bringUp(1);
    await api.advance(20);
  }
  await settle(api);
  assertAtRest(api, 4, 'img:2');
  const generations = api.all(SETS).map((set) => numberAt(set, 'metadata', 'generation'));
  assert.deepEqual(generations, [5, 4], 'from 4 to 3, 2, 1 and 0; from 1 to 2, 3 and 4');
  manager.stop();
});

test('more rollouts than workers take as many steps as each alone', async () => {
  const api = new SlowApi();
  const manager = startManager(api);
  await api.advance(100);
  const text = JSON.stringify(deployment(4, ROLLING));
  const names = Array.from({ length: 6 }, (_, index) => `web-${index}`);
  for (const name of names) {
    const body = text.replaceAll('"web"', `"${name}"`);
    await api.request({ method: 'POST', path: `${APPS}/deployments`, body });
  }
  await settle(api);
  for (const name of names) {
    const path = `${APPS}/deployments/${name}`;
    await api.request({ method: 'PATCH', path, contentType: MERGE, body: imageOf('img:2') });
  }
  const fresh = (): number =>
    api.all(PODS).filter((pod) => listAt(pod, 'status', 'conditions').length === 0).length;
  while (fresh() < 2 * names.length) await api.advance(10);
  while (fresh() > 0) {
    await api.bringUp(1);
    await api.advance(1);
  }
  await settle(api);
  const generations = api.all(SETS).map((set) => numberAt(set, 'metadata', 'generation'));
  assert.deepEqual(
    generations.toSorted((a, b) => a - b),
    [...names.map(() => 4), ...names.map(() => 5)],
  );
  manager.stop();
});

test('while a status is on its way each pod that becomes ready gets one of its own', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  const { spec } = deployment(3, ROLLING);
  assert(isObject(spec));
  const { replicas, selector, template } = spec;
  const set = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'web' } };
  const written: string[] = [];
  api.faultOf = ({ path, body }) => {
    if (path.endsWith('/replicasets/web/status')) {
      const { replicas: count, readyReplicas: ready } =
        objectAt(body as JsonObject, 'status') ?? {};
      written.push([count, ready].map((one) => (typeof one === 'number' ? one : '-')).join(' '));
    }
    return 'none';
  };
  api.holdWatches(SETS);
  await api.request({
    method: 'POST',
    path: `${APPS}/replicasets`,
    body: { ...set, spec: { replicas, selector, template } },
  });
  api.releaseWatches();
  api.holdWatches(SETS);
  await api.advance(1_000);
  assert.deepEqual(written, ['0 -'], 'the status of before there were pods is not seen yet');
  api.holdWatches('/api/v1/pods');
  await api.bringUp();
  api.releaseWatches();
  await settle(api);
  assert.deepEqual(written.slice(1), ['3 -', '- 1', '- 2', '- 3']);
  manager.stop();
});

test('what was answered is never made twice while the watch is silent', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api);
  await api.advance(100);
  const { spec } = deployment(3, ROLLING);
  const { replicas, selector, template } = spec as JsonObject;
  const set = { replicas, selector, template };
  const body = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'r' }, spec: set };
  await api.request({ method: 'POST', path: `${APPS}/replicasets`, body });
  const made = (): number => api.log.filter((line) => line === `POST ${CORE}/pods`).length;
  api.holdWatches(PODS);
  while (made() === 0) await api.advance(1);
  const patch = { metadata: { labels: { touched: 'yes' } } };
  const path = `${APPS}/replicasets/r`;
  for (let touch = 0; touch < 5; touch++) {
    await api.request({ method: 'PATCH', path, contentType: MERGE, body: patch });
    await api.advance(10_000);
  }
  assert.equal(made(), 3);
  api.releaseWatches();
  await settle(api);
  assert.equal(made(), 3);
  manager.stop();
});

type Step =
  | { readonly kind: 'scale'; readonly replicas: number }
  | { readonly kind: 'image'; readonly image: string }
  | { readonly kind: 'pause'; readonly paused: boolean }
  | { readonly kind: 'kill' }
  | { readonly kind: 'silence' }
  | { readonly kind: 'speech' }
  | { readonly kind: 'restart' }
  | { readonly kind: 'pass'; readonly seconds: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('scale' as const), replicas: fc.integer({ min: 0, max: 9 }) }),
  fc.record({ kind: fc.constant('image' as const), image: fc.constantFrom('img:1', 'img:2') }),
  fc.record({ kind: fc.constant('pause' as const), paused: fc.boolean() }),
  fc.constantFrom({ kind: 'kill' as const }, { kind: 'silence' as const }),
  fc.constant({ kind: 'speech' as const }),
  fc.constant({ kind: 'restart' as const }),
  fc.record({ kind: fc.constant('pass' as const), seconds: fc.integer({ min: 0, max: 30 }) }),
);

/** Deletes a pod as a user would. */
async function kill(api: WorkloadApi): Promise<void> {
  const name = stringAt(api.all(PODS)[0], 'metadata', 'name');
  if (name !== '') await api.request({ method: 'DELETE', path: `${CORE}/pods/${name}` });
}

async function play(steps: readonly Step[], strategy: JsonObject, seed: number): Promise<void> {
  const api = new WorkloadApi();
  const random = new Random(seed);
  let manager = startManager(api);
  await api.advance(100);
  await api.request({
    method: 'POST',
    path: `${APPS}/deployments`,
    body: deployment(3, strategy),
  });
  api.faultOf = () => (['conflict', 'refused', 'lost'] as const)[random.below(12)] ?? 'none';
  for (const one of steps) {
    if (one.kind === 'scale') await change(api, { spec: { replicas: one.replicas } });
    else if (one.kind === 'image') await change(api, imageOf(one.image));
    else if (one.kind === 'pause') await change(api, { spec: { paused: one.paused } });
    else if (one.kind === 'kill') await kill(api);
    else if (one.kind === 'silence') api.holdWatches();
    else if (one.kind === 'speech') api.releaseWatches();
    else if (one.kind === 'pass') await api.advance(one.seconds * 1_000);
    else {
      manager.stop();
      manager = startManager(api);
    }
    await api.advance(random.below(50));
    await api.bringUp(random.below(4));
  }
  api.faultOf = () => 'none';
  api.releaseWatches();
  await change(api, { spec: { paused: false, replicas: 5 } });
  await change(api, imageOf('img:9'));
  await settle(api);
  assertAtRest(api, 5, 'img:9');
  manager.stop();
}

test('any schedule of changes, refusals, silence and restarts ends in the same state', async () => {
  const strategies = fc.constantFrom<JsonObject>(ROLLING, { type: 'Recreate' });
  const numRuns = process.env['MEGAPLANE_LONG'] === '1' ? 500 : 25;
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 12 }), strategies, fc.nat(), play), {
    numRuns,
  });
});
