// data plane
/**
 * Bytes on their way to a socket, in memory that all connections share.
 *
 * A connection owns memory only between its first byte of a turn and the moment the kernel took
 * it, so an idle connection owns none. What is small stands in a room of 2 or 8 KiB: else a
 * thousand connections whose answers wait for one flush, or whose peers read slowly, would pin a
 * whole block each. What outgrows it moves on into a block, so that a turn's bytes leave in one
 * write.
 */
import { FRAME_HEAD_BYTES, FRAMES, writeFrameHead, writeFrameLength } from './frames.ts';
import type { Transport } from '../transport/transport.ts';
import { BLOCK_BYTES, COPY_BYTES_MAX, TURN_BYTES } from '../limits.ts';

/** The first memory of a turn: an answer or two. */
const ROOM_BYTES = 2048;
const NONE: Buffer = Buffer.alloc(0);

/** Memory of one size that serves again. */
interface Shelf {
  readonly bytes: number;
  readonly keptMax: number;
  readonly kept: Buffer[];
}

/** By size, for the whole process. */
const SHELVES: readonly Shelf[] = [
  { bytes: ROOM_BYTES, keptMax: 1024, kept: [] },
  { bytes: COPY_BYTES_MAX, keptMax: 256, kept: [] },
  { bytes: BLOCK_BYTES, keptMax: 64, kept: [] },
  { bytes: TURN_BYTES, keptMax: 2, kept: [] },
];

/** Memory for so many bytes; give it back when nobody reads it any more. */
export function takeBlock(bytes: number): Buffer {
  for (const shelf of SHELVES) {
    if (bytes <= shelf.bytes) return shelf.kept.pop() ?? Buffer.allocUnsafeSlow(shelf.bytes);
  }
  return Buffer.allocUnsafeSlow(bytes);
}

export function giveBlock(block: Buffer): void {
  for (const shelf of SHELVES) {
    if (block.length !== shelf.bytes) continue;
    if (shelf.kept.length < shelf.keptMax) shelf.kept.push(block);
  }
}

export class Output {
  /** Write here, from `at` on, after `reserve`; then set `at`. */
  bytes: Buffer = NONE;
  at = 0;
  /** Full blocks before this one, alternating with nothing else. */
  #full: { readonly block: Buffer; readonly length: number }[] | null = null;
  #fullBytes = 0;
  /** The stream whose DATA frame ends these bytes and may still grow, 0 = none; its head. */
  #open = 0;
  #openAt = 0;

  get size(): number {
    return this.at + this.#fullBytes;
  }

  /** Expects so many octets, where nothing stands here yet: they are to leave in one piece. */
  expect(count: number): void {
    if (this.size > 0 || count <= this.bytes.length) return;
    giveBlock(this.bytes);
    this.bytes = takeBlock(count);
  }

  /** Makes room for `count` octets from `at` on. */
  reserve(count: number): void {
    this.#open = 0;
    if (this.at + count <= this.bytes.length) return;
    if (this.at > 0 && this.at + count <= BLOCK_BYTES) {
      const block = takeBlock(this.at + count);
      this.bytes.copy(block, 0, 0, this.at);
      giveBlock(this.bytes);
      this.bytes = block;
      return;
    }
    if (this.at > 0) {
      this.#full ??= [];
      this.#full.push({ block: this.bytes, length: this.at });
      this.#fullBytes += this.at;
    } else if (this.bytes.length > 0) {
      giveBlock(this.bytes);
    }
    this.bytes = takeBlock(count);
    this.at = 0;
  }

  /**
   * Makes room for `count` octets of a stream's DATA: in its frame, if that is the last one here
   * and has room, else in a new one whose head is written. What one turn sends on a stream is so
   * one frame, and its peer handles one.
   */
  reserveData(stream: number, count: number, frameBytesMax: number): void {
    if (this.#open === stream && this.at + count <= this.bytes.length) {
      const length = this.at + count - this.#openAt - FRAME_HEAD_BYTES;
      if (length <= frameBytesMax) {
        writeFrameLength(this.bytes, this.#openAt, length);
        return;
      }
    }
    this.reserve(FRAME_HEAD_BYTES + count);
    this.#open = stream;
    this.#openAt = this.at;
    this.at = writeFrameHead(this.bytes, this.at, count, FRAMES.data, 0, stream);
  }

  /** Sets flags of the frame that `reserveData` made room in; it grows no more. */
  closeData(flags: number): void {
    this.bytes[this.#openAt + FRAME_HEAD_BYTES - 5] = flags;
    this.#open = 0;
  }

  /** Hands everything to the transport. */
  flush(transport: Transport): void {
    this.#open = 0;
    if (this.#full !== null) {
      const full = this.#full;
      this.#full = null;
      this.#fullBytes = 0;
      for (const { block, length } of full) send(transport, block, length);
    }
    const block = this.bytes;
    const length = this.at;
    this.bytes = NONE;
    this.at = 0;
    if (length > 0) send(transport, block, length);
    else if (block.length > 0) giveBlock(block);
  }

  /** What is held back for longer than a turn, and small, gives a block back meanwhile. */
  park(): void {
    this.#open = 0;
    const isLarge = this.bytes.length >= BLOCK_BYTES && this.at <= COPY_BYTES_MAX;
    if (this.at > 0 && !isLarge) return;
    const block = this.bytes;
    this.bytes = NONE;
    if (this.at > 0) {
      this.bytes = takeBlock(this.at);
      block.copy(this.bytes, 0, 0, this.at);
    }
    giveBlock(block);
  }

  /** Appends everything to another output, and is empty. */
  moveTo(target: { reserve(count: number): Output }): void {
    for (const { block, length } of this.#full ?? []) copyTo(target, block, length);
    copyTo(target, this.bytes, this.at);
    this.clear();
  }

  /** Forgets everything. */
  clear(): void {
    this.#open = 0;
    for (const { block } of this.#full ?? []) giveBlock(block);
    this.#full = null;
    this.#fullBytes = 0;
    if (this.bytes.length > 0) giveBlock(this.bytes);
    this.bytes = NONE;
    this.at = 0;
  }
}

function copyTo(target: { reserve(count: number): Output }, block: Buffer, length: number): void {
  const out = target.reserve(length);
  block.copy(out.bytes, out.at, 0, length);
  out.at += length;
}

function send(transport: Transport, block: Buffer, length: number): void {
  // a secure transport copies for itself what it cannot encrypt at once
  if (!transport.secure && length <= COPY_BYTES_MAX && 2 * length < block.length) {
    const copy = Buffer.allocUnsafe(length);
    block.copy(copy, 0, 0, length);
    giveBlock(block);
    transport.write(copy, 0, length, ignore);
    return;
  }
  if (transport.write(block, 0, length, () => giveBlock(block))) giveBlock(block);
}

function ignore(): void {
  // The copy needs no return.
}
