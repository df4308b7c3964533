/** Profiles as the phases look at them: canonical, each with the text that tells it from others. */
import { INSTANCE_TYPE_KEY } from '../contract/api.ts';
import {
  type Profile as ProfileFields,
  type Requirement,
  type Spread,
  canonicalProfile,
  fingerprintOf,
} from '../contract/profile.ts';
import {
  NodeSelectorRequirement_Operator as Operator,
  TopologySpread_WhenUnsatisfiable as WhenUnsatisfiable,
} from '../contract/tables/capacity.ts';

export type { ProfileFields, Requirement, Spread };
export { Operator, WhenUnsatisfiable };

/** Two profiles with the same fingerprint are the same profile: the text names every field. */
export interface Profile extends ProfileFields {
  readonly fingerprint: string;
}

/** The canonical form of a profile, section 3.2. */
export function profileOf(fields: ProfileFields): Profile {
  const canonical = canonicalProfile(fields);
  return { ...canonical, fingerprint: fingerprintOf(canonical) };
}

/** The profile without its Same requirements, as a gang that fits one machine has it. */
export function withoutSame(profile: Profile): Profile {
  const requirements = profile.requirements.filter(({ operator }) => operator !== Operator.SAME);
  return profileOf({ ...profile, requirements });
}

/** The key of the first Same requirement. */
export function sameKeyOf(profile: ProfileFields): string | undefined {
  return profile.requirements.find(({ operator }) => operator === Operator.SAME)?.key;
}

/** The first spread that must hold; the others are passed over. */
export function strictSpreadOf(profile: ProfileFields): Spread | undefined {
  return profile.spread.find(({ whenUnsatisfiable }) => {
    return whenUnsatisfiable === WhenUnsatisfiable.DO_NOT_SCHEDULE;
  });
}

/**
 * The instance types that the first requirement on them lists, sorted, as often as they are listed;
 * undefined if all types are to be searched.
 */
export function pinnedTypesOf(profile: ProfileFields): readonly string[] | undefined {
  const first = profile.requirements.find(({ key }) => key === INSTANCE_TYPE_KEY);
  return first?.operator === Operator.IN && first.values.length > 0 ? first.values : undefined;
}

/** Lexicographic on priority and both buckets: negative if `left` gives way to `right`. */
export function comparePrecedence(left: ProfileFields, right: ProfileFields): number {
  return (
    left.priority - right.priority ||
    left.interruptionBucket - right.interruptionBucket ||
    left.reclamationBucket - right.reclamationBucket
  );
}
