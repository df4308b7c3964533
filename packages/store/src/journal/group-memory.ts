// data plane: memory of the group that is written
import { ENTRY_HEADER_BYTES } from './entry.ts';

/** Larger groups have memory of their own. */
const KEPT_BYTES_MAX: number = 8 * 1024 * 1024;
const BYTES_MIN: number = 64 * 1024;

/** One group is written at a time, so each lies where the one before it lay. */
export class GroupMemory {
  #memory: Buffer = Buffer.alloc(0);

  /** So many bytes, with room for a header before them; those given before are given up. */
  take(size: number): Buffer {
    const whole = size + ENTRY_HEADER_BYTES;
    if (whole > KEPT_BYTES_MAX) return Buffer.allocUnsafeSlow(whole).subarray(ENTRY_HEADER_BYTES);
    if (whole > this.#memory.length) {
      this.#memory = Buffer.allocUnsafeSlow(Math.max(BYTES_MIN, whole * 2));
    }
    return this.#memory.subarray(ENTRY_HEADER_BYTES, whole);
  }
}
