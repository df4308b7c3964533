// data plane
/**
 * Findings that a plain JSON parser does not make: members that occur twice, and members that a
 * type does not have. The text must be valid JSON.
 */

import { JSON_DEPTH_MAX } from '@megaplane/base/nested-json';
import { parseJson } from '../json/json-text.ts';
import type { JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';
import type { Shape, Type } from './schema.ts';
import { MemberCursor, skipSpace, skipValue } from '../json/scan.ts';
import { countMembersIn } from './typed-json.ts';

/** Findings of one body that are reported; further ones are not looked for. */
export const STRICT_ERRORS_MAX = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;

/**
 * Number of members in all objects of valid JSON (each colon outside strings is one), or -1 if it
 * is nested too deep. /
 */
export function countMembers(bytes: Uint8Array, start: number, end: number): number {
  let members = 0;
  let depth = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at++;
      let inner = 0;
      while (at < end && (inner = bytes[at]!) !== QUOTE) at += inner === BACKSLASH ? 2 : 1;
    } else if (byte === COLON) members++;
    else if ((byte | 0x20) === BRACE_OPEN) {
      if (++depth > JSON_DEPTH_MAX) return -1;
    } else if ((byte | 0x20) === BRACE_CLOSE) depth--;
  }
  return members;
}

/**
 * `unknown field "a.b"` and `duplicate field "a.b"` for valid JSON, in the order of the text, each
 * once. Without a type every field is known (custom resources). /
 */
export function strictErrors(
  bytes: Buffer,
  start: number,
  end: number,
  type: Type | undefined,
): string[] {
  const found = new Set<string>();
  const shape: Shape | undefined = type === undefined ? undefined : { kind: 'object', type };
  strictObject(bytes, skipSpace(bytes, start, end), end, shape, '', found, true);
  return [...found];
}

/**
 * `duplicate field "a.b"` for a patch, of whose fields nothing is known. `value` is what was parsed
 * of the text, which has fewer members where some stand twice.
 */
export function duplicateFields(text: string, value: JsonValue): string[] {
  const bytes = Buffer.from(text);
  if (countMembers(bytes, 0, bytes.length) === countMembersIn(value)) return [];
  const found = new Set<string>();
  strictValue(bytes, skipSpace(bytes, 0, bytes.length), bytes.length, undefined, '', found);
  return [...found];
}

/** `shape` undefined: anything goes, only doubles count. */
function strictObject(
  bytes: Buffer,
  start: number,
  end: number,
  shape: Shape | undefined,
  path: string,
  found: Set<string>,
  isRoot: boolean,
): void {
  const seen = new Set<string>();
  const cursor = new MemberCursor();
  if (!cursor.open(bytes, start, end)) return;
  while (cursor.next() && found.size < STRICT_ERRORS_MAX) {
    const key = keyText(bytes, cursor.keyStart, cursor.keyEnd);
    const inner = path === '' ? key : `${path}.${key}`;
    let innerShape: Shape | undefined;
    if (shape?.kind === 'object') {
      const field = shape.type.field(key);
      // some kinds stand within others: claims of StatefulSets, options of evictions
      const isObject = isRoot || shape.type.kind !== '';
      const isTypeMeta = isObject && (key === 'kind' || key === 'apiVersion');
      if (field === undefined && !isTypeMeta) {
        found.add(`unknown field ${quoted(inner)}`);
        continue;
      }
      innerShape = field?.shape ?? TEXT;
    } else if (shape?.kind === 'map') innerShape = shape.values;
    if (seen.has(key)) found.add(`duplicate field ${quoted(inner)}`);
    seen.add(key);
    strictValue(bytes, cursor.valueStart, cursor.valueEnd, innerShape, inner, found);
  }
}

const TEXT: Shape = { kind: 'scalar', scalar: 'string' };

function strictValue(
  bytes: Buffer,
  start: number,
  end: number,
  shape: Shape | undefined,
  path: string,
  found: Set<string>,
): void {
  if (shape?.kind === 'scalar') return;
  if (bytes[start] === BRACE_OPEN) {
    strictObject(bytes, start, end, shape, path, found, false);
    return;
  }
  if (bytes[start] !== BRACKET_OPEN) return;
  const itemShape = shape?.kind === 'list' ? shape.items : undefined;
  let at = skipSpace(bytes, start + 1, end);
  for (let index = 0; at < end && bytes[at] !== BRACKET_CLOSE; index++) {
    const after = skipValue(bytes, at, end);
    if (after < 0) return;
    strictValue(bytes, at, after, itemShape, `${path}[${index}]`, found);
    at = skipSpace(bytes, after, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
  }
}

function keyText(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start, end);
  return text.includes('\\') ? (parseJson(`"${text}"`) as string) : text;
}
