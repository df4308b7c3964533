// data plane: one append per change of a node
/**
 * The nodes that changed, in order, so that whoever ranks nodes can catch up when it is asked
 * instead of being told each time. Positions count up for ever; only the last ones are kept.
 */
export class ChangeLog {
  #ids: Uint32Array = new Uint32Array(1024);
  #mask = 1023;
  #end = 0;
  /** By node, the lower bits of the position of its last change. */
  #stamps: Uint32Array = new Uint32Array(1024);

  /** Position after the last change. */
  get end(): number {
    return this.#end;
  }

  get memoryBytes(): number {
    return this.#ids.byteLength + this.#stamps.byteLength;
  }

  /** Whether all changes since `position` are still known. */
  holds(position: number): boolean {
    return this.#end - position <= this.#ids.length;
  }

  append(id: number): void {
    this.#ids[this.#end & this.#mask] = id;
    if (id >= this.#stamps.length) this.#lengthen(id + 1);
    this.#stamps[id] = this.#end;
    this.#end++;
  }

  /** False only if a node has not changed since; a change 2^32 positions back looks new. */
  mayHaveChanged(id: number, position: number): boolean {
    const stamp = id < this.#stamps.length ? this.#stamps[id]! : 0;
    return (this.#end - stamp) >>> 0 <= this.#end - position;
  }

  #lengthen(idEnd: number): void {
    const longer = new Uint32Array(Math.max(idEnd, this.#stamps.length * 2));
    longer.set(this.#stamps);
    this.#stamps = longer;
  }

  /** The node that changed at a position that is still held. */
  at(position: number): number {
    return this.#ids[position & this.#mask]!;
  }

  /** Keeps at least `length` changes; those known so far are given up. */
  reserve(length: number): void {
    if (length <= this.#ids.length) return;
    let size = this.#ids.length;
    while (size < length) size *= 2;
    this.#ids = new Uint32Array(size);
    this.#mask = size - 1;
    // Nothing before the new start is held: move on by a whole ring.
    this.#end += size + 1;
  }
}
