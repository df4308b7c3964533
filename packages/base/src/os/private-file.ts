// shell: the file system
/**
 * Files that hold keys: for their owner alone, whatever lies in their place, and in directories
 * that nobody else may write to, as who may write there may put another file in the place of one.
 */
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { statSync, writeFileSync } from 'node:fs';
import { makeDirectory } from './directory.ts';

/** Writes of everybody. Groups may be meant to write: volumes of pods belong to one. */
const WRITTEN_BY_ALL = 0o002;
/** A new file, which is no link: one that somebody has put there keeps its owner and its mode. */
const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Writes `file` in one step, so that a reader never sees half of it. What an earlier try has left
 * beside it goes; throws EEXIST where somebody puts it there again.
 */
export function replacePrivately(file: string, text: string | Uint8Array): void {
  const partial = `${file}.partial`;
  const fd = openPrivately(partial);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(partial, file);
}

/** A new file for its owner alone, open to be written; one that was there is taken away. */
export function openPrivately(file: string): number {
  rmSync(file, { force: true });
  return openSync(file, NEW, 0o600);
}

/** Makes a directory as `makeDirectory` does; throws where everybody may write to it. */
export function makePrivateDirectory(dir: string): void {
  makeDirectory(dir);
  const { mode } = statSync(dir);
  if ((mode & WRITTEN_BY_ALL) === 0) return;
  const octal = (mode & 0o7777).toString(8).padStart(4, '0');
  throw new OpenDirectory(
    `${dir} may be written to by everybody (mode ${octal}), and what is in it ` +
      'may be replaced by others; ' +
      `take the right away: chmod o-w ${dir}`,
  );
}

/** Everybody may write to a directory that is to hold keys or data. */
export class OpenDirectory extends Error {
  readonly code: string = 'ERR_OPEN_DIRECTORY';
}
