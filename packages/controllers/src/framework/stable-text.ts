/** Texts that are the same for equal values, and the characters of hashes in names. */
import { type JsonValue, type JsonObject, isObject } from '@megaplane/machinery/json-value';
import { putMember } from '@megaplane/base/members';

/** Neither vowels nor digits that look like them: a hash never spells a word. */
const SAFE = 'bcdfghjklmnpqrstvwxz2456789';

/** A number in characters that spell no words. */
export function safeDigits(number: number): string {
  return String(number).replaceAll(/[0-9]/g, (digit) =>
    SAFE.charAt(digit.charCodeAt(0) % SAFE.length),
  );
}

/** Text that is the same for equal values, whatever the order of their members. */
export function stableText(value: JsonValue): string {
  return JSON.stringify(sorted(value));
}

/** Members in the order of their names, without those that are null. */
export function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const field of Object.keys(value).toSorted()) {
    const member = value[field];
    if (member !== undefined && member !== null) putMember(result, field, sorted(member));
  }
  return result;
}
