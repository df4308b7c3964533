/** Objects of kube-scheduler's own performance tests; `{i}` in a text is the object's number. */
import type { JsonObject } from '@megaplane/machinery/json-value';

const ZONE = 'topology.kubernetes.io/zone';
const HOST = 'kubernetes.io/hostname';
const SMALL = { cpu: '100m', memory: '500Mi' };
const LOW = { cpu: '900m', memory: '500Mi' };
const HIGH = { cpu: '3', memory: '500Mi' };
const OWN_RESOURCE = { 'foo.com/bar-{i}': '1' };
const NAMESPACES = ['sched-0', 'sched-1'];
const DEVOPS = { matchLabels: { team: 'devops' } };

/** An object to be made as often as wanted. */
export interface Template {
  readonly object: JsonObject;
  /** Dealt to the objects in turn; a text of the object in place of `{turn}`. */
  readonly turns?: readonly string[];
}

interface PodParts {
  readonly labels?: JsonObject;
  readonly finalizers?: string[];
  readonly requests?: JsonObject;
  readonly limits?: JsonObject;
  readonly spec?: JsonObject;
}

function podOf({ labels = {}, finalizers, requests, limits, spec = {} }: PodParts): Template {
  const resources = { ...(requests && { requests }), ...(limits && { limits }) };
  const ports = requests === undefined ? {} : { ports: [{ containerPort: 80 }] };
  const container = { name: 'pause', image: 'registry.k8s.io/pause:3.10.1', ...ports, resources };
  const metadata = { name: 'pod-{i}', labels, ...(finalizers && { finalizers }) };
  const object: JsonObject = {
    ...{ kind: 'Pod', apiVersion: 'v1', metadata },
    spec: { containers: [container], ...spec },
  };
  return { object };
}

function smallPod(labels: JsonObject, spec: JsonObject): Template {
  return podOf({ labels, requests: SMALL, limits: SMALL, spec });
}

type TermScope = { readonly namespaces: string[] } | { readonly namespaceSelector: JsonObject };

function term(color: string, topologyKey: string, scope: TermScope): JsonObject {
  return { labelSelector: { matchLabels: { color } }, topologyKey, ...scope };
}

function required(kind: string, color: string, topologyKey: string, scope: TermScope): Template {
  const rule = 'requiredDuringSchedulingIgnoredDuringExecution';
  const affinity = { [kind]: { [rule]: [term(color, topologyKey, scope)] } };
  return smallPod({ color }, { affinity });
}

function preferred(kind: string, color: string, scope: TermScope): Template {
  const rule = 'preferredDuringSchedulingIgnoredDuringExecution';
  const weighted = [{ podAffinityTerm: term(color, HOST, scope), weight: 1 }];
  return smallPod({ color }, { affinity: { [kind]: { [rule]: weighted } } });
}

function spread(whenUnsatisfiable: string): Template {
  const labelSelector = { matchLabels: { color: 'blue' } };
  const constraint = { maxSkew: 5, topologyKey: ZONE, whenUnsatisfiable, labelSelector };
  return smallPod({ color: 'blue' }, { topologySpreadConstraints: [constraint] });
}

function nodeWhere(term: JsonObject): JsonObject {
  const rule = 'requiredDuringSchedulingIgnoredDuringExecution';
  return { affinity: { nodeAffinity: { [rule]: { nodeSelectorTerms: [term] } } } };
}

const HERE = { namespaces: NAMESPACES };
const THERE = { namespaceSelector: DEVOPS };
const COLLECTED: JsonObject = { terminationGracePeriodSeconds: 0 };
const GATE: JsonObject = { schedulingGates: [{ name: 'test.k8s.io/hold' }] };
const INCLUDING: JsonObject = {
  topologySpreadConstraints: [
    {
      ...{ maxSkew: 1, topologyKey: HOST, whenUnsatisfiable: 'DoNotSchedule' },
      ...{ nodeAffinityPolicy: 'Honor', nodeTaintsPolicy: 'Honor' },
      labelSelector: { matchLabels: { foo: 'bar' } },
    },
  ],
};

type PodName =
  | 'plain'
  | 'light'
  | 'labelled'
  | 'pinned'
  | 'inZones'
  | 'low'
  | 'high'
  | 'tooLarge'
  | 'gated'
  | 'gatedTogether'
  | 'finalized'
  | 'apart'
  | 'green'
  | 'together'
  | 'ratherTogether'
  | 'ratherApart'
  | 'apartBySelector'
  | 'ratherApartBySelector'
  | 'togetherBySelector'
  | 'ratherTogetherBySelector'
  | 'spread'
  | 'ratherSpread'
  | 'including'
  | 'withSecret'
  | 'withClaim'
  | 'highWithClaim'
  | 'withDevice'
  | 'extended';

