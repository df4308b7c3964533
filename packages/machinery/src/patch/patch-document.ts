/**
 * What a JSON patch or a merge patch gives, with its members in the order that upstream's library
 * (gopkg.in/evanphx/json-patch.v4) leaves them in. It reads an object into a map where the patch
 * goes through it and writes maps sorted; what it only passes on stays as it was stored or sent.
 * Refusals show the outcome, and decoding it tells of faults in that order.
 */
import { putMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { applyJsonPatch, pointerSteps } from './patch-json.ts';
import type { Patch } from './patch.ts';

/** Undefined for strategic patches, and for patches that give no object. */
export function patchedDocument(patch: Patch, original: JsonObject): JsonObject | undefined {
  if (patch.kind !== 'json') {
    return patch.kind === 'merge' ? merged(original, patch.body) : undefined;
  }
  const patched = applyJsonPatch(original, patch.operations);
  if (!isObject(patched)) return undefined;
  sortMembers(patched);
  for (const { op, path, from } of patch.operations) {
    sortAlong(patched, path, op === 'test');
    if (op === 'move' || op === 'copy') sortAlong(patched, from, false);
  }
  return patched;
}

function merged(original: JsonObject, patch: JsonObject): JsonObject {
  const object: JsonObject = { ...original };
  for (const [member, value] of Object.entries(patch)) {
    const current = Object.hasOwn(original, member) ? original[member] : undefined;
    if (value === null || value === undefined) delete object[member];
    else if (!isObject(current)) putMember(object, member, withoutNulls(value));
    else putMember(object, member, isObject(value) ? merged(current, value) : value);
  }
  sortMembers(object);
  return object;
}

function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls);
  return isObject(value) ? merged({}, value) : value;
}

/** Sorts the objects that a pointer leads through, `isWhole` with the one that it names. */
function sortAlong(document: JsonObject, pointer: JsonValue | undefined, isWhole: boolean): void {
  const steps = pointerSteps(pointer);
  let within: JsonValue | undefined = document;
  for (const step of isWhole ? steps : steps.slice(0, -1)) {
    if (Array.isArray(within)) within = within[Number(step)];
    else within = isObject(within) && Object.hasOwn(within, step) ? within[step] : undefined;
    if (isObject(within)) sortMembers(within);
  }
}

function sortMembers(object: JsonObject): void {
  for (const name of Object.keys(object).sort()) {
    const value = object[name];
    delete object[name];
    Object.defineProperty(object, name, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
}
