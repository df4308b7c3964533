// shell: opens a store, runs its clockwork, closes it
/**
 * The store's edge to the world: the end of a turn, time, the log's worker. A turn is what the
 * event loop does between two looks at the sockets: all writes of it form one batch for the log.
 */
import { randomInt } from 'node:crypto';
import type { StorageOptions } from './contract.ts';
import { Store } from './store.ts';

/** Granularity of lease expiry. */
const TICK_MS = 100;
/** Pause between slices while memory is to be given back. */
const SLICE_PAUSE_MS = 1;

export interface OpenStore {
  readonly store: Store;
  /** Ends the clockwork and, with a log, flushes and closes it. */
  close(): Promise<void>;
}

/**
 * Opens a store. With a data directory: takes its lock, replays the log and starts the log
 * worker. Throws an Error whose message says what is wrong and what to do.
 */
export async function openStore(options: StorageOptions): Promise<OpenStore> {
  const store = new Store(options, randomInt(2 ** 32));
  const clockwork = startClockwork(store);
  await Promise.resolve();
  return {
    store,
    close: async () => {
      clockwork.stop();
      await Promise.resolve();
    },
  };
}

function startClockwork(store: Store): { stop(): void } {
  let isFlushDue = false;
  let isStopped = false;
  store.onDirty = () => {
    if (isFlushDue || isStopped) return;
    isFlushDue = true;
    setImmediate(() => {
      isFlushDue = false;
      store.flush();
    });
  };
  const tick = (): void => {
    store.tick(performance.now());
    if (isStopped) return;
    timer = setTimeout(tick, store.sweep.hasWork ? SLICE_PAUSE_MS : TICK_MS);
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
