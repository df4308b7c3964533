/**
 * The end of a store with a log, step by step. Whatever fails at any of them leaves what was shown
 * before as durable as promised, and shows nothing more: see `Store.publish`.
 */
import type { Log } from './log.ts';
import type { Snapshots } from '../snapshot/snapshots.ts';
import type { Store } from '../mvcc/store.ts';

/** What the last snapshot may take before the store closes without it. */
const CLOSING_MS_MAX = 5000;

export interface ClosingParts {
  readonly store: Store;
  readonly log: Log;
  readonly snapshots: Snapshots;
  /** Resolves in a later turn. */
  readonly turn: () => Promise<void>;
}

/** Writes a snapshot where it is worth it, then what is left, and closes the log. */
export async function closeLog(parts: ClosingParts): Promise<void> {
  if (!parts.store.hasFailed) await writeLast(parts);
  await parts.log.close();
}

/** A snapshot on the way out, if it is ready in time; one that is not ready counts for nothing. */
async function writeLast({ store, log, snapshots, turn }: ClosingParts): Promise<void> {
  store.flush();
  log.submit();
  snapshots.beginLast();
  const endMs = log.nowMs + CLOSING_MS_MAX;
  while (snapshots.isRunning && !store.hasFailed && log.nowMs < endMs) {
    log.submit();
    snapshots.step();
    await turn();
  }
}
