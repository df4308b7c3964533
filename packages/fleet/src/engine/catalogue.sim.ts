/**
 * The realistic catalogue of workloads (section 6.7) as demand of clusters and machines that serve
 * it: what benchmarks decide about. A seed determines all of it.
 */
import { INSTANCE_TYPE_KEY, ZONE_KEY } from '../contract/api.ts';
import { assert } from '@megaplane/base/assert';
import type { Random } from '@megaplane/base/random';
import { amountsOf } from './amounts.ts';
import type { NeedMessage } from './need-message.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import { Operator, type Profile, WhenUnsatisfiable } from './profile.ts';
import { profileOf } from './profile.ts';

const RACK_KEY = 'topology.bigfleet/rack';
const ZONES = ['a', 'b', 'c'];
export const MACHINES_PER_CLUSTER = 250;
const ROWS_PER_CLUSTER = 388;
const MACHINES_PER_RACK = 50;
/** Profiles of one archetype in one cluster. */
const VARIANTS = 4;

interface Archetype {
  readonly name: string;
  /** Of all machines. */
  readonly share: number;
  readonly podsPerMachine: number;
  readonly types: readonly string[];
  /** Millicores, MiB, GPUs of one pod. */
  readonly pod: readonly [cpu: number, memory: number, gpus: number];
  readonly priority: number;
  readonly buckets: readonly [interruption: number, reclamation: number];
  /** Pods of one gang, at least and at most. */
  readonly gang?: readonly [number, number];
  readonly isSpread?: boolean;
}

const A3 = 'a3-highgpu-8g';
const CATALOGUE: readonly Archetype[] = [
  {
    name: 'tiny',
    share: 63,
    podsPerMachine: 100,
    types: ['m6i.large', 'm6i.xlarge'],
    pod: [360, 454, 0],
    priority: 100,
    buckets: [8, 9],
  },
  {
    name: 'service',
    share: 11.4,
    podsPerMachine: 100,
    types: ['m6i.xlarge', 'm6i.2xlarge'],
    pod: [2800, 10_900, 0],
    priority: 1000,
    buckets: [13, 16],
    isSpread: true,
  },
  {
    name: 'batch',
    share: 5.7,
    podsPerMachine: 100,
    types: ['c6i.4xlarge', 'c6i.8xlarge', 'n2-standard-32'],
    pod: [5600, 11_400, 0],
    priority: 100,
    buckets: [9, 11],
  },
  {
    name: 'cache',
    share: 3.2,
    podsPerMachine: 100,
    types: ['r6i.xlarge', 'r6i.2xlarge'],
    pod: [2000, 16_384, 0],
    priority: 1000,
    buckets: [15, 17],
    gang: [3, 5],
  },
  {
    name: 'db',
    share: 3.2,
    podsPerMachine: 100,
    types: ['r6i.2xlarge', 'r6i.4xlarge'],
    pod: [8000, 32_768, 0],
    priority: 1000,
    buckets: [16, 18],
    gang: [3, 5],
  },
  {
    name: 'inference',
    share: 5.2,
    podsPerMachine: 8,
    types: [A3, 'a2-highgpu-8g'],
    pod: [8000, 32_768, 1],
    priority: 1000,
    buckets: [15, 16],
  },
  {
    name: 'small',
    share: 3.1,
    podsPerMachine: 1,
    types: [A3],
    pod: [64_000, 262_144, 8],
    priority: 1000,
    buckets: [17, 18],
    gang: [2, 8],
  },
  {
    name: 'medium',
    share: 4.2,
    podsPerMachine: 1,
    types: [A3],
    pod: [64_000, 262_144, 8],
    priority: 1000,
    buckets: [18, 19],
    gang: [8, 16],
  },
  {
    name: 'critical',
    share: 0.95,
    podsPerMachine: 100,
    types: ['c6i.4xlarge', 'm6i.2xlarge'],
    pod: [4000, 8192, 0],
    priority: 1_000_000,
    buckets: [19, 19],
    isSpread: true,
  },
];

export interface Catalogue {
  /** Idle, as many as the demand needs and a fifth more. */
  readonly machines: readonly Machine[];
  /** Slots, `slotsPerMachine` for each machine. */
  readonly slots: readonly Machine[];
  readonly demand: ReadonlyMap<string, readonly NeedMessage[]>;
}

/** One archetype's part of a cluster, in machines. */
function machinesOf({ share }: Archetype): number {
  return Math.max(1, Math.round((share / 100) * MACHINES_PER_CLUSTER));
}

function profileFor(archetype: Archetype, variant: number): Profile {
  const { types, priority, buckets, gang, isSpread = false } = archetype;
  const { IN, NOT_IN, SAME } = Operator;
  const requirements = [
    { key: INSTANCE_TYPE_KEY, operator: IN, values: types },
    ...(variant === 0 ? [] : [{ key: ZONE_KEY, operator: NOT_IN, values: [`none-${variant}`] }]),
    ...(gang === undefined ? [] : [{ key: RACK_KEY, operator: SAME, values: [] }]),
  ];
  const whenUnsatisfiable = WhenUnsatisfiable.DO_NOT_SCHEDULE;
  const spread =
    isSpread && variant === 0 ? [{ topologyKey: ZONE_KEY, maxSkew: 1, whenUnsatisfiable }] : [];
  const [interruptionBucket, reclamationBucket] = buckets;
  return profileOf({
    ...{ requirements, spread, priority },
    interruptionBucket: interruptionBucket as Profile['interruptionBucket'],
    reclamationBucket: reclamationBucket as Profile['reclamationBucket'],
  });
}

