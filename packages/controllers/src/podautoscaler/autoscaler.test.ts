import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusOf } from '@megaplane/client/answer';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ControllersOptions } from '../framework/options.ts';
import { AUTOSCALER_RULES } from '../framework/autoscaler-rules.ts';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const AUTOSCALERS = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
const SYNC_MS = 15_000;

/** Answers scales of one Deployment and metrics, as the API server and a metrics server do. */
class ScaledApi extends WorkloadApi {
  replicas = 2;
  /** Processor use of each pod; undefined where nobody serves metrics. */
  use: string | undefined = '100m';
  isScaleRefused = false;
  conflicts = 0;

  memory = '50Mi';

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const [path = ''] = request.path.split('?');
    if (path.endsWith('/scale')) return this.#scale(request);
    if (path.startsWith('/apis/metrics.k8s.io/')) return this.#metrics();
    if (/^\/apis\/(custom|external)\.metrics/.test(path)) return this.#foreign(request.path);
    return super.request(request);
  }

  /** Answers of the custom and external metrics API by a part of their path. */
  readonly foreign: Map<string, readonly string[] | ClientResponse> = new Map();
  readonly asked: string[] = [];

  #foreign(path: string): ClientResponse {
    if (this.foreign.size === 0) return unserved('404 page not found');
    if (!path.includes('/namespaces/')) {
      const groupVersion = 'custom.metrics.k8s.io/v1beta2';
      return found({ kind: 'APIGroup', preferredVersion: { groupVersion } });
    }
    this.asked.push(path);
    const [, answer] = [...this.foreign].find(([part]) => path.includes(part)) ?? [];
    if (answer === undefined) return unserved('not here');
    if ('ok' in answer) return answer;
    const items = answer.map((value, i) => ({ describedObject: { name: `p${i}` }, value }));
    return found({ kind: 'MetricValueList', items });
  }

  #scale({ method, body }: ClientRequest): ClientResponse {
    if (method === 'PUT') {
      if (this.conflicts-- > 0) return refusal(409, 'the object has been modified');
      if (this.isScaleRefused) return refusal(500, 'the scale is refused');
      this.replicas = numberAt(
        isObject(body as JsonObject) ? (body as JsonObject) : {},
        'spec',
        'replicas',
      );
    }
    return found({
      kind: 'Scale',
      spec: { replicas: this.replicas },
      status: { replicas: this.replicas, selector: 'app=web' },
    });
  }

  #metrics(): ClientResponse {
    if (this.use === undefined) return unserved('404 page not found');
    const cpu = this.use;
    const items = this.all('/api/v1/pods').map((pod) => ({
      metadata: { name: stringAt(pod, 'metadata', 'name'), namespace: 'default' },
      timestamp: new Date(this.timers.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z'),
      window: '30s',
      containers: [{ name: 'c', usage: { cpu, memory: this.memory } }],
    }));
    return found({ kind: 'PodMetricsList', items });
  }

  /** As many ready pods as the target has. */
  async follow(): Promise<void> {
    const count = this.all('/api/v1/pods').length;
    for (let i = count; i < this.replicas; i++) await this.#addPod(i);
    for (let i = this.replicas; i < count; i++) {
      await super.request({ method: 'DELETE', path: `${CORE}/pods/p${i}`, body: {} });
    }
  }

  async #addPod(i: number): Promise<void> {
    const resources = { requests: { cpu: '100m' } };
    const past = new Date(this.timers.nowMs() - 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
    const body: JsonObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `p${i}`, labels: { app: 'web' } },
      spec: { containers: [{ name: 'c', resources }] },
      status: {
        phase: 'Running',
        startTime: past,
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: past }],
      },
    };
    await super.request({ method: 'POST', path: `${CORE}/pods`, body });
  }

  autoscaler(): JsonObject {
    return this.all('/apis/autoscaling/v2/horizontalpodautoscalers')[0] ?? {};
  }

  condition(type: string): string {
    const conditions = listAt(this.autoscaler(), 'status', 'conditions');
    const one = conditions.find((each) => stringAt(each, 'type') === type);
    return `${stringAt(one, 'status')} ${stringAt(one, 'reason')}: ${stringAt(one, 'message')}`;
  }
}

