// shell: sees to it that the log's files are where the next start looks for them
/**
 * A file that was removed, or whose directory was removed or moved, takes writes and flushes as
 * before: nothing fails, and all of it is gone with the process. What the store holds is in memory,
 * so when the file that is written or the lock is not found under its name any more, the directory
 * is made anew, its lock taken again, and a snapshot of everything begun, behind a new segment of
 * the log. The lock tells also when the log's thread has made the directory for a file just then.
 */
import { fstat, stat, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { join } from 'node:path';
import { makeDirectory } from '@megaplane/base/directory';
import { type DirectoryLock, isGone } from '../wal/lock.ts';
import type { Log } from './log.ts';
import { logName } from '../wal/log-files.ts';
import type { Snapshots } from '../snapshot/snapshots.ts';
import type { Store } from '../mvcc/store.ts';

const LOOK_MS = 500;
/** So often must it be missed in turn: a segment may be changing while it is looked for. */
const MISSES_MAX = 2;

export interface HomeParts {
  readonly dir: string;
  readonly store: Store;
  readonly log: Log;
  readonly lock: DirectoryLock;
  readonly snapshots: Snapshots;
}

export interface Home {
  /** Looks no more. */
  stop(): void;
  /** Looks once more, before the process ends; what is missing is begun to be written anew. */
  lookLast(): Promise<void>;
}

/** Looks again and again. */
export function keepHome(parts: HomeParts): Home {
  let misses = 0;
  /** The look that is under way. */
  let looking: Promise<void> | null = null;
  /** Until the snapshot that a return began is done, the new files are only coming. */
  let isReturning = false;
  const look = async (missesMax: number): Promise<void> => {
    isReturning &&= parts.snapshots.isRunning;
    if (isReturning || parts.log.file < 0) return;
    misses = (await isMissing(parts)) ? misses + 1 : 0;
    if (misses < missesMax) return;
    misses = 0;
    isReturning = true;
    returnHome(parts);
  };
  const timer = setInterval(() => {
    looking ??= look(MISSES_MAX).finally(() => (looking = null));
  }, LOOK_MS);
  timer.unref();
  return {
    stop: () => clearInterval(timer),
    lookLast: async () => {
      // one that is under way may have seen what is gone since
      await looking;
      await look(1);
    },
  };
}

/** Is the log's file or the lock not there, or another one? */
async function isMissing({ dir, log, lock }: HomeParts): Promise<boolean> {
  const isLost = await new Promise<boolean>((resolve) => lock.isLost(resolve));
  return isLost || isOther(join(dir, logName(log.segment)), log.file);
}

const statOf = promisify<string, Stats>(stat);
const fstatOf = promisify<number, Stats>(fstat);

/** Is there no such file, or another one than the open one? A disk that fails tells nothing. */
async function isOther(path: string, fd: number): Promise<boolean> {
  try {
    const named = await statOf(path);
    const open = await fstatOf(fd);
    return named.ino !== open.ino || named.dev !== open.dev;
  } catch (error) {
    return isGone(error);
  }
}

function returnHome({ dir, store, lock, snapshots }: HomeParts): void {
  try {
    makeDirectory(dir);
    lock.retake();
  } catch (error) {
    store.fail(
      `the files of the data directory ${dir} were removed or moved while they were written, ` +
        `and it cannot be made anew: ${(error as Error).message}`,
    );
    return;
  }
  console.error(
    `megaplane: the files of the data directory ${dir} were removed or moved while they were ` +
      'written; everything that the store holds is written there anew',
  );
  snapshots.begin();
}
