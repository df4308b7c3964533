// shell: sees to it that the log's files are where the next start looks for them
/**
 * A file that was removed, or whose directory was removed or moved, takes writes and flushes as
 * before: nothing fails, and all of it is gone with the process. What the store holds is in memory,
 * so when the file that is written is not found under its name any more, the directory is made
 * anew, its lock taken again, and a snapshot of everything begun, behind a new segment of the log.
 */
import { fstat, stat, type Stats } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '@megaplane/base/directory';
import type { DirectoryLock } from './lock.ts';
import type { Log } from './log.ts';
import { logName } from './log-files.ts';
import type { Snapshots } from './snapshots.ts';
import type { Store } from './store.ts';

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

/** Looks again and again; returns how to stop it. */
export function keepHome(parts: HomeParts): () => void {
  const { dir, log, snapshots } = parts;
  let misses = 0;
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking || snapshots.isRunning || log.file < 0) return;
    isLooking = true;
    isMissing(join(dir, logName(log.segment)), log.file, (missing) => {
      isLooking = false;
      misses = missing ? misses + 1 : 0;
      if (misses < MISSES_MAX) return;
      misses = 0;
      returnHome(parts);
    });
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Is there no such file, or another one than the open one? A disk that fails tells nothing. */
function isMissing(path: string, fd: number, tell: (missing: boolean) => void): void {
  stat(path, (failure, named: Stats | undefined) => {
    if (failure !== null) {
      tell(failure.code === 'ENOENT' || failure.code === 'ENOTDIR');
      return;
    }
    fstat(fd, (error, open) => {
      tell(error === null && (named?.ino !== open.ino || named.dev !== open.dev));
    });
  });
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
