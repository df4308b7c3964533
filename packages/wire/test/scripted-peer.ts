/** Scripts for tests of HTTP/2: a socket that is an array, and frames by hand. */
import assert from 'node:assert/strict';
import { FRAMES, PREFACE, readUint32, writeFrameHead } from '../src/http2/frames.ts';
import { writeInteger } from '../src/hpack/hpack-encoder.ts';
import type { Protocol, Transport } from '../src/transport/transport.ts';

/** A frame that the protocol sent. */
export interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

/** A socket over arrays: what was sent to the peer, and whether it takes it. */
export class FakeTransport implements Transport {
  readonly id = 1;
  readonly secure: boolean = false;
  readonly unix = true;
  readonly remoteAddress = '';
  protocol: Protocol | null = null;
  received: Buffer[] = [];
  reads = true;
  stuckBytes = 0;
  paused = false;
  ended = false;
  timeMs = 1000;
  #turns = 0;

  peerCertificate(): null {
    return null;
  }

  write(bytes: Buffer, start: number, end: number): boolean {
    if (this.reads) this.received.push(Buffer.from(bytes.subarray(start, end)));
    else this.stuckBytes += end - start;
    return true;
  }

  pending(): number {
    return this.stuckBytes;
  }

  writing(): boolean {
    return false;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  requestFlush(): void {
    this.#turns |= 1;
  }

  requestTurn(): void {
    this.#turns |= 2;
  }

  end(): void {
    this.ended = true;
  }

  destroy(): void {
    this.ended = true;
  }

  nowMs(): number {
    return this.timeMs;
  }
  preciseMs(): number {
    return this.timeMs;
  }

  /** Gives bytes to the protocol, in pieces of `size`, and lets it finish its turns. */
  send(bytes: Buffer, size: number = bytes.length): void {
    for (let at = 0; at < bytes.length; at += size) {
      const piece = Buffer.from(bytes.subarray(at, at + size));
      this.protocol?.receive(piece, 0, piece.length);
      piece.fill(0xee);
      this.protocol?.flush();
    }
    this.settle();
  }

  settle(): void {
    for (let i = 0; i < 10_000 && this.#turns !== 0; i++) {
      const turns = this.#turns;
      this.#turns = 0;
      if ((turns & 2) !== 0) this.protocol?.drained();
      this.protocol?.flush();
    }
  }

  /** The frames so far, parsed. */
  frames(): SentFrame[] {
    const all = Buffer.concat(this.received);
    const found = [];
    let at = 0;
    while (at < all.length) {
      const size = all.readUIntBE(at, 3);
      const payload = all.subarray(at + 9, at + 9 + size);
      const id = readUint32(all, at + 5);
      found.push({ type: all[at + 3] ?? 0, flags: all[at + 4] ?? 0, id, payload });
      at += 9 + size;
    }
    assert.equal(at, all.length, 'whole frames were sent');
    return found;
  }

  /** Error code of the GOAWAY that ended the connection, or -1. */
  goaway(): number {
    const frame = this.frames().findLast((one) => one.type === FRAMES.goaway);
    return frame === undefined ? -1 : readUint32(frame.payload, 4);
  }

  resets(): string[] {
    const found = this.frames().filter((one) => one.type === FRAMES.rstStream);
    return found.map((one) => `${one.id}:${readUint32(one.payload, 0)}`);
  }
}

export function frame(
  type: number,
  flags: number,
  id: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  writeFrameHead(head, 0, payload.length, type, flags, id);
  return Buffer.concat([head, payload]);
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([0, id]), number(value)]);
}

export const HELLO: Buffer = Buffer.concat([PREFACE, frame(FRAMES.settings, 0, 0)]);
export const ACK: Buffer = frame(FRAMES.settings, 1, 0);

/** A literal as a peer may send it, with any bytes: the server's own writer refuses some. */
function writeField(out: Buffer, at: number, name: string, value: string): number {
  out[at++] = 0;
  for (const text of [name, value]) {
    at = writeInteger(out, at, 0, 7, text.length);
    at += out.write(text, at, 'latin1');
  }
  return at;
}

/** `more`: names and values of further fields. */
export function block(path: string, method = 'GET', more: readonly string[] = []): Buffer {
  const out = Buffer.alloc(path.length + 1000);
  let at = 0;
  for (const [name, value] of [
    [':method', method],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'x'],
  ] as const) {
    at = writeField(out, at, name, value);
  }
  for (let field = 0; field < more.length; field += 2) {
    at = writeField(out, at, more[field] ?? '', more[field + 1] ?? '');
  }
  return out.subarray(0, at);
}

export function get(id: number, path = '/'): Buffer {
  return frame(FRAMES.headers, 5, id, block(path));
}
