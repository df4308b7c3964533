/**
 * Kubernetes protobuf (`application/vnd.kubernetes.protobuf`) to and from the JSON-shaped objects of the API.
 *
 * A body is the magic `k8s\0` and a `runtime.Unknown` message that names the type and holds the object's own message.
 * Field numbers come from generated tables; a type's codec is built when it is first used.
 */

import type { JsonObject } from './json-value.ts';

/** A decoded body, or why it is refused: `message` is upstream's text for a 400. */
export type Decoded =
  | { readonly ok: true; readonly object: JsonObject }
  | { readonly ok: false; readonly message: string };

/** Messages nested deeper than this are refused. */
export const PROTOBUF_DEPTH_MAX = 100;

/** True if the bytes start with `k8s\0`. */
export declare function isProtobuf(bytes: Uint8Array, start: number, end: number): boolean;

/**
 * Decodes an enveloped object of any built-in kind (and of `Status`, options and reviews): as JSON would be, with
 * `kind` and `apiVersion` from the envelope; fields that Go would omit from JSON are absent.
 * `expected` gives the type to assume where the envelope names none.
 */
export declare function decodeProtobuf(
  bytes: Uint8Array,
  start: number,
  end: number,
  expected?: { readonly apiVersion: string; readonly kind: string },
): Decoded;

/** Encodes an object by its own `apiVersion` and `kind`, enveloped. Undefined if there is no table for the kind. */
export declare function encodeProtobuf(object: JsonObject): Buffer | undefined;

/** A watch frame: four bytes of length and a WatchEvent around an enveloped object. */
export declare function encodeWatchFrame(type: string, envelope: Uint8Array): Buffer;

/**
 * The enveloped list of `listKind`: `items` are bare messages as `encodeItem` gives them, so that a page can be
 * assembled from kept encodings.
 */
export declare function encodeList(
  apiVersion: string,
  listKind: string,
  metadata: JsonObject,
  items: readonly Uint8Array[],
): Buffer;

/** One object's bare message, without envelope, for `encodeList`. Undefined if there is no table for the kind. */
export declare function encodeItem(
  apiVersion: string,
  kind: string,
  object: JsonObject,
): Buffer | undefined;
