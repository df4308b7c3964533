/**
 * JSON patch (RFC 6902) with the habits of the library that upstream uses, which differ from the
 * RFC: negative indexes count from the end, a missing member equals null in a test, can be replaced
 * and is copied as null, the root can be tested and replaced but not be changed otherwise, and what
 * stands before the first slash of a pointer is not read.
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { equals } from '../json/json.ts';

export const JSON_PATCH_OPERATIONS_MAX = 10_000;
/** All `copy` operations of one patch together; keeps a small patch from growing an object. */
export const JSON_PATCH_COPIED_BYTES_MAX: number = 3 * 1024 * 1024;

/** Items that all operations of one patch may move along in their lists, by adding and removing. */
export const JSON_PATCH_SHIFTS_MAX: number = 32 * 1024 * 1024;

let shiftsLeft = 0;

/** False: the patch has moved too many items already. */
function shift(items: number): boolean {
  shiftsLeft -= items;
  return shiftsLeft >= 0;
}

type Container = JsonObject | JsonValue[];

/** The patched document, or as soon as one operation does not apply, why in upstream's words. */
export function applyJsonPatch(
  document: JsonObject,
  operations: readonly JsonObject[],
): JsonObject | JsonValue[] | string {
  let copy = structuredClone(document);
  let copiedBytes = 0;
  shiftsLeft = JSON_PATCH_SHIFTS_MAX;
  for (const operation of operations) {
    if (operation['path'] === '' && operation['op'] === 'replace') {
      const { value } = operation;
      if (Array.isArray(value)) return value;
      if (isObject(value)) copy = structuredClone(value);
      continue;
    }
    if (operation['op'] === 'copy') {
      const value = readAt(copy, operation['from']);
      copiedBytes += value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));
      if (copiedBytes > JSON_PATCH_COPIED_BYTES_MAX) {
        const size = `the accumulated size increase of copy operations is ${copiedBytes}`;
        return `${size}, exceeding the limit ${JSON_PATCH_COPIED_BYTES_MAX}`;
      }
    }
    if (!applyOne(copy, operation)) return faultOf(copy, operation);
  }
  return copy;
}

type Operate = (document: JsonObject, operation: JsonObject) => boolean;

const OPERATIONS: ReadonlyMap<unknown, Operate> = new Map<unknown, Operate>([
  ['add', (document, { path, value }) => addAt(document, path, structuredClone(value ?? null))],
  ['remove', (document, { path }) => removeAt(document, path)],
  [
    'replace',
    (document, { path, value }) => replaceAt(document, path, structuredClone(value ?? null)),
  ],
  ['test', (document, { path, value }) => testAt(document, path, value ?? null)],
  [
    'copy',
    (document, { path, from }) => {
      const found = readAt(document, from, true);
      return found !== undefined && addAt(document, path, structuredClone(found));
    },
  ],
  [
    'move',
    (document, { path, from }) => {
      const found = readAt(document, from);
      return found !== undefined && removeAt(document, from) && addAt(document, path, found);
    },
  ],
]);

function applyOne(document: JsonObject, operation: JsonObject): boolean {
  const operate = OPERATIONS.get(operation['op']);
  return operate !== undefined && operate(document, operation);
}

/** Why an operation does not apply to the document as those before it left it. */
function faultOf(document: JsonObject, operation: JsonObject): string {
  const { op, path, from } = operation;
  if (typeof op !== 'string' || !OPERATIONS.has(op)) {
    return `Unexpected kind: ${typeof op === 'string' ? op : 'unknown'}`;
  }
  const reads = op === 'move' || op === 'copy';
  if (reads) {
    const fault = sourceFault(document, op, from);
    if (fault !== '') return fault;
  }
  if (typeof path !== 'string') return `${op} operation failed to decode path: missing value`;
  const place = locate(document, path);
  if (place === undefined) {
    const shown = op === 'add' || op === 'remove' ? JSON.stringify(path) : path;
    const what = reads ? 'doc is missing destination path' : ownMember(MISSING, op);
    const why = `${what ?? 'doc is missing path'}: ${shown}`;
    return `${op} operation does not apply: ${why}: missing value`;
  }
  if (op === 'test' && !Array.isArray(place.within))
    return `testing value ${path} failed: test failed`;
  const why = stepFault(place.within, place.key, op === 'add' || reads);
  if (op === 'replace') {
    return `replace operation does not apply: doc is missing key: ${path}: missing value`;
  }
  if (op === 'copy') return `error while adding value during copy: ${why}`;
  return why === ''
    ? `testing value ${path} failed: test failed`
    : `error in ${op} for path: '${path}': ${why}`;
}

const MISSING: Readonly<Record<string, string>> = { test: 'is missing path' };

function sourceFault(document: JsonObject, op: string, from: JsonValue | undefined): string {
  if (typeof from !== 'string') {
    return `${op} operation failed to decode from: operation, missing from field: missing value`;
  }
  const source = locate(document, from);
  if (source === undefined) {
    return `${op} operation does not apply: doc is missing from path: ${from}: missing value`;
  }
  const { within, key } = source;
  if (memberOf(within, key) !== undefined || (op === 'copy' && !Array.isArray(within))) return '';
  const why = stepFault(within, key, false);
  return op === 'move'
    ? `error in move for path: '${key}': ${why}`
    : `error in copy for from: '${from}': ${why}`;
}

