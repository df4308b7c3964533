// shell: the file system
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes `dir` and the parents that it lacks, for their owner alone; nothing where it is there. One
 * by one: Node's recursive way never returns where a file system takes no directories (`/proc`).
 * Throws what the file system says, also when `dir` is something else.
 */
export function makeDirectory(dir: string): void {
  if (isDirectory(dir)) return;
  const parent = dirname(dir);
  if (parent !== dir && !existsSync(parent)) makeDirectory(parent);
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    // Somebody else may have made it just now.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isDirectory(dir)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
