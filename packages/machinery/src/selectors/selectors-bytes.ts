// data plane
/**
 * Label selectors matched on stored bytes: the JSON text of a labels object, without parsing it.
 *
 *   requirement i   operators[i], key = text[keys[2i], keys[2i+1])
 *   its values      firstValue[i] .. firstValue[i+1] - 1
 *   value v         text[values[2v], values[2v+1])
 *
 * Labels are made of letters, digits, `-`, `_`, `.` and `/`, so their JSON text has no escapes and
 * equal labels are equal bytes.
 */
import { ownBytes } from '@megaplane/base/bytes';
import { matches, MemberCursor } from '../json/scan.ts';
import { integerOf, OPERATORS, type LabelSelector } from './selectors.ts';

const NOT_IN = OPERATORS.indexOf('notin');
const NOT_EQUAL = OPERATORS.indexOf('!=');
const GREATER = OPERATORS.indexOf('gt');
const LESS = OPERATORS.indexOf('lt');
const EXISTS = OPERATORS.indexOf('exists');
const ABSENT = OPERATORS.indexOf('!');

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** A selector laid out flat. Build once per list or watch, match any number of objects. */
export class LabelProgram {
  readonly count: number;
  readonly nothing: boolean;
  readonly text: Uint8Array;
  readonly operators: Uint8Array;
  readonly keys: Uint32Array;
  readonly firstValue: Uint32Array;
  readonly values: Uint32Array;

  constructor(selector: LabelSelector) {
    const requirements = selector.requirements;
    this.count = requirements.length;
    this.nothing = selector.nothing === true;
    this.operators = new Uint8Array(this.count);
    this.keys = new Uint32Array(this.count * 2);
    this.firstValue = new Uint32Array(this.count + 1);
    const parts: Buffer[] = [];
    const values: number[] = [];
    let at = 0;
    for (let i = 0; i < this.count; i++) {
      const requirement = requirements[i]!;
      this.operators[i] = OPERATORS.indexOf(requirement.operator);
      const key = Buffer.from(requirement.key);
      parts.push(key);
      this.keys[2 * i] = at;
      this.keys[2 * i + 1] = at += key.length;
      for (const value of requirement.values) {
        const bytes = Buffer.from(value);
        parts.push(bytes);
        values.push(at, (at += bytes.length));
      }
      this.firstValue[i + 1] = values.length / 2;
    }
    this.text = ownBytes(Buffer.concat(parts), 0, at);
    this.values = Uint32Array.from(values);
  }
}

let valueStart = 0;
let valueEnd = 0;

/**
 * True where the labels satisfy the program. `bytes[start, end)` is the labels object in compact
 * JSON, braces included; an empty range stands for an object without labels.
 */
export function matchesLabelBytes(
  program: LabelProgram,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  if (program.nothing) return false;
  for (let i = 0; i < program.count; i++) {
    const has = findLabel(program, i, bytes, start, end);
    const operator = program.operators[i]!;
    if (operator === EXISTS) {
      if (!has) return false;
    } else if (operator === ABSENT) {
      if (has) return false;
    } else if (operator === NOT_IN || operator === NOT_EQUAL) {
      if (has && hasValue(program, i, bytes)) return false;
    } else if (operator === GREATER || operator === LESS) {
      if (!has || !comparesTo(program, i, bytes, operator === GREATER)) return false;
    } else if (!has || !hasValue(program, i, bytes)) {
      return false;
    }
  }
  return true;
}

/** Finds the label of requirement i; leaves its value's range in valueStart and valueEnd. */
function findLabel(
  program: LabelProgram,
  i: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  const keyStart = program.keys[2 * i]!;
  const keyLength = program.keys[2 * i + 1]! - keyStart;
  const text = program.text;
  let at = start + 1;
  while (at < end && bytes[at] === QUOTE) {
    const nameStart = at + 1;
    const nameEnd = stringEnd(bytes, nameStart, end);
    valueStart = nameEnd + 3;
    valueEnd = stringEnd(bytes, valueStart, end);
    if (nameEnd - nameStart === keyLength) {
      let same = 0;
      while (same < keyLength && bytes[nameStart + same] === text[keyStart + same]) same++;
      if (same === keyLength) return true;
    }
    at = valueEnd + 2;
  }
  return false;
}

function stringEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

function hasValue(program: LabelProgram, i: number, bytes: Uint8Array): boolean {
  const last = program.firstValue[i + 1]!;
  const length = valueEnd - valueStart;
  for (let v = program.firstValue[i]!; v < last; v++) {
    const from = program.values[2 * v]!;
    if (program.values[2 * v + 1]! - from !== length) continue;
    let same = 0;
    while (same < length && bytes[valueStart + same] === program.text[from + same]) same++;
    if (same === length) return true;
  }
  return false;
}

/** A range of bytes that is filled in; reuse it. */
export interface TextRange {
  bytes: Buffer;
  start: number;
  end: number;
}

/**
 * Where the value of one label stands; an empty range where the labels in `bytes[start, end)` have
 * none of that key. The range of the labels is as for `matchesLabelBytes`.
 */
export function findLabelValue(
  bytes: Buffer,
  start: number,
  end: number,
  key: Uint8Array,
  found: TextRange,
): void {
  found.bytes = bytes;
  found.start = found.end = start;
  let at = start + 1;
  while (at < end && bytes[at] === QUOTE) {
    const nameStart = at + 1;
    const nameEnd = stringEnd(bytes, nameStart, end);
    const from = nameEnd + 3;
    const to = stringEnd(bytes, from, end);
    if (matches(bytes, nameStart, nameEnd, key)) {
      found.start = from;
      found.end = to;
      return;
    }
    at = to + 2;
  }
}

/** Comparisons are rare; they may allocate. */
function comparesTo(
  program: LabelProgram,
  i: number,
  bytes: Uint8Array,
  isGreater: boolean,
): boolean {
  const v = program.firstValue[i]!;
  const bound = integerOf(latin1(program.text, program.values[2 * v]!, program.values[2 * v + 1]!));
  const found = integerOf(latin1(bytes, valueStart, valueEnd));
  if (bound === undefined || found === undefined) return false;
  return isGreater ? found > bound : found < bound;
}

function latin1(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let at = start; at < end; at++) text += String.fromCharCode(bytes[at]!);
  return text;
}

const METADATA = new TextEncoder().encode('metadata');
const LABELS = new TextEncoder().encode('labels');
const BRACE = 0x7b;
const top = new MemberCursor();
const inner = new MemberCursor();

/** Where the labels of an object stand; reuse it. */
export class LabelsRange {
  /** The labels object with its braces; an empty range at 0 where there is none. */
  start = 0;
  end = 0;

  /**
   * Looks for `metadata.labels` and no further: in stored objects they stand near the front, before
   * annotations, managed fields, spec and status. Members must not occur twice.
   */
  find(bytes: Uint8Array, start: number, end: number): void {
    this.start = 0;
    this.end = 0;
    if (!top.open(bytes, start, end)) return;
    while (top.nextKey()) {
      if (!top.is(METADATA)) {
        if (!top.skip()) return;
        continue;
      }
      if (!inner.open(bytes, top.valueStart, end)) return;
      while (inner.next()) {
        if (!inner.is(LABELS)) continue;
        if (bytes[inner.valueStart] !== BRACE) return;
        this.start = inner.valueStart;
        this.end = inner.valueEnd;
        return;
      }
      return;
    }
  }
}