/** What is wrong with the last step; '' where nothing is. */
function stepFault(within: Container, key: string, isAdding: boolean): string {
  if (!Array.isArray(within)) {
    const isThere = isAdding || memberOf(within, key) !== undefined;
    return isThere ? '' : `Unable to remove nonexistent key: ${key}: missing value`;
  }
  if (!/^[+-]?[0-9]+$/.test(key)) {
    const syntax = `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`;
    return isAdding ? `value was not a proper array index: '${key}': ${syntax}` : syntax;
  }
  const length = isAdding ? within.length + 1 : within.length;
  const isThere = indexIn(length, key) !== undefined;
  return isThere ? '' : `Unable to access invalid index: ${Number(key)}: invalid index referenced`;
}

/** The container that a pointer's last step is taken in, and that step; undefined if not there. */
function locate(
  document: JsonObject,
  pointer: JsonValue | undefined,
): { readonly within: Container; readonly key: string } | undefined {
  if (typeof pointer !== 'string') return undefined;
  const steps = pointerSteps(pointer);
  const key = steps.pop();
  if (key === undefined) return undefined;
  let within: Container = document;
  for (const step of steps) {
    const next: JsonValue | undefined = memberOf(within, step);
    if (typeof next !== 'object' || next === null) return undefined;
    within = next;
  }
  return { within, key };
}

/** Where a pointer leads in what was patched: the container, and the member of it. */
export function placeOf(
  document: JsonObject,
  pointer: JsonValue | undefined,
): { readonly to: Container; readonly place: string } | undefined {
  const found = locate(document, pointer);
  if (found === undefined) return undefined;
  const { within, key } = found;
  if (!Array.isArray(within)) return { to: within, place: key };
  const index = key === '-' ? within.length - 1 : indexIn(within.length, key);
  return index === undefined ? undefined : { to: within, place: String(index) };
}

/** The members that a pointer names one within the other. */
export function pointerSteps(pointer: JsonValue | undefined): string[] {
  return typeof pointer === 'string' ? pointer.split('/').slice(1).map(unescapeStep) : [];
}

function unescapeStep(step: string): string {
  return step.replaceAll(/~[01]/g, (escape) => (escape === '~1' ? '/' : '~'));
}

/** The place that a list index names: `[0, length)`, or from the end if negative. */
function indexIn(length: number, key: string): number | undefined {
  if (!/^[+-]?[0-9]+$/.test(key)) return undefined;
  const index = Number(key);
  const place = index < 0 ? index + length : index;
  return place >= 0 && place < length ? place : undefined;
}

function memberOf(container: Container, key: string): JsonValue | undefined {
  if (!Array.isArray(container)) {
    return Object.hasOwn(container, key) ? container[key] : undefined;
  }
  const index = indexIn(container.length, key);
  return index === undefined ? undefined : container[index];
}

/** `isLenient`: a member that an object does not have is null. */
function readAt(
  document: JsonObject,
  pointer: JsonValue | undefined,
  isLenient = false,
): JsonValue | undefined {
  const place = locate(document, pointer);
  if (place === undefined) return undefined;
  const found = memberOf(place.within, place.key);
  return found === undefined && isLenient && !Array.isArray(place.within) ? null : found;
}

function addAt(document: JsonObject, pointer: JsonValue | undefined, value: JsonValue): boolean {
  const place = locate(document, pointer);
  if (place === undefined) return false;
  const { within, key } = place;
  if (!Array.isArray(within)) {
    setMember(within, key, value);
    return true;
  }
  const index = key === '-' ? within.length : indexIn(within.length + 1, key);
  if (index === undefined || !shift(within.length - index)) return false;
  within.splice(index, 0, value);
  return true;
}

function removeAt(document: JsonObject, pointer: JsonValue | undefined): boolean {
  const place = locate(document, pointer);
  if (place === undefined || memberOf(place.within, place.key) === undefined) return false;
  const { within, key } = place;
  if (!Array.isArray(within)) {
    delete within[key];
    return true;
  }
  const index = indexIn(within.length, key) ?? 0;
  if (!shift(within.length - index)) return false;
  within.splice(index, 1);
  return true;
}

function replaceAt(
  document: JsonObject,
  pointer: JsonValue | undefined,
  value: JsonValue,
): boolean {
  const place = locate(document, pointer);
  if (place === undefined) return false;
  const { within, key } = place;
  if (!Array.isArray(within)) {
    setMember(within, key, value);
    return true;
  }
  const index = indexIn(within.length, key);
  if (index === undefined) return false;
  within[index] = value;
  return true;
}

/** A member named `__proto__` is data like any other and must not become the prototype. */
function setMember(object: JsonObject, key: string, value: JsonValue): void {
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function testAt(document: JsonObject, pointer: JsonValue | undefined, value: JsonValue): boolean {
  if (pointer === '') return equals(document, value);
  const place = locate(document, pointer);
  if (place === undefined) return false;
  const { within, key } = place;
  if (Array.isArray(within) && indexIn(within.length, key) === undefined) return false;
  return equals(memberOf(within, key) ?? null, value);
}
