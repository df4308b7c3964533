/**
 * Objects that leave this process's store take the owners of their fields along: references to
 * templates mean nothing to whoever else reads an etcd, or a sealed value after a restart.
 */
import { unpackManaged } from '@megaplane/machinery/apply/field-templates';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { objectAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isPacked, shownBytes, setManaged } from './shown-fields.ts';

const METADATA_OPEN = '"metadata":{';
/** The kind and version of an object before its metadata are no longer than this. */
const HEAD_BYTES_MAX = 512;

/** A stored value with its owners written out; the very bytes where there are none. */
export function wholeValue(value: Buffer): Buffer {
  const open = value.subarray(0, HEAD_BYTES_MAX).indexOf(METADATA_OPEN);
  if (open < 0) return value;
  const head = open + METADATA_OPEN.length;
  if (!isPacked(value, head)) return value;
  return Buffer.from(shownBytes(value, 0, value.length, head));
}

/** The other way round: the stored form of a canonical value that `wholeValue` gave. */
export function packedValue(value: Buffer): Buffer {
  if (!value.includes('"managedFields":[')) return value;
  const object = parseJson(value.toString('utf8')) as JsonObject;
  packOwners(object);
  return encodeCanonical(object);
}

/** Puts references in place of the entries of an object that comes from elsewhere. */
export function packOwners(object: JsonObject): void {
  const entries = objectAt(object, 'metadata')?.['managedFields'];
  if (Array.isArray(entries)) setManaged(object, unpackManaged(entries));
}
