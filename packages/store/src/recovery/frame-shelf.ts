// data plane: checks the frames of files and tells batches where their records lie
/**
 * The walk over frames that the reading thread does. A file comes in pieces, each read into an
 * arena of its own; what a frame holds may lie in several of them. The walk ends at the first frame
 * that does not check, does not follow, or asks for more room than there is: whoever restores looks
 * at it then. A group of frames is put together first, because it counts as a whole.
 *
 *   arena   [ hole | record | record | hole: frame header, control | record | ... | hole ]
 */
import {
  FILE_HEADER_BYTES,
  FLAG_GOES_ON,
  FORMAT_VERSION,
  FRAME_BAD_PAYLOAD,
  FRAME_HEADER_BYTES,
  FRAME_OK,
  FRAME_SHORT,
  checkFrameHeader,
  decodeFileHeader,
  paddingAt,
} from '../wal/frame.ts';
import { crc32 } from 'node:zlib';
import { ARENA_BYTES, HEADER_BYTES } from '../record/arenas.ts';
import { CONTROL_BYTES } from '../wal/log-batch.ts';
import type { ReadBatch } from './read-batch.ts';
import { HOLE_BYTES_MIN, RecordShelf, type ShelfStart, recordSize } from './record-shelf.ts';

/** A group of frames beyond this is left to the thread that restores. */
const GROUP_BYTES_MAX: number = 64 * 1024 * 1024;
/** Share of a piece that its records of one class take, so that those of the next one stay. */
const KEPT_SHARE_MIN = 15 / 16;

interface Piece {
  readonly arena: number;
  readonly bytes: Buffer;
  readonly words: Uint32Array;
  readonly from: number;
  readonly end: number;
  /** Do records stay where they were read, and of which class; -1 before the first one. */
  isKept: boolean;
  klass: number;
  /** Bytes of records that could stay. */
  fitBytes: number;
  /** Behind the last record that stays. */
  holeAt: number;
}

export class FrameShelf {
  readonly shelf: RecordShelf;
  /** Gives the batch away and returns an empty one. */
  readonly #give: () => ReadBatch;
  #batch: ReadBatch;
  #file = 0;
  /** Place in the file, and in the first of the pieces that were not walked to their ends. */
  #fileAt = 0;
  #at = 0;
  #pieces: Piece[] = [];
  /** The piece whose record was looked at last. */
  #last: Piece | null = null;
  #chain = 0;
  readonly #header: Buffer = Buffer.alloc(FRAME_HEADER_BYTES);
  #scratch: Buffer = Buffer.from(new ArrayBuffer(64 * 1024));
  #group: Buffer[] = [];
  #groupControl: Buffer[] = [];
  #groupBytes = 0;

  constructor(start: { readonly shelf: ShelfStart }, batch: ReadBatch, give: () => ReadBatch) {
    this.shelf = new RecordShelf(start.shelf);
    this.#batch = batch;
    this.#give = give;
  }

  /** False when the file before did not end with a whole frame, or group. */
  begin(file: number): boolean {
    this.#file = file;
    this.#fileAt = 0;
    return this.#pieces.length === 0 && this.#groupBytes === 0;
  }

