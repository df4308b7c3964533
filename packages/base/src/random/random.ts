import { assert } from '../assert.ts';

/**
 * A stream of random numbers that its seed determines (sfc32 by Chris Doty-Humphrey: passes
 * PractRand, four words of state). Not for secrets.
 *
 * Each part of a program takes its own stream by `fork(name)`, so that one part drawing more
 * numbers does not change what the others see.
 */
export class Random {
  readonly #seed: number;
  #a = 0;
  #b = 0;
  #c = 0;
  #counter = 1;

  /** `seed` is an integer; its low 53 bits count. */
  constructor(seed: number) {
    assert(Number.isSafeInteger(seed), `seed ${seed} is not an integer`);
    this.#seed = seed;
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#c = 0x9e3779b9;
    // Twelve rounds let each bit of the seed reach each bit of the state.
    for (let round = 0; round < 12; round++) this.int32();
  }

  /** A signed integer of 32 random bits. */
  int32(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum;
  }

  /** A number in [0, 1) of 53 random bits. */
  next(): number {
    return ((this.int32() >>> 5) * 0x4000000 + (this.int32() >>> 6)) / 2 ** 53;
  }

  /** An integer in [0, n), each equally likely; n is from 1 to 2^53. */
  below(n: number): number {
    assert(n >= 1 && n <= 2 ** 53, `below(${n}): from 1 to 2^53`);
    return Math.floor(this.next() * n);
  }

  /** Another stream, determined by this one's seed and `name`, not by what was drawn so far. */
  fork(name: string): Random {
    // FNV-1a over the name, twice with different starts, for 53 bits.
    let low = 0x811c9dc5 ^ (this.#seed | 0);
    let high = 0x01000193 ^ Math.floor(this.#seed / 0x1_0000_0000);
    for (let i = 0; i < name.length; i++) {
      low = Math.imul(low ^ name.charCodeAt(i), 0x01000193);
      high = Math.imul(high ^ (name.charCodeAt(i) + i), 0x85ebca6b);
    }
    return new Random((high >>> 11) * 0x1_0000_0000 + (low >>> 0));
  }
}
