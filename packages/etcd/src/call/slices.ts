// shell: long work between the turns of others
/** Runs work in slices: some milliseconds at most, then whatever else the process has to do. */
import { afterMs, nextTurn } from '@megaplane/base/deferred';

/** How long one turn of sliced work may take, and may in any case. */
const SLICE_MS_MAX = 4;
const SLICE_MS_MIN = 2;
/** What the turn may take with it: reads, answers and other slices come first. */
const TURN_MS_MAX = 8;
const POLL_MS = 5;
/** Pieces of long work at a time; each keeps the store from giving memory back. */
export const LONG_WORK_MAX = 4;

/** Something that is done step by step. */
export interface SlicedWork {
  /** One step, some tenths of a millisecond: a slice ends a step late. True when all is done. */
  step(): boolean;
}

/** Calls `done` once `check` is true, at latest after `msMax`. */
export function whenTrue(check: () => boolean, msMax: number, done: () => void): void {
  const endMs = performance.now() + msMax;
  const look = (): void => {
    if (check() || performance.now() > endMs) done();
    else afterMs(POLL_MS, look);
  };
  look();
}

/** What a slice may take when so much time has gone since the last one of the same work. */
export function sliceMs(sinceMs: number): number {
  return Math.min(SLICE_MS_MAX, Math.max(SLICE_MS_MIN, TURN_MS_MAX - sinceMs));
}

/** Steps until the work is done, then calls `done` in a later turn. */
export function runInSlices(work: SlicedWork, done: () => void): void {
  let endedMs = performance.now();
  const turn = (): void => {
    const nowMs = performance.now();
    const endMs = nowMs + sliceMs(nowMs - endedMs);
    while (performance.now() < endMs) {
      if (!work.step()) continue;
      done();
      return;
    }
    endedMs = performance.now();
    nextTurn(turn);
  };
  nextTurn(turn);
}
