// data plane
/**
 * Values of a field that come again: pods of a make have the same containers, nodes the same
 * images. What was met last is kept beside its message, and where the same text comes again it is
 * neither read nor written anew. Fields whose values differ each time are soon let alone, and
 * looked at again now and then.
 */

/** A field's text in JSON, and all that stands for it in the message around it, tags included. */
export interface Part {
  readonly json: Buffer;
  readonly message: Buffer;
}

/** Shorter ones are read as fast as they are compared. */
const JSON_BYTES_MIN = 64;
const JSON_BYTES_MAX = 16 * 1024;
/** Fields that keep a part, of all types. */
const FIELDS_MAX = 512;
/** Misses in a row after which a field is let alone: at first, and after a hit. */
const MISSES_FIRST = 4;
const MISSES_MAX = 16;
/** Values that pass then, until the field is looked at anew. */
const REST_VALUES = 500;

let fields = 0;

export class EncodedValueCache {
  #last: Part | null = null;
  /** Above 0: misses that are left; below: values that pass until it is looked at again. */
  #credit = MISSES_FIRST;

  /** The part that stands at `at`, if it is the one that was met last. */
  find(bytes: Buffer, at: number, end: number): Part | null {
    if (this.#credit <= 0) {
      if (++this.#credit === 1) this.#credit = MISSES_FIRST;
      return null;
    }
    const part = this.#last;
    if (part !== null) {
      const { json } = part;
      const to = at + json.length;
      // most that differ are not of the same length
      const isLikely = to <= end && bytes[to - 1] === json[json.length - 1];
      if (isLikely && bytes.compare(json, 0, json.length, at, to) === 0) {
        this.#credit = MISSES_MAX;
        return part;
      }
    }
    if (--this.#credit === 0) this.#credit = -REST_VALUES;
    return null;
  }

  /** Whether a value of so many bytes, which was not found, is to be kept. */
  wants(jsonBytes: number): boolean {
    if (this.#credit <= 0 || jsonBytes < JSON_BYTES_MIN || jsonBytes > JSON_BYTES_MAX) return false;
    return this.#last !== null || fields < FIELDS_MAX;
  }

  /** Keeps copies of both. */
  keep(json: Uint8Array, message: Uint8Array): void {
    if (this.#last === null) fields++;
    this.#last = { json: Buffer.from(json), message: Buffer.from(message) };
  }
}
