// shell: knows whose process this is
/** Paths as kwok's files write them. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The whole path: `~/` is the user's home, all else begins where the process does; '' stays. */
export function homePath(path: string): string {
  if (path === '') return path;
  if (path === '~' || path.startsWith('~/')) return join(homedir(), path.slice(1));
  return resolve(path);
}
