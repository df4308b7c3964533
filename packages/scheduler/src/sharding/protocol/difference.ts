/** Where two configurations differ, in words. */
import { ownMember } from '@megaplane/base/members';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';

const SHOWN_MAX = 80;

/** The first path at which two values in JSON differ, with both; empty: nowhere. */
export function differenceOf(root: string, other: string): string {
  let values: readonly JsonValue[];
  try {
    values = [root, other].map((text) => parseJson(text));
  } catch {
    return 'it cannot be read';
  }
  const [one = null, two = null] = values;
  return difference('', one, two);
}

function difference(
  path: string,
  root: JsonValue | undefined,
  other: JsonValue | undefined,
): string {
  if (Array.isArray(root) && Array.isArray(other)) {
    for (let i = 0; i < Math.max(root.length, other.length); i++) {
      const found = difference(`${path}[${i}]`, root[i], other[i]);
      if (found !== '') return found;
    }
    return '';
  }
  if (isObject(root) && isObject(other)) {
    for (const key of new Set([...Object.keys(root), ...Object.keys(other)])) {
      const inner = path === '' ? key : `${path}.${key}`;
      const found = difference(inner, ownMember(root, key), ownMember(other, key));
      if (found !== '') return found;
    }
    return '';
  }
  if (JSON.stringify(root) === JSON.stringify(other)) return '';
  return `${path || 'all of it'} is ${shown(other)}, at the root it is ${shown(root)}`;
}

function shown(value: JsonValue | undefined): string {
  const text = value === undefined ? 'not there' : JSON.stringify(value);
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}...`;
}
