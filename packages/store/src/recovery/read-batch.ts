// data plane: what the thread that reads ahead hands to the thread that restores
/**
 * A batch is a piece of shared memory that one thread fills and the other empties. The records
 * themselves lie in arenas by then; here stands where, with what is dear to compute: the hash of
 * the key and its class. Frames are told in order, each with the end of its control messages and
 * of its records; a long group of frames may be told in parts.
 *
 *   numbers   f64   file, frames told, place in the file behind them, 0 when the last frame goes
 *                   on in the next batch; then for each frame:
 *                   wall clock, checksum that the next one names, end of control, end of records
 *   refs      u32   record -> its place in the arenas
 *   hashes    i32   record -> hash of its key
 *   classes   u8    record -> class of its key
 *   control   u8    control messages
 */
import { FRAME_BYTES_MAX } from '../wal/frame.ts';

/** Frames, and records, that one batch tells at most. */
export const BATCH_FRAMES = 2048;
export const BATCH_RECORDS: number = 1 << 17;

const HEAD_NUMBERS = 4;
const FRAME_NUMBERS = 4;
const NUMBERS = HEAD_NUMBERS + BATCH_FRAMES * FRAME_NUMBERS;
const REFS_AT = NUMBERS * 8;
const HASHES_AT: number = REFS_AT + BATCH_RECORDS * 4;
const CLASSES_AT: number = HASHES_AT + BATCH_RECORDS * 4;
const CONTROL_AT: number = CLASSES_AT + BATCH_RECORDS;
/** Only what is written of it is resident. */
export const BATCH_BYTES: number = CONTROL_AT + FRAME_BYTES_MAX * 2;

export class ReadBatch {
  readonly numbers: Float64Array;
  readonly refs: Uint32Array;
  readonly hashes: Int32Array;
  readonly classes: Uint8Array;
  readonly control: Buffer;
  /** What the filling thread has put in so far. */
  frames = 0;
  records = 0;
  controlSize = 0;

  constructor(memory: SharedArrayBuffer) {
    this.numbers = new Float64Array(memory, 0, NUMBERS);
    this.refs = new Uint32Array(memory, REFS_AT, BATCH_RECORDS);
    this.hashes = new Int32Array(memory, HASHES_AT, BATCH_RECORDS);
    this.classes = new Uint8Array(memory, CLASSES_AT, BATCH_RECORDS);
    this.control = Buffer.from(memory, CONTROL_AT, BATCH_BYTES - CONTROL_AT);
  }

  clear(): void {
    this.frames = 0;
    this.records = 0;
    this.controlSize = 0;
  }

  /** Is there room for a frame with so many bytes of control messages and of records? */
  hasRoom(controlSize: number, recordsSize: number): boolean {
    return (
      this.frames < BATCH_FRAMES &&
      this.controlSize + controlSize <= this.control.length &&
      // No record is smaller than its header of 40 bytes, in steps of 16.
      this.records + recordsSize / 48 <= BATCH_RECORDS
    );
  }

  /** Ends the frame whose control messages and records were put in. */
  addFrame(wallMs: number, crc: number): void {
    const at = HEAD_NUMBERS + this.frames * FRAME_NUMBERS;
    this.numbers[at] = wallMs;
    this.numbers[at + 1] = crc;
    this.numbers[at + 2] = this.controlSize;
    this.numbers[at + 3] = this.records;
    this.frames++;
  }

  /** All is in: `fileAt` is where the next frame begins. */
  seal(file: number, fileAt: number, isWhole: boolean): void {
    this.numbers[0] = file;
    this.numbers[1] = this.frames;
    this.numbers[2] = fileAt;
    this.numbers[3] = isWhole ? 1 : 0;
  }

  get file(): number {
    return this.numbers[0]!;
  }

  get frameCount(): number {
    return this.numbers[1]!;
  }

  get fileAt(): number {
    return this.numbers[2]!;
  }

  /** False while more of the last frame's records are in the batch that follows. */
  get isWhole(): boolean {
    return this.numbers[3] === 1;
  }

  wallMs(frame: number): number {
    return this.numbers[HEAD_NUMBERS + frame * FRAME_NUMBERS]!;
  }

  /** What the frame after this one names as its predecessor. */
  crc(frame: number): number {
    return this.numbers[HEAD_NUMBERS + frame * FRAME_NUMBERS + 1]!;
  }

  controlTo(frame: number): number {
    return frame < 0 ? 0 : this.numbers[HEAD_NUMBERS + frame * FRAME_NUMBERS + 2]!;
  }

  recordsTo(frame: number): number {
    return frame < 0 ? 0 : this.numbers[HEAD_NUMBERS + frame * FRAME_NUMBERS + 3]!;
  }
}
