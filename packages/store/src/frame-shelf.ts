// data plane: checks the frames of files and lays what they hold in arenas and batches
/**
 * The walk over frames that the reading thread does. It ends at the first frame that does not
 * check, does not follow, or asks for more room than there is: whoever restores looks at it then.
 * A group of frames is put together first, because it counts as a whole.
 */
import {
  FLAG_GOES_ON,
  FORMAT_VERSION,
  FRAME_HEADER_BYTES,
  FRAME_OK,
  FRAME_SHORT,
  checkFrame,
  decodeFileHeader,
  paddingAt,
} from './frame.ts';
import { ARENA_BYTES } from './arenas.ts';
import { CONTROL_BYTES } from './log-batch.ts';
import type { ReadBatch } from './read-batch.ts';
import { RecordShelf, type ShelfStart, recordSize } from './record-shelf.ts';

/** A group of frames beyond this is left to the thread that restores. */
const GROUP_BYTES_MAX: number = 64 * 1024 * 1024;

export class FrameShelf {
  readonly #shelf: RecordShelf;
  /** Gives the batch away and returns an empty one. */
  readonly #give: () => ReadBatch;
  #batch: ReadBatch;
  #file = 0;
  #chain = 0;
  #group: Buffer[] = [];
  #groupControl: Buffer[] = [];
  #groupBytes = 0;

  constructor(start: { readonly shelf: ShelfStart }, batch: ReadBatch, give: () => ReadBatch) {
    this.#shelf = new RecordShelf(start.shelf);
    this.#batch = batch;
    this.#give = give;
  }

  /** False when a file does not begin with a header of ours at `at`, or a group is open. */
  begin(file: number, bytes: Buffer, at: number, isLog: boolean): boolean {
    const header = decodeFileHeader(bytes.subarray(at));
    if (header === null || header.version > FORMAT_VERSION || this.#groupBytes > 0) return false;
    this.#file = file;
    this.#chain = isLog ? header.chain : 0;
    return true;
  }

  /**
   * Takes the frames of bytes[from, end); a place `p` in it stands at `base + p` in the file.
   * Returns where a frame begins that goes on behind `end`, or -1 when there is nothing more to do.
   */
  take(bytes: Buffer, from: number, end: number, base: number): number {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    let at = from;
    let isGood = true;
    while (at < end && isGood) {
      const padding = paddingAt(bytes, at, end, base + at);
      at += padding;
      if (padding > 0) continue;
      const state = checkFrame(bytes, at, end, this.#chain);
      if (state === FRAME_SHORT) break;
      isGood = state === FRAME_OK && this.#frame(bytes, words, at, base);
      if (isGood) at += FRAME_HEADER_BYTES + bytes.readUInt32LE(at + 16);
    }
    // An open group counts for nothing yet: the place behind what is told stays where it began.
    if (this.#groupBytes === 0) this.#seal(base + at);
    return isGood ? at : -1;
  }

  #seal(fileAt: number, isWhole = true): void {
    if (this.#batch.frames === 0) return;
    this.#batch.seal(this.#file, fileAt, isWhole);
    this.#batch = this.#give();
  }

  #frame(bytes: Buffer, words: Uint32Array, at: number, base: number): boolean {
    const size = bytes.readUInt32LE(at + 16);
    const controlAt = at + FRAME_HEADER_BYTES;
    const recordsAt = controlAt + bytes.readUInt32LE(at + 20);
    const end = controlAt + size;
    const wallMs = bytes.readDoubleLE(at + 40);
    const crc = bytes.readUInt32LE(at + 4);
    const goesOn = (bytes.readUInt32LE(at + 48) & FLAG_GOES_ON) !== 0;
    if (goesOn || this.#groupBytes > 0) {
      if (this.#groupBytes === 0) this.#seal(base + at);
      this.#groupControl.push(Buffer.from(bytes.subarray(controlAt, recordsAt)));
      this.#group.push(Buffer.from(bytes.subarray(recordsAt, end)));
      this.#groupBytes += FRAME_HEADER_BYTES + size;
      this.#chain = crc;
      if (this.#groupBytes > GROUP_BYTES_MAX) return false;
      return goesOn || this.#endGroup(wallMs, crc, base + end);
    }
    if (!this.#shelf.hasRoom(end - recordsAt)) return false;
    if (!this.#batch.hasRoom(recordsAt - controlAt, end - recordsAt)) this.#seal(base + at);
    this.#control(bytes, controlAt, recordsAt);
    this.#shelf.take(bytes, words, recordsAt, end, this.#batch);
    this.#batch.addFrame(wallMs, crc);
    this.#chain = crc;
    return true;
  }

  #control(bytes: Buffer, from: number, to: number): void {
    const batch = this.#batch;
    batch.controlSize += bytes.copy(batch.control, batch.controlSize, from, to);
  }

  /** The group is whole: told as one frame, in parts where a batch does not hold it. */
  #endGroup(wallMs: number, crc: number, fileAt: number): boolean {
    const control = Buffer.concat(this.#groupControl);
    const records = concatAligned(this.#group);
    const words = new Uint32Array(records.buffer, records.byteOffset, records.length >> 2);
    const isSmall = control.length <= this.#batch.control.length;
    if (!isSmall || !this.#shelf.hasRoom(records.length) || hasGiant(words)) return false;
    this.#groupControl = [];
    this.#group = [];
    this.#groupBytes = 0;
    this.#control(control, 0, control.length - (control.length % CONTROL_BYTES));
    for (let at = 0; ;) {
      at = this.#shelf.take(records, words, at, records.length, this.#batch);
      this.#batch.addFrame(wallMs, crc);
      const isWhole = at >= records.length;
      this.#seal(fileAt, isWhole);
      if (isWhole) return true;
    }
  }
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