function amounts([cpu, memory, gpus]: Archetype['pod'], pods: number): Record<string, string> {
  const gpu = gpus === 0 ? {} : { 'nvidia.com/gpu': `${gpus * pods}` };
  return { cpu: `${cpu * pods}m`, memory: `${memory * pods}Mi`, ...gpu };
}

/** Rows of one cluster: plain ones in four forms, gangs one each. */
function needsOf(cluster: string, random: Random): readonly NeedMessage[] {
  const needs: NeedMessage[] = [];
  for (const archetype of CATALOGUE) {
    if (archetype.gang !== undefined) continue;
    const pods = machinesOf(archetype) * archetype.podsPerMachine;
    for (let variant = 0; variant < VARIANTS; variant++) {
      const part = Math.floor(pods * (variant === 0 ? 0.4 : 0.19));
      const aggregate = amounts(archetype.pod, Math.max(1, part));
      const profile = profileFor(archetype, variant);
      needs.push({ profile, aggregate, minUnit: amounts(archetype.pod, 1), group: '' });
    }
  }
  const gangs = ROWS_PER_CLUSTER - needs.length;
  for (const name of ['small', 'medium'] as const)
    pushGangs(needs, name, cluster, random, Infinity);
  const rest = gangs - (needs.length - (ROWS_PER_CLUSTER - gangs));
  pushGangs(needs, 'cache', cluster, random, Math.ceil(rest / 2));
  pushGangs(needs, 'db', cluster, random, Math.floor(rest / 2));
  return needs;
}

function pushGangs(
  needs: NeedMessage[],
  name: string,
  cluster: string,
  random: Random,
  countMax: number,
): void {
  const archetype = CATALOGUE.find((entry) => entry.name === name);
  assert(archetype?.gang !== undefined, 'the archetype comes in gangs');
  const [least, most] = archetype.gang;
  const profile = profileFor(archetype, 0);
  let left = countMax === Infinity ? machinesOf(archetype) : Infinity;
  for (let count = 0; count < countMax && left >= least; count++) {
    const pods = Math.min(left, least + random.below(most - least + 1));
    left -= pods;
    const aggregate = amounts(archetype.pod, pods);
    const group = `${RACK_KEY}\0app=${cluster}-${name}-${count};`;
    needs.push({ profile, aggregate, minUnit: amounts(archetype.pod, 1), group });
  }
}

/** `machineCount` machines for clusters of 250, and slots beside them. */
export function catalogueOf(
  machineCount: number,
  slotsPerMachine: number,
  random: Random,
): Catalogue {
  const clusters = Math.round(machineCount / MACHINES_PER_CLUSTER);
  const machines: Machine[] = [];
  const slots: Machine[] = [];
  for (const archetype of CATALOGUE) {
    const count = Math.round(machinesOf(archetype) * clusters * 1.2);
    for (let at = 0; at < count; at++) machines.push(machineAt(archetype, at, 'Idle'));
    for (let at = 0; at < count * slotsPerMachine; at++) {
      slots.push(machineAt(archetype, at, 'Speculative'));
    }
  }
  const demand = new Map<string, readonly NeedMessage[]>();
  for (let at = 0; at < clusters; at++) {
    const cluster = `cluster-${String(at).padStart(5, '0')}`;
    demand.set(cluster, needsOf(cluster, random));
  }
  return { machines, slots, demand };
}

function machineAt(archetype: Archetype, at: number, state: 'Idle' | 'Speculative'): Machine {
  const rack = Math.floor(at / MACHINES_PER_RACK);
  const zone = ZONES[rack % ZONES.length] ?? 'a';
  const type = archetype.types[at % archetype.types.length] ?? '';
  const [cpu, memory, gpus] = archetype.pod;
  const pods = archetype.podsPerMachine;
  const isLarger = archetype.types.length > 1 && at % archetype.types.length === 0;
  const size = isLarger ? Math.ceil(pods * 1.2) : pods;
  return {
    id: `${archetype.name}-${state === 'Idle' ? 'm' : 's'}-${String(at).padStart(7, '0')}`,
    ...{ state, cluster: '', instanceType: type, zone, capacityType: 'Reserved' },
    labels: new Map([[RACK_KEY, `${zone}-${archetype.name}-${rack}`]]),
    allocatable: amountsOf(amounts([cpu, memory, gpus], size)),
    price: (cpu / 1000) * size * 0.04 + gpus * size * 2,
    ...{ interruptionProbability: 0, stamp: NO_STAMP, idleSince: 0 },
  };
}
