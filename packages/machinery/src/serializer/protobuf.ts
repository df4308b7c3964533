/**
 * Kubernetes protobuf (`application/vnd.kubernetes.protobuf`) to and from the JSON-shaped objects
 * of the API.
 *
 * A body is the magic `k8s\0` and a `runtime.Unknown` message that names the type and holds the
 * object's own message. Field numbers come from generated tables; a type's codec is made when it is
 * first used. /
 */

import { assert } from '@megaplane/base/assert';
import { decodeCanonical } from './canonical.ts';
import { stringAt } from '../json/json.ts';
import { parseJson } from '../json/json-text.ts';
import type { JsonObject } from '../json/json-value.ts';
import { filledVersion } from '../scheme/kinds.ts';
import { MessageDecoder } from './protobuf-decode.ts';
import { MessageEncoder } from './protobuf-encode.ts';
import { closeEnvelope, openEnvelope, readEnvelope } from './protobuf-envelope.ts';
import { findTypeOfKind, versionRead } from '../scheme/schema.ts';
import { Transcoder } from './transcode.ts';
import { planOf } from './transcode-programs.ts';

/**
 * A decoded body, or why it is refused: `message` is upstream's text, the type is '' if not known
 * by then.
 */
export type Decoded =
  | { readonly ok: true; readonly object: JsonObject }
  | {
      readonly ok: false;
      readonly message: string;
      readonly apiVersion: string;
      readonly kind: string;
    };

/** What upstream calls its own set of types in error texts. */
export const UNREGISTERED_SCHEME = 'pkg/api/legacyscheme/scheme.go:30';

/** `k8s\0` */
const MAGIC_BYTES = 4;
const decoder = new MessageDecoder();
const encoder = new MessageEncoder();
const transcoder = new Transcoder();

/** True if the bytes start with `k8s\0`. */
export function isProtobuf(bytes: Uint8Array, start: number, end: number): boolean {
  return (
    end - start >= 4 &&
    bytes[start] === 0x6b &&
    bytes[start + 1] === 0x38 &&
    bytes[start + 2] === 0x73 &&
    bytes[start + 3] === 0
  );
}

/**
 * Decodes an enveloped object of any built-in kind (and of `Status`, options and reviews): as JSON
 * would be, with `kind` and `apiVersion` first, members in upstream's order, and without what Go
 * would omit from JSON. `expected` is the type to assume where the envelope does not name one. /
 */
export function decodeProtobuf(
  bytes: Buffer,
  start: number,
  end: number,
  expected?: { readonly apiVersion: string; readonly kind: string },
): Decoded {
  const refused = (message: string, apiVersion = '', kind = ''): Decoded => {
    return { ok: false, message, apiVersion, kind };
  };
  if (start === end) return refused('empty data');
  if (!isProtobuf(bytes, start, end)) {
    return refused(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    );
  }
  if (end - start === 4) return refused('empty body');
  const envelope = readEnvelope(bytes, start + 4, end);
  if (envelope === undefined) return refused('unexpected EOF');
  const kind = envelope.kind || (expected?.kind ?? '');
  const said = filledVersion(envelope.apiVersion, expected?.apiVersion ?? '');
  const apiVersion = versionRead(said, kind, expected?.apiVersion ?? said);
  const type = findTypeOfKind(apiVersion, kind);
  if (type === undefined) {
    const found = `no kind "${kind}" is registered for version "${apiVersion}"`;
    return refused(`${found} in scheme "${UNREGISTERED_SCHEME}"`, apiVersion, kind);
  }
  const object = decoder.decode(type, bytes, envelope.rawStart, envelope.rawEnd);
  if (object === undefined) return refused(decoder.failure, apiVersion, kind);
  return { ok: true, object: { kind, apiVersion, ...object } };
}

/**
 * Encodes an object by its own `apiVersion` and `kind`, enveloped. Undefined if there is no table
 * for the kind.
 */
export function encodeProtobuf(object: JsonObject): Buffer | undefined {
  const apiVersion = stringAt(object, 'apiVersion');
  const kind = stringAt(object, 'kind');
  const type = findTypeOfKind(apiVersion, kind);
  if (type === undefined) return undefined;
  return encoder.envelope(type, object, apiVersion, kind);
}

/**
 * A watch frame: four bytes of length, and a WatchEvent of `type` (`ADDED`, ...) around an
 * enveloped object.
 */
