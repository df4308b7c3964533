/**
 * Creates pods on any server, alone or as the pods of Deployments, Jobs or gangs.
 *
 *     node bench/pods.ts --kubeconfig F --count 100000
 *     node bench/pods.ts --kubeconfig F --count 100000 --shape deployment --per-workload 1000
 *
 * Single pods are owned by the first of them: deleting it lets the garbage collector remove all.
 */
import type { Client } from '@megaplane/client/client';
import { stringAt } from '@megaplane/machinery/json';
import { canonicalQuantity } from '@megaplane/machinery/quantity';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  flagsOf,
  LOAD,
  loadNumbers,
  namespaceOf,
  needed,
  prefixOf,
  usage,
  whole,
} from './load/flags.ts';
import { judgeCreate, openClients, printResult, runLoad, type Shot } from './load/requests.ts';
import { writeResults } from './harness.ts';

const SHAPES = ['pod', 'deployment', 'job', 'gang'] as const;
const values = flagsOf(
  {
    ...LOAD,
    prefix: { type: 'string', default: 'res-' },
    clients: { type: 'string', default: '12' },
    namespace: { type: 'string', default: 'default' },
    'scheduler-name': { type: 'string', default: 'default-scheduler' },
    /** Several sets are dealt in turn: `cpu=100m,memory=64Mi;cpu=2,memory=4Gi`. */
    requests: { type: 'string', default: 'cpu=100m,memory=64Mi' },
    image: { type: 'string', default: 'busybox' },
    /** Of pod, deployment, job, gang (Indexed Jobs whose pods name their group). */
    shape: { type: 'string', default: 'pod' },
    /** Pods of each Deployment, Job or gang. */
    'per-workload': { type: 'string', default: '100' },
  },
  'bench pods: creates pods on any server',
);
const shape = SHAPES.find((name) => name === values.shape);
if (shape === undefined) usage(`--shape: one of ${SHAPES.join(', ')} is needed`);
const perWorkload = whole('per-workload', values['per-workload'], 1);
const requests = values.requests.split(';').map((set) => {
  const pairs = set.split(',').map((text) => text.split('='));
  if (pairs.some((pair) => pair.length !== 2)) usage(`--requests: ${set} is not cpu=..,memory=..`);
  for (const [name, text = ''] of pairs) {
    const isQuantity = canonicalQuantity(text) !== undefined;
    if (!isQuantity) usage(`--requests: ${name}=${text} is no quantity, such as 100m or 64Mi`);
  }
  return Object.fromEntries(pairs) as JsonObject;
});
const numbers = loadNumbers(values);
const { first, count } = numbers;
prefixOf('prefix', values.prefix, first + count);
const base = `/namespaces/${namespaceOf(values.namespace)}`;
const TOLERATIONS = [
  { key: 'kwok.x-k8s.io/node', operator: 'Exists', effect: 'NoSchedule' },
  ...['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
    ...{ key, operator: 'Exists', effect: 'NoExecute' },
  })),
];

function spec(index: number): JsonObject {
  return {
    schedulerName: values['scheduler-name'],
    terminationGracePeriodSeconds: 1,
    tolerations: TOLERATIONS,
    containers: [
      {
        name: 'main',
        image: values.image,
        command: ['sleep', 'infinity'],
        resources: { requests: requests[index % requests.length] ?? {} },
      },
    ],
  };
}

function podShot(index: number, owner: string): Shot {
  const name = `${values.prefix}${index}`;
  const owners = [{ apiVersion: 'v1', kind: 'Pod', name: `${values.prefix}0`, uid: owner }];
  const labels = { app: 'res' };
  const metadata = { name, labels, ...(owner === '' ? {} : { ownerReferences: owners }) };
  const pod = { kind: 'Pod', apiVersion: 'v1', metadata, spec: spec(index) };
  return { method: 'POST', path: `/api/v1${base}/pods`, body: JSON.stringify(pod) };
}

function workloadShot(index: number, pods: number): Shot {
  const name = `${values.prefix}${index}`;
  const labels = { app: name };
  const template = { metadata: { labels }, spec: spec(index) };
  if (shape === 'deployment') {
    const own = { replicas: pods, selector: { matchLabels: labels }, template };
    const body = { kind: 'Deployment', apiVersion: 'apps/v1', metadata: { name }, spec: own };
    return { method: 'POST', path: `/apis/apps/v1${base}/deployments`, body: JSON.stringify(body) };
  }
  const group = shape === 'gang' ? { 'scheduling.x-k8s.io/pod-group': name } : {};
  const own = {
    parallelism: pods,
    completions: pods,
    ...(shape === 'gang' ? { completionMode: 'Indexed' } : {}),
    template: {
      metadata: { labels: { ...labels, ...group } },
      spec: { ...template.spec, restartPolicy: 'Never' },
    },
  };
  const body = { kind: 'Job', apiVersion: 'batch/v1', metadata: { name }, spec: own };
  return { method: 'POST', path: `/apis/batch/v1${base}/jobs`, body: JSON.stringify(body) };
}

/** The pod that owns all others; it is made if it is not there. */
async function ownerOf(
  client: Client,
): Promise<{ readonly uid: string; readonly isMade: boolean }> {
  const { path, body } = podShot(0, '');
  const made = await client.request({ method: 'POST', path, body: body ?? '' });
  const found = made.ok
    ? made
    : await client.request({ method: 'GET', path: `${path}/${values.prefix}0` });
  if (!found.ok) throw new Error(`the first pod: ${(made.ok ? found : made).status?.message}`);
  return { uid: stringAt(found.object, 'metadata', 'uid'), isMade: made.ok };
}

const clients = await openClients(
  needed('kubeconfig', values.kubeconfig),
  numbers.clients,
  numbers.inFlight,
);
const [client] = clients;
const none = { uid: '', isMade: false };
const owner = shape === 'pod' && client !== undefined ? await ownerOf(client) : none;
const found = await runLoad({
  clients,
  first,
  count: shape === 'pod' ? count : Math.ceil(count / perWorkload),
  patienceSeconds: numbers.patienceSeconds,
  rate: numbers.rate,
  what: shape === 'pod' ? 'pods' : `${shape}s`,
  shot: (index) =>
    shape === 'pod'
      ? podShot(index, index === 0 ? '' : owner.uid)
      : workloadShot(index, Math.min(perWorkload, count - (index - first) * perWorkload)),
  judge: judgeCreate,
});
// the owner was there already because this run made it
const own = owner.isMade && first === 0 ? 1 : 0;
const result = { ...found, done: found.done + own, already: found.already - own };
printResult(shape === 'pod' ? 'pods' : `${shape}s`, result);
const { done, seconds, latencyMs } = result;
writeResults(values.output, { shape, done, seconds, p99Ms: latencyMs.quantile(0.99) });
for (const one of clients) one.close();
