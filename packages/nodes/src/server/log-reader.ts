// shell: reads log files, and waits for what is added to them
/** A container's log as a client reads it: from the end or all of it, and on if it is followed. */
import { ownMember } from '@megaplane/base/members';
import { open, realpath, stat, type FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { homePath } from '../client/home-path.ts';
import { LogPrinter, type LogOptions } from './log-lines.ts';

const CHUNK_BYTES: number = 64 * 1024;
/** A line is no longer than this; what is longer is cut. */
const LINE_BYTES_MAX: number = 1024 * 1024;
/** A followed log is looked at so often. */
const FOLLOW_MS = 100;
const NEWLINE = 0x0a;

export interface LogTarget {
  /** Resolves when more may be written. */
  write(bytes: Buffer): Promise<void> | void;
  /** The client is gone. */
  readonly isClosed: boolean;
}

/** A log that can be read; its texts for people are those of the kubelet. */
export class LogReader {
  readonly #path: string;
  #file: FileHandle;
  #inode: number;
  #offset = 0;
  #rest: Buffer = Buffer.alloc(0);
  /** What took the place of a rotated file. */
  #successor: FileHandle | null = null;

  private constructor(path: string, file: FileHandle, inode: number) {
    this.#path = path;
    this.#file = file;
    this.#inode = inode;
  }

  /** Rejects with an Error that says why the log cannot be read. */
  static async open(name: string): Promise<LogReader> {
    const path = homePath(name);
    let resolved: string;
    try {
      resolved = await realpath(path);
    } catch (error) {
      const why = `lstat ${path}: ${reasonOf(error)}`;
      throw new Error(`failed to try resolving symlinks in path ${JSON.stringify(path)}: ${why}`, {
        cause: error,
      });
    }
    try {
      const file = await open(resolved, 'r');
      return new LogReader(resolved, file, (await file.stat()).ino);
    } catch (error) {
      const why = `open ${resolved}: ${reasonOf(error)}`;
      throw new Error(`failed to open log file ${JSON.stringify(resolved)}: ${why}`, {
        cause: error,
      });
    }
  }

  /** Writes the log to its target; resolves when all was written, or the client is gone. */
  async print(options: LogOptions, target: LogTarget): Promise<void> {
    const printer = new LogPrinter(options);
    const { tailLines, follow } = options;
    try {
      if (tailLines >= 0) this.#offset = await this.#tailStart(tailLines);
      let left = tailLines >= 0 && !follow ? tailLines : Infinity;
      while (!target.isClosed && !printer.isFull && left > 0) {
        const lines = await this.#lines();
        for (const line of lines) {
          if (left-- <= 0 || printer.isFull || target.isClosed) break;
          const shown = printer.print(line);
          if (shown.length > 0) await target.write(shown);
        }
        if (lines.length > 0) continue;
        if (!follow) break;
        await this.#onward();
      }
      if (!follow && this.#rest.length > 0 && left > 0 && !printer.isFull) {
        await target.write(printer.print(this.#rest));
      }
    } finally {
      await this.#file.close();
      await this.#successor?.close();
    }
  }

  /** The next whole lines; none at the end of the file. */
  async #lines(): Promise<Buffer[]> {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const bytesRead = await this.#read(chunk, CHUNK_BYTES, this.#offset);
    if (bytesRead === 0) return [];
    this.#offset += bytesRead;
    let text = Buffer.concat([this.#rest, chunk.subarray(0, bytesRead)]);
    const lines: Buffer[] = [];
    for (let end = text.indexOf(NEWLINE); end >= 0; end = text.indexOf(NEWLINE)) {
      lines.push(text.subarray(0, end + 1));
      text = text.subarray(end + 1);
    }
    this.#rest = text.subarray(0, LINE_BYTES_MAX);
    // something was read: an empty list would say that nothing is left
    return lines.length > 0 ? lines : this.#lines();
  }

  /** Where the last `count` lines begin; what has no line break yet is none of them. */
  async #tailStart(count: number): Promise<number> {
    const { size } = await this.#file.stat();
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let found = 0;
    for (let end = size; end > 0; end -= CHUNK_BYTES) {
      const start = Math.max(0, end - CHUNK_BYTES);
      const bytesRead = await this.#read(chunk, end - start, start);
      for (let at = bytesRead - 1; at >= 0; at--) {
        if (chunk[at] === NEWLINE && ++found > count) return start + at + 1;
      }
    }
    return 0;
  }

  async #read(into: Buffer, length: number, offset: number): Promise<number> {
    try {
      return (await this.#file.read(into, 0, length, offset)).bytesRead;
    } catch (error) {
      const why = `read ${this.#path}: ${reasonOf(error)}`;
      throw new Error(`failed to read log file ${JSON.stringify(this.#path)}: ${why}`, {
        cause: error,
      });
    }
  }

  /**
   * At the end of a followed file: waits, or goes on where the log was rotated or cut. A rotated
   * file is read to its end once more first, as it was added to until then; a line that it leaves
   * without an end stays without one.
   */
  async #onward(): Promise<void> {
    if (this.#successor !== null) {
      await this.#file.close();
      this.#file = this.#successor;
      this.#successor = null;
      this.#inode = (await this.#file.stat()).ino;
      this.#begin();
      return;
    }
    await sleep(FOLLOW_MS);
    let present;
    try {
      present = await stat(this.#path);
      if (present.ino !== this.#inode) this.#successor = await open(this.#path, 'r');
    } catch (error) {
      // between the old file and the new one there is none
      if (reasonOf(error) === 'no such file or directory') return;
      throw error;
    }
    if (present.ino === this.#inode && present.size < this.#offset) this.#begin();
  }

  #begin(): void {
    this.#offset = 0;
    this.#rest = Buffer.alloc(0);
  }
}

/** Go's words for what the system said. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const words: Readonly<Record<string, string>> = {
    ENOENT: 'no such file or directory',
    EACCES: 'permission denied',
    EPERM: 'operation not permitted',
    EISDIR: 'is a directory',
    ENOTDIR: 'not a directory',
    ECONNREFUSED: 'connection refused',
  };
  return ownMember(words, code ?? '') ?? message;
}
