// data plane: nodes of one partition by score
import { assert } from '@megaplane/base/assert';

/**
 * Numbers of nodes in a list per score, so that the best ones are found and any one is moved in
 * O(1). Who puts a node in remembers its place; taking one out moves the last of its list there.
 *
 *   lists[score]    Uint32Array    nodes in no order, as many as counts[score]
 *   filled          bit per score  lists that are not empty
 */
const LIST_LENGTH_MIN = 16;

export class ScoreBuckets {
  readonly #lists: (Uint32Array | undefined)[] = [];
  readonly #counts: Uint32Array;
  readonly #filled: Uint32Array;
  size = 0;
  #listLengths = 0;

  constructor(scoreMax: number) {
    this.#counts = new Uint32Array(scoreMax + 1);
    this.#filled = new Uint32Array((scoreMax >>> 5) + 1);
  }

  /** Puts a node in; returns its place. */
  insert(score: number, id: number): number {
    const place = this.#counts[score]!++;
    let list = this.#lists[score];
    if (list === undefined || place === list.length) {
      const grown = new Uint32Array(list === undefined ? LIST_LENGTH_MIN : list.length * 2);
      if (list !== undefined) grown.set(list);
      this.#listLengths += grown.length - (list?.length ?? 0);
      list = this.#lists[score] = grown;
    }
    list[place] = id;
    this.#filled[score >>> 5]! |= 1 << (score & 31);
    this.size++;
    return place;
  }

  /** Takes out what is at a place; returns the node that is at that place now, or -1. */
  remove(score: number, place: number): number {
    assert(place < this.#counts[score]!, 'a place is below the count of its score');
    const last = --this.#counts[score]!;
    const list = this.#lists[score]!;
    this.size--;
    if (last === 0) this.#filled[score >>> 5]! &= ~(1 << (score & 31));
    const moved = place === last ? -1 : (list[place] = list[last]!);
    // Lists shrink, for a filling cluster passes through all scores with all of its nodes.
    if (last < list.length >>> 2 && list.length > LIST_LENGTH_MIN) {
      const shrunk = last === 0 ? undefined : list.slice(0, list.length >>> 1);
      this.#listLengths += (shrunk?.length ?? 0) - list.length;
      this.#lists[score] = shrunk;
    }
    return moved;
  }

  /** The greatest score of any node, or -1. */
  top(): number {
    for (let word = this.#filled.length - 1; word >= 0; word--) {
      const bits = this.#filled[word]!;
      if (bits !== 0) return (word << 5) + 31 - Math.clz32(bits);
    }
    return -1;
  }

  /** The greatest score below another one that any node has, or -1. */
  topBelow(score: number): number {
    let word = score >>> 5;
    let bits = this.#filled[word]! & ((1 << (score & 31)) - 1);
    while (bits === 0) {
      if (--word < 0) return -1;
      bits = this.#filled[word]!;
    }
    return (word << 5) + 31 - Math.clz32(bits);
  }

  count(score: number): number {
    return this.#counts[score]!;
  }

  at(score: number, place: number): number {
    return this.#lists[score]![place]!;
  }

  get memoryBytes(): number {
    const lists = this.#listLengths * Uint32Array.BYTES_PER_ELEMENT;
    return lists + this.#counts.byteLength + this.#filled.byteLength;
  }
}
