// data plane
/**
 * Splits a watch in JSON into its events without parsing them.
 *
 * A frame is one line, `{"type":"ADDED","object":{...}}`; JSON encoders escape line ends within
 * strings, so a line feed ends a frame. What lies whole within a chunk is found in place; only what
 * is cut by a chunk's end is copied.
 *
 *     frames.push(bytes, start, end);
 *     while (frames.next()) use(frames.type, frames.bytes, frames.objectStart, frames.objectEnd);
 */
import { asBuffer } from '@megaplane/base/bytes';
import { matches, MemberCursor, skipSpace } from '@megaplane/machinery/scan';

export const EVENT_ADDED = 1;
export const EVENT_MODIFIED = 2;
export const EVENT_DELETED = 3;
export const EVENT_BOOKMARK = 4;
export const EVENT_ERROR = 5;
/** A line that is no event. */
export const EVENT_GARBAGE = 6;

/** Largest frame, as upstream's client has it; a longer one makes `isTooLong`. */
export const FRAME_BYTES_MAX: number = 16 * 1024 * 1024;

const LINE_FEED = 10;
const EMPTY = Buffer.alloc(0);
const TYPE = Buffer.from('type');
const OBJECT = Buffer.from('object');
const HEAD = Buffer.from('{"type":"');
const OBJECT_AFTER_TYPE = Buffer.from('","object":');
const TYPES: readonly Buffer[] = ['', 'ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'].map(
  (name) => Buffer.from(name),
);

export class WatchFrames {
  bytes: Buffer = EMPTY;
  type = 0;
  objectStart = 0;
  objectEnd = 0;
  isTooLong = false;
  /** The current chunk, and what of it is left. */
  #chunk: Buffer = EMPTY;
  #at = 0;
  #end = 0;
  /** The beginning of a frame that an earlier chunk cut. */
  #carry: Buffer = EMPTY;
  #carried = 0;
  readonly #cursor = new MemberCursor();

  reset(): void {
    this.#chunk = EMPTY;
    this.#at = 0;
    this.#end = 0;
    this.#carry = EMPTY;
    this.#carried = 0;
    this.isTooLong = false;
  }

  push(bytes: Uint8Array, start: number, end: number): void {
    this.#chunk = asBuffer(bytes);
    this.#at = start;
    this.#end = end;
  }

  /** Finds the next event; false when the chunk is used up. */
  next(): boolean {
    while (this.#at < this.#end) {
      const found = this.#chunk.indexOf(LINE_FEED, this.#at);
      const lineEnd = found < 0 || found >= this.#end ? -1 : found;
      if (lineEnd < 0) {
        this.#carryOver(this.#end);
        return false;
      }
      const start = this.#at;
      this.#at = lineEnd + 1;
      if (this.#carried === 0) {
        if (this.#read(this.#chunk, start, lineEnd)) return true;
        continue;
      }
      this.#at = start;
      this.#carryOver(lineEnd);
      this.#at = lineEnd + 1;
      const length = this.#carried;
      this.#carried = 0;
      if (!this.isTooLong && this.#read(this.#carry, 0, length)) return true;
    }
    return false;
  }

  #carryOver(to: number): void {
    const length = this.#carried + to - this.#at;
    if (length > FRAME_BYTES_MAX) {
      this.isTooLong = true;
      this.#at = to;
      return;
    }
    if (length > this.#carry.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(4096, length, 2 * this.#carry.length));
      this.#carry.copy(grown, 0, 0, this.#carried);
      this.#carry = grown;
    }
    this.#chunk.copy(this.#carry, this.#carried, this.#at, to);
    this.#carried = length;
    this.#at = to;
  }

  /** Finds type and object of one line; false for an empty one. */
  #read(bytes: Buffer, start: number, end: number): boolean {
    let from = start;
    while (from < end && bytes[from]! <= 32) from++;
    if (from === end) return false;
    this.bytes = bytes;
    if (!this.#readUsual(bytes, from, end)) this.#readAny(bytes, from, end);
    return true;
  }

  /** The form that servers send; nothing of the object is looked at. */
  #readUsual(bytes: Buffer, start: number, end: number): boolean {
    const typeStart = start + HEAD.length;
    if (!matches(bytes, start, Math.min(end, typeStart), HEAD)) return false;
    for (let type = EVENT_ADDED; type <= EVENT_ERROR; type++) {
      const typeEnd = typeStart + TYPES[type]!.length;
      if (typeEnd + OBJECT_AFTER_TYPE.length >= end) continue;
      if (!matches(bytes, typeStart, typeEnd, TYPES[type]!)) continue;
      const objectStart = typeEnd + OBJECT_AFTER_TYPE.length;
      if (!matches(bytes, typeEnd, objectStart, OBJECT_AFTER_TYPE)) return false;
      // `}` of the object, `}` of the event.
      if (bytes[end - 1] !== 125 || bytes[end - 2] !== 125 || bytes[objectStart] !== 123) {
        return false;
      }
      this.type = type;
      this.objectStart = objectStart;
      this.objectEnd = end - 1;
      return true;
    }
    return false;
  }

  #readAny(bytes: Buffer, start: number, end: number): void {
    const cursor = this.#cursor;
    this.type = EVENT_GARBAGE;
    this.objectStart = start;
    this.objectEnd = end;
    let type = EVENT_GARBAGE;
    let objectStart = -1;
    let objectEnd = -1;
    if (!cursor.open(bytes, start, end)) return;
    while (cursor.next()) {
      if (cursor.is(TYPE)) type = typeOf(bytes, cursor.valueStart + 1, cursor.valueEnd - 1);
      if (cursor.is(OBJECT)) {
        objectStart = cursor.valueStart;
        objectEnd = cursor.valueEnd;
      }
    }
    const isWhole = cursor.isClosed && skipSpace(bytes, cursor.closeEnd, end) === end;
    if (!isWhole || objectStart < 0) return;
    this.type = type;
    this.objectStart = objectStart;
    this.objectEnd = objectEnd;
  }
}

function typeOf(bytes: Buffer, start: number, end: number): number {
  for (let type = EVENT_ADDED; type <= EVENT_ERROR; type++) {
    if (matches(bytes, start, end, TYPES[type]!)) return type;
  }
  return EVENT_GARBAGE;
}