function found(object: JsonObject): ClientResponse {
  return { ok: true, code: 200, object, bytes: Buffer.from(JSON.stringify(object)) };
}

function refusal(code: number, message: string): ClientResponse {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    code,
  } as const;
  return { ok: false, code, status };
}

/** As the client tells of an answer that is no Status. */
function unserved(text: string): ClientResponse {
  const bytes = Buffer.from(text);
  return { ok: false, code: 404, status: statusOf(404, bytes, 0, bytes.length) };
}

async function started(
  more: JsonObject = {},
  api = new ScaledApi(),
  flags: Partial<ControllersOptions> = {},
): Promise<ScaledApi> {
  await api.follow();
  startManager(api, ['horizontal-pod-autoscaler-controller'], flags);
  await api.advance(100);
  await make(api, 'web', more);
  await api.advance(SYNC_MS - 1_000);
  // Nobody looks earlier than upstream does.
  assert.equal(api.condition('AbleToScale'), ' : ');
  await api.advance(1_500);
  return api;
}

async function make(api: ScaledApi, name: string, more: JsonObject = {}): Promise<void> {
  const resource = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } };
  const body = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      minReplicas: 1,
      maxReplicas: 10,
      metrics: [{ type: 'Resource', resource }],
      ...more,
    },
  };
  await api.request({ method: 'POST', path: AUTOSCALERS, body });
}

async function pass(api: ScaledApi, looks: number): Promise<void> {
  for (let i = 0; i < looks; i++) {
    await api.follow();
    await api.advance(SYNC_MS);
  }
}

test('pods that use twice their target are doubled, up to the largest size', async () => {
  const api = await started();
  assert.equal(api.replicas, 4);
  assert(
    api.events.includes(
      'SuccessfulRescale: New size: 4; reason: cpu resource utilization ' +
        '(percentage of request) above target',
    ),
  );
  assert.equal(
    api.condition('AbleToScale'),
    'True SucceededRescale: the HPA controller was able to update the target scale to 4',
  );
  await pass(api, 4);
  assert.equal(api.replicas, 10);
  assert.equal(
    api.condition('ScalingLimited'),
    'True TooManyReplicas: the desired replica count is more than the maximum replica count',
  );
  const current = objectAt(
    listAt(api.autoscaler(), 'status', 'currentMetrics')[0],
    'resource',
    'current',
  );
  assert.deepEqual(current, { averageValue: '100m', averageUtilization: 100 });
  assert.equal(numberAt(api.autoscaler(), 'status', 'desiredReplicas'), 10);
});

test('a size within the tolerance is kept, and a smaller one waits for the window', async () => {
  const api = await started();
  await pass(api, 4);
  api.use = '54m';
  await pass(api, 30);
  assert.equal(api.replicas, 10, '54 % is within a tenth of 50 %');
  api.use = '10m';
  await pass(api, 10);
  assert.equal(api.replicas, 10, 'what was asked for in the last five minutes counts');
  assert.equal(api.condition('AbleToScale').split(':')[0], 'True ScaleDownStabilized');
  await pass(api, 15);
  assert.equal(api.replicas, 2);
  assert(api.events.includes('SuccessfulRescale: New size: 2; reason: All metrics below target'));
});

test('tolerance and window are those of the flags', async () => {
  const autoscaler = { ...AUTOSCALER_RULES, tolerance: 0.02, downscaleWindowMs: 60_000 };
  const api = await started({}, new ScaledApi(), { autoscaler });
  await pass(api, 4);
  api.use = '45m';
  await pass(api, 3);
  assert.equal(api.replicas, 10, 'a minute is not over');
  await pass(api, 2);
  assert.equal(api.replicas, 9, '45 % is within a tenth of 50 %, and not within a fiftieth');
});

