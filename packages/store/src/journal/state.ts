/**
 * The whole state of a leader for a member that has none, and the place in the journal that it
 * belongs to. It is a snapshot as the log has them, in pieces; the leader goes on meanwhile.
 *
 * ```
 *   piece:  u8 kind   u8 1 = the next piece goes on   u32 control bytes   payload
 *           1 state: control messages, then records; a record may go on in the next piece
 *           2 end: the place, as JSON
 * ```
 */
import { parseNested } from '@megaplane/base/nested-json';
import { Restorer } from '../recovery/restorer.ts';
import type { Store } from '../mvcc/store.ts';
import { type SnapshotLog, Snapshots } from '../snapshot/snapshots.ts';
import { FRAME_BYTES_MAX, FRAME_HEADER_BYTES } from '../wal/frame.ts';
import type { Place } from './member.ts';

const PIECE_STATE = 1;
const PIECE_END = 2;
const HEAD_BYTES = 6;
/** One record of the largest size, and what stands before it. */
const GOING_ON_BYTES_MAX: number = 64 * 1024 * 1024;
const NOWHERE = { high: 0, low: 0 };

/** Takes pieces; false while it has no room, then `StateSource.step` does nothing. */
export interface PieceTaker {
  readonly hasRoom: boolean;
  take(piece: Buffer): void;
}

/** At a leader. */
export class StateSource implements SnapshotLog {
  readonly #taker: PieceTaker;
  readonly #snapshots: Snapshots;
  readonly #nowMs: () => number;
  readonly #frame: Buffer = Buffer.alloc(FRAME_HEADER_BYTES + FRAME_BYTES_MAX);
  #place: Place | null = null;
  #isOver = false;
  readonly bytesSinceSnapshot = 0;
  readonly snapshotBytes = 0;
  readonly busySlots = 0;
  readonly reserved = 0;
  readonly hasUnlogged = false;
  onSnapshot: () => void = () => {};

  constructor(store: Store, epoch: number, nowMs: () => number, taker: PieceTaker) {
    this.#taker = taker;
    this.#nowMs = nowMs;
    this.#snapshots = new Snapshots(store, this, epoch, NOWHERE);
  }

  /** Begins with the state that the store has now, which belongs to that place. */
  begin(place: Place): void {
    this.#place = place;
    this.#snapshots.begin();
    this.#snapshots.step();
  }

  get nowMs(): number {
    return this.#nowMs();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** One slice. */
  step(): void {
    if (!this.#isOver && this.#taker.hasRoom) this.#snapshots.step();
  }

  /** The store is given up, and what is held of it with it. */
  abandon(): void {
    this.#isOver = true;
  }

  cut(): void {}

  snapshotFrame(): Buffer {
    return this.#frame;
  }

  giveSnapshot(size: number, controlSize: number, _revision: number, goesOn: boolean): void {
    const piece = Buffer.allocUnsafe(HEAD_BYTES + size);
    piece[0] = PIECE_STATE;
    piece[1] = goesOn ? 1 : 0;
    piece.writeUInt32LE(controlSize, 2);
    this.#frame.copy(piece, HEAD_BYTES, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + size);
    this.#taker.take(piece);
  }

  endSnapshot(): void {
    const place = this.#place;
    this.#isOver = true;
    if (place === null) return;
    this.#taker.take(lastPiece(place));
  }
}

/** Says where the pieces before belong. */
export function lastPiece(place: Place): Buffer {
  const text = JSON.stringify({ ...place, group: place.group.toString('hex') });
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = PIECE_END;
  return Buffer.concat([head, Buffer.from(text)]);
}

/** Without it the pieces before are no state. */
export function isLastPiece(piece: Buffer): boolean {
  return piece[0] === PIECE_END;
}

/** At the member that has no state yet. */
export class StateTaker {
  readonly #restorer: Restorer;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #controlBytes = 0;
  bytes = 0;
  /** Set once all of it is in. */
  place: Place | null = null;

  constructor(store: Store, nowMs: number) {
    this.#restorer = new Restorer(store, nowMs);
  }

  /** Takes the next piece; says what is wrong with it, or null. */
  take(piece: Buffer): string | null {
    if (this.place !== null) return 'a piece follows the end';
    if (piece.length < HEAD_BYTES) return 'a piece is cut off';
    this.bytes += piece.length;
    const payload = piece.subarray(HEAD_BYTES);
    if (piece[0] === PIECE_END) return this.#end(payload);
    if (piece[0] !== PIECE_STATE) return `a piece is of kind ${piece[0]}`;
    if (this.#parts.length === 0) this.#controlBytes = piece.readUInt32LE(2);
    this.#parts.push(payload);
    this.#partsBytes += payload.length;
    if (this.#partsBytes > GOING_ON_BYTES_MAX) return 'its pieces go on for too long';
    if (piece[1] === 1) return null;
    const whole = aligned(this.#parts, this.#partsBytes);
    this.#parts = [];
    this.#partsBytes = 0;
    if (this.#controlBytes > whole.length) return 'its lengths are wrong';
    this.#restorer.apply(whole, 0, this.#controlBytes, whole.length);
    return null;
  }

  #end(payload: Buffer): string | null {
    if (this.#parts.length > 0) return 'a record is cut off';
    const told = parseNested(payload.toString('utf8')) as Omit<Place, 'group'> & {
      readonly group: string;
    };
    this.#restorer.finish(NOWHERE);
    this.place = { ...told, group: Buffer.from(told.group, 'hex') };
    return null;
  }
}

/** As records want to lie. */
function aligned(parts: readonly Buffer[], size: number): Buffer {
  const whole = Buffer.from(new ArrayBuffer((size + 15) & ~15), 0, size);
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return whole;
}
