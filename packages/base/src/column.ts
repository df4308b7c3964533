// data plane: growable columns of numbers, in chunks

/**
 * A column holds one number for each id. Chunks are never copied, so that growth costs one chunk
 * at a time, however long the column is. A cell that was never written reads 0.
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

/** A growable column of Uint8Array elements, 1 byte(s) each. */
export class Uint8Column {
  readonly #chunks: Uint8Array[] = [];

  /** The cell of `id`; 0 where nothing was written. */
  get(id: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS];
    return chunk === undefined ? 0 : chunk[id & CHUNK_MASK]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    chunk[id & CHUNK_MASK] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    return (chunk[id & CHUNK_MASK]! += value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    return this.#chunks.length * CHUNK_LENGTH * Uint8Array.BYTES_PER_ELEMENT;
  }

  #grow(chunk: number): Uint8Array {
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
    return chunk === undefined ? 0 : chunk[id & CHUNK_MASK]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    chunk[id & CHUNK_MASK] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    return (chunk[id & CHUNK_MASK]! += value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    return this.#chunks.length * CHUNK_LENGTH * Uint16Array.BYTES_PER_ELEMENT;
  }

  #grow(chunk: number): Uint16Array {
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
    return chunk === undefined ? 0 : chunk[id & CHUNK_MASK]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    chunk[id & CHUNK_MASK] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    return (chunk[id & CHUNK_MASK]! += value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    return this.#chunks.length * CHUNK_LENGTH * Int32Array.BYTES_PER_ELEMENT;
  }

  #grow(chunk: number): Int32Array {
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
    return chunk === undefined ? 0 : chunk[id & CHUNK_MASK]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    chunk[id & CHUNK_MASK] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    return (chunk[id & CHUNK_MASK]! += value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    return this.#chunks.length * CHUNK_LENGTH * Uint32Array.BYTES_PER_ELEMENT;
  }

  #grow(chunk: number): Uint32Array {
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
    return chunk === undefined ? 0 : chunk[id & CHUNK_MASK]!;
  }

  /** Writes the cell of `id`, which is any integer from 0 to 2^31 - 1. */
  set(id: number, value: number): void {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    chunk[id & CHUNK_MASK] = value;
  }

  /** Adds to the cell of `id` and returns the sum, cut to what the element can hold. */
  add(id: number, value: number): number {
    const chunk = this.#chunks[id >>> CHUNK_BITS] ?? this.#grow(id >>> CHUNK_BITS);
    return (chunk[id & CHUNK_MASK]! += value);
  }

  /** Memory of the column. */
  get memoryBytes(): number {
    return this.#chunks.length * CHUNK_LENGTH * Float64Array.BYTES_PER_ELEMENT;
  }

  #grow(chunk: number): Float64Array {
    while (this.#chunks.length <= chunk) this.#chunks.push(new Float64Array(CHUNK_LENGTH));
    return this.#chunks[chunk]!;
  }
}
