// data plane: the records of one class in the order of their revisions
/**
 * One ref per event, in chunks; positions count events of the class from the start of the
 * process and never change. Revisions are read from the records, so an event costs 4 bytes.
 */
import type { Arenas } from './arenas.ts';

const CHUNK_BITS = 14;
const CHUNK_EVENTS = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_EVENTS - 1;

export class EventLog {
  readonly #arenas: Arenas;
  #chunks: Uint32Array[] = [];
  /** Position of the first event in #chunks[0]; a multiple of CHUNK_EVENTS. */
  #base = 0;
  /** Oldest event kept. */
  first = 0;
  /** One past the newest event. */
  next = 0;
  #spare: Uint32Array | null = null;

  constructor(arenas: Arenas) {
    this.#arenas = arenas;
  }

  append(ref: number): void {
    const at = this.next - this.#base;
    if ((at & CHUNK_MASK) === 0) {
      this.#chunks.push(this.#spare ?? new Uint32Array(CHUNK_EVENTS));
      this.#spare = null;
    }
    this.#chunks[Math.floor(at / CHUNK_EVENTS)]![at & CHUNK_MASK] = ref;
    this.next++;
  }

  at(position: number): number {
    const at = position - this.#base;
    return this.#chunks[Math.floor(at / CHUNK_EVENTS)]![at & CHUNK_MASK]!;
  }

  /** The record of an event was moved. */
  replace(position: number, ref: number): void {
    const at = position - this.#base;
    this.#chunks[Math.floor(at / CHUNK_EVENTS)]![at & CHUNK_MASK] = ref;
  }

  /** Position of the first event at or after a revision. */
  seek(revision: number): number {
    let low = this.first;
    let high = this.next;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#arenas.modRevision(this.at(middle)) < revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Forgets the events before a position. */
  cut(position: number): void {
    this.first = position;
    while (position - this.#base >= CHUNK_EVENTS) {
      this.#spare = this.#chunks.shift()!;
      this.#base += CHUNK_EVENTS;
    }
  }

  /**
   * Puts events that were appended out of order (by a snapshot) in order: natively, by doubles
   * that hold the revision and the place; subs decide within a revision.
   */
  sort(): void {
    const count = this.next - this.first;
    if (count === 0) return;
    const arenas = this.#arenas;
    const refs = new Uint32Array(count);
    const packed = new Float64Array(count);
    let lowest = Infinity;
    for (let i = 0; i < count; i++) {
      refs[i] = this.at(this.first + i);
      lowest = Math.min(lowest, arenas.modRevision(refs[i]!));
    }
    for (let i = 0; i < count; i++) {
      packed[i] = (arenas.modRevision(refs[i]!) - lowest) * count + i;
    }
    packed.sort();
    for (let i = 0; i < count; i++) {
      const ref = refs[packed[i]! % count]!;
      const revision = arenas.modRevision(ref);
      let place = this.first + i;
      for (; place > this.first; place--) {
        const before = this.at(place - 1);
        if (arenas.modRevision(before) !== revision || arenas.sub(before) < arenas.sub(ref)) break;
        this.replace(place, before);
      }
      this.replace(place, ref);
    }
  }
}