export const PODS: Readonly<Record<PodName, Template>> = {
  plain: smallPod({}, {}),
  light: podOf({ spec: COLLECTED }),
  labelled: podOf({ labels: { app: 'scheduler-perf' } }),
  pinned: podOf({
    spec: nodeWhere({
      matchFields: [{ key: 'metadata.name', operator: 'In', values: ['scheduler-perf-node'] }],
    }),
  }),
  inZones: smallPod(
    {},
    nodeWhere({ matchExpressions: [{ key: ZONE, operator: 'In', values: ['zone1', 'zone2'] }] }),
  ),
  low: podOf({ requests: LOW, limits: LOW, spec: COLLECTED }),
  high: podOf({ requests: HIGH, limits: HIGH, spec: { priority: 10 } }),
  tooLarge: podOf({ requests: { cpu: '9', memory: '500Mi' }, spec: { priority: 10 } }),
  gated: podOf({ spec: GATE }),
  gatedTogether: podOf({
    labels: { app: 'scheduler-perf' },
    spec: {
      ...GATE,
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { labelSelector: { matchLabels: { app: 'scheduler-perf' } }, topologyKey: HOST },
          ],
        },
      },
    },
  }),
  finalized: podOf({ finalizers: ['test.k8s.io/finalizer'] }),
  apart: required('podAntiAffinity', 'green', HOST, HERE),
  green: smallPod({ color: 'green' }, {}),
  together: required('podAffinity', 'blue', ZONE, HERE),
  ratherTogether: preferred('podAffinity', 'red', HERE),
  ratherApart: preferred('podAntiAffinity', 'yellow', HERE),
  apartBySelector: required('podAntiAffinity', 'green', HOST, THERE),
  ratherApartBySelector: preferred('podAntiAffinity', 'green', THERE),
  togetherBySelector: required('podAffinity', 'blue', ZONE, THERE),
  ratherTogetherBySelector: preferred('podAffinity', 'red', THERE),
  spread: spread('DoNotSchedule'),
  ratherSpread: spread('ScheduleAnyway'),
  including: smallPod({ foo: 'bar' }, INCLUDING),
  withSecret: smallPod({}, { volumes: [{ name: 'secret', secret: { secretName: 'secret' } }] }),
  withClaim: smallPod(
    {},
    { volumes: [{ name: 'vol', persistentVolumeClaim: { claimName: 'claim-{i}' } }] },
  ),
  highWithClaim: podOf({
    ...{ requests: HIGH, limits: HIGH },
    spec: {
      priority: 10,
      volumes: [{ name: 'vol', persistentVolumeClaim: { claimName: 'claim-{i}' } }],
    },
  }),
  extended: podOf({ limits: OWN_RESOURCE }),
  withDevice: {
    object: {
      ...{ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'pod-{i}' } },
      spec: {
        containers: [
          {
            ...{ name: 'pause', image: 'registry.k8s.io/pause:3.10.1' },
            resources: { claims: [{ name: 'resource' }] },
          },
        ],
        resourceClaims: [{ name: 'resource', resourceClaimName: 'claim-{i}' }],
      },
    },
  },
};

interface NodeParts {
  readonly name?: string;
  readonly pods?: string;
  readonly labels?: JsonObject;
  readonly spec?: JsonObject;
  readonly allocatable?: JsonObject;
  readonly turns?: readonly string[];
}

function nodeOf(parts: NodeParts): Template {
  const { name = 'scheduler-perf-{i}', pods = '110', labels = {}, spec = {}, turns } = parts;
  const capacity = { pods, cpu: '4', memory: '32Gi', ...parts.allocatable };
  const conditions = [{ type: 'Ready', status: 'True' }];
  const object: JsonObject = {
    ...{ kind: 'Node', apiVersion: 'v1', metadata: { name, labels: { [HOST]: name, ...labels } } },
    ...{ spec, status: { capacity, allocatable: capacity, conditions, phase: 'Running' } },
  };
  return turns === undefined ? { object } : { object, turns };
}

type NodeName =
  | 'plain'
  | 'named'
  | 'oneZone'
  | 'moons'
  | 'tainted'
  | 'withoutRoom'
  | 'attaching'
  | 'extended';

