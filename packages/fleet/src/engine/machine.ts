/** One machine as a shard sees it: a slot of a quota, a bare host or a member of a cluster. */
import { INSTANCE_TYPE_KEY, ZONE_KEY } from '../contract/api.ts';
import type { Amounts } from './amounts.ts';
import { Operator, type Profile, type Requirement } from './profile.ts';

export const STATES = [
  'Speculative',
  'Creating',
  'Idle',
  'Configuring',
  'Configured',
  'Draining',
  'Deleting',
  'Failed',
] as const;
export type State = (typeof STATES)[number];

export const CAPACITY_TYPES = ['Unspecified', 'BareMetal', 'Reserved', 'OnDemand', 'Spot'] as const;
export type CapacityType = (typeof CAPACITY_TYPES)[number];

/** The edges of the state machine, section 4.15. Failed has no way out. */
export const EDGES: Readonly<Record<State, readonly State[]>> = {
  Speculative: ['Creating'],
  Creating: ['Idle', 'Failed'],
  Idle: ['Configuring', 'Deleting'],
  Configuring: ['Configured', 'Failed', 'Idle'],
  Configured: ['Draining'],
  Draining: ['Idle', 'Failed'],
  Deleting: ['Speculative', 'Failed'],
  Failed: [],
};

/** For whom a machine was bound or is made; all empty on a machine that is for nobody. */
export interface Stamp {
  readonly fingerprint: string;
  readonly group: string;
  readonly priority: number;
  /** Dollars; may be Infinity. */
  readonly interruptionPenalty: number;
  readonly reclamationPenalty: number;
}

export const NO_STAMP: Stamp = {
  fingerprint: '',
  group: '',
  priority: 0,
  interruptionPenalty: 0,
  reclamationPenalty: 0,
};

export interface Machine {
  readonly id: string;
  readonly state: State;
  /** Empty if bound to none. */
  readonly cluster: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly capacityType: CapacityType;
  readonly labels: ReadonlyMap<string, string>;
  /** What its node offers. */
  readonly allocatable: Amounts;
  /** Dollars an hour. */
  readonly price: number;
  /** Within an hour, 0 to 1. */
  readonly interruptionProbability: number;
  readonly stamp: Stamp;
  /** When it became Idle, in seconds; only of interest while it is. */
  readonly idleSince: number;
}

/** What a machine has under `key`; the fields of type and zone come before labels. */
export function attributeOf(machine: Machine, key: string): string | undefined {
  if (key === INSTANCE_TYPE_KEY && machine.instanceType !== '') return machine.instanceType;
  if (key === ZONE_KEY && machine.zone !== '') return machine.zone;
  return machine.labels.get(key);
}

/** True if the machine alone meets each requirement; what Same asks of a group is not looked at. */
export function matches(profile: Profile, machine: Machine): boolean {
  return profile.requirements.every((requirement) => {
    return meets(requirement, attributeOf(machine, requirement.key));
  });
}

/** Whether an attribute (undefined: the machine lacks it) is what a requirement wants. */
export function meets({ operator, values }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case Operator.IN:
      return value !== undefined && values.includes(value);
    case Operator.NOT_IN:
      return value === undefined || !values.includes(value);
    case Operator.EXISTS:
      return value !== undefined;
    case Operator.DOES_NOT_EXIST:
      return value === undefined;
    case Operator.SAME:
      return value !== undefined && (values.length === 0 || values.includes(value));
    case Operator.UNSPECIFIED:
    // also numbers that a newer sender knows
    default:
      return false;
  }
}
