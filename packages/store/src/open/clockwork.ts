// shell: turns and time of a store
/** What a store needs from its process: ends of turns, and a clock that ticks. */
import { Moderation, PAUSE_MS } from '../moderation.ts';
import type { Store } from '../mvcc/store.ts';
import { Slices } from '../slices.ts';
import { Stalls } from './stalls.ts';

/** Granularity of lease expiry. */
const TICK_MS = 100;
const DEFRAGMENT_MS_MAX = 60_000;
/** Pause between slices while memory is to be given back or a snapshot is written. */
const SLICE_PAUSE_MS = 1;
/** The same while records are packed, which nobody waits for. */
const PACK_PAUSE_MS = 4;
/** Nobody ever writes it. */
const pauseCell = new Int32Array(new SharedArrayBuffer(4));

/** What takes the writes of a turn at its end. */
export interface Submitting {
  submit(): void;
}

/** What works in slices; `step` is true where another one may follow at once. */
export interface Slicing {
  readonly isRunning: boolean;
  step(): boolean;
}

export interface Beginning extends Slicing {
  begin(): void;
}

/** See `OpenStore.defragment`. */
export async function defragment(store: Store, snapshots: Beginning | null): Promise<void> {
  const endMs = performance.now() + DEFRAGMENT_MS_MAX;
  const pause = (): Promise<void> =>
    new Promise((resolve) => setTimeout(resolve, SLICE_PAUSE_MS).unref());
  // What is compacted goes first: it makes the holes. A hash or a snapshot may still read it.
  while (store.sweep.hasGarbage && performance.now() < endMs) await pause();
  store.sweep.defragment();
  while (store.sweep.hasGarbage && performance.now() < endMs) await pause();
  store.arenas.releaseSpares();
  snapshots?.begin();
  while (snapshots?.isRunning === true && performance.now() < endMs) await pause();
}

function pause(): void {
  Atomics.wait(pauseCell, 0, 0, PAUSE_MS);
}

/** Ends turns and lets time pass, until it is stopped. */
export function startClockwork(
  store: Store,
  log: Submitting | null,
  snapshots: Slicing | null,
): { stop(): void } {
  let isFlushDue = false;
  let isStopped = false;
  const moderation = new Moderation();
  let revision = store.appliedRevision;
  store.onDirty = () => {
    if (isFlushDue || isStopped) return;
    isFlushDue = true;
    setImmediate(() => {
      isFlushDue = false;
      store.flush();
      log?.submit();
      const writes = store.appliedRevision - revision;
      revision = store.appliedRevision;
      // behind the answers, which sockets send in ticks that were asked for before this one
      if (moderation.isDue(writes, performance.now())) process.nextTick(pause);
    });
  };
  const stalls = new Stalls(performance.now());
  let endsLeases = true;
  const slice = (nowMs: number): boolean => {
    const isSweeping = store.sweep.hasWork;
    store.tick(nowMs, endsLeases);
    if (isSweeping) store.sweep.slices.record(performance.now() - nowMs);
    const isWriting = snapshots?.step() === true;
    return isWriting || (isSweeping && store.sweep.hasWork);
  };
  const slices = new Slices(() => performance.now());
  const tick = (): void => {
    endsLeases = stalls.look(performance.now());
    slices.run(slice);
    if (isStopped) return;
    const isBusy = store.sweep.hasWork || snapshots?.isRunning === true;
    const pauseMs = store.sweep.isPacking ? PACK_PAUSE_MS : TICK_MS;
    timer = setTimeout(tick, isBusy ? SLICE_PAUSE_MS : pauseMs);
    timer.unref();
  };
  let timer = setTimeout(tick, TICK_MS);
  timer.unref();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
