// data plane: small counts for some of a million nodes

/**
 * Counts by node, without an object per node, in whichever form is smaller.
 *
 *   sparse   Int32Array   node + 1, count, node + 1, count ...   (0: free)   open addressing
 *   dense    Int32Array   count of node 0, of node 1, ...
 *
 * In a sparse table nodes whose count went back to zero keep their slot until it is next made anew.
 * Walkers over neighbours wait for memory at each step of a sparse table, not of a dense one.
 */
const SLOTS_MIN = 8;
/** A dense table gives way when it has more nodes for each that counts; far from where it began. */
const SPARSE_FROM = 64;

export class NodeCounts {
  #slots: Int32Array = new Int32Array(2 * SLOTS_MIN);
  #isDense = false;
  /** 32 less the bits of a slot's number. */
  #shift: number = 32 - Math.log2(SLOTS_MIN);
  #used = 0;
  #size = 0;
  /** All nodes are below this. */
  #nodeEnd = 0;

  /** Nodes with a count that is not zero. */
  get size(): number {
    return this.#size;
  }

  get(node: number): number {
    if (this.#isDense) return node < this.#slots.length ? this.#slots[node]! : 0;
    return this.#slots[this.#find(node) + 1]!;
  }

  /** Adds to the count of a node; returns what it was before. */
  add(node: number, delta: number): number {
    if (node >= this.#nodeEnd) this.#nodeEnd = node + 1;
    const place = this.#placeOf(node);
    const before = this.#slots[place]!;
    const after = before + delta;
    this.#slots[place] = after;
    if (before === 0 && after !== 0) this.#size++;
    else if (before !== 0 && after === 0) this.#shrink();
    return before;
  }

  /** The next slot that has a count, after `slot`; -1 after the last. Begins with -1. */
  slotAfter(slot: number): number {
    const [step, count] = this.#isDense ? [1, 0] : [2, 1];
    for (let at = slot < 0 ? 0 : slot + step; at < this.#slots.length; at += step) {
      if (this.#slots[at + count] !== 0) return at;
    }
    return -1;
  }

  nodeAt(slot: number): number {
    return this.#isDense ? slot : this.#slots[slot]! - 1;
  }

  countAt(slot: number): number {
    return this.#slots[this.#isDense ? slot : slot + 1]!;
  }

  get memoryBytes(): number {
    return this.#slots.byteLength;
  }

  #find(node: number): number {
    const mask = this.#slots.length - 1;
    // The upper bits: with the golden ratio they keep neighbours apart, and those come together.
    let at = (Math.imul(node + 1, 0x9e3779b1) >>> this.#shift) << 1;
    for (;;) {
      const found = this.#slots[at]!;
      if (found === 0 || found === node + 1) return at;
      at = (at + 2) & mask;
    }
  }

  /** Where the count of a node is, with room made for it. */
  #placeOf(node: number): number {
    if (this.#isDense) {
      if (node >= this.#slots.length) this.#lengthen(node + 1);
      return node;
    }
    const at = this.#find(node);
    if (this.#slots[at] !== 0) return at + 1;
    if (this.#used * 4 >= this.#slots.length) {
      this.#rebuild();
      return this.#placeOf(node);
    }
    this.#slots[at] = node + 1;
    this.#used++;
    return at + 1;
  }

  #lengthen(nodeEnd: number): void {
    const grown = new Int32Array(Math.max(nodeEnd, this.#slots.length * 2));
    grown.set(this.#slots);
    this.#slots = grown;
  }

  #shrink(): void {
    this.#size--;
    if (this.#isDense && this.#size * SPARSE_FROM < this.#slots.length) this.#rebuild();
  }

  #rebuild(): void {
    const old = this.#slots;
    const wasDense = this.#isDense;
    let length = 2 * SLOTS_MIN;
    while (length < this.#size * 8 + 2 * SLOTS_MIN) length *= 2;
    this.#isDense = length >= this.#nodeEnd;
    this.#slots = new Int32Array(this.#isDense ? this.#nodeEnd : length);
    this.#shift = 33 - Math.log2(length);
    this.#used = 0;
    const [step, count] = wasDense ? [1, 0] : [2, 1];
    for (let at = 0; at < old.length; at += step) {
      const amount = old[at + count]!;
      if (amount === 0) continue;
      this.#slots[this.#placeOf(wasDense ? at : old[at]! - 1)] = amount;
    }
  }
}
