// data plane
/**
 * Which replicas go first when there are too many: those that nobody would miss. By turns: not
 * bound, pending, not ready, cheap to delete, many neighbours on their node, ready for a shorter
 * time, restarted more often, younger. Ages count by powers of two, so that none of a crowd that
 * came at about the same time is always the victim.
 */
import { assert } from '@megaplane/base/assert';
import { REPLICA_BOUND, REPLICA_READY, type ReplicaPods } from './replica-pods.ts';

/**
 * The first `count` of `rows` to delete. `neighbours` counts, by hash of the node, the replicas
 * that belong together.
 */
export function rowsToDelete(
  pods: ReplicaPods,
  rows: readonly number[],
  count: number,
  neighbours: ReadonlyMap<number, number>,
  nowS: number,
): number[] {
  assert(count >= 0, 'as many go as there are too many');
  if (count >= rows.length) return [...rows];
  return rows.toSorted((a, b) => compare(pods, a, b, neighbours, nowS)).slice(0, count);
}

function compare(
  pods: ReplicaPods,
  a: number,
  b: number,
  neighbours: ReadonlyMap<number, number>,
  nowS: number,
): number {
  const flagsA = pods.flags.get(a);
  const flagsB = pods.flags.get(b);
  const byBinding = (flagsA & REPLICA_BOUND) - (flagsB & REPLICA_BOUND);
  if (byBinding !== 0) return byBinding;
  const byPhase = pods.phaseOf(a) - pods.phaseOf(b);
  if (byPhase !== 0) return byPhase;
  const byReadiness = (flagsA & REPLICA_READY) - (flagsB & REPLICA_READY);
  if (byReadiness !== 0) return byReadiness;
  const byCost = pods.deletionCost.get(a) - pods.deletionCost.get(b);
  if (byCost !== 0) return byCost;
  const countA = neighbours.get(pods.node.get(a)) ?? 0;
  const countB = neighbours.get(pods.node.get(b)) ?? 0;
  if (countA !== countB) return countB - countA;
  if ((flagsA & REPLICA_READY) !== 0) {
    const byReadyAge = compareAges(pods.readyS.get(a), pods.readyS.get(b), nowS);
    if (byReadyAge !== 0) return byReadyAge;
  }
  const byRestarts = pods.restarts.get(b) - pods.restarts.get(a);
  if (byRestarts !== 0) return byRestarts;
  return compareAges(pods.createdS.get(a), pods.createdS.get(b), nowS);
}

/** The younger first, where ages differ by a power of two. */
function compareAges(sinceA: number, sinceB: number, nowS: number): number {
  return logOf(nowS - sinceA) - logOf(nowS - sinceB);
}

function logOf(ageS: number): number {
  return ageS <= 0 ? 0 : 32 - Math.clz32(ageS);
}
