// data plane
/**
 * The sending end of a shared ring as others use it: nothing is refused. What finds no room waits
 * here in order, and `isBehind` says so: whoever has a choice then sends no more until `onRoom`.
 */
import { RingWriter } from './shared-ring.ts';

/** Messages that have left and still stand in the list. */
const PASSED_MAX = 64;

interface Waiting {
  readonly kind: number;
  readonly slot: number;
  readonly bytes: Buffer;
}

export class RingPost {
  readonly #ring: RingWriter;
  readonly #ringBell: () => void;
  #waiting: Waiting[] = [];
  #first = 0;
  /** Octets that wait for room. */
  waitingBytes = 0;
  /** All that has waited has left. */
  onRoom: () => void = () => {};

  /** `ringBell` wakes the other side; one call is one message to its event loop. */
  constructor(memory: SharedArrayBuffer, ringBell: () => void) {
    this.#ring = new RingWriter(memory);
    this.#ringBell = ringBell;
  }

  get isBehind(): boolean {
    return this.#first < this.#waiting.length;
  }

  /** The bytes are copied before it returns. */
  send(kind: number, slot: number, bytes: Buffer, start: number, end: number): void {
    if (this.isBehind || !this.#ring.put(kind, slot, bytes, start, end)) {
      this.#waiting.push({ kind, slot, bytes: Buffer.from(bytes.subarray(start, end)) });
      this.waitingBytes += end - start;
      if (this.#waiting.length === this.#first + 1) this.pump();
      return;
    }
    if (this.#ring.mustRing()) this.#ringBell();
  }

  /** Puts into the ring what waits and finds room; when a bell rang. */
  pump(): void {
    if (!this.isBehind) return;
    do {
      for (let next = this.#waiting[this.#first]; next !== undefined;) {
        if (!this.#ring.put(next.kind, next.slot, next.bytes, 0, next.bytes.length)) break;
        this.waitingBytes -= next.bytes.length;
        next = this.#waiting[++this.#first];
      }
      if (this.#ring.mustRing()) this.#ringBell();
    } while (this.isBehind && !this.#ring.waitsForRoom());
    if (this.isBehind) {
      if (this.#first < PASSED_MAX) return;
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
      return;
    }
    this.#waiting = [];
    this.#first = 0;
    this.onRoom();
  }
}
