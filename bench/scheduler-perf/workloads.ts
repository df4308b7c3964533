/**
 * kube-scheduler's own performance tests (test/integration/scheduler_perf, those that its project
 * measures), as data. Thresholds are the pods per second below which its project raises an alarm.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import * as make from './templates.ts';
import type { Template } from './templates.ts';

export interface PodsStep {
  readonly kind: 'pods';
  readonly count: number;
  readonly pod: Template;
  /** Default: one of its own. */
  readonly namespace?: string;
  /** Number of the first, where a namespace has pods of several steps. */
  readonly first?: number;
  /** Made for each pod, before it. */
  readonly beside?: readonly Template[];
  readonly isMeasured?: boolean;
  /** Whether to go on before they have nodes. */
  readonly isLeft?: boolean;
}

export type Step =
  | PodsStep
  | { readonly kind: 'nodes'; readonly count: number; readonly node: Template }
  | { readonly kind: 'namespaces'; readonly prefix: string; readonly count: number }
  | {
      readonly kind: 'objects';
      readonly count: number;
      readonly object: Template;
      readonly namespace?: string;
    }
  /** Until the end: one of each every so often; the one before it goes where `isReplaced`. */
  | {
      readonly kind: 'churn';
      readonly everyMs: number;
      readonly isReplaced: boolean;
      readonly objects: readonly Template[];
    }
  /** Pods that come, are given nodes, and are gone before the next step. */
  | { readonly kind: 'passing'; readonly count: number; readonly pod: Template }
  | { readonly kind: 'delete'; readonly namespace: string; readonly perSecond: number };

export interface Workload {
  readonly name: string;
  /** Of pods per second, 0 for none. */
  readonly threshold: number;
  /** How many times the threshold is wanted. */
  readonly times: number;
  readonly steps: readonly Step[];
}

const FAST = 8;
const SLOW = 20;

function nodes(count: number, node: Template = make.NODES.plain): Step {
  return { kind: 'nodes', count, node };
}

function pods(count: number, pod: Template, rest: Partial<PodsStep> = {}): PodsStep {
  return { kind: 'pods', count, pod, ...rest };
}

function measured(count: number, pod: Template, rest: Partial<PodsStep> = {}): PodsStep {
  return pods(count, pod, { isMeasured: true, ...rest });
}

/** The pods that count come into a namespace beside the one of those that were there. */
function beside(name: string, threshold: number, first: readonly Step[], last: PodsStep): Workload {
  const scheduled: Step = { kind: 'namespaces', prefix: 'sched-', count: 2 };
  const own = { ...last, namespace: 'sched-1' };
  return { name, threshold, times: SLOW, steps: [scheduled, ...first, own] };
}

interface Crowd {
  readonly nodes: Step;
  readonly pod: Template;
  readonly perNamespace: number;
  readonly count: number;
}

/** A hundred namespaces that a selector selects, with pods in each. */
function crowd(name: string, threshold: number, parts: Crowd): Workload {
  const { pod, perNamespace, count } = parts;
  const steps: Step[] = [parts.nodes, { kind: 'namespaces', prefix: 'init-ns-', count: 100 }];
  for (let index = 0; index < 100; index++) {
    steps.push(pods(perNamespace, pod, { namespace: `init-ns-${index}` }));
  }
  steps.push({ kind: 'namespaces', prefix: 'measure-ns-', count: 1 });
  steps.push(measured(count, pod, { namespace: 'measure-ns-0' }));
  return { name, threshold, times: SLOW, steps };
}

interface Claiming {
  readonly source: JsonObject;
  readonly counts: readonly [number, number];
  /** Told by each node; null: nothing is. */
  readonly csiNode: Template | null;
}

/** Pods with a claim each, bound to a volume of its own. */
function claiming(name: string, threshold: number, { source, counts, csiNode }: Claiming) {
  const rest = { beside: make.volumeOf(source) };
  const [first, last] = counts;
  const pod = make.PODS.withClaim;
  const plain = [nodes(5000)];
  const attaching = (object: Template): Step[] => [
    nodes(5000, make.NODES.attaching),
    { kind: 'objects', count: 5000, object },
  ];
  const before = csiNode === null ? plain : attaching(csiNode);
  const steps = [...before, pods(first, pod, rest), measured(last, pod, rest)];
  return { name, threshold, times: SLOW, steps };
}

const { PODS, NODES } = make;
const init = { namespace: 'sched-0' };

