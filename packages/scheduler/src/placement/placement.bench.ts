// Decisions per second and memory, without an API server.
//
//   npx node packages/scheduler/src/placement/placement.bench.ts [NODES] [PODS] [SHAPE] [SETS]
//
// SHAPE: best-effort (one class without requests), templated (four classes), random (each pod its
// own requests), unschedulable (every tenth pod fits nowhere), deployment (pods of ReplicaSets,
// spread over hosts and zones by default), host-anti-affinity and zone-affinity (required, of pods
// of one set to each other), zone-spread (DoNotSchedule), preferred-affinity (a zone),
// preemption (nodes are full; every pod evicts), daemon (each pod names a node). SETS: sets of pods
// that belong together.
import { SchedulerCore } from '../core/scheduler-core.ts';
import type { NodeObject, OwnerObject } from '../api/objects.ts';

const nodes = Number(process.argv[2] ?? 100_000);
const pods = Number(process.argv[3] ?? 100_000);
const shape = process.argv[4] ?? 'templated';
const sets = Number(process.argv[5] ?? 1);
const VARIANTS = shape === 'daemon' ? pods : Math.max(1000, sets);
const ZONE = 'topology.kubernetes.io/zone';
const HOST = 'kubernetes.io/hostname';

function nodeObject(index: number): NodeObject {
  const name = `node-${index}`;
  return {
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'topology.kubernetes.io/zone': `zone-${'abc'[index % 3]}`,
      },
    },
    spec: {},
    status: { allocatable: { cpu: '32', memory: '256Gi', pods: '110' } },
  };
}

function requestsOf(index: number): object {
  if (shape === 'best-effort') return {};
  if (shape === 'preemption') return { cpu: '16', memory: '1Gi' };
  if (shape === 'random') {
    const cpu = 10 + ((index * 7919) % 3990);
    return { cpu: `${cpu}m`, memory: `${16 + ((index * 104_729) % 16_368)}Mi` };
  }
  if (shape === 'unschedulable' && index % 10 === 0) return { cpu: '64', memory: '1Gi' };
  const [cpu, memory] = [
    ['100m', '500Mi'],
    ['1', '2Gi'],
    ['250m', '4Gi'],
    ['2', '1Gi'],
  ][index % 4] ?? ['1', '1Gi'];
  return { cpu, memory };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** What a pod says about others of its set, or about nodes. */
function constraintsOf(app: string, index: number): object {
  const labelSelector = { matchLabels: { app } };
  const term = (topologyKey: string): object => ({ labelSelector, topologyKey });
  const required = (topologyKey: string): object => ({
    requiredDuringSchedulingIgnoredDuringExecution: [term(topologyKey)],
  });
  const rule = { maxSkew: 1, topologyKey: ZONE, whenUnsatisfiable: 'DoNotSchedule', labelSelector };
  const weighted = [{ weight: 1, podAffinityTerm: term(ZONE) }];
  switch (shape) {
    case 'host-anti-affinity':
      return { affinity: { podAntiAffinity: required(HOST) } };
    case 'zone-affinity':
      return { affinity: { podAffinity: required(ZONE) } };
    case 'zone-spread':
      return { topologySpreadConstraints: [rule] };
    case 'preferred-affinity': {
      const podAffinity = { preferredDuringSchedulingIgnoredDuringExecution: weighted };
      return { affinity: { podAffinity } };
    }
    case 'daemon': {
      const values = [`node-${index % nodes}`];
      const matchFields = [{ key: 'metadata.name', operator: 'In', values }];
      const nodeSelectorTerms = [{ matchFields }];
      const nodeAffinity = {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
      };
      return { affinity: { nodeAffinity } };
    }
    default:
      return {};
  }
}

function ownersOf(set: number): object {
  if (shape !== 'deployment') return {};
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `web-${set}`, controller: true };
  return { ownerReferences: [owner] };
}

function podBytes(index: number, nodeName = ''): Buffer {
  const set = index % sets;
  const app = `app-${set}`;
  const isVictim = nodeName !== '';
  return Buffer.from(
    JSON.stringify({
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: {
        name: `res-${index}`,
        namespace: 'default',
        uid: `${hex(index, 8)}-0000-4000-8000-000000000000`,
        creationTimestamp: '2030-01-01T00:00:00Z',
        labels: { app },
        ...ownersOf(set),
      },
      spec: {
        ...(isVictim ? { nodeName } : {}),
        ...constraintsOf(app, index),
        containers: [
          {
            name: 'c',
            image: 'pause',
            resources: { requests: requestsOf(index) },
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            imagePullPolicy: 'IfNotPresent',
          },
        ],
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 1,
        dnsPolicy: 'ClusterFirst',
        serviceAccountName: 'default',
        securityContext: {},
        schedulerName: 'default-scheduler',
        priority: shape === 'preemption' && !isVictim ? 10 : 0,
        enableServiceLinks: true,
        preemptionPolicy: 'PreemptLowerPriority',
      },
      status: { phase: 'Pending', qosClass: 'Burstable' },
    }),
  );
}

/** CPU seconds of a piece of work: on a shared machine they say more than the clock. */
function cpuSeconds(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const core = new SchedulerCore({ seed: 1, keyOf: (id) => `default/res-${id}` });
for (let set = 0; set < sets; set++) {
  const selector = { matchLabels: { app: `app-${set}` } };
  const metadata = { name: `web-${set}`, namespace: 'default' };
  const replicaSet: OwnerObject = { metadata, spec: { selector } };
  core.objectSeen('ReplicaSet', replicaSet, 0);
}
const loaded = cpuSeconds(() => {
  for (let index = 0; index < nodes; index++) core.nodeSeen(nodeObject(index), 0);
});
if (shape === 'preemption') {
  for (let index = 0; index < nodes * 2; index++) {
    const pod = podBytes(0, `node-${index >> 1}`);
    core.podSeen(pods + index, true, pod, 0, pod.length, 1);
  }
}
const bytes = Array.from({ length: VARIANTS }, (_, index) => podBytes(index));
const taken = cpuSeconds(() => {
  for (let id = 0; id < pods; id++) {
    const pod = bytes[id % VARIANTS] ?? Buffer.alloc(0);
    core.podSeen(id, true, pod, 0, pod.length, 1);
  }
});
let bound = 0;
let failed = 0;
const decided = cpuSeconds(() => {
  for (let attempt = core.attempt(2); attempt !== null; attempt = core.attempt(2)) {
    if (attempt.kind === 'bind') bound++;
    else failed++;
  }
});
const { metrics } = core.placement;
const line = {
  nodes,
  pods,
  shape,
  sets,
  bound,
  failed,
  decisionsPerSecond: Math.round((bound + failed) / decided),
  microsecondsPerDecision: Number(((decided / (bound + failed)) * 1e6).toFixed(2)),
  podIntakePerSecond: Math.round(pods / taken),
  nodesPerSecond: Math.round(nodes / loaded),
  bytesPerNode: Math.round(core.nodes.memoryBytes / nodes),
  bytesPerPod: Math.round(core.pods.memoryBytes / pods),
  indexBytesPerNode: Math.round(core.placement.indexBytes / nodes),
  searched: metrics.searched,
  evaluated: metrics.evaluated,
  residentMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
};
process.stdout.write(`${JSON.stringify(line)}\n`);
