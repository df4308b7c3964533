/**
 * CustomResourceDefinitions lie packed in the embedded store: nearly all of one is schema and
 * description, which is read when its kind is first used, and a clusterful of providers brings
 * thousands that never are. Deflate makes a sixth of them.
 *
 * A packed value begins with a byte that neither JSON nor protobuf of Kubernetes begins with, so
 * values of both forms may lie beside each other.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { ownBytes } from '@megaplane/base/bytes';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { BETA_HEAD } from '@megaplane/machinery/custom/definition-beta';
import { applyDefaults } from '@megaplane/machinery/defaulting';
import { decodeStoredValue } from '@megaplane/machinery/stored-value';
import { packOwners } from '../managedfields/whole-fields.ts';
import { DEFINITIONS_PREFIX } from './served.ts';

/** First byte of a packed value. */
const PACKED_MARK = 0;
/** Smaller definitions stay as they are: what a record costs beside its value is as much. */
const PACKED_BYTES_MIN = 1024;
/** More effort gains a tenth of the bytes and costs twice the time. */
const OPTIONS = { level: 1, windowBits: 14, memLevel: 6 };

const PREFIX = Buffer.from(DEFINITIONS_PREFIX);
const MARK = Buffer.of(PACKED_MARK);
const LETTER_C = 0x43;
const LETTER_R = 0x52;

/** The value as it is to be kept under `key`. */
export function packedDefinition(key: Buffer, value: Buffer): Buffer {
  if (value.length < PACKED_BYTES_MIN || key.length <= PREFIX.length) return value;
  if (key.compare(PREFIX, 0, PREFIX.length, 0, PREFIX.length) !== 0) return value;
  return Buffer.concat([MARK, deflateRawSync(value, OPTIONS)]);
}

/** Whether the value in `[start, end)` has to be written out before it is looked at. */
export function isOtherForm(bytes: Buffer, start: number, end: number): boolean {
  if (start === end) return false;
  return bytes[start] === PACKED_MARK || isBeta(bytes, start, end);
}

/** Told by two letters of the kind first: every value that is read is asked this. */
function isBeta(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[start + 9] !== LETTER_C || bytes[start + 15] !== LETTER_R) return false;
  const to = start + BETA_HEAD.length;
  return to < end && bytes.compare(BETA_HEAD, 0, BETA_HEAD.length, start, to) === 0;
}

/**
 * The definition in `[start, end)`, which is packed, or as kube-apiserver left it in its etcd. What
 * cannot be read stays as it is.
 */
function ownForm(bytes: Buffer, start: number, end: number): Buffer {
  if (bytes[start] === PACKED_MARK) return inflateRawSync(bytes.subarray(start + 1, end));
  const read = decodeStoredValue(bytes, start, end);
  if (!read.ok) return bytes.subarray(start, end);
  applyDefaults(read.object);
  packOwners(read.object);
  return encodeCanonical(read.object);
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
    this.#keep(revision, ownBytes(value, 0, value.length));
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

  /** What was written at a revision and lies in `[start, end)` in another form. */
  unpacked(revision: number, bytes: Buffer, start: number, end: number): Buffer {
    const known = this.#values.get(revision);
    if (known !== undefined) return known;
    const value = ownForm(bytes, start, end);
    this.#keep(revision, value);
    return value;
  }
}
