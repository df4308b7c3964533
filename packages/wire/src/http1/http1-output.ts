// data plane
/**
 * Bytes waiting to leave a connection, gathered so that a turn makes one write.
 *
 * Rooms for them are taken when the first byte comes and given back to a common pool when the last
 * one left: an idle connection holds none.
 */
import { assert } from '@megaplane/base/assert';
import type { Transport } from '../transport/transport.ts';
import type { FieldList } from '../fields.ts';

/** Octets of a pooled room, and how many the pool keeps for later. */
const ROOM_BYTES: number = 16 * 1024;
const ROOMS_MAX = 256;
const rooms: Buffer[] = [];

const CRLF = '\r\n';
const HEX_DIGITS_MAX = 8;

function takeRoom(bytes: number): Buffer {
  if (bytes > ROOM_BYTES) return Buffer.allocUnsafeSlow(bytes);
  return rooms.pop() ?? Buffer.allocUnsafeSlow(ROOM_BYTES);
}

function giveRoom(room: Buffer): void {
  if (room.length === ROOM_BYTES && rooms.length < ROOMS_MAX) rooms.push(room);
}

/** A growing queue of bytes. */
export class Http1Output {
  #room: Buffer | null = null;
  #length = 0;
  /** What the transport still reads. */
  #leaving: Buffer | null = null;
  #afterLeaving: (() => void) | null = null;

  get length(): number {
    return this.#length;
  }

  /** True while the transport reads bytes of an earlier flush. */
  get isLeaving(): boolean {
    return this.#leaving !== null;
  }

  #reserve(bytes: number): Buffer {
    const needed = this.#length + bytes;
    const room = this.#room;
    if (room !== null && needed <= room.length) return room;
    const grown = takeRoom(room === null ? needed : Math.max(needed, 2 * room.length));
    if (room !== null) {
      room.copy(grown, 0, 0, this.#length);
      giveRoom(room);
    }
    this.#room = grown;
    return grown;
  }

  put(bytes: Uint8Array, start: number, end: number): void {
    if (start === end) return;
    const room = this.#reserve(end - start);
    if (start === 0 && end === bytes.length) room.set(bytes, this.#length);
    else room.set(bytes.subarray(start, end), this.#length);
    this.#length += end - start;
  }

  /** Text of bytes up to 255, as heads are. */
  putText(text: string): void {
    const room = this.#reserve(text.length);
    this.#length += room.write(text, this.#length, 'latin1');
  }

  /** One chunk of a chunked body. */
  putChunk(bytes: Uint8Array, start: number, end: number): void {
    if (start === end) return;
    this.#reserve(end - start + HEX_DIGITS_MAX + 4);
    this.putText((end - start).toString(16) + CRLF);
    this.put(bytes, start, end);
    this.putText(CRLF);
  }

  /** Moves all bytes of another queue to the end of this one. */
  putAll(other: Http1Output): void {
    if (other.#room === null) return;
    this.put(other.#room, 0, other.#length);
    other.discard();
  }

  discard(): void {
    if (this.#room !== null) giveRoom(this.#room);
    this.#room = null;
    this.#length = 0;
  }

  /**
   * Hands everything to the transport in one write; false if the transport still reads what an
   * earlier flush gave it, then it asks for another flush as soon as it has done so.
   */
  flush(transport: Transport): boolean {
    if (this.#leaving !== null) return this.#length === 0;
    const room = this.#room;
    if (room === null) return true;
    const length = this.#length;
    this.#room = null;
    this.#length = 0;
    this.#leaving = room;
    this.#afterLeaving ??= (): void => {
      if (this.#leaving !== null) giveRoom(this.#leaving);
      this.#leaving = null;
      transport.requestFlush();
    };
    if (transport.write(room, 0, length, this.#afterLeaving)) {
      this.#leaving = null;
      giveRoom(room);
    }
    return true;
  }
}

/** Lines of header fields, each with its end. A control byte in one would be a bug: assertion. */
export function fieldLines(fields: FieldList): string {
  let lines = '';
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const line = `${fields[i]!}: ${fields[i + 1]!}`;
    assert(!CONTROL.test(line), `header ${fields[i]!} holds a control byte`);
    lines += `${line.replaceAll(WIDE, '?')}${CRLF}`;
  }
  return lines;
}

// eslint-disable-next-line no-control-regex
const CONTROL: RegExp = /[\u0000-\u0008\u000a-\u001f\u007f]/;
// eslint-disable-next-line no-control-regex
const WIDE: RegExp = /[^\u0000-\u00ff]/g;