test('a behaviour bounds the speed in both directions', async () => {
  const policies = [{ type: 'Pods', value: 1, periodSeconds: 60 }];
  const rules = { policies, selectPolicy: 'Max', stabilizationWindowSeconds: 0 };
  const api = await started({ behavior: { scaleUp: rules, scaleDown: rules } });
  assert.equal(api.replicas, 3);
  await pass(api, 3);
  assert.equal(api.replicas, 3, 'one pod in a minute');
  assert.equal(api.condition('ScalingLimited').split(':')[0], 'True ScaleUpLimit');
  await pass(api, 2);
  assert.equal(api.replicas, 4);
  api.use = '50m';
  await pass(api, 5);
  api.use = '1m';
  await pass(api, 3);
  assert.equal(api.replicas, 3);
  await pass(api, 8);
  assert.equal(api.replicas, 1);
});

test('without metrics nothing moves, and the conditions and events say why', async () => {
  const api = await started();
  await pass(api, 1);
  const { replicas } = api;
  api.use = undefined;
  await pass(api, 4);
  assert.equal(api.replicas, replicas);
  const why =
    'failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch ' +
    'metrics from resource metrics API: the server could not find the requested resource ' +
    '(get pods.metrics.k8s.io)';
  assert.equal(
    api.condition('ScalingActive'),
    `False FailedGetResourceMetric: the HPA was unable to compute the replica count: ${why}`,
  );
  assert(api.events.includes(`FailedGetResourceMetric: ${why}`));
  assert(
    api.events.includes(
      'FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: ' +
        `failed to get cpu resource metric value: ${why}`,
    ),
  );
  assert.deepEqual(listAt(api.autoscaler(), 'status', 'currentMetrics'), [{ type: '' }]);
});

test('metrics of APIs that nobody serves are told of in the words of upstream', async () => {
  const target = { type: 'AverageValue', averageValue: '5' };
  const custom = 'unable to fetch metrics from custom metrics API: no custom metrics API';
  const text = `${custom} (custom.metrics.k8s.io) registered`;
  const why = 'the HPA was unable to compute the replica count';
  const pods = { type: 'Pods', pods: { metric: { name: 'rps' }, target } };
  const api = await started({ metrics: [pods] });
  await pass(api, 2);
  const said = `unable to get metric rps: ${text}`;
  assert.equal(api.condition('ScalingActive'), `False FailedGetPodsMetric: ${why}: ${said}`);
  const whole = `failed to get pods metric value: ${said}`;
  const first = 'invalid metrics (1 invalid out of 1), first error is';
  assert(api.events.includes(`FailedComputeMetricsReplicas: ${first}: ${whole}`));

  const describedObject = { apiVersion: 'v1', kind: 'Service', name: 's' };
  const object = { type: 'Object', object: { metric: { name: 'q' }, describedObject, target } };
  const other = await started({ metrics: [object] });
  await pass(other, 2);
  const mixed = `unable to get metric q: Service on default s/${text}`;
  assert.equal(other.condition('ScalingActive'), `False FailedGetObjectMetric: ${why}: ${mixed}`);

  const metric = { name: 'e', selector: { matchLabels: { a: 'b' } } };
  const external = {
    type: 'External',
    external: { metric, target: { type: 'Value', value: '5' } },
  };
  const third = await started({ metrics: [external] });
  await pass(third, 2);
  const selector =
    '&LabelSelector{MatchLabels:map[string]string{a: b,},' +
    'MatchExpressions:[]LabelSelectorRequirement{},}';
  const last =
    `unable to get external metric default/e/${selector}: unable to fetch metrics from external ` +
    'metrics API: the server could not find the requested resource ' +
    '(get e.external.metrics.k8s.io)';
  assert.equal(third.condition('ScalingActive'), `False FailedGetExternalMetric: ${why}: ${last}`);
});

