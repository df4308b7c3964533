// shell: reads log files, and waits for what is added to them
/** A container's log as a client reads it: from the end or all of it, and on if it is followed. */
import { open, realpath, stat, type FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
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

  private constructor(path: string, file: FileHandle, inode: number) {
    this.#path = path;
    this.#file = file;
    this.#inode = inode;
  }

  /** Rejects with an Error that says why the log cannot be read. */
  static async open(path: string): Promise<LogReader> {
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
    try {
      if (options.tailLines >= 0) this.#offset = await this.#tailStart(options.tailLines);
      let left = options.tailLines >= 0 && !options.follow ? options.tailLines : Infinity;
      while (!target.isClosed && !printer.isFull && left > 0) {
        const lines = await this.#lines();
        for (const line of lines) {
          if (left-- <= 0 || printer.isFull || target.isClosed) break;
          const shown = printer.print(line);
          if (shown.length > 0) await target.write(shown);
        }
        if (lines.length > 0) continue;
        if (!options.follow) break;
        await sleep(FOLLOW_MS);
        await this.#reopen();
      }
      if (!options.follow && this.#rest.length > 0 && left > 0 && !printer.isFull) {
        await target.write(printer.print(this.#rest));
      }
    } finally {
      await this.#file.close();
    }
  }

  /** The next whole lines; none at the end of the file. */
  async #lines(): Promise<Buffer[]> {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const { bytesRead } = await this.#file.read(chunk, 0, CHUNK_BYTES, this.#offset);
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

  /** Where the last `count` lines begin. */
  async #tailStart(count: number): Promise<number> {
    const { size } = await this.#file.stat();
    if (count === 0) return size;
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let found = 0;
    for (let end = size; end > 0; end -= CHUNK_BYTES) {
      const start = Math.max(0, end - CHUNK_BYTES);
      const { bytesRead } = await this.#file.read(chunk, 0, end - start, start);
      for (let at = bytesRead - 1; at >= 0; at--) {
        // the break at the very end closes the last line and begins none
        if (chunk[at] !== NEWLINE || start + at === size - 1) continue;
        if (++found === count) return start + at + 1;
      }
    }
    return 0;
  }

  /** A log that was rotated goes on in a new file; one that was cut begins anew. */
  async #reopen(): Promise<void> {
    let present;
    try {
      present = await stat(this.#path);
    } catch (error) {
      // between the old file and the new one there is none
      if (reasonOf(error) === 'no such file or directory') return;
      throw error;
    }
    if (present.ino !== this.#inode) {
      const next = await open(this.#path, 'r');
      await this.#file.close();
      this.#file = next;
      this.#inode = present.ino;
      this.#offset = 0;
    } else if (present.size < this.#offset) this.#offset = 0;
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
  return words[code ?? ''] ?? message;
}