const MISCELLANEOUS: readonly Workload[] = [
  {
    name: 'SchedulingBasic',
    threshold: 680,
    times: FAST,
    steps: [nodes(5000), pods(1000, PODS.plain), measured(10_000, PODS.plain)],
  },
  {
    name: 'SchedulingBasic50000',
    threshold: 810,
    times: FAST,
    steps: [nodes(5000), pods(5000, PODS.plain), measured(50_000, PODS.plain)],
  },
  {
    name: 'SchedulingDaemonset',
    threshold: 1100,
    times: FAST,
    steps: [nodes(1, NODES.named), nodes(15_000), measured(30_000, PODS.pinned)],
  },
  {
    name: 'PreemptionBasic',
    threshold: 0,
    times: SLOW,
    steps: [nodes(1000), pods(4000, PODS.low), measured(1000, PODS.high)],
  },
  {
    name: 'PreemptionAsync',
    threshold: 570,
    times: SLOW,
    steps: [
      nodes(5000),
      pods(20_000, PODS.low),
      { kind: 'churn', everyMs: 200, isReplaced: false, objects: [PODS.high] },
      measured(5000, PODS.plain),
    ],
  },
  {
    name: 'Unschedulable',
    threshold: 590,
    times: FAST,
    steps: [
      nodes(5000),
      pods(100, PODS.plain),
      { kind: 'churn', everyMs: 200, isReplaced: false, objects: [PODS.tooLarge] },
      measured(10_000, PODS.plain),
    ],
  },
  {
    name: 'Unschedulable20000',
    threshold: 600,
    times: FAST,
    steps: [
      nodes(5000),
      pods(20_000, PODS.plain),
      { kind: 'churn', everyMs: 200, isReplaced: false, objects: [PODS.tooLarge] },
      measured(10_000, PODS.plain),
    ],
  },
  {
    name: 'SchedulingWithMixedChurn',
    threshold: 710,
    times: FAST,
    steps: [
      nodes(5000),
      {
        ...{ kind: 'churn', everyMs: 1000, isReplaced: true },
        objects: [NODES.withoutRoom, PODS.tooLarge, make.SERVICES.idle],
      },
      measured(10_000, PODS.plain),
    ],
  },
  {
    name: 'SchedulingWhileGated',
    threshold: 910,
    times: FAST,
    steps: [
      nodes(1, NODES.named),
      pods(10_000, PODS.gated, { isLeft: true }),
      pods(20_000, PODS.light, { namespace: 'leaving' }),
      { kind: 'delete', namespace: 'leaving', perSecond: 50 },
      measured(20_000, PODS.light),
    ],
  },
  {
    name: 'SchedulingDeletedPodsWithFinalizers',
    threshold: 830,
    times: FAST,
    steps: [
      nodes(5000),
      pods(5000, PODS.finalized, { namespace: 'leaving', isLeft: true }),
      { kind: 'delete', namespace: 'leaving', perSecond: 100 },
      measured(5000, PODS.light),
    ],
  },
  {
    name: 'SchedulingWithExtendedResource',
    threshold: 180,
    times: SLOW,
    steps: [nodes(5000, NODES.extended), measured(5000, PODS.extended)],
  },
];

const AFFINITY: readonly Workload[] = [
  beside(
    'SchedulingPodAntiAffinity',
    60,
    [nodes(5000), pods(1000, PODS.apart, init)],
    measured(2000, PODS.apart),
  ),
  beside(
    'SchedulingPodMatchingAntiAffinity',
    595,
    [nodes(5000), pods(1000, PODS.apart, init)],
    measured(5000, PODS.green),
  ),
  beside(
    'SchedulingPodAffinity',
    35,
    [nodes(5000, NODES.oneZone), pods(5000, PODS.together, init)],
    measured(5000, PODS.together),
  ),
  beside(
    'SchedulingPreferredPodAffinity',
    90,
    [nodes(5000), pods(5000, PODS.ratherTogether, init)],
    measured(5000, PODS.ratherTogether),
  ),
  beside(
    'SchedulingPreferredPodAntiAffinity',
    90,
    [nodes(5000), pods(5000, PODS.ratherApart, init)],
    measured(5000, PODS.ratherApart),
  ),
  {
    name: 'SchedulingNodeAffinity',
    threshold: 220,
    times: SLOW,
    steps: [nodes(5000, NODES.oneZone), pods(5000, PODS.inZones), measured(10_000, PODS.inZones)],
  },
  beside(
    'MixedSchedulingBasePod',
    140,
    [
      nodes(5000, NODES.oneZone),
      pods(2000, PODS.plain, init),
      ...[PODS.together, PODS.apart, PODS.ratherTogether, PODS.ratherApart].map((pod, index) => {
        return pods(2000, pod, { ...init, first: 2000 * (index + 1) });
      }),
    ],
    measured(5000, PODS.plain),
  ),
  crowd('SchedulingRequiredPodAntiAffinityWithNSSelector', 24, {
    nodes: nodes(6000),
    pod: PODS.apartBySelector,
    perNamespace: 40,
    count: 2000,
  }),
  crowd('SchedulingPreferredAntiAffinityWithNSSelector', 55, {
    nodes: nodes(5000),
    pod: PODS.ratherApartBySelector,
    perNamespace: 40,
    count: 2000,
  }),
  crowd('SchedulingRequiredPodAffinityWithNSSelector', 35, {
    nodes: nodes(5000, NODES.oneZone),
    pod: PODS.togetherBySelector,
    perNamespace: 50,
    count: 2000,
  }),
  crowd('SchedulingPreferredAffinityWithNSSelector', 90, {
    nodes: nodes(5000),
    pod: PODS.ratherTogetherBySelector,
    perNamespace: 50,
    count: 5000,
  }),
  {
    name: 'SchedulingGatedPodsWithPodAffinityImpactForThroughput',
    threshold: 110,
    times: SLOW,
    steps: [
      nodes(1, NODES.named),
      pods(10_000, PODS.gatedTogether, { isLeft: true }),
      measured(20_000, PODS.labelled),
    ],
  },
];

