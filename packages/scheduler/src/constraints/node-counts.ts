// data plane: small counts for some of a million nodes

/**
 * Counts by node, without an object per node: open addressing, two words a slot. Nodes whose count
 * went back to zero keep their slot until the table is next made anew.
 *
 *   slots   Int32Array   node + 1, count, node + 1, count ...   (0: free)
 */
const SLOTS_MIN = 8;

export class NodeCounts {
  #slots: Int32Array = new Int32Array(2 * SLOTS_MIN);
  /** 32 less the bits of a slot's number. */
  #shift: number = 32 - Math.log2(SLOTS_MIN);
  #used = 0;
  #size = 0;

  /** Nodes with a count that is not zero. */
  get size(): number {
    return this.#size;
  }

  get(node: number): number {
    return this.#slots[this.#find(node) + 1]!;
  }

  /** Adds to the count of a node; returns what it was before. */
  add(node: number, delta: number): number {
    let at = this.#find(node);
    if (this.#slots[at] === 0) {
      if (this.#used * 4 >= this.#slots.length) {
        this.#rehash();
        at = this.#find(node);
      }
      this.#slots[at] = node + 1;
      this.#used++;
    }
    const before = this.#slots[at + 1]!;
    const after = before + delta;
    this.#slots[at + 1] = after;
    if (before === 0 && after !== 0) this.#size++;
    else if (before !== 0 && after === 0) this.#size--;
    return before;
  }

  /** The first slot at or after `slot` that has a count; -1 after the last. Slots start at 0. */
  nextSlot(slot: number): number {
    for (let at = slot; at < this.#slots.length; at += 2) {
      if (this.#slots[at + 1] !== 0) return at;
    }
    return -1;
  }

  nodeAt(slot: number): number {
    return this.#slots[slot]! - 1;
  }

  countAt(slot: number): number {
    return this.#slots[slot + 1]!;
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

  #rehash(): void {
    const old = this.#slots;
    let length = 2 * SLOTS_MIN;
    while (length < this.#size * 8 + 2 * SLOTS_MIN) length *= 2;
    this.#slots = new Int32Array(length);
    this.#shift = 33 - Math.log2(length);
    this.#used = 0;
    for (let at = 0; at < old.length; at += 2) {
      if (old[at + 1] === 0) continue;
      const to = this.#find(old[at]! - 1);
      this.#slots[to] = old[at]!;
      this.#slots[to + 1] = old[at + 1]!;
      this.#used++;
    }
  }
}