export function encodeWatchFrame(type: string, envelope: Uint8Array): Buffer {
  return encoder.frame(type, envelope);
}

/**
 * The enveloped list of `listKind`: `items` are bare messages as `encodeItem` gives them, so that a
 * page can be assembled from encodings that were kept. /
 */
export function encodeList(
  apiVersion: string,
  listKind: string,
  metadata: JsonObject,
  items: readonly Uint8Array[],
): Buffer {
  // the first form of lists of metadata had its two fields the other way round
  const isTurned = apiVersion === 'meta.k8s.io/v1beta1';
  return encoder.list(apiVersion, listKind, metadata, items, isTurned);
}

/** What stands around the items of a list that is written piece by piece. */
export interface ListFrame {
  /** Everything before the first item. */
  readonly head: Buffer;
  /** What stands before each item's length. */
  readonly itemTag: number;
  /** Everything behind the last item. */
  readonly tail: Buffer;
}

/** The frame of a list whose items, tags and lengths included, take `itemsBytes`. */
export function listFrame(
  apiVersion: string,
  listKind: string,
  metadata: JsonObject,
  itemsBytes: number,
): ListFrame {
  const empty = encodeList(apiVersion, listKind, metadata, []);
  const envelope = readEnvelope(empty, MAGIC_BYTES, empty.length);
  assert(envelope !== undefined, 'a list that was just encoded cannot be read');
  const { rawStart, rawEnd } = envelope;
  const length = rawEnd - rawStart;
  const lengthAt = rawStart - varintLength(length);
  return {
    head: Buffer.concat([
      empty.subarray(0, lengthAt),
      varintBytes(length + itemsBytes),
      empty.subarray(rawStart, rawEnd),
    ]),
    itemTag: apiVersion === 'meta.k8s.io/v1beta1' ? 0x0a : 0x12,
    tail: empty.subarray(rawEnd),
  };
}

/** Bytes of a number below 2^53 as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest /= 0x80) length++;
  return length;
}

/** A number below 2^53 as a varint. */
export function varintBytes(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/**
 * One object's bare message, without envelope, for `encodeList`. Undefined if there is no table for
 * the kind.
 */
export function encodeItem(
  apiVersion: string,
  kind: string,
  object: JsonObject,
): Buffer | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  return type === undefined ? undefined : encoder.encode(type, object);
}

/**
 * The same from stored JSON bytes, with their revision, at half the cost: no object is made. For
 * types that have shapes beyond the fast way, and for bytes that do not fit, it decodes after all.
 * The result is good until the next call of any of these.
 */
export function encodeStoredItem(
  apiVersion: string,
  kind: string,
  bytes: Buffer,
  start: number,
  end: number,
  resourceVersion: number,
): Buffer | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  if (type === undefined) return undefined;
  const out = transcoder.out;
  out.reset();
  if (transcoder.write(planOf(type), bytes, start, end, String(resourceVersion))) return out.view();
  return encoder.encode(type, decodeCanonical(bytes, start, end, resourceVersion));
}

/** As `encodeStoredItem`, in the envelope: the answer to a get, or the object of a watch event. */
export function encodeStored(
  apiVersion: string,
  kind: string,
  bytes: Buffer,
  start: number,
  end: number,
  resourceVersion: number,
): Buffer | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  if (type === undefined) return undefined;
  const out = transcoder.out;
  out.reset();
  openEnvelope(out);
  const mark = out.mark();
  if (transcoder.write(planOf(type), bytes, start, end, String(resourceVersion))) {
    closeEnvelope(out, mark, apiVersion, kind);
    return out.take();
  }
  const object = decodeCanonical(bytes, start, end, resourceVersion);
  return encoder.envelope(type, object, apiVersion, kind);
}

/**
 * As upstream keeps an object: enveloped, with an empty resourceVersion. Undefined if there is no
 * table for the kind.
 */
export function encodeAtRest(apiVersion: string, kind: string, bytes: Buffer): Buffer | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  if (type === undefined) return undefined;
  const out = transcoder.out;
  out.reset();
  openEnvelope(out);
  const mark = out.mark();
  if (transcoder.write(planOf(type), bytes, 0, bytes.length, '')) {
    closeEnvelope(out, mark, apiVersion, kind);
    return out.take();
  }
  const object = parseJson(bytes.toString('utf8')) as JsonObject;
  return encoder.envelope(type, object, apiVersion, kind);
}
