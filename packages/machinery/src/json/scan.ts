// data plane
/**
 * Finding fields in JSON bytes without parsing them. Results are offsets into the bytes, in a
 * reusable `ObjectScan`.
 *
 * The input must be valid JSON (stored bytes are; request bodies are checked first). White space
 * between tokens is allowed. Of members that occur twice the last one counts, as in every JSON
 * parser. Keys written with escapes are not recognised. On bytes that cannot be JSON the scanners
 * answer -1 or false and never read beyond `end`. /
 */
import { parseJson } from './json-text.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;

/** Offset of the first byte that is no white space, at most `end`. */
export function skipSpace(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! <= 0x20) at++;
  return at;
}

/** Offset after the string whose opening quote is at `start`, or -1. */
export function skipString(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start + 1; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at++;
  }
  return -1;
}

/** Offset after the value that starts at `start` (no white space before it), or -1. */
export function skipValue(bytes: Uint8Array, start: number, end: number): number {
  if (start >= end) return -1;
  const first = bytes[start]!;
  if (first === QUOTE) return skipString(bytes, start, end);
  if (first === BRACE_OPEN || first === BRACKET_OPEN) return skipNested(bytes, start, end);
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte === COMMA || byte === BRACE_CLOSE || byte === BRACKET_CLOSE || byte <= 0x20) break;
    at++;
  }
  return at === start ? -1 : at;
}

/**
 * Only brackets and strings matter; `{` is `[` | 0x20 and `}` is `]` | 0x20, so one test covers
 * both.
 */
function skipNested(bytes: Uint8Array, start: number, end: number): number {
  let depth = 0;
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at++;
      let inner = 0;
      while (at < end && (inner = bytes[at]!) !== QUOTE) at += inner === BACKSLASH ? 2 : 1;
    } else if ((byte | 0x20) === BRACE_OPEN) {
      depth++;
    } else if ((byte | 0x20) === BRACE_CLOSE && --depth === 0) {
      return at + 1;
    }
    at++;
  }
  return -1;
}

/** Walks the members of one object; reuse it. */
export class MemberCursor {
  /** Key without its quotes; value as it stands, strings with their quotes. */
  keyStart = 0;
  keyEnd = 0;
  valueStart = 0;
  valueEnd = 0;
  /** The object's `}` was found: the walk is complete. */
  isClosed = false;
  #bytes: Uint8Array = EMPTY;
  #at = 0;
  #end = 0;
  #isFirst = true;

  /** Points at the object whose `{` is at `start`. False where there is no object. */
  open(bytes: Uint8Array, start: number, end: number): boolean {
    this.#bytes = bytes;
    this.#end = end;
    this.#at = start + 1;
    this.#isFirst = true;
    this.isClosed = false;
    return start < end && bytes[start] === BRACE_OPEN;
  }

  /**
   * Finds the next member, key and value. False at the end of the object and on bytes that are no
   * JSON.
   */
  next(): boolean {
    return this.nextKey() && this.skip();
  }

  /** Finds the next key and where its value starts; `skip` or `resume` must follow. */
  nextKey(): boolean {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = this.#at;
    while (at < end && bytes[at]! <= 0x20) at++;
    if (at >= end) return false;
    if (bytes[at] === BRACE_CLOSE) {
      this.#at = at + 1;
      this.isClosed = true;
      return false;
    }
    if (!this.#isFirst) {
      if (bytes[at] !== COMMA) return false;
      at++;
      while (at < end && bytes[at]! <= 0x20) at++;
    }
    if (at >= end || bytes[at] !== QUOTE) return false;
    this.#isFirst = false;
    const keyEnd = skipString(bytes, at, end);
    if (keyEnd < 0) return false;
    this.keyStart = at + 1;
    this.keyEnd = keyEnd - 1;
    at = keyEnd;
    while (at < end && bytes[at]! <= 0x20) at++;
    if (at >= end || bytes[at] !== COLON) return false;
    at++;
    while (at < end && bytes[at]! <= 0x20) at++;
    this.valueStart = at;
    return true;
  }