test('a refused scale is told, and tried again at the next look', async () => {
  const api = new ScaledApi();
  api.isScaleRefused = true;
  await api.follow();
  startManager(api, ['horizontal-pod-autoscaler-controller']);
  await api.advance(100);
  await make(api, 'web');
  await api.advance(SYNC_MS + 500);
  assert.equal(
    api.condition('AbleToScale'),
    'False FailedUpdateScale: the HPA controller was unable to update the target scale: ' +
      'the scale is refused',
  );
  api.isScaleRefused = false;
  await pass(api, 1);
  assert.equal(api.replicas, 4);
});

test('two autoscalers after the same pods both stand still', async () => {
  const api = await started();
  await make(api, 'other');
  await pass(api, 2);
  const { replicas } = api;
  await pass(api, 4);
  assert.equal(api.replicas, replicas);
  assert.equal(api.condition('ScalingActive').split(':')[0], 'False AmbiguousSelector');
});

test('sizes outside the bounds are brought inside, and zero switches scaling off', async () => {
  const api = await started({ maxReplicas: 1 });
  assert.equal(api.replicas, 1);
  assert(
    api.events.includes(
      'SuccessfulRescale: New size: 1; reason: Current number of replicas above Spec.MaxReplicas',
    ),
  );
  api.replicas = 0;
  await pass(api, 3);
  assert.equal(api.replicas, 0);
  assert.equal(
    api.condition('ScalingActive'),
    'False ScalingDisabled: scaling is disabled since the replica count of the target is zero',
  );
});

test('memory is shown in powers of 1024; a container that no pod has is no metric', async () => {
  const target = { type: 'AverageValue', averageValue: '100Mi' };
  const api = await started({
    metrics: [{ type: 'Resource', resource: { name: 'memory', target } }],
  });
  const average = (): string => {
    const [metric] = listAt(api.autoscaler(), 'status', 'currentMetrics');
    return stringAt(metric, 'resource', 'current', 'averageValue');
  };
  assert.equal(average(), '50Mi');
  api.memory = '3000001';
  await pass(api, 2);
  assert.equal(average(), '3000001');
  const share = { type: 'Utilization', averageUtilization: 50 };
  const containerResource = { name: 'cpu', container: 'x', target: share };
  const other = await started({
    metrics: [{ type: 'ContainerResource', containerResource }],
  });
  assert.equal(
    other.condition('ScalingActive'),
    'False FailedGetContainerResourceMetric: the HPA was unable to compute the replica count: ' +
      'failed to get cpu utilization: did not receive metrics for targeted pods (pods might be ' +
      'unready)',
  );
});

/** An autoscaler of one metric of another API. */
async function scaledBy(
  metric: JsonObject,
  answers: Readonly<Record<string, readonly string[] | ClientResponse>>,
  more: JsonObject = {},
): Promise<ScaledApi> {
  const api = new ScaledApi();
  for (const [part, answer] of Object.entries(answers)) api.foreign.set(part, answer);
  return started({ metrics: [metric], ...more }, api);
}

const currentMetric = (api: ScaledApi): unknown =>
  listAt(api.autoscaler(), 'status', 'currentMetrics')[0];

test('metrics of pods count as upstream counts them', async () => {
  const target = { type: 'AverageValue', averageValue: '500m' };
  const metric = { name: 'rps', selector: { matchLabels: { b: 'c', a: 'b' } } };
  const api = await scaledBy({ type: 'Pods', pods: { metric, target } }, { '/rps': ['1', '500m'] });
  assert.equal(
    api.asked[0],
    '/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/rps' +
      '?labelSelector=app%3Dweb&metricLabelSelector=a%3Db%2Cb%3Dc',
  );
  assert.equal(api.replicas, 3);
  assert.deepEqual(currentMetric(api), {
    type: 'Pods',
    pods: { metric, current: { averageValue: '750m' } },
  });
  assert(
    api.events.includes('SuccessfulRescale: New size: 3; reason: pods metric rps above target'),
  );
});

