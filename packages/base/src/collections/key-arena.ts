// data plane: the blocks of a small key table
/**
 * One piece of memory that blocks are cut from in turn. A freed block stays until its owner walks
 * the blocks and builds the table anew: small as this is, that costs less than lists of holes.
 *
 * A ref is the offset of a block divided by 8, as in a slab; 0 names nothing.
 *
 *   block    [id: u32, FREED when freed][length: u32][key bytes, zeros up to a whole word]
 */
export class KeyArena {
  readonly words: Int32Array;
  readonly bytes: Buffer;
  readonly #units: number;
  /** The first unit that was never given out; unit 0 never is. */
  #end = 1;
  #liveUnits = 0;

  constructor(sizeBytes: number) {
    const memory = new ArrayBuffer(sizeBytes);
    this.words = new Int32Array(memory);
    this.bytes = Buffer.from(memory);
    this.#units = sizeBytes / 8;
  }

  /** Bytes in use; a new arena for them needs 8 more. */
  get liveBytes(): number {
    return this.#liveUnits * 8;
  }

  /** Takes a block for a key; 0 when what was never given out is too short. */
  allocate(keyLength: number): number {
    const ref = this.#end;
    const end = ref + unitsOf(keyLength);
    if (end > this.#units) return 0;
    this.#end = end;
    this.#liveUnits += end - ref;
    return ref;
  }

  free(ref: number): void {
    this.words[ref * 2] = FREED;
    this.#liveUnits -= unitsOf(this.words[ref * 2 + 1]!);
  }

  /** The first block in use at or after `ref`, 0 when there is none; begin with 1. */
  nextLive(ref: number): number {
    let at = ref;
    while (at < this.#end && this.words[at * 2] === FREED) at = this.after(at);
    return at < this.#end ? at : 0;
  }

  /** Where the block at `ref` ends. */
  after(ref: number): number {
    return ref + unitsOf(this.words[ref * 2 + 1]!);
  }
}

const FREED = -1;

/** Units of 8 bytes that a key takes with the words before it. */
function unitsOf(keyLength: number): number {
  return 1 + ((keyLength + 7) >>> 3);
}
