// data plane: the nodes of an ordered index
/**
 * Nodes are rows of 32-bit words in chunks that are never copied.
 *
 *   word 0       entries
 *   word 1       bytes that all keys of the node have in common (at most 96)
 *   word 2       level: 0 for a leaf
 *   words 3, 4   leaves: the next and the previous leaf, 0 for none
 *   words 8..    those common bytes
 *   words 32..   heads: by entry, the four bytes of its key after the common ones, as a number
 *                whose signed order is the order of the bytes
 *   words 288..  by entry, the id of its key: the entry's own in a leaf, the subtree's first above
 *   words 544..  inner nodes only: by entry, the child
 *   words 800..  inner nodes only: by entry, the ids below the child
 *
 * Node 0 is never used, so that 0 can mean none.
 */
export const NODE_ENTRIES_MAX = 256;
export const COUNT = 0;
export const PREFIX_LENGTH = 1;
export const LEVEL = 2;
export const NEXT = 3;
export const PREVIOUS = 4;
export const PREFIX = 8;
export const PREFIX_BYTES_MAX = 96;
export const HEADS = 32;
export const IDS: number = HEADS + NODE_ENTRIES_MAX;
export const LEAF_WORDS: number = IDS + NODE_ENTRIES_MAX;
export const CHILDREN: number = IDS + NODE_ENTRIES_MAX;
export const COUNTS: number = CHILDREN + NODE_ENTRIES_MAX;
export const INNER_WORDS: number = COUNTS + NODE_ENTRIES_MAX;

const CHUNK_BITS = 4;
const CHUNK_MASK: number = (1 << CHUNK_BITS) - 1;

/** Nodes of one length, taken and given back by number. */
export class NodePool {
  readonly #nodeWords: number;
  readonly #chunks: Int32Array[] = [];
  readonly #chunkBytes: Uint8Array[] = [];
  readonly #free: number[] = [];
  #end = 1;

  constructor(nodeWords: number) {
    this.#nodeWords = nodeWords;
  }

  /** Takes a node with no entries. */
  take(): number {
    const freed = this.#free.pop();
    const node = freed ?? this.#end++;
    if (node >>> CHUNK_BITS >= this.#chunks.length) {
      const words = new Int32Array(this.#nodeWords << CHUNK_BITS);
      this.#chunks.push(words);
      this.#chunkBytes.push(new Uint8Array(words.buffer));
    }
    const at = this.at(node);
    this.words(node).fill(0, at, at + PREFIX);
    return node;
  }

  /** Gives a node back. */
  release(node: number): void {
    this.#free.push(node);
  }

  /** The memory that holds a node. */
  words(node: number): Int32Array {
    return this.#chunks[node >>> CHUNK_BITS]!;
  }

  /** The same memory as bytes: a node starts at 4 * `at(node)`. */
  bytes(node: number): Uint8Array {
    return this.#chunkBytes[node >>> CHUNK_BITS]!;
  }

  /** Where in `words(node)` the node starts. */
  at(node: number): number {
    return (node & CHUNK_MASK) * this.#nodeWords;
  }

  /** Memory of all nodes. */
  get memoryBytes(): number {
    return this.#chunks.length * (this.#nodeWords << CHUNK_BITS) * 4;
  }
}
