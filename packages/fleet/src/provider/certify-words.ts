/** What checks of the certification say about machines. */
import { CapacityType, MachineState as State } from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';

/** There is no machine for a check: nothing was learnt. */
export class Incomplete extends Error {}

/** Keys and values that a provider has no business with. */
export const METADATA: Readonly<Record<string, string>> = {
  'bigfleet.lucy.sh/assigned-priority': '7',
  'x/unknown ': 'ä\n',
  empty: '',
  'nul\0': '\0\u0001',
};

/** Labels that have fields of their own. */
const FIELD_LABELS = [
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'karpenter.sh/capacity-type',
];

export function isStable(state: State): boolean {
  return [State.SPECULATIVE, State.IDLE, State.CONFIGURED].some((one) => one === state);
}

/** True if nothing of a binding is left. */
export function isCleared({ cluster, shardMetadata }: Machine): boolean {
  return cluster === '' && Object.keys(shardMetadata).length === 0;
}

export function sortedText(metadata: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What is wrong with a machine's fields; '' for nothing. */
export function shapeFault(machine: Machine): string {
  const { state } = machine;
  const isUnmade = state === State.SPECULATIVE || state === State.CREATING;
  const isBound = state === State.CONFIGURED || state === State.DRAINING;
  const hasHost = machine.host !== undefined && machine.host.ref !== '';
  if (machine.id === '') return 'it has no id';
  if (state === State.UNSPECIFIED) return 'it has no state';
  if (machine.instanceType === '') return 'it has no instance type';
  const hidden = FIELD_LABELS.find((label) => Object.hasOwn(machine.labels, label));
  if (hidden !== undefined) return `it has a label ${hidden}`;
  if (isUnmade && hasHost) return 'it has a host before it is made';
  if (!isUnmade && state !== State.FAILED && !hasHost) return 'it has no host';
  if ((isUnmade || state === State.IDLE) && machine.cluster !== '') return 'it names a cluster';
  if (isBound && machine.cluster === '') return 'it is bound to no cluster';
  if (state === State.FAILED && machine.lastError === '') return 'it failed for no reason';
  return '';
}

/** What is wrong with a machine's price or risk; '' for nothing. */
export function costFault(machine: Machine): string {
  const { pricePerHour: price, interruptionProbability: share } = machine;
  if (!(price >= 0 && price < Infinity)) return `its price is ${price}`;
  if (!(share >= 0 && share <= 1)) return `its interruption probability is ${share}`;
  if (machine.capacityType === CapacityType.SPOT && share === 0) return 'spot is never interrupted';
  return '';
}
