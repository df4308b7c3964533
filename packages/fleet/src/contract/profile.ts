/**
 * What demand agrees in when it is added up: requirements, spread, priority and two penalty
 * buckets. Neither the shape of a pod nor a number of pods or machines is part of it.
 */
import { byUtf8 } from './text-order.ts';
import { NodeSelectorRequirement_Operator as Operator } from './tables/capacity.ts';
import type {
  PenaltyBucket,
  TopologySpread_WhenUnsatisfiable as WhenUnsatisfiable,
} from './tables/capacity.ts';

/** One condition on a machine. */
export interface Requirement {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

export interface Spread {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly whenUnsatisfiable: WhenUnsatisfiable;
}

export interface Profile {
  readonly requirements: readonly Requirement[];
  readonly spread: readonly Spread[];
  readonly priority: number;
  readonly interruptionBucket: PenaltyBucket;
  readonly reclamationBucket: PenaltyBucket;
}

/** Operators that a request may use, as Kubernetes writes them. `Same` exists on the wire only. */
const OPERATORS: ReadonlyMap<string, Operator> = new Map([
  ['In', Operator.IN],
  ['NotIn', Operator.NOT_IN],
  ['Exists', Operator.EXISTS],
  ['DoesNotExist', Operator.DOES_NOT_EXIST],
]);

export function operatorOf(text: string): Operator | undefined {
  return OPERATORS.get(text);
}

/** As Kubernetes writes it, and `Same`; '' for a number that means nothing. */
export function operatorName(operator: number): string {
  if (operator === Operator.SAME) return 'Same';
  for (const [name, number] of OPERATORS) if (number === operator) return name;
  return '';
}

/**
 * The same profile in the one order that all parts agree on. Nothing is left out: a requirement
 * that is written twice stays twice.
 */
export function canonicalProfile(profile: Profile): Profile {
  const requirements = profile.requirements.map(({ key, operator, values }) => {
    return { key, operator, values: values.toSorted(byUtf8) };
  });
  requirements.sort((a, b) => byUtf8(a.key, b.key) || a.operator - b.operator);
  const spread = profile.spread.toSorted((a, b) => byUtf8(a.topologyKey, b.topologyKey));
  return { ...profile, requirements, spread };
}

/** The profile that also wants one value of `topologyKey` for all its machines. */
export function withSame(profile: Profile, topologyKey: string): Profile {
  const isThere = profile.requirements.some(
    ({ key, operator }) => operator === Operator.SAME && key === topologyKey,
  );
  if (isThere) return profile;
  const same = { key: topologyKey, operator: Operator.SAME, values: [] };
  return { ...profile, requirements: [...profile.requirements, same] };
}

/** Text that is equal for equal profiles; of a canonical one. Shards and providers keep it. */
export function fingerprintOf(profile: Profile): string {
  let text = `p=${profile.priority}|ipb=${profile.interruptionBucket}`;
  text += `|rpb=${profile.reclamationBucket}|reqs=`;
  for (const { key, operator, values } of profile.requirements) {
    text += `${key}:${operator}:${values.join(',')};`;
  }
  text += '|spr=';
  for (const { topologyKey, maxSkew, whenUnsatisfiable } of profile.spread) {
    text += `${topologyKey}:${maxSkew}:${whenUnsatisfiable};`;
  }
  return text;
}