  /** Steps over the value of the key just found. */
  skip(): boolean {
    const valueEnd = skipValue(this.#bytes, this.valueStart, this.#end);
    this.valueEnd = valueEnd;
    this.#at = valueEnd;
    return valueEnd >= 0;
  }

  /** Goes on at `at`, behind members that were read otherwise. */
  pass(at: number): void {
    this.#at = at;
    this.#isFirst = false;
  }

  /** Goes on after a value that another cursor has read to `valueEnd`. */
  resume(valueEnd: number): void {
    this.valueEnd = valueEnd;
    this.#at = valueEnd;
  }

  /** After `isClosed`: the offset after the object's `}`. */
  get closeEnd(): number {
    return this.#at;
  }

  /** True if the current key is `name` (bytes of plain ASCII). */
  is(name: Uint8Array): boolean {
    return matches(this.#bytes, this.keyStart, this.keyEnd, name);
  }
}

const EMPTY = new Uint8Array(0);

/** True if the range holds exactly `name`. */
export function matches(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  if (end - start !== name.length) return false;
  for (let at = 0; at < name.length; at++) {
    if (bytes[start + at] !== name[at]) return false;
  }
  return true;
}

/** A path of member names, made once by `pathOf`. */
export type ScanPath = readonly Uint8Array[];

/** `pathOf('spec', 'template', 'metadata')`: names as they stand in JSON. */
export function pathOf(...names: string[]): ScanPath {
  return names.map((name) => new TextEncoder().encode(name));
}

const pathCursor = new MemberCursor();

/**
 * Offset of the value at `path` within the value at `start`, or -1 if a step is absent or no
 * object. Its end is `skipValue(bytes, offset, end)`. Lists are not entered. /
 */
export function findPath(bytes: Uint8Array, start: number, end: number, path: ScanPath): number {
  let valueStart = skipSpace(bytes, start, end);
  let valueEnd = end;
  for (let step = 0; step < path.length; step++) {
    const name = path[step]!;
    if (!pathCursor.open(bytes, valueStart, valueEnd)) return -1;
    let found = -1;
    let foundEnd = -1;
    while (pathCursor.next()) {
      if (!pathCursor.is(name)) continue;
      found = pathCursor.valueStart;
      foundEnd = pathCursor.valueEnd;
    }
    if (found < 0) return -1;
    valueStart = found;
    valueEnd = foundEnd;
  }
  return valueStart;
}

/**
 * `findPath` in bytes where no name stands twice in an object, as in all that is stored: the first
 * is the one, and what stands behind it is not looked at.
 */
export function findFirst(bytes: Uint8Array, start: number, end: number, path: ScanPath): number {
  let at = skipSpace(bytes, start, end);
  for (let step = 0; step < path.length; step++) {
    const name = path[step]!;
    if (!pathCursor.open(bytes, at, end)) return -1;
    do {
      if (!pathCursor.nextKey()) return -1;
    } while (!pathCursor.is(name) && pathCursor.skip());
    if (!pathCursor.is(name)) return -1;
    at = pathCursor.valueStart;
  }
  return at;
}

/**
 * The integer that starts at `start` (a quote before it is stepped over), or -1 where there is
 * none.
 */
export function integerAt(bytes: Uint8Array, start: number, end: number): number {
  let at = start < end && bytes[start] === QUOTE ? start + 1 : start;
  let value = 0;
  const first = at;
  while (at < end) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
    at++;
  }
  return at === first ? -1 : value;
}

/**
 * Text of the string value whose opening quote is at `start`; escapes are resolved. '' if no string
 * is there.
 */
export function stringValue(bytes: Buffer, start: number, end: number): string {
  if (start < 0 || bytes[start] !== QUOTE) return '';
  const after = skipString(bytes, start, end);
  if (after < 0) return '';
  for (let at = start + 1; at < after - 1; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH || byte >= 0x80) {
      return parseJson(bytes.toString('utf8', start, after)) as string;
    }
  }
  return bytes.toString('latin1', start + 1, after - 1);
}

const METADATA = new TextEncoder().encode('metadata');
const RESOURCE_VERSION = new TextEncoder().encode('resourceVersion');
const versionTop = new MemberCursor();
const versionInner = new MemberCursor();

/**
 * `metadata.resourceVersion` of an object as a number, or -1 without one. Looks no further than
 * there: our server writes it first, and what follows may be long.
 */
export function resourceVersionOf(bytes: Uint8Array, start: number, end: number): number {
  const top = versionTop;
  if (!top.open(bytes, skipSpace(bytes, start, end), end)) return -1;
  do {
    if (!top.nextKey()) return -1;
  } while (!top.is(METADATA) && top.skip());
  const inner = versionInner;
  if (!top.is(METADATA) || !inner.open(bytes, top.valueStart, end)) return -1;
  while (inner.next()) {
    if (inner.is(RESOURCE_VERSION)) return integerAt(bytes, inner.valueStart, inner.valueEnd);
  }
  return -1;
}
