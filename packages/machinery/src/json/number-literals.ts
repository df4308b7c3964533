/**
 * Numbers as they are written. Go's decoder reads an integer field only from digits: `1.0` and
 * `1e3` are refused, which a parsed number no longer shows.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { readJson } from './json-reader.ts';
import { withWholeCharacters } from './json-text.ts';
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from './json-value.ts';

/** The text of the numbers that are no plain integers, by the object or list that holds them. */
export type NumberLiterals = ReadonlyMap<object, ReadonlyMap<string, string>>;

/** A number with a fraction, with an exponent or beyond what a double holds, as one value. */
const UNUSUAL = /(?:^|[:,[])\s*-?(?:\d{16,}|\d+(?:\.\d|[eE]))[\d.eE+-]*\s*(?:$|[,\]}])/;

const NONE: NumberLiterals = new Map();

/** Finds the numbers in valid JSON, of which `value` is what `parseJson` gives. */
export function parseWithLiterals(text: string): {
  readonly value: JsonValue;
  readonly numbers: NumberLiterals;
} {
  const whole = withWholeCharacters(text);
  const value = parseNested(whole) as JsonValue;
  if (!UNUSUAL.test(whole)) return { value, numbers: NONE };
  const numbers = new Map<object, Map<string, string>>();
  const exact = readJson(whole, (holder, key, source) => set(numbers, holder, key, source));
  return { value: exact ?? value, numbers };
}

function set(into: Map<object, Map<string, string>>, holder: object, key: string, text: string) {
  const known = into.get(holder);
  if (known === undefined) into.set(holder, new Map([[key, text]]));
  else known.set(key, text);
}

type Container = JsonObject | JsonValue[];

/** A member of what was parsed, and the member that it has become elsewhere. */
export interface Carried {
  readonly from: Container;
  readonly member: string;
  readonly to: Container;
  readonly place: string;
}

/** The same numbers where parts of what was parsed now stand, as long as they stand there. */
export function carriedNumbers(numbers: NumberLiterals, moves: readonly Carried[]): NumberLiterals {
  const carried = new Map<object, Map<string, string>>();
  const carry = ({ from, member, to, place }: Carried): void => {
    const [was, is] = [ownMember(from as JsonObject, member), ownMember(to as JsonObject, place)];
    const text = numbers.get(from)?.get(member);
    if (text !== undefined && was === is) set(carried, to, place, text);
    if (!isContainer(was) || !isContainer(is)) return;
    for (const inner of Object.keys(was)) {
      carry({ from: was, member: inner, to: is, place: inner });
    }
  };
  moves.forEach(carry);
  return carried;
}

function isContainer(value: JsonValue | undefined): value is Container {
  return Array.isArray(value) || isObject(value);
}

/** True for a number that Go reads into an integer of so many bits. */
export function isWrittenInteger(text: string, bits: number): boolean {
  if (!/^-?\d{1,19}$/.test(text)) return false;
  return BigInt.asIntN(bits, BigInt(text)) === BigInt(text);
}
