// shell: one process per data directory
/**
 * Two locks. One is the kernel's, on a file of its own, see kernel-lock.ts: it holds between
 * containers and machines. The other is a file that names its holder by process id, start time and
 * boot, for people and for whoever looks whether the directory is still the same: a holder that was
 * killed does not lock anybody out, and a process id that was given to another program does not
 * either.
 */
import { linkSync, readFile, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KernelLock, lockFile } from './kernel-lock.ts';

const ATTEMPTS_MAX = 5;

export interface DirectoryLock {
  release(): void;
  /** Tells whether its file is gone, or names somebody else. A disk that fails tells no. */
  isLost(tell: (isLost: boolean) => void): void;
  /** Takes it once more where its file is gone. Throws when it names somebody else. */
  retake(): void;
}

/** Takes the lock of a directory. Throws an Error that names the holder when there is one. */
export function lockDirectory(dir: string): DirectoryLock {
  const path = join(dir, 'lock');
  const mine = `${process.pid} ${startTime(process.pid) ?? '-'} ${bootId()}\n`;
  let kernel = lockKernel(dir, path);
  try {
    takeName(dir, path, mine);
  } catch (error) {
    kernel.release();
    throw error;
  }
  return {
    release: () => {
      release(path, mine);
      kernel.release();
    },
    isLost: (tell) =>
      readFile(path, 'latin1', (failure, found) => {
        if (failure === null ? found !== mine : isGone(failure)) tell(true);
        else kernel.isLost(tell);
      }),
    retake: () => {
      const found = readOrNull(path);
      // Its process may be of another container, where nobody here can see whether it runs.
      if (found !== null && found !== mine) throw inUse(dir, found);
      kernel.release();
      kernel = lockKernel(dir, path);
      if (found === null) takeName(dir, path, mine);
    },
  };
}

function lockKernel(dir: string, path: string): KernelLock {
  const kernel = lockFile(join(dir, 'kernel.lock'));
  if (kernel !== null) return kernel;
  const holder = readOrNull(path);
  if (holder !== null) throw inUse(dir, holder);
  throw new Error(
    `the data directory ${dir} is in use by another process, perhaps of another container or ` +
      'machine, or its file system takes no locks; stop that process, or give this one another ' +
      'directory',
  );
}

/** Writes who has the directory. Throws when the file names a process that runs. */
function takeName(dir: string, path: string, mine: string): void {
  const draft = join(dir, `lock.${process.pid}`);
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      if (tryLink(draft, path)) return;
      const theirs = readOrNull(path);
      if (theirs === null) continue;
      if (isHeld(theirs)) throw inUse(dir, theirs);
      // Only one of two that see the same stale lock can take it out of the way.
      const stale = join(dir, `lock.stale.${process.pid}`);
      if (tryRename(path, stale)) {
        if (readOrNull(stale) !== theirs) renameSync(stale, path);
        else rmSync(stale);
      }
    }
    throw new Error(`the data directory ${dir} is being opened by another process right now`);
  } finally {
    rmSync(draft, { force: true });
  }
}

function inUse(dir: string, line: string): Error {
  return new Error(
    `the data directory ${dir} is in use by process ${line.split(' ')[0] ?? '?'}; ` +
      'stop that process, or give this one another directory',
  );
}

/** No file has this name, or what was its directory is none any more. */
export function isGone(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function tryRename(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

function release(path: string, mine: string): void {
  if (readOrNull(path) === mine) rmSync(path, { force: true });
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function isHeld(line: string): boolean {
  const [pid = '', start = '', boot = ''] = line.trim().split(' ');
  if (boot !== '-' && boot !== bootId()) return false;
  const now = startTime(Number(pid));
  if (now !== null) return start === '-' || now === start;
  return start === '-' && isAlive(Number(pid));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Ticks from boot to the start of a process, where there is a /proc; null when it is gone. One that
 * has ended but was not waited for by its parent (a zombie) holds no files any more.
 */
function startTime(pid: number): string | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? null : (fields[19] ?? null);
}

/** Names the running boot of the machine; `-` where that is not told. */
export function bootId(): string {
  return readOrNull('/proc/sys/kernel/random/boot_id')?.trim() ?? '-';
}