const SPREADING: readonly Workload[] = [
  {
    name: 'TopologySpreading',
    threshold: 460,
    times: SLOW,
    steps: [nodes(5000, NODES.moons), pods(5000, PODS.plain), measured(5000, PODS.spread)],
  },
  {
    name: 'PreferredTopologySpreading',
    threshold: 340,
    times: SLOW,
    steps: [nodes(5000, NODES.moons), pods(5000, PODS.plain), measured(5000, PODS.ratherSpread)],
  },
  {
    name: 'DefaultTopologySpreading',
    threshold: 160,
    times: SLOW,
    steps: [
      nodes(5000, NODES.moons),
      { kind: 'namespaces', prefix: 'service-ns-', count: 1 },
      { kind: 'objects', count: 1, object: make.SERVICES.spread, namespace: 'service-ns-0' },
      pods(5000, PODS.plain),
      measured(50_000, PODS.labelled, { namespace: 'service-ns-0' }),
    ],
  },
  {
    name: 'SchedulingWithNodeInclusionPolicy',
    threshold: 270,
    times: SLOW,
    steps: [nodes(4000), nodes(1000, NODES.tainted), measured(4000, PODS.including)],
  },
];

const withDevice = { beside: [make.DEVICE_CLAIM] };

const VOLUMES: readonly Workload[] = [
  {
    name: 'SchedulingSecrets',
    threshold: 790,
    times: FAST,
    steps: [nodes(5000), pods(1000, PODS.withSecret), measured(10_000, PODS.withSecret)],
  },
  claiming('SchedulingInTreePVs', 290, {
    source: make.IN_TREE,
    counts: [1000, 2000],
    csiNode: null,
  }),
  claiming('SchedulingMigratedInTreePVs', 100, {
    source: make.IN_TREE,
    counts: [5000, 5000],
    csiNode: make.csiNode('kubernetes.io/aws-ebs'),
  }),
  claiming('SchedulingCSIPVs', 100, {
    source: make.CSI,
    counts: [5000, 5000],
    csiNode: make.csiNode(null),
  }),
  {
    name: 'PreemptionPVs',
    threshold: 0,
    times: SLOW,
    steps: [
      nodes(1000),
      pods(4000, PODS.low),
      measured(1000, PODS.highWithClaim, { beside: make.volumeOf(make.IN_TREE) }),
    ],
  },
  {
    name: 'SchedulingWithResourceClaim',
    threshold: 56,
    times: SLOW,
    steps: [
      nodes(500),
      { kind: 'objects', count: 500, object: make.deviceSlice(10) },
      { kind: 'objects', count: 1, object: make.DEVICE_CLASS },
      pods(2500, PODS.withDevice, withDevice),
      measured(2500, PODS.withDevice, withDevice),
    ],
  },
];

export const WORKLOADS: readonly Workload[] = [
  ...MISCELLANEOUS,
  ...AFFINITY,
  ...SPREADING,
  ...VOLUMES,
  {
    name: 'Live100000',
    threshold: 0,
    times: FAST,
    steps: [nodes(100_000), measured(100_000, PODS.plain)],
  },
  {
    name: 'Live1000000',
    threshold: 0,
    times: FAST,
    steps: [nodes(1_000_000), measured(1_000_000, PODS.plain)],
  },
];