test('a metric of an object is a value, or an average over the pods that there are', async () => {
  const described = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'main' };
  const of = (target: JsonObject, describedObject: JsonObject = described): JsonObject => ({
    type: 'Object',
    object: { describedObject, metric: { name: 'q' }, target },
  });
  const value = { type: 'Value', value: '100' };
  const api = await scaledBy(of(value), { '/q': ['150'] });
  const root = '/apis/custom.metrics.k8s.io/v1beta2/namespaces/default';
  assert.equal(api.asked[0], `${root}/ingresses.networking.k8s.io/main/q`);
  assert.equal(api.replicas, 3);
  assert(api.events.some((one) => one.endsWith('reason: Ingress metric q above target')));

  const average = await scaledBy(of({ type: 'AverageValue', averageValue: '100' }), {
    '/q': ['310'],
  });
  assert.equal(average.replicas, 4);
  const current = objectAt(average.autoscaler(), 'status');
  assert.deepEqual(listAt(current, 'currentMetrics')[0], {
    type: 'Object',
    object: { describedObject: described, metric: { name: 'q' }, current: { averageValue: '155' } },
  });

  const namespace = { apiVersion: 'v1', kind: 'Namespace', name: 'ignored' };
  const whole = await scaledBy(of(value, namespace), { '/q': ['105'] });
  assert.equal(whole.asked[0], `${root}/metrics/q`);
  assert.equal(whole.replicas, 2, 'within the tolerance');

  const two = await scaledBy(of(value), { '/q': ['1', '2'] });
  const text = 'the custom metrics API server returned 2 results when we asked for exactly one';
  assert(
    two
      .condition('ScalingActive')
      .endsWith(`Ingress on default main/unable to fetch metrics from custom metrics API: ${text}`),
  );
});

test('values of an external metric are added up', async () => {
  const of = (target: JsonObject): JsonObject => ({
    type: 'External',
    external: { metric: { name: 'e' }, target },
  });
  const value = of({ type: 'Value', value: '100' });
  const api = await scaledBy(value, { '/e': ['100', '40'] });
  assert.equal(api.asked[0], '/apis/external.metrics.k8s.io/v1beta1/namespaces/default/e');
  assert.equal(api.replicas, 3);
  assert(
    api.events.includes(
      'SuccessfulRescale: New size: 3; reason: external metric e(nil) above target',
    ),
  );
  const huge = await scaledBy(value, { '/e': ['9E', '9E'] });
  assert.equal(huge.replicas, 2, 'what 64 bits do not hold in thousandths is nothing');
  const average = await scaledBy(of({ type: 'AverageValue', averageValue: '100' }), {
    '/e': ['330'],
  });
  assert.equal(average.replicas, 4);
  const why = 'unable to fetch metrics from external metrics API';
  const none = await scaledBy(value, { '/e': [] });
  assert(none.condition('ScalingActive').endsWith('no metrics returned from external metrics API'));
  const gone = await scaledBy(value, { '/other': [] });
  const text = 'the server could not find the requested resource (get e.external.metrics.k8s.io)';
  assert(gone.condition('ScalingActive').endsWith(`${why}: ${text}`));
  const said = await scaledBy(value, { '/e': refusal(404, 'no such metric') });
  assert(said.condition('ScalingActive').endsWith(`${why}: no such metric`));
});

test('a conflict over the scale is settled at once', async () => {
  const api = new ScaledApi();
  api.conflicts = 2;
  await started({}, api);
  assert.equal(api.replicas, 4);
  assert.equal(api.condition('AbleToScale').split(':')[0], 'True SucceededRescale');
});
