/**
 * Stored values that another writer left behind: a real kube-apiserver's protobuf, JSON from tools.
 * They are read as they are and brought into our stored form when they are met. /
 */

import { encodeCanonical, headOf, storedForm } from '../serializer/canonical.ts';
import { fromBeta, isBetaDefinition } from './definition-beta.ts';
import { parseJson } from '../json/json-text.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import type { ResourceStorage } from '../scheme/kinds.ts';
import { decodeProtobuf } from '../serializer/protobuf.ts';
import { findTypeOfKind } from '../scheme/schema.ts';
import { fitObject } from '../scheme/typed-json.ts';

/**
 * A value as an object without a resourceVersion, or why it cannot be read. Its apiVersion may be
 * another than the storage's: the caller converts. /
 */
export type Foreign =
  | { readonly ok: true; readonly object: JsonObject }
  | { readonly ok: false; readonly message: string };

/**
 * Reads a value in any form. Types that are not built in (custom resources) are taken as they
 * stand.
 */
export function decodeStoredValue(bytes: Buffer, start: number, end: number): Foreign {
  const form = storedForm(bytes, start, end, NO_HEAD);
  if (form === 'protobuf') {
    const decoded = decodeProtobuf(bytes, start, end);
    return decoded.ok ? { ok: true, object: bare(decoded.object) } : decoded;
  }
  if (form === 'unknown') {
    const head = bytes.toString('latin1', start, Math.min(start + 16, end));
    const message = `a stored value starts with ${JSON.stringify(head)}: neither JSON nor protobuf`;
    return { ok: false, message: `${message}; was it encrypted by another API server?` };
  }
  const parsed = parse(bytes.toString('utf8', start, end));
  if (parsed === undefined) return { ok: false, message: 'a stored value is no JSON object' };
  const object = isBetaDefinition(parsed) ? fromBeta(parsed) : parsed;
  const { apiVersion, kind } = object;
  const isNamed = typeof apiVersion === 'string' && typeof kind === 'string';
  const type = isNamed ? findTypeOfKind(apiVersion, kind) : undefined;
  if (type === undefined) return { ok: true, object: bare(object) };
  const fitted = fitObject(type, object, true);
  return fitted.ok ? { ok: true, object: bare(fitted.object) } : fitted;
}

/**
 * The stored form of a value that may be of any writer: undefined if it is in that form already, or
 * of a version that must be converted first. /
 */
export function adopt(
  bytes: Buffer,
  start: number,
  end: number,
  storage: Pick<ResourceStorage, 'apiVersion' | 'kind'>,
): Buffer | undefined {
  const head = headOf(storage.apiVersion, storage.kind);
  if (storedForm(bytes, start, end, head) === 'canonical') return undefined;
  const read = decodeStoredValue(bytes, start, end);
  if (!read.ok) return undefined;
  if (read.object['apiVersion'] !== storage.apiVersion) return undefined;
  return encodeCanonical(read.object);
}

const NO_HEAD = Buffer.from('\0');

function bare(object: JsonObject): JsonObject {
  const metadata = object['metadata'];
  if (isObject(metadata)) delete metadata['resourceVersion'];
  return object;
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = parseJson(text);
    const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isPlain ? (value as JsonObject) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
