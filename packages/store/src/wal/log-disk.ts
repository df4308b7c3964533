// shell: the directory of a log on a file system
/**
 * Somebody may remove or move the directory while it is written. What is done to it then does what
 * can be done, so that the log goes on: home.ts notices that files are missing, and has everything
 * written anew.
 */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '@megaplane/base/directory';
import { FrameFile } from './frame-file.ts';
import { isGone } from './lock.ts';
import type { LogDisk, LogFile } from './log-writer.ts';

export class DirectoryDisk implements LogDisk {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  create(name: string, isNew: boolean, header: Buffer): LogFile {
    const open = (): LogFile => new FrameFile(join(this.#dir, name), isNew ? 'wx' : 'w', header);
    return (
      unlessGone(open) ??
      unlessGone(() => {
        makeDirectory(this.#dir);
        return open();
      }) ??
      open()
    );
  }

  sync(): void {
    unlessGone(() => {
      const fd = openSync(this.#dir, 'r');
      fsyncSync(fd);
      closeSync(fd);
    });
  }

  rename(from: string, to: string): boolean {
    const isDone = unlessGone(() => {
      renameSync(join(this.#dir, from), join(this.#dir, to));
      return true;
    });
    return isDone ?? false;
  }

  list(): readonly string[] {
    return unlessGone(() => readdirSync(this.#dir)) ?? [];
  }

  remove(name: string): void {
    rmSync(join(this.#dir, name), { force: true });
  }
}

/** What `act` returns, or null where what it works on is gone. */
function unlessGone<T>(act: () => T): T | null {
  try {
    return act();
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}
