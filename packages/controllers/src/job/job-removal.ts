/** Which pods of a Job go first: those that nobody would miss, upstream's `ActivePods`. */

interface Removable {
  readonly index: number;
  readonly isBound: boolean;
  readonly isRunning: boolean;
  readonly isReady: boolean;
  readonly readyS: number;
  readonly restarts: number;
  readonly createdS: number;
}

/** Not bound, not running, not ready, ready for a shorter time, restarted more often, younger. */
function compare(a: Removable, b: Removable): number {
  if (a.isBound !== b.isBound) return a.isBound ? 1 : -1;
  if (a.isRunning !== b.isRunning) return a.isRunning ? 1 : -1;
  if (a.isReady !== b.isReady) return a.isReady ? 1 : -1;
  if (a.isReady && a.readyS !== b.readyS) return b.readyS - a.readyS;
  if (a.restarts !== b.restarts) return b.restarts - a.restarts;
  return b.createdS - a.createdS;
}

export function leastMissed<Pod extends Removable>(pods: readonly Pod[], count: number): Pod[] {
  return count === 0 ? [] : pods.toSorted(compare).slice(0, count);
}

/** Pods of an index that is none, or that has a better pod. */
export function repeatedIndexes<Pod extends Removable>(pods: readonly Pod[], end: number): Pod[] {
  const found: Pod[] = [];
  const best: Map<number, Pod> = new Map();
  for (const pod of pods) {
    const known = best.get(pod.index);
    if (pod.index < 0 || pod.index >= end) found.push(pod);
    else if (known === undefined) best.set(pod.index, pod);
    else {
      const isBetter = compare(known, pod) < 0;
      found.push(isBetter ? known : pod);
      if (isBetter) best.set(pod.index, pod);
    }
  }
  return found;
}
