/**
 * What a DELETE does to an object: remove it now, mark it, or nothing because it is on its way.
 * Pure: the caller reads, writes and answers.
 */
import { putMember } from '@megaplane/base/members';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { isNumber, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { DeleteOptions, Seconds } from '../../request/options/delete-options.ts';
import { timestamp } from '../../timestamp.ts';

export const ORPHAN_FINALIZER = 'orphan';
export const FOREGROUND_FINALIZER = 'foregroundDeletion';

/** What a kind says about its deletion. */
export interface DeletionRules {
  /**
   * Seconds of grace for an object that is deleted for the first time, given the client's wish;
   * null for kinds that do not go gracefully.
   */
  readonly graceSeconds: ((object: JsonObject, wish: Seconds | null) => Seconds) | null;
  /** Dependents stay unless the client says otherwise. */
  readonly orphansByDefault: boolean;
  /** Garbage collection knows nothing of the kind: no finalizers for it, whatever is asked. */
  readonly isUncollected?: boolean;
}

/**
 * `mark`: store `object`, which stays. `remove`: take it away; `object` is its last state, to be
 * stored first where `isStored` (watchers of pods see the mark before the end).
 */
export type Deletion =
  | { readonly kind: 'mark'; readonly object: JsonObject }
  | { readonly kind: 'remove'; readonly object: JsonObject; readonly isStored: boolean }
  | { readonly kind: 'pending' };

/**
 * Decides; `object` is not changed. Times are whole seconds, as upstream stores them. What is
 * removed without a grace is the object as it stood, with the finalizers that a collector would
 * have looked after (upstream's store.Delete shows what its storage gave back).
 */
export function decideDeletion(
  object: JsonObject,
  options: DeleteOptions,
  rules: DeletionRules,
  nowMs: number,
): Deletion {
  const graceful = gracefulMark(object, options.gracePeriodSeconds, rules, nowMs);
  if (graceful === 'pending') return { kind: 'pending' };
  const marked = graceful ?? object;
  const finalizers = wantedFinalizers(marked, options, rules);
  const isSame = isSameSet(finalizers, finalizersOf(marked));
  const next = !isSame ? withMetadata(marked, { finalizers }) : marked;
  if (graceful !== null) {
    const grace = numberAt(next, 'metadata', 'deletionGracePeriodSeconds');
    if (finalizers.length > 0 || grace > 0) return { kind: 'mark', object: next };
    return { kind: 'remove', object: next, isStored: true };
  }
  if (finalizers.length > 0) return { kind: 'mark', object: markNow(next, nowMs) };
  return { kind: 'remove', object, isStored: false };
}

/** Upstream compares finalizers as sets: their order stays where none comes or goes. */
function isSameSet(left: readonly string[], right: readonly string[]): boolean {
  return new Set(left).symmetricDifference(new Set(right)).size === 0;
}

function gracefulMark(
  object: JsonObject,
  asked: Seconds | null,
  rules: DeletionRules,
  nowMs: number,
): JsonObject | 'pending' | null {
  if (rules.graceSeconds === null) return null;
  // negative values count as one second
  const wish = asked !== null && asked < 0 ? 1 : asked;
  const deletedAt = stringAt(object, 'metadata', 'deletionTimestamp');
  if (deletedAt !== '') {
    const stored = valueAt(object, 'metadata', 'deletionGracePeriodSeconds');
    const current = isNumber(stored) ? stored : 0;
    if (current === 0) return null;
    if (wish === null || wish >= current) return 'pending';
    const endMs = secondsAfter(secondsAfter(Date.parse(deletedAt), -current), wish);
    if (endMs >= nowMs) {
      return withMetadata(object, {
        deletionTimestamp: timestamp(endMs),
        deletionGracePeriodSeconds: wish,
      });
    }
    // the whole grace is over: the end is not moved into the past, and stays a graceful one
    return withMetadata(object, {
      deletionTimestamp: timestamp(nowMs),
      deletionGracePeriodSeconds: wish === 0 ? 0 : 1,
    });
  }
  const seconds = rules.graceSeconds(object, wish);
  return withMetadata(object, {
    ...bumped(object),
    deletionTimestamp: timestamp(secondsAfter(nowMs, seconds)),
    deletionGracePeriodSeconds: seconds,
  });
}

/** Deletion of an object that waits for its finalizers only. */
function markNow(object: JsonObject, nowMs: number): JsonObject {
  const deletedAt = stringAt(object, 'metadata', 'deletionTimestamp');
  if (deletedAt !== '') {
    const grace = numberAt(object, 'metadata', 'deletionGracePeriodSeconds');
    return grace === 0 ? object : withMetadata(object, { deletionGracePeriodSeconds: 0 });
  }
  return withMetadata(object, {
    ...bumped(object),
    deletionTimestamp: timestamp(nowMs),
    deletionGracePeriodSeconds: 0,
  });
}

function bumped(object: JsonObject): JsonObject {
  const generation = numberAt(object, 'metadata', 'generation');
  return generation > 0 ? { generation: generation + 1 } : {};
}

function wantedFinalizers(
  object: JsonObject,
  options: DeleteOptions,
  rules: DeletionRules,
): string[] {
  const current = finalizersOf(object);
  const kept = current.filter((one) => one !== ORPHAN_FINALIZER && one !== FOREGROUND_FINALIZER);
  if (rules.isUncollected === true) return kept;
  const policy = wantedPolicy(current, options, rules);
  if (policy === 'Orphan') kept.push(ORPHAN_FINALIZER);
  if (policy === 'Foreground') kept.push(FOREGROUND_FINALIZER);
  return kept;
}

function wantedPolicy(
  finalizers: readonly string[],
  options: DeleteOptions,
  rules: DeletionRules,
): 'Orphan' | 'Background' | 'Foreground' {
  if (options.orphanDependents !== null) return options.orphanDependents ? 'Orphan' : 'Background';
  if (options.propagationPolicy !== '') return options.propagationPolicy;
  for (const finalizer of finalizers) {
    if (finalizer === ORPHAN_FINALIZER) return 'Orphan';
    if (finalizer === FOREGROUND_FINALIZER) return 'Foreground';
  }
  return rules.orphansByDefault ? 'Orphan' : 'Background';
}

/**
 * True where an update ends the object: it is being deleted, its grace is over, and the update
 * took its last finalizer away.
 */
export function endsObject(previous: JsonObject, next: JsonObject): boolean {
  if (finalizersOf(next).length > 0) return false;
  if (stringAt(previous, 'metadata', 'deletionTimestamp') === '') return false;
  return numberAt(previous, 'metadata', 'deletionGracePeriodSeconds') === 0;
}

export function finalizersOf(object: JsonObject): string[] {
  return listAt(object, 'metadata', 'finalizers').filter((one) => typeof one === 'string');
}

/** A copy of `object` with fields of its metadata replaced; an empty list removes its field. */
export function withMetadata(object: JsonObject, fields: JsonObject): JsonObject {
  const metadata: JsonObject = { ...objectAt(object, 'metadata') };
  for (const [field, value] of Object.entries(fields)) {
    if (Array.isArray(value) && value.length === 0) delete metadata[field];
    else putMember(metadata, field, value);
  }
  return { ...object, metadata };
}

/** Go counts nanoseconds in 64 bits, and goes round where they do not do. */
function secondsAfter(ms: number, seconds: Seconds): number {
  const nanos = BigInt.asIntN(64, BigInt(seconds) * 1_000_000_000n);
  return ms + Number(nanos / 1_000_000n);
}

/** The grace of a pod: its own by default, none where nothing runs (upstream's pod strategy). */
export function podGraceSeconds(pod: JsonObject, wish: Seconds | null): Seconds {
  const own: JsonValue | undefined = valueAt(pod, 'spec', 'terminationGracePeriodSeconds');
  let seconds = wish ?? (isNumber(own) ? own : 30);
  const phase = stringAt(pod, 'status', 'phase');
  if (stringAt(pod, 'spec', 'nodeName') === '') seconds = 0;
  if (phase === 'Succeeded' || phase === 'Failed') seconds = 0;
  return seconds < 0 ? 1 : seconds;
}
