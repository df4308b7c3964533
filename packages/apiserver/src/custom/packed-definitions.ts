/**
 * CustomResourceDefinitions lie packed in the embedded store: nearly all of one is schema and
 * description, which is read when its kind is first used, and a clusterful of providers brings
 * thousands that never are. Deflate makes a sixth of them.
 *
 * A packed value begins with a byte that neither JSON nor protobuf of Kubernetes begins with, so
 * values of both forms may lie beside each other.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { DEFINITIONS_PREFIX } from './custom-schemas.ts';

/** First byte of a packed value. */
export const PACKED_MARK = 0;
/** Smaller definitions stay as they are: what a record costs beside its value is as much. */
const PACKED_BYTES_MIN = 1024;
/** More effort gains a tenth of the bytes and costs twice the time. */
const OPTIONS = { level: 1, windowBits: 14, memLevel: 6 };

const PREFIX = Buffer.from(DEFINITIONS_PREFIX, 'latin1');
const MARK = Buffer.of(PACKED_MARK);

/** The value as it is to be kept under `key`. */
export function packedDefinition(key: Buffer, value: Buffer): Buffer {
  if (value.length < PACKED_BYTES_MIN || key.length <= PREFIX.length) return value;
  if (key.compare(PREFIX, 0, PREFIX.length, 0, PREFIX.length) !== 0) return value;
  return Buffer.concat([MARK, deflateRawSync(value, OPTIONS)]);
}

/** What was packed into `[start, end)`, whose first byte is the mark. */
export function unpackedDefinition(bytes: Buffer, start: number, end: number): Buffer {
  return inflateRawSync(bytes.subarray(start + 1, end));
}

/** Values that a new definition is read by several times, within a few turns. */
const RECENT_MAX = 32;
/** Of all of them; inflating the largest takes several milliseconds. */
const RECENT_BYTES_MAX = 4 * 1024 * 1024;

/** The definitions of one store that were written or read last, as they were before packing. */
export class RecentDefinitions {
  /** By revision, the oldest first. */
  readonly #values = new Map<number, Buffer>();
  #bytes = 0;

  /** Keeps a copy of what was written at a revision. */
  note(revision: number, value: Buffer): void {
    this.#keep(revision, Buffer.from(value));
  }

  #keep(revision: number, value: Buffer): void {
    this.#values.set(revision, value);
    this.#bytes += value.length;
    for (const [oldest, { length }] of this.#values) {
      if (this.#values.size <= RECENT_MAX && this.#bytes <= RECENT_BYTES_MAX) break;
      this.#values.delete(oldest);
      this.#bytes -= length;
    }
  }

  /** What was packed into `[start, end)` at a revision. */
  unpacked(revision: number, bytes: Buffer, start: number, end: number): Buffer {
    const known = this.#values.get(revision);
    if (known !== undefined) return known;
    const value = unpackedDefinition(bytes, start, end);
    this.#keep(revision, value);
    return value;
  }
}
