// data plane: growable columns of numbers, in chunks

/**
 * A column holds one number for each id. Chunks are never copied but for the first, which begins
 * with one cache line and doubles: growth costs one chunk at a time, however long the column is,
 * and a column of a few ids costs as few bytes. A cell that was never written reads 0; writing 0
 * beyond what is there takes no memory.
 *
 * The five classes are written out one by one on purpose: shared code would see typed arrays of
 * several element kinds, and each access would pay for finding out which.
 *
 *   id >>> 14          which chunk
 *   id & (2^14 - 1)    where in it
 */
const CHUNK_BITS = 14;
const CHUNK_LENGTH: number = 1 << CHUNK_BITS;
const CHUNK_MASK: number = CHUNK_LENGTH - 1;
/** What the first chunk of a column begins with. */
const FIRST_CHUNK_BYTES = 64;

/** Cells of the first chunk that hold cell `at`: one of `bytes` each. */
function firstLength(at: number, bytes: number): number {
  return Math.max(FIRST_CHUNK_BYTES / bytes, 2 ** (32 - Math.clz32(at)));
}

/** A growable column of Uint8Array elements, 1 byte(s) each. */
export class Uint8Column {
  readonly #chunks: Uint8Array[] = [];

  /** The cell of `id`; 0 where nothing was written. */
  get(id: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    return chunk === undefined || at >= chunk.length ? 0 : chunk[at]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) chunk[at] = value;
    else if (value !== 0) this.#grow(id)[at] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) return (chunk[at]! += value);
    return (this.#grow(id)[at] = value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    const first = this.#chunks[0]?.byteLength ?? 0;
    const others = Math.max(0, this.#chunks.length - 1);
    return first + others * CHUNK_LENGTH * Uint8Array.BYTES_PER_ELEMENT;
  }

  #grow(id: number): Uint8Array {
    const chunk = id >>> CHUNK_BITS;
    if (chunk === 0) {
      const grown = new Uint8Array(firstLength(id, Uint8Array.BYTES_PER_ELEMENT));
      grown.set(this.#chunks[0] ?? []);
      return (this.#chunks[0] = grown);
    }
    if (this.#chunks.length === 0) this.#chunks.push(new Uint8Array(0));
    while (this.#chunks.length <= chunk) this.#chunks.push(new Uint8Array(CHUNK_LENGTH));
    return this.#chunks[chunk]!;
  }
}

/** A growable column of Uint16Array elements, 2 byte(s) each. */
export class Uint16Column {
  readonly #chunks: Uint16Array[] = [];

  /** The cell of `id`; 0 where nothing was written. */
  get(id: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    return chunk === undefined || at >= chunk.length ? 0 : chunk[at]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) chunk[at] = value;
    else if (value !== 0) this.#grow(id)[at] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) return (chunk[at]! += value);
    return (this.#grow(id)[at] = value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    const first = this.#chunks[0]?.byteLength ?? 0;
    const others = Math.max(0, this.#chunks.length - 1);
    return first + others * CHUNK_LENGTH * Uint16Array.BYTES_PER_ELEMENT;
  }

  #grow(id: number): Uint16Array {
    const chunk = id >>> CHUNK_BITS;
    if (chunk === 0) {
      const grown = new Uint16Array(firstLength(id, Uint16Array.BYTES_PER_ELEMENT));
      grown.set(this.#chunks[0] ?? []);
      return (this.#chunks[0] = grown);
    }
    if (this.#chunks.length === 0) this.#chunks.push(new Uint16Array(0));
    while (this.#chunks.length <= chunk) this.#chunks.push(new Uint16Array(CHUNK_LENGTH));
    return this.#chunks[chunk]!;
  }
}

/** A growable column of Int32Array elements, 4 byte(s) each. */
export class Int32Column {
  readonly #chunks: Int32Array[] = [];

  /** The cell of `id`; 0 where nothing was written. */
  get(id: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    return chunk === undefined || at >= chunk.length ? 0 : chunk[at]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) chunk[at] = value;
    else if (value !== 0) this.#grow(id)[at] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) return (chunk[at]! += value);
    return (this.#grow(id)[at] = value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    const first = this.#chunks[0]?.byteLength ?? 0;
    const others = Math.max(0, this.#chunks.length - 1);
    return first + others * CHUNK_LENGTH * Int32Array.BYTES_PER_ELEMENT;
  }

  #grow(id: number): Int32Array {
    const chunk = id >>> CHUNK_BITS;
    if (chunk === 0) {
      const grown = new Int32Array(firstLength(id, Int32Array.BYTES_PER_ELEMENT));
      grown.set(this.#chunks[0] ?? []);
      return (this.#chunks[0] = grown);
    }
    if (this.#chunks.length === 0) this.#chunks.push(new Int32Array(0));
    while (this.#chunks.length <= chunk) this.#chunks.push(new Int32Array(CHUNK_LENGTH));
    return this.#chunks[chunk]!;
  }
}

/** A growable column of Uint32Array elements, 4 byte(s) each. */
export class Uint32Column {
  readonly #chunks: Uint32Array[] = [];

  /** The cell of `id`; 0 where nothing was written. */
  get(id: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    return chunk === undefined || at >= chunk.length ? 0 : chunk[at]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) chunk[at] = value;
    else if (value !== 0) this.#grow(id)[at] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) return (chunk[at]! += value);
    return (this.#grow(id)[at] = value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    const first = this.#chunks[0]?.byteLength ?? 0;
    const others = Math.max(0, this.#chunks.length - 1);
    return first + others * CHUNK_LENGTH * Uint32Array.BYTES_PER_ELEMENT;
  }

  #grow(id: number): Uint32Array {
    const chunk = id >>> CHUNK_BITS;
    if (chunk === 0) {
      const grown = new Uint32Array(firstLength(id, Uint32Array.BYTES_PER_ELEMENT));
      grown.set(this.#chunks[0] ?? []);
      return (this.#chunks[0] = grown);
    }
    if (this.#chunks.length === 0) this.#chunks.push(new Uint32Array(0));
    while (this.#chunks.length <= chunk) this.#chunks.push(new Uint32Array(CHUNK_LENGTH));
    return this.#chunks[chunk]!;
  }
}

/** A growable column of Float64Array elements, 8 byte(s) each. */
export class Float64Column {
  readonly #chunks: Float64Array[] = [];

  /** The cell of `id`; 0 where nothing was written. */
  get(id: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    return chunk === undefined || at >= chunk.length ? 0 : chunk[at]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) chunk[at] = value;
    else if (value !== 0) this.#grow(id)[at] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    const at = id & CHUNK_MASK;
    if (chunk !== undefined && at < chunk.length) return (chunk[at]! += value);
    return (this.#grow(id)[at] = value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    const first = this.#chunks[0]?.byteLength ?? 0;
    const others = Math.max(0, this.#chunks.length - 1);
    return first + others * CHUNK_LENGTH * Float64Array.BYTES_PER_ELEMENT;
  }

  #grow(id: number): Float64Array {
    const chunk = id >>> CHUNK_BITS;
    if (chunk === 0) {
      const grown = new Float64Array(firstLength(id, Float64Array.BYTES_PER_ELEMENT));
      grown.set(this.#chunks[0] ?? []);
      return (this.#chunks[0] = grown);
    }
    if (this.#chunks.length === 0) this.#chunks.push(new Float64Array(0));
    while (this.#chunks.length <= chunk) this.#chunks.push(new Float64Array(CHUNK_LENGTH));
    return this.#chunks[chunk]!;
  }
}
