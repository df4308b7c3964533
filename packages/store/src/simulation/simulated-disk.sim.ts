// shell: writes what survived a simulated crash to a real directory
/**
 * A disk in memory that forgets as real ones do. Per file it knows what was written and what was
 * flushed; names count once their directory was synced. A killed process loses nothing of it. A
 * power cut leaves, of everything that was not flushed, any subset of sectors, the last of them
 * perhaps torn, and any name that was not synced, or not.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '@megaplane/base/random';
import { DIRECT_BYTES } from '../wal/frame.ts';
import type { LogDisk, LogFile } from '../wal/log-writer.ts';

const SECTOR_BYTES = 512;
const SPACE_BYTES = 64 * 1024 * 1024;

interface Content {
  written: Buffer;
  flushed: Buffer;
  /** Ranges, from and to, whose flush has failed: later ones take them for done. */
  readonly doubtful: number[];
}

export interface DiskFaults {
  /**
   * The next flush fails, and nobody knows what of it is on the disk: nobody is told a second time,
   * and later flushes do not write it.
   */
  failsFlush: boolean;
  /** Bytes left; a write beyond them is cut short and fails. */
  spaceBytes: number;
}

class DiskError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`${code}: simulated`);
    this.code = code;
  }
}

class SimulatedFile implements LogFile {
  readonly fd: number;
  readonly content: Content;
  readonly #disk: SimulatedDisk;
  size: number;

  constructor(disk: SimulatedDisk, fd: number, header: Buffer) {
    this.#disk = disk;
    this.fd = fd;
    this.content = { written: Buffer.from(header), flushed: Buffer.alloc(0), doubtful: [] };
    this.size = header.length;
  }

  append(frames: readonly Buffer[]): void {
    const bytes = Buffer.concat(frames);
    const isDirect = this.#disk.random.next() < 0.2;
    const at = isDirect ? Math.ceil(this.size / DIRECT_BYTES) * DIRECT_BYTES : this.size;
    const end = at + bytes.length;
    const whole = Buffer.alloc(isDirect ? Math.ceil(end / DIRECT_BYTES) * DIRECT_BYTES : end);
    this.content.written.copy(whole);
    bytes.copy(whole, at);
    this.#disk.take(whole.length - this.size, (room) => {
      this.content.written = whole.subarray(0, this.size + room);
    });
    this.content.written = whole;
    this.size = whole.length;
  }

  reheader(header: Buffer): void {
    this.content.written = Buffer.from(this.content.written);
    header.copy(this.content.written);
  }

  flush(): void {
    const { faults } = this.#disk;
    if (faults.failsFlush) {
      faults.failsFlush = false;
      this.content.doubtful.push(this.content.flushed.length, this.content.written.length);
      throw new DiskError('EIO');
    }
    this.content.flushed = Buffer.from(this.content.written);
  }

  closeDirect(): void {}

  /** Nobody else appends here. */
  skipTo(): void {}

  close(): void {
    this.#disk.close(this.fd);
  }
}

export class SimulatedDisk implements LogDisk {
  readonly random: Random;
  readonly faults: DiskFaults = { failsFlush: false, spaceBytes: SPACE_BYTES };
  #names: Map<string, Content> = new Map();
  #synced: Map<string, Content> = new Map();
  readonly #files: Map<number, SimulatedFile> = new Map();
  #fd = 100;

  constructor(random: Random) {
    this.random = random;
  }

  /** Takes space; on too little of it calls `onCut` with what there was, and throws. */
  take(bytes: number, onCut: (room: number) => void): void {
    if (bytes <= this.faults.spaceBytes) {
      this.faults.spaceBytes -= bytes;
      return;
    }
    onCut(this.faults.spaceBytes);
    this.faults.spaceBytes = 0;
    throw new DiskError('ENOSPC');
  }

  create(name: string, isNew: boolean, header: Buffer): LogFile {
    if (isNew && this.#names.has(name)) throw new DiskError('EEXIST');
    this.take(header.length, () => {});
    const file = new SimulatedFile(this, this.#fd++, header);
    this.#names.set(name, file.content);
    this.#files.set(file.fd, file);
    return file;
  }

  /** The main thread's own flush. */
  flush(fd: number): void {
    const file = this.#files.get(fd);
    if (file === undefined) throw new DiskError('EBADF');
    file.flush();
  }

  close(fd: number): void {
    this.#files.delete(fd);
  }

  sync(): void {
    this.#synced = new Map(this.#names);
  }

  rename(from: string, to: string): boolean {
    const content = this.#names.get(from);
    if (content === undefined) throw new DiskError('ENOENT');
    this.#names.delete(from);
    this.#names.set(to, content);
    return true;
  }

  list(): readonly string[] {
    return [...this.#names.keys()];
  }

  remove(name: string): void {
    this.#names.delete(name);
  }

  /** Replaces a file by what the reader of a real directory made of it. */
  put(name: string, bytes: Buffer): void {
    const content = { written: bytes, flushed: bytes, doubtful: [] };
    this.#names.set(name, content);
    this.#synced.set(name, content);
  }

  /** What is there after a crash, by name. */
  survivors(isPowerCut: boolean): Map<string, Buffer> {
    if (!isPowerCut) {
      return new Map([...this.#names].map(([name, { written }]) => [name, Buffer.from(written)]));
    }
    const names = new Map(this.#synced);
    for (const [name, content] of this.#names) {
      if (!names.has(name) && this.random.next() < 0.5) names.set(name, content);
    }
    for (const name of this.#synced.keys()) {
      if (!this.#names.has(name) && this.random.next() < 0.5) names.delete(name);
    }
    return new Map([...names].map(([name, content]) => [name, this.#decay(content)]));
  }

  /** Any subset of the unflushed sectors, one of them perhaps torn. */
  #decay({ written, flushed, doubtful }: Content): Buffer {
    const keeps = this.random.next();
    const size = flushed.length + this.random.below(written.length - flushed.length + 1);
    const left = Buffer.alloc(size);
    flushed.copy(left);
    for (let at = 0; at < size; at += SECTOR_BYTES) {
      const end = Math.min(at + SECTOR_BYTES, size);
      if (end <= flushed.length || this.random.next() > keeps) continue;
      const isTorn = this.random.next() < 0.1;
      const to = isTorn ? at + this.random.below(end - at + 1) : end;
      const from = Math.max(at, flushed.length);
      if (to > from) written.copy(left, from, from, to);
    }
    for (let i = 0; i < doubtful.length; i += 2) {
      for (let at = doubtful[i]!; at < Math.min(size, doubtful[i + 1]!); at += SECTOR_BYTES) {
        if (this.random.next() < 0.5) left.fill(0, at, Math.min(at + SECTOR_BYTES, size));
      }
    }
    return left;
  }
}

/** Makes a directory of what survived. */
export function materialize(files: ReadonlyMap<string, Buffer>, dir: string): void {
  mkdirSync(dir, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(dir, name), bytes);
}
