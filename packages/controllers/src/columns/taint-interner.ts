// data plane
/**
 * Lists of taints as their JSON, each text once: most nodes have the same. A node holds a number.
 */
import { assert } from '@megaplane/base/assert';

/** Nodes without taints. */
export const NO_TAINTS = 0;
/** Taints that are not kept: more texts differ than the limit allows. */
export const UNKNOWN_TAINTS = 0xffff;
/** Texts that are kept; nodes with others are read before their taints are written. */
const TEXTS_MAX = 16_384;

export class TaintInterner {
  readonly #indexes: Map<string, number> = new Map([['', NO_TAINTS]]);
  readonly #texts: string[] = [''];
  /** Nodes with the text. */
  readonly #uses: number[] = [Infinity];
  readonly #free: number[] = [];

  /** Texts that some node has, the empty one not counted. */
  get size(): number {
    return this.#indexes.size - 1;
  }

  /** The number of a text, for one more node; `release` ends that. */
  hold(text: string): number {
    let index = this.#indexes.get(text);
    if (index === undefined) {
      if (this.size >= TEXTS_MAX) return UNKNOWN_TAINTS;
      index = this.#free.pop() ?? this.#texts.length;
      this.#indexes.set(text, index);
      this.#texts[index] = text;
      this.#uses[index] = 0;
      const numbers = this.#indexes.size + this.#free.length;
      assert(numbers === this.#texts.length, 'a number is of one text, or free');
    }
    this.#uses[index]!++;
    return index;
  }

  /** One node less has the text. */
  release(index: number): void {
    if (index === NO_TAINTS || index === UNKNOWN_TAINTS) return;
    assert(this.#uses[index]! > 0, 'a text is let go as often as it was held');
    if (--this.#uses[index]! > 0) return;
    this.#indexes.delete(this.#texts[index]!);
    this.#texts[index] = '';
    this.#free.push(index);
  }

  /** The text; undefined where it is not kept. */
  textOf(index: number): string | undefined {
    return index === UNKNOWN_TAINTS ? undefined : this.#texts[index];
  }
}
