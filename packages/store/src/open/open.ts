// shell: opens a store, runs its clockwork, closes it
/**
 * The store's edge to the world: the end of a turn, time, the log. A turn is what the event loop
 * does between two looks at the sockets: all writes of it form one batch for the log.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { makePrivateDirectory } from '@megaplane/base/private-file';
import { defragment, startClockwork } from './clockwork.ts';
import { closeLog } from './closing.ts';
import type { StorageOptions, Boot } from '../contract.ts';
import { keepHome } from './home.ts';
import { type DirectoryLock, bootId, lockDirectory } from '../wal/lock.ts';
import { Log } from './log.ts';
import { replayDirectory } from '../recovery/replay.ts';
import { Restorer } from '../recovery/restorer.ts';
import { Snapshots } from '../snapshot/snapshots.ts';
import { Store } from '../mvcc/store.ts';
import { MemoryWarmer } from '../record/warm-memory.ts';

export interface OpenStore {
  readonly store: Store;
  /** Eight bytes each; stay the same for a data directory. */
  readonly clusterId: Buffer;
  readonly memberId: Buffer;
  /** Counts the starts of the data directory, from 2 on as etcd's terms do. */
  readonly term: number;
  /** What the start read: records and bytes of the log, bytes of a torn tail cut off. */
  readonly replayed: {
    readonly records: number;
    readonly bytes: number;
    readonly cutBytes: number;
  };
  /** Null without a data directory. */
  readonly log: Log | null;
  /** Writes a snapshot and removes the log that it replaces, in the background. */
  snapshot(): void;
  /**
   * Gives memory back (records of arenas with holes are moved together) and, with a log, disk (a
   * snapshot replaces the log). In slices; resolves when done, at latest after DEFRAGMENT_MS_MAX.
   */
  defragment(): Promise<void>;
  /**
   * Ends the clockwork and, with a log, flushes and closes it and gives the lock back. A disk that
   * fails meanwhile is told as at any other time, by `store.onLogFailure`.
   */
  close(): Promise<void>;
}

/**
 * Opens a store. With a data directory: takes its lock, replays the log and starts the log's
 * thread. `machineBoot` names the running boot: after another one, what was not flushed is lost.
 * Throws an Error whose message says what is wrong and what to do.
 */
export function openStore(options: StorageOptions, machineBoot: string = bootId()): OpenStore {
  const store = new Store(options, randomInt(2 ** 48 - 1));
  store.arenas.warmer = new MemoryWarmer();
  if (options.dataDir === null) return openInMemory(store);
  const dir = options.dataDir;
  makeDataDirectory(dir);
  let lock: DirectoryLock | null = null;
  try {
    lock = lockDirectory(dir);
    return openWithLog(store, dir, lock, bootOf(machineBoot));
  } catch (error) {
    lock?.release();
    throw explained(error, dir);
  }
}

/** Errors of the file system say what to do; all others say it themselves. */
function explained(error: unknown, dir: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  const advice =
    code === 'ENOSPC'
      ? 'free space on that disk, then start again'
      : 'see to it that this user may read and write it';
  return new Error(`the data directory ${dir} cannot be used: ${message}; ${advice}`, {
    cause: error,
  });
}

/** Two checksums of a boot's name; 0 and 0 where the system does not tell it. */
function bootOf(name: string): Boot {
  return name === '-' ? { high: 0, low: 0 } : { high: crc32(name), low: crc32(`boot ${name}`) };
}

function openInMemory(store: Store): OpenStore {
  const clockwork = startClockwork(store, null, null);
  return {
    store,
    clusterId: randomBytes(8),
    memberId: randomBytes(8),
    term: 2,
    replayed: { records: 0, bytes: 0, cutBytes: 0 },
    log: null,
    snapshot: () => {},
    defragment: () => defragment(store, null),
    close: () => {
      clockwork.stop();
      return Promise.resolve();
    },
  };
}

function makeDataDirectory(dir: string): void {
  try {
    const found = statSync(dir, { throwIfNoEntry: false });
    if (found?.isDirectory() === false) throw new Error('it is not a directory');
    makePrivateDirectory(dir);
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(
      `the data directory ${dir} cannot be used: ${(error as Error).message}; ` +
        'choose one that this user may write to',
      { cause: error },
    );
  }
}

function openWithLog(store: Store, dir: string, lock: DirectoryLock, boot: Boot): OpenStore {
  const restorer = new Restorer(store, performance.now());
  const found = replayDirectory(dir, restorer);
  if (found !== null) restorer.finish(boot);
  const clusterId = found?.clusterId ?? randomBytes(8);
  const memberId = found?.memberId ?? randomBytes(8);
  const log = new Log(store, {
    dir,
    clusterId,
    memberId,
    segment: found?.nextSegment ?? 0,
    chain: found?.chain ?? 0,
    wallMs: restorer.latestWallMs,
  });
  log.bytesSinceSnapshot = found?.logBytes ?? 0;
  log.snapshotBytes = (found?.bytes ?? 0) - log.bytesSinceSnapshot;
  const term = restorer.term + 1;
  store.batch.term(term, boot.high, boot.low);
  const snapshots = new Snapshots(store, log, term, boot);
  const clockwork = startClockwork(store, log, snapshots);
  const home = keepHome({ dir, store, log, lock, snapshots });
  store.onDirty();
  const bytes = found?.bytes ?? 0;
  return {
    store,
    clusterId,
    memberId,
    term,
    replayed: { records: restorer.records, bytes, cutBytes: found?.cutBytes ?? 0 },
    log,
    snapshot: () => snapshots.begin(),
    defragment: () => defragment(store, snapshots),
    close: async () => {
      clockwork.stop();
      home.stop();
      if (!store.hasFailed) await home.lookLast();
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      await closeLog({ store, log, snapshots, turn });
      lock.release();
    },
  };
}
