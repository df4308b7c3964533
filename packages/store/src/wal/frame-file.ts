// shell: a file of frames that is written past the page cache where that pays
/**
 * A large group of frames goes to the disk directly from the memory in which it was gathered
 * (O_DIRECT): through the page cache each 4 KiB would cost a fresh page, a copy, and its removal,
 * 2 to 3 microseconds per KiB where the machine is virtual, against 0.15. A small group goes
 * through the page cache, where it need not wait for the disk.
 *
 * Direct writes begin and end at multiples of DIRECT_BYTES, so zeros may stand behind a frame up to
 * the next multiple. Both kinds of write never share a page, which keeps them coherent.
 */
import { closeSync, constants, fdatasyncSync, openSync, writeSync, writevSync } from 'node:fs';
import { DIRECT_BYTES } from './frame.ts';

/** Groups below this go through the page cache. */
const DIRECT_GROUP_BYTES_MIN = 32 * 1024;

export class FrameFile {
  readonly fd: number;
  /** -1 where the file system does not know direct writes. */
  #directFd: number;
  /** Bytes of the file, and where the next frame goes. */
  size = 0;

  /** `flags` as for `open`: `wx` for a new file, `w` for one that may stand there. */
  constructor(path: string, flags: 'w' | 'wx', header: Buffer) {
    this.fd = openSync(path, flags, 0o600);
    this.#directFd = openDirect(path);
    this.#through([header], header.length);
  }

  /**
   * Appends frames. Each begins its own memory, which is aligned to pages and has room for padding
   * up to the next multiple of DIRECT_BYTES. Throws the error of the file system.
   */
  append(frames: readonly Buffer[]): void {
    let total = 0;
    for (const frame of frames) total += frame.length;
    const isLarge = total >= DIRECT_GROUP_BYTES_MIN && this.#directFd >= 0;
    if (isLarge && this.#direct(frames)) return;
    this.#through(frames, total);
  }

  /** False when nothing was written because this file cannot be written so. */
  #direct(frames: readonly Buffer[]): boolean {
    const at = roundUp(this.size);
    const whole = frames.map((frame) => padded(frame));
    let total = 0;
    for (const one of whole) total += one.length;
    let done = 0;
    try {
      done = writevSync(this.#directFd, whole, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
      closeSync(this.#directFd);
      this.#directFd = -1;
      return false;
    }
    if (done < total) finish(this.fd, whole, at, done, total);
    this.size = at + total;
    return true;
  }

  #through(frames: readonly Buffer[], total: number): void {
    const done = writevSync(this.fd, frames, this.size);
    if (done < total) finish(this.fd, frames, this.size, done, total);
    this.size += total;
  }

  /** Writes the header anew, now that more is known. */
  reheader(header: Buffer): void {
    finish(this.fd, [header], 0, 0, header.length);
  }

  skipTo(size: number): void {
    this.size = size;
  }

  /** Returns when all of it is on the disk. */
  flush(): void {
    fdatasyncSync(this.fd);
  }

  close(): void {
    closeSync(this.fd);
    this.closeDirect();
  }

  /** Nothing more is appended. */
  closeDirect(): void {
    if (this.#directFd >= 0) closeSync(this.#directFd);
    this.#directFd = -1;
  }
}

function openDirect(path: string): number {
  const direct = (constants as { O_DIRECT?: number }).O_DIRECT;
  if (direct === undefined) return -1;
  try {
    return openSync(path, constants.O_WRONLY | direct);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EINVAL') return -1;
    throw error;
  }
}

function roundUp(size: number): number {
  return Math.ceil(size / DIRECT_BYTES) * DIRECT_BYTES;
}

function padded(frame: Buffer): Buffer {
  const size = roundUp(frame.length);
  const whole = Buffer.from(frame.buffer, frame.byteOffset, size);
  return whole.fill(0, frame.length, size);
}

/** A write that was cut short: the rest, byte by byte where it must be. */
function finish(
  fd: number,
  buffers: readonly Buffer[],
  at: number,
  written: number,
  total: number,
): void {
  const all = Buffer.concat(buffers);
  for (let done = written; done < total;) done += writeSync(fd, all, done, total - done, at + done);
}
