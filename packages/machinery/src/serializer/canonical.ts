/**
 * The form in which objects are stored: compact JSON that starts with
 *
 *     {"kind":"K","apiVersion":"V","metadata":{
 *
 * and never holds `metadata.resourceVersion`. The revision is a number beside the bytes; on the way
 * out it is spliced in right after `"metadata":{`. That place, the *head length*, is the same for
 * every object of one kind, so reading an object costs two copies and no parsing. /
 */

import { parseJson } from '../json/json-text.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import { keepRawTexts, objectJson } from '../json/raw-text.ts';

const QUOTE = 0x22;
const BRACE_CLOSE = 0x7d;
const COMMA = 0x2c;

/** `"resourceVersion":"` and `"` around up to 16 digits (revisions are below 2^53), and a comma. */
export const SPLICE_BYTES_MAX: number = 19 + 16 + 2;

const MEMBER: Uint8Array = new TextEncoder().encode('"resourceVersion":"');

/** Bytes before the first member of metadata, for every stored object of this kind. */
export function headLength(apiVersion: string, kind: string): number {
  return headOf(apiVersion, kind).length;
}

/** The constant start of every stored object of this kind, up to and with `"metadata":{`. */
export function headOf(apiVersion: string, kind: string): Buffer {
  return Buffer.from(`{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":{`);
}

/**
 * The stored form as text. `kind` and `apiVersion` must be strings; absent metadata counts as
 * empty. What kube-controller-manager compares octet by octet is written as Go does, with `&`, `<`
 * and `>` escaped; of other text of these kinds that changes nothing.
 */
export function canonicalText(object: JsonObject): string {
  const { kind, apiVersion, metadata, ...rest } = object;
  const { resourceVersion: _, ...kept } = isObject(metadata) ? metadata : {};
  const whole = { kind, apiVersion, metadata: kept, ...rest };
  return objectJson(whole);
}

/** The stored form in a Buffer of its own. */
export function encodeCanonical(object: JsonObject): Buffer {
  return Buffer.from(canonicalText(object));
}

/** Writes the stored form at `offset`; gives the offset after it, or -1 if it does not fit. */
export function encodeCanonicalInto(object: JsonObject, out: Buffer, offset: number): number {
  const text = canonicalText(object);
  const room = out.length - offset;
  if (text.length > room) return -1;
  if (text.length * 3 > room && Buffer.byteLength(text) > room) return -1;
  return offset + out.write(text, offset);
}

/** An object as parsed from stored bytes, with its resourceVersion in metadata. */
export function decodeCanonical(
  bytes: Buffer,
  start: number,
  end: number,
  resourceVersion: number,
): JsonObject {
  const text = bytes.toString('utf8', start, end);
  const object = parseJson(text) as JsonObject;
  keepRawTexts(text, object);
  const metadata = object['metadata'];
  if (isObject(metadata)) metadata['resourceVersion'] = String(resourceVersion);
  else object['metadata'] = { resourceVersion: String(resourceVersion) };
  return object;
}

/**
 * Copies a stored object to `out` at `offset` with its revision spliced in; gives the offset after
 * it. `out` must have room for `end - start + SPLICE_BYTES_MAX`. `head` is the kind's head length,
 * `resourceVersion` an integer > 0. /
 */
export function splice(
  bytes: Uint8Array,
  start: number,
  end: number,
  head: number,
  resourceVersion: number,
  out: Uint8Array,
  offset: number,
): number {
  const cut = start + head;
  let at = offset;
  out.set(bytes.subarray(start, cut), at);
  at = writeResourceVersion(resourceVersion, out, at + head);
  if (bytes[cut] !== BRACE_CLOSE) out[at++] = COMMA;
  out.set(bytes.subarray(cut, end), at);
  return at + (end - cut);
}

/** Exact length of what `splice` writes. */
export function splicedLength(
  bytes: Uint8Array,
  start: number,
  end: number,
  head: number,
  resourceVersion: number,
): number {
  const comma = bytes[start + head] === BRACE_CLOSE ? 0 : 1;
  return end - start + MEMBER.length + digitsOf(resourceVersion) + 1 + comma;
}

/** Writes `"resourceVersion":"N"` and gives the offset after it. */
export function writeResourceVersion(
  resourceVersion: number,
  out: Uint8Array,
  offset: number,
): number {
  out.set(MEMBER, offset);
  const end = offset + MEMBER.length + digitsOf(resourceVersion);
  let rest = resourceVersion;
  for (let at = end - 1; at >= offset + MEMBER.length; at--) {
    const next = Math.floor(rest / 10);
    out[at] = 0x30 + (rest - next * 10);
    rest = next;
  }
  out[end] = QUOTE;
  return end + 1;
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  return digits;
}

/**
 * What stored bytes are: ours, JSON of another writer, Kubernetes protobuf, or nothing we can read.
 */
export type StoredForm = 'canonical' | 'json' | 'protobuf' | 'unknown';

/** Tells by the first bytes only; `head` is `headOf` of the kind that the key belongs to. */
export function storedForm(
  bytes: Uint8Array,
  start: number,
  end: number,
  head: Uint8Array,
): StoredForm {
  if (end - start > head.length) {
    let same = 0;
    while (same < head.length && bytes[start + same] === head[same]) same++;
    if (same === head.length) return 'canonical';
  }
  const first = bytes[start];
  if (first === 0x7b || first === 0x20 || first === 0x0a || first === 0x09) return 'json';
  if (first === 0x6b && bytes[start + 1] === 0x38 && bytes[start + 2] === 0x73) {
    return bytes[start + 3] === 0 ? 'protobuf' : 'unknown';
  }
  return 'unknown';
}