export const NODES: Readonly<Record<NodeName, Template>> = {
  plain: nodeOf({}),
  named: nodeOf({ name: 'scheduler-perf-node', pods: '90000' }),
  oneZone: nodeOf({ labels: { [ZONE]: 'zone1' } }),
  moons: nodeOf({ labels: { [ZONE]: '{turn}' }, turns: ['moon-1', 'moon-2', 'moon-3'] }),
  tainted: nodeOf({
    name: 'tainted-{i}',
    spec: { taints: [{ key: 'foo', effect: 'NoSchedule' }] },
  }),
  withoutRoom: nodeOf({ name: 'node-churn-{i}', pods: '0' }),
  attaching: nodeOf({ allocatable: { 'attachable-volumes-csi-ebs.csi.aws.com': '39' } }),
  extended: nodeOf({ allocatable: OWN_RESOURCE }),
};

/** What the driver of volumes tells of a node; `migrated`: plugins whose volumes it attaches. */
export function csiNode(migrated: string | null): Template {
  const name = 'scheduler-perf-{i}';
  const annotations = { 'storage.alpha.kubernetes.io/migrated-plugins': migrated };
  const metadata = migrated === null ? { name } : { name, annotations };
  const driver = { name: 'ebs.csi.aws.com', nodeID: name, allocatable: { count: 39 } };
  return {
    object: {
      ...{ kind: 'CSINode', apiVersion: 'storage.k8s.io/v1', metadata },
      spec: { drivers: [driver] },
    },
  };
}

export const SERVICES: { readonly spread: Template; readonly idle: Template } = {
  spread: serviceOf('service-{i}', 'scheduler-perf', 80),
  idle: serviceOf('service-churn-{i}', 'foo', 8080),
};

function serviceOf(name: string, app: string, port: number): Template {
  const spec = { selector: { app }, ports: [{ protocol: 'TCP', port, targetPort: 8000 }] };
  return { object: { kind: 'Service', apiVersion: 'v1', metadata: { name }, spec } };
}

export const NAMESPACE: Template = {
  object: {
    ...{ kind: 'Namespace', apiVersion: 'v1' },
    metadata: { name: '{name}', labels: { team: 'devops' } },
  },
};

/** A claim of `{namespace}` and the volume that it is bound to. */
export function volumeOf(source: JsonObject): readonly [Template, Template] {
  const common = { accessModes: ['ReadOnlyMany'] };
  const annotations = { 'pv.kubernetes.io/bind-completed': 'true' };
  const volume = 'volume-{namespace}-{i}';
  const reference = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: '{namespace}' };
  return [
    {
      object: {
        ...{ kind: 'PersistentVolume', apiVersion: 'v1', metadata: { name: volume } },
        spec: {
          ...common,
          ...{ capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain' },
          claimRef: { ...reference, name: 'claim-{i}', uid: 'claim-{i}' },
          ...source,
        },
      },
    },
    {
      object: {
        ...{ kind: 'PersistentVolumeClaim', apiVersion: 'v1' },
        metadata: { name: 'claim-{i}', annotations },
        spec: {
          ...common,
          ...{ resources: { requests: { storage: '1Gi' } }, volumeName: volume },
          storageClassName: '',
        },
      },
    },
  ];
}

export const CSI: JsonObject = {
  csi: { driver: 'ebs.csi.aws.com', volumeHandle: '{namespace}-{i}' },
};
export const IN_TREE: JsonObject = { awsElasticBlockStore: { volumeID: '{namespace}-{i}' } };

const DRIVER = 'test-driver.cdi.k8s.io';

export const DEVICE_CLASS: Template = {
  object: {
    ...{ kind: 'DeviceClass', apiVersion: 'resource.k8s.io/v1', metadata: { name: 'test-class' } },
    spec: { selectors: [{ cel: { expression: `device.driver == "${DRIVER}"` } }] },
  },
};

export const DEVICE_CLAIM: Template = {
  object: {
    ...{ kind: 'ResourceClaim', apiVersion: 'resource.k8s.io/v1', metadata: { name: 'claim-{i}' } },
    spec: {
      devices: { requests: [{ name: 'req-0', exactly: { deviceClassName: 'test-class' } }] },
    },
  },
};

/** What a driver tells of the devices of node number `{i}`. */
export function deviceSlice(devices: number): Template {
  const node = 'scheduler-perf-{i}';
  return {
    object: {
      ...{ kind: 'ResourceSlice', apiVersion: 'resource.k8s.io/v1', metadata: { name: node } },
      spec: {
        ...{ driver: DRIVER, nodeName: node },
        pool: { name: node, generation: 1, resourceSliceCount: 1 },
        devices: Array.from({ length: devices }, (_, index) => ({ name: `device-${index}` })),
      },
    },
  };
}
