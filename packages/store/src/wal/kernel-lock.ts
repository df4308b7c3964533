// shell: a lock that the kernel holds for this process
/**
 * A file that names its holder by process id cannot be judged in another container, where that id
 * is nobody's or somebody else's. The kernel knows: a lock on a file (fcntl) belongs to the process
 * whatever it is called, ends with it however it ends, is not inherited by its children, and holds
 * on network file systems too, where the server keeps it. Node has no call for it, SQLite takes
 * just this one for an exclusive transaction on a file that nothing is ever written to, and sees to
 * it that two takers in one process exclude each other as well.
 *
 * Nobody else in this process may open that file: closing it would end the lock.
 */
import { closeSync, openSync, rmSync, stat, statSync, type Stats } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** SQLite's result code: somebody else has it. */
const SQLITE_BUSY = 5;
/** Extended result codes have the plain one in these bits. */
const PLAIN_CODE_BITS = 0xff;
const ATTEMPTS_MAX = 5;

export interface KernelLock {
  /** Removes the file and lets others have their own. */
  release(): void;
  /** Tells whether the file that is locked has not this name any more. */
  isLost(tell: (isLost: boolean) => void): void;
}

/** Locks a file, which is made where there is none. Null while another process has it. */
export function lockFile(path: string): KernelLock | null {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    makeFile(path);
    const before = statSync(path, { throwIfNoEntry: false });
    const database = lockExclusively(path);
    if (database === null) return null;
    // Its last holder may have removed it between: an inode that is open is not given anew.
    const file = statSync(path, { throwIfNoEntry: false });
    if (file !== undefined && before !== undefined && isSame(file, before)) {
      return heldFile(path, database, file);
    }
    database.close();
  }
  return null;
}

function makeFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function lockExclusively(path: string): DatabaseSync | null {
  const database = new DatabaseSync(path);
  try {
    // Nothing is written that a journal, a file of its own, would be for.
    database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    const { errcode = 0 } = error as { readonly errcode?: number };
    if ((errcode & PLAIN_CODE_BITS) === SQLITE_BUSY) return null;
    throw new Error(`${path} cannot be locked: ${(error as Error).message}`, { cause: error });
  }
}

function heldFile(path: string, database: DatabaseSync, file: Stats): KernelLock {
  return {
    release: () => {
      if (!database.isOpen) return;
      const found = statSync(path, { throwIfNoEntry: false });
      if (found !== undefined && isSame(found, file)) rmSync(path, { force: true });
      database.close();
    },
    isLost: (tell) =>
      stat(path, (failure, found) => {
        if (failure === null) tell(!isSame(found, file));
        else tell(failure.code === 'ENOENT' || failure.code === 'ENOTDIR');
      }),
  };
}

function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev;
}
