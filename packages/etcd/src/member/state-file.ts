// shell: a copy of a group's state on this member's disk
/**
 * One file in a directory of its own: pieces as the leader sends them, each with its length and
 * checksum. It is written beside the old one and takes its name when it is whole and flushed.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { makePrivateDirectory } from '@megaplane/base/private-file';
import type { Place } from '@megaplane/store/journal/member';
import { StateTaker, isLastPiece, lastPiece } from '@megaplane/store/journal/state';
import type { Store } from '@megaplane/store/store';

const NAME = 'state.mpj';
const HEAD_BYTES = 8;
const PIECE_BYTES_MAX: number = 64 * 1024 * 1024;

export class StateFile {
  readonly #dir: string;

  /** Throws where the directory cannot be used. */
  constructor(dir: string) {
    this.#dir = dir;
    makePrivateDirectory(dir);
    rmSync(join(dir, `${NAME}.part`), { force: true });
  }

  /** Begins a new copy. */
  write(): StateFileWriter {
    return new StateFileWriter(this.#dir);
  }

  /** Fills a fresh store; null where there is no copy. Throws where it is damaged. */
  read(store: Store, nowMs: number): StateTaker['place'] {
    const taker = new StateTaker(store, nowMs);
    const wrong = this.#pieces((piece) => taker.take(piece));
    if (wrong === 'absent') return null;
    if (wrong === null && taker.place !== null) return taker.place;
    const what = wrong ?? 'it is cut off';
    const path = join(this.#dir, NAME);
    throw new Error(`${path} is damaged: ${what}; remove it, and this member asks its leader`);
  }

  #pieces(take: (piece: Buffer) => string | null): string | null {
    let fd = -1;
    try {
      fd = openSync(join(this.#dir, NAME), 'r');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'absent';
      throw error;
    }
    try {
      return readPieces(fd, take);
    } finally {
      closeSync(fd);
    }
  }

  /** When the copy was made. */
  get madeAt(): Date {
    return statSync(join(this.#dir, NAME)).mtime;
  }

  /** The copy, which is whole, belongs to another place from here on. */
  move(place: Place): void {
    const writer = this.write();
    try {
      this.#pieces((piece) => {
        writer.take(isLastPiece(piece) ? lastPiece(place) : piece);
        return null;
      });
    } catch (error) {
      writer.abandon();
      throw error;
    }
    writer.finish();
  }
}

function readPieces(fd: number, take: (piece: Buffer) => string | null): string | null {
  const head = Buffer.alloc(HEAD_BYTES);
  for (;;) {
    const count = readSync(fd, head, 0, HEAD_BYTES, null);
    if (count === 0) return null;
    const size = head.readUInt32LE(0);
    if (count < HEAD_BYTES || size > PIECE_BYTES_MAX) return 'a piece is cut off';
    const piece = Buffer.allocUnsafeSlow(size);
    for (let at = 0; at < size;) {
      const more = readSync(fd, piece, at, size - at, null);
      if (more === 0) return 'a piece is cut off';
      at += more;
    }
    if (crc32(piece) !== head.readUInt32LE(4)) return 'a checksum is wrong';
    const wrong = take(piece);
    if (wrong !== null) return wrong;
  }
}

export class StateFileWriter {
  readonly #dir: string;
  readonly #fd: number;
  bytes = 0;

  constructor(dir: string) {
    this.#dir = dir;
    this.#fd = openSync(join(dir, `${NAME}.part`), 'w', 0o600);
  }

  take(piece: Buffer): void {
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(piece.length, 0);
    head.writeUInt32LE(crc32(piece), 4);
    for (const part of [head, piece]) {
      for (let at = 0; at < part.length;) at += writeSync(this.#fd, part, at, part.length - at);
      this.bytes += part.length;
    }
  }

  /** All is in: from here on it is the copy. */
  finish(): void {
    fsyncSync(this.#fd);
    closeSync(this.#fd);
    renameSync(join(this.#dir, `${NAME}.part`), join(this.#dir, NAME));
    const dir = openSync(this.#dir, 'r');
    fsyncSync(dir);
    closeSync(dir);
  }

  abandon(): void {
    closeSync(this.#fd);
    rmSync(join(this.#dir, `${NAME}.part`), { force: true });
  }
}