  /**
   * Takes the next piece of the file, which was read into `arena` between `from` and `end`. False
   * when there is nothing more to do.
   */
  take(arena: number, from: number, end: number, isLog: boolean): boolean {
    const bytes = this.shelf.bytes(arena);
    const words = this.shelf.words(arena);
    if (this.#pieces.length === 0) this.#at = from;
    const piece = {
      arena,
      bytes,
      words,
      from,
      end,
      isKept: false,
      klass: -1,
      fitBytes: 0,
      holeAt: 0,
    };
    this.#pieces.push(piece);
    if (this.#fileAt === 0 && !this.#fileHeader(piece, isLog)) return false;
    let state = FRAME_OK;
    while (this.#pieces.length > 0 && state === FRAME_OK) {
      const first = this.#pieces[0]!;
      const padding = paddingAt(first.bytes, this.#at, first.end, this.#fileAt);
      if (padding > 0) this.#advance(padding);
      else state = this.#frame();
    }
    // An open group counts for nothing yet: the place behind what is told stays where it began.
    if (this.#groupBytes === 0) this.#seal(this.#fileAt);
    return state === FRAME_OK || state === FRAME_SHORT;
  }

  #fileHeader({ bytes, from, end }: Piece, isLog: boolean): boolean {
    const header = decodeFileHeader(bytes.subarray(from, end));
    if (header === null || header.version > FORMAT_VERSION) return false;
    this.#chain = isLog ? header.chain : 0;
    this.#advance(FILE_HEADER_BYTES);
    return true;
  }

  #seal(fileAt: number, isWhole = true): void {
    if (this.#batch.frames === 0) return;
    this.#batch.seal(this.#file, fileAt, isWhole);
    this.#batch = this.#give();
  }

  /** Bytes that are here and were not walked over. */
  #available(): number {
    let size = -this.#at;
    for (const [index, { from, end }] of this.#pieces.entries()) {
      size += index === 0 ? end : end - from;
    }
    return size;
  }

  #advance(size: number): void {
    this.#fileAt += size;
    this.#at += size;
    for (let piece = this.#pieces[0]!; this.#at >= piece.end; piece = this.#pieces[0]!) {
      this.#pieces.shift();
      if (piece.holeAt === 0) this.shelf.giveArena(piece.arena);
      const next = this.#pieces[0];
      if (next === undefined) return;
      this.#at += next.from - piece.end;
    }
  }

  /** Copies what lies `skip` bytes further on. */
  #copyOut(skip: number, size: number, target: Buffer, to: number): void {
    let at = this.#at + skip;
    let done = 0;
    for (let index = 0; done < size; index++) {
      const { bytes, end } = this.#pieces[index]!;
      if (at < end) {
        const count = bytes.copy(target, to + done, at, Math.min(end, at + size - done));
        done += count;
        at += count;
      }
      at += (this.#pieces[index + 1]?.from ?? 0) - end;
    }
  }

  #crcOf(skip: number, size: number): number {
    let at = this.#at + skip;
    let left = size;
    let crc = 0;
    for (let index = 0; left > 0; index++) {
      const { bytes, end } = this.#pieces[index]!;
      const to = Math.min(end, at + left);
      if (at < to) {
        crc = crc32(bytes.subarray(at, to), crc);
        left -= to - at;
        at = to;
      }
      at += (this.#pieces[index + 1]?.from ?? 0) - end;
    }
    return crc;
  }

  #frame(): number {
    const available = this.#available();
    if (available < FRAME_HEADER_BYTES) return FRAME_SHORT;
    const header = this.#header;
    this.#copyOut(0, FRAME_HEADER_BYTES, header, 0);
    const state = checkFrameHeader(header, 0, this.#chain);
    if (state !== FRAME_OK) return state;
    const size = header.readUInt32LE(16);
    if (available < FRAME_HEADER_BYTES + size) return FRAME_SHORT;
    const crc = this.#crcOf(FRAME_HEADER_BYTES, size);
    if (crc !== header.readUInt32LE(12) || !this.#take(size)) return FRAME_BAD_PAYLOAD;
    this.#advance(FRAME_HEADER_BYTES + size);
    return FRAME_OK;
  }

  /** A whole frame; false when it must be left to the thread that restores. */
  #take(size: number): boolean {
    const header = this.#header;
    const controlSize = header.readUInt32LE(20);
    const recordsAt = FRAME_HEADER_BYTES + controlSize;
    const recordsSize = size - controlSize;
    const wallMs = header.readDoubleLE(40);
    const crc = header.readUInt32LE(4);
    const goesOn = (header.readUInt32LE(48) & FLAG_GOES_ON) !== 0;
    if (goesOn || this.#groupBytes > 0) {
      if (this.#groupBytes === 0) this.#seal(this.#fileAt);
      this.#groupControl.push(this.#part(FRAME_HEADER_BYTES, controlSize));
      this.#group.push(this.#part(recordsAt, recordsSize));
      this.#groupBytes += FRAME_HEADER_BYTES + size;
      this.#chain = crc;
      if (this.#groupBytes > GROUP_BYTES_MAX) return false;
      return goesOn || this.#endGroup(wallMs, crc, this.#fileAt + FRAME_HEADER_BYTES + size);
    }
    if (!this.shelf.hasRoom(recordsSize)) return false;
    if (!this.#batch.hasRoom(controlSize, recordsSize)) this.#seal(this.#fileAt);
    const batch = this.#batch;
    this.#copyOut(FRAME_HEADER_BYTES, controlSize, batch.control, batch.controlSize);
    batch.controlSize += controlSize;
    this.#records(recordsAt, recordsSize);
    batch.addFrame(wallMs, crc);
    this.#chain = crc;
    return true;
  }

  #part(skip: number, size: number): Buffer {
    const part = Buffer.alloc(size);
    this.#copyOut(skip, size, part, 0);
    return part;
  }

  #records(skip: number, size: number): void {
    let index = 0;
    let at = this.#at + skip;
    const to = skip + size;
    for (let done = skip; done < to;) {
      const piece = this.#pieces[index]!;
      if (at >= piece.end) {
        index++;
        at += this.#pieces[index]!.from - piece.end;
        continue;
      }
      let bytes = at + HEADER_BYTES <= piece.end ? recordSize(piece.words, at >> 2) : 0;
      if (bytes > 0 && at + bytes <= piece.end) this.#place(piece, at, bytes);
      else bytes = this.#gather(done);
      at += bytes;
      done += bytes;
    }
  }

  /** A record that lies in one piece. */
  #place(piece: Piece, at: number, size: number): void {
    const { shelf } = this;
    const klass = shelf.classOf(piece.bytes, piece.words, at);
    if (piece !== this.#last) this.#nextPiece(piece, klass);
    const isFit = klass === piece.klass;
    if (isFit) piece.fitBytes += size;
    const hole = at - piece.holeAt;
    if (isFit && piece.isKept && (hole === 0 || hole >= HOLE_BYTES_MIN)) {
      shelf.keep(piece.arena, piece.holeAt, at, klass, this.#batch);
      piece.holeAt = at + size;
    } else {
      shelf.copy(piece.bytes, piece.words, at, size, klass, this.#batch);
    }
  }

  /** Records stay where they are if those of the piece before could have. */
  #nextPiece(piece: Piece, klass: number): void {
    const last = this.#last;
    piece.isKept = last === null || last.fitBytes >= (last.end - last.from) * KEPT_SHARE_MIN;
    piece.klass = klass;
    this.#last = piece;
  }

  /** A record that begins in one piece and ends in another. Returns its size. */
  #gather(skip: number): number {
    this.#copyOut(skip, HEADER_BYTES, this.#scratch, 0);
    let words = wordsOf(this.#scratch);
    const size = recordSize(words, 0);
    if (size > this.#scratch.length) {
      this.#scratch = Buffer.from(new ArrayBuffer(size * 2));
      words = wordsOf(this.#scratch);
    }
    this.#copyOut(skip, size, this.#scratch, 0);
    const klass = this.shelf.classOf(this.#scratch, words, 0);
    this.shelf.copy(this.#scratch, words, 0, size, klass, this.#batch);
    return size;
  }

  /** The group is whole: told as one frame, in parts where a batch does not hold it. */
  #endGroup(wallMs: number, crc: number, fileAt: number): boolean {
    const control = Buffer.concat(this.#groupControl);
    const records = concatAligned(this.#group);
    const words = wordsOf(records);
    const batch = this.#batch;
    const isSmall = control.length <= batch.control.length;
    if (!isSmall || !this.shelf.hasRoom(records.length) || hasGiant(words)) return false;
    this.#groupControl = [];
    this.#group = [];
    this.#groupBytes = 0;
    const controlSize = control.length - (control.length % CONTROL_BYTES);
    batch.controlSize += control.copy(batch.control, batch.controlSize, 0, controlSize);
    for (let at = 0; ;) {
      at = this.shelf.copyAll(records, words, at, records.length, this.#batch);
      this.#batch.addFrame(wallMs, crc);
      const isWhole = at >= records.length;
      this.#seal(fileAt, isWhole);
      if (isWhole) return true;
    }
  }
}

function wordsOf(bytes: Buffer): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
}

function concatAligned(parts: readonly Buffer[]): Buffer {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = Buffer.from(new ArrayBuffer(size));
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return whole;
}

function hasGiant(words: Uint32Array): boolean {
  for (let word = 0; word < words.length;) {
    const size = recordSize(words, word);
    if (size > ARENA_BYTES) return true;
    word += size >> 2;
  }
  return false;
}
