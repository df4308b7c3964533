// data plane: the records of one class in the order of their revisions
/**
 * One ref per event, in chunks; positions count events of the class from the start of the
 * process and never change. Revisions are read from the records, so an event costs 4 bytes.
 */
import { assertWhole } from '@megaplane/base/assert';
import type { Arenas } from './arenas.ts';

/**
 * Chunks of 1 MiB are mapped by themselves: one that is forgotten leaves no hole in the heap.
 */
const CHUNK_BITS = 18;
const CHUNK_EVENTS = 1 << CHUNK_BITS;
/** What the first chunk begins with. */
const FIRST_EVENTS = 1024;
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

  constructor(arenas: Arenas) {
    this.#arenas = arenas;
  }

  append(ref: number): void {
    const at = this.next - this.#base;
    const chunk = this.#chunkFor(at);
    chunk[at & CHUNK_MASK] = ref;
    this.next++;
  }

  /** The chunk that the next event goes to, with room for it. */
  #chunkFor(at: number): Uint32Array {
    const index = Math.floor(at / CHUNK_EVENTS);
    const chunk = this.#chunks[index];
    if (chunk === undefined) {
      const size = index === 0 && this.#base === 0 ? FIRST_EVENTS : CHUNK_EVENTS;
      const fresh = new Uint32Array(size);
      this.#chunks.push(fresh);
      return fresh;
    }
    if ((at & CHUNK_MASK) < chunk.length) return chunk;
    const grown = new Uint32Array(chunk.length * 2);
    grown.set(chunk);
    this.#chunks[index] = grown;
    return grown;
  }

  at(position: number): number {
    const at = position - this.#base;
    return this.#chunks[Math.floor(at / CHUNK_EVENTS)]![at & CHUNK_MASK]!;
  }

  /** The record of an event was moved. */
  replace(position: number, ref: number): void {
    assertWhole(position >= this.first && position < this.next, 'an event that is kept has moved');
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
    const isInside = position >= this.first && position <= this.next;
    assertWhole(isInside, 'a log is cut between its ends');
    this.first = position;
    const gone = Math.floor((position - this.#base) / CHUNK_EVENTS);
    this.#chunks.splice(0, gone);
    this.#base += gone * CHUNK_EVENTS;
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
