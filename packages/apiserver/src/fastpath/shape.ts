// data plane
/**
 * What a text of JSON is but for the values that differ from one object of a make to the next.
 *
 * Those values are strings that the write path carries from one place to another and never looks
 * into: times, uids, addresses, the object's own name and its revision, the claim that a pod of a
 * StatefulSet uses and the host name that it asks for. Each becomes a *hole*; what
 * is left, the *shape*, is the text with three bytes in place of each:
 *
 *     0x01  form  number        form: how the hole stands there; number: which hole it is
 *
 * Equal values are one hole. What can be told from the order of two values (entries are sorted by
 * time, items by address) is part of the shape: its last bytes are the ranks of the holes.
 *
 * Only strings in full are holes, never parts of strings, and never keys. A text that holds control
 * characters beyond white space has no shape.
 */

import { assert } from '@megaplane/base/assert';

/** Kinds of holes; the order of those up to the revision may matter. */
export const TIME = 0;
export const UUID = 1;
export const ADDRESS = 2;
export const NAME = 3;
export const REVISION = 4;
/** A text that is only passed on: what stands in a field `message`, or in one of `FREE_KEYS`. */
export const MESSAGE = 5;
/** The volume of a service account's token, by the name that admission draws for it. */
export const VOLUME = 6;
/**
 * The node that a pod is said to be on, in writes that leave the spec as it is, or that it must go
 * to: one of a DaemonSet names it in `matchFields`.
 */
export const NODE = 7;
/** A time to the microsecond, as leases hold it. */
export const MOMENT = 8;
/** The name of a claim or volume that an object is said to go with: nothing looks it up. */
export const PARTNER = 9;
/** The host name that a pod asks for: those of a StatefulSet or an indexed Job have one each. */
export const HOST = 10;
/** The number of a pod within its StatefulSet or Job, in decimal digits. */
export const ORDINAL = 11;
const KINDS = 12;

/** Forms: the kind for a string as it is; a time may stand in base 36 (see `field-templates`). */
export const BASE36 = 12;

export const MARK = 0x01;
export const HOLES_MAX = 64;
/** Bytes of a shape; beyond it a text has none. */
const SHAPE_BYTES_MAX = 1 << 17;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const SEMICOLON = 0x3b;
const COMMA = 0x2c;
const DASH = 0x2d;
const DOT = 0x2e;
const ZULU = 0x5a;
const ID_LENGTH = 12;
/** Up to here a loop is faster than a call. */
const SHORT_COPY = 16;
const MANAGED = Buffer.from('managedFields');
const MATCH_FIELDS_KEY = Buffer.from('matchFields');
const VALUES_KEY = Buffer.from('values');
/** Of a requirement, before its values. */
const REQUIREMENT_KEYS = keysByLength(['key', 'operator']);
/** What runtimes, machines and disks are told apart by; nothing in the API looks into it. */
const FREE_KEYS = keysByLength([
  ...['message', 'containerID', 'machineID', 'systemUUID', 'bootID'],
  ...['volumeID', 'volumeHandle'],
]);
const PARTNER_KEYS = keysByLength(['claimName', 'volumeName']);
const ORDINAL_KEYS = keysByLength([
  'apps.kubernetes.io/pod-index',
  'batch.kubernetes.io/job-completion-index',
]);
const HOST_KEY = Buffer.from('hostname');
const CLAIM_REFERENCE_KEY = Buffer.from('claimRef');
/** Of a reference to a claim: its claim is told by the first two. */
const REFERENCE_KEYS = keysByLength(['name', 'uid', 'apiVersion', 'namespace', 'resourceVersion']);
const REFERENCED_KEYS = keysByLength(['name', 'uid']);
const KIND_KEY = Buffer.from('kind');
const ORDINAL_DIGITS_MAX = 15;
const NONE = -1;
/** Fields of a status that are judged by the spec of their pod (`validation-pod-status.ts`). */
const JUDGED_KEYS = keysByLength([
  'user',
  'terminated',
  'nominatedNodeName',
  'resourceClaimStatuses',
  'allocatedResourcesStatus',
  'extendedResourceClaimStatus',
]);
const NODE_KEY = Buffer.from('nodeName');
/** As a label's value may be: what is good for one such name is good for every one. */
const NODE_BYTES_MAX = 63;
const VOLUME_START = Buffer.from('kube-api-access-');
const VOLUME_LENGTH = 21;

/** Zero where a digit stands in `2006-01-02T15:04:05`, else the character. */
const TIME_MARKS = Uint8Array.from(
  Buffer.from('0000-00-00T00:00:00').map((byte) => (byte === 0x30 ? 0 : byte)),
);
/** One where a byte is a digit of a uid. */
const HEX_DIGITS = Uint8Array.from({ length: 256 }, (_, byte) =>
  isDigit(byte) || (byte >= 0x61 && byte <= 0x66) ? 1 : 0,
);
const MONTH_DAYS = Uint8Array.of(0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31);

/** Reads texts one after the other into one shape. Reuse it. */
export class Shape {
  /** With room for ranks and the hash behind the longest shape. */
  readonly bytes: Buffer = Buffer.allocUnsafeSlow(SHAPE_BYTES_MAX + 8 * HOLES_MAX);
  readonly #words: Int32Array = new Int32Array(this.bytes.buffer);
  length = 0;
  holes = 0;
  /** Kind of each hole, and its value: seconds since 1970 of a time, text of all others. */
  readonly kinds: Uint8Array = new Uint8Array(HOLES_MAX);
  readonly seconds: Float64Array = new Float64Array(HOLES_MAX);
  readonly texts: string[] = Array.from({ length: HOLES_MAX }, () => '');
  #name = '';
  #revision = '';
  #isStatus = false;
  /** Inside which part the next key is, by what its strings may be: NODE, PARTNER or NONE. */
  #list = NONE;
  /** A status was read whose judgement rests on more than itself. */
  asksForSpec = false;
  #isBad = false;

  /**
   * Begins with a write at `nowSeconds` of the object `name` at `revision`; '' where unknown.
   * `isStatus`: it changes the status alone.
   */
  begin(nowSeconds: number, name: string, revision: string, isStatus: boolean): void {
    this.length = 0;
    this.holes = 0;
    this.#isBad = false;
    this.#name = name;
    this.#revision = revision;
    this.#isStatus = isStatus;
    this.asksForSpec = false;
    this.#time(nowSeconds);
  }

  /** Appends a text that is part of the shape as it is. */
  literal(text: string): void {
    if (this.length + text.length * 3 > SHAPE_BYTES_MAX) this.#isBad = true;
    else this.length += this.bytes.write(text, this.length);
  }

  /** Appends the shape of a text of JSON. */
  append(bytes: Buffer, start: number, end: number): boolean {
    if (this.length + (end - start) * 2 > SHAPE_BYTES_MAX) this.#isBad = true;
    if (this.#isBad) return false;
    let from = start;
    let at = start;
    // what the next string is, by the key before it
    let kind = NONE;
    this.#list = NONE;
    while (at < end) {
      const byte = bytes[at]!;
      if (byte !== QUOTE) {
        if (byte < 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return this.#fail();
        at++;
        continue;
      }
      const first = at + 1;
      const last = endOfString(bytes, first, end);
      if (last < 0) return this.#fail();
      at = last + 1;
      if (bytes[at] === COLON) {
        kind = this.#kindAfter(bytes, first, last);
        if (isKey(bytes, first, last, MANAGED) && bytes[at + 1] === QUOTE) {
          const close = this.#packed(bytes, from, at + 2, end);
          if (close < 0) return this.#fail();
          from = at = close;
        }
        continue;
      }
      const hole = isOfKind(kind, bytes, first, last)
        ? this.#text(kind, bytes, first, last)
        : this.#holeAt(bytes, first, last);
      if (hole < 0) continue;
      this.#copy(bytes, from, first);
      this.#mark(this.kinds[hole]!, hole);
      from = last;
    }
    this.#copy(bytes, from, end);
    return !this.#isBad;
  }

  /** What strings after this key are, whatever they look like; NONE where that counts. */
  #kindAfter(bytes: Buffer, first: number, last: number): number {
    const list = this.#list;
    this.#list = NONE;
    if (isAmong(FREE_KEYS, bytes, first, last)) return MESSAGE;
    if (this.#isStatus) {
      if (isAmong(JUDGED_KEYS, bytes, first, last)) this.asksForSpec = true;
      return isKey(bytes, first, last, NODE_KEY) ? NODE : NONE;
    }
    if (isAmong(PARTNER_KEYS, bytes, first, last)) return PARTNER;
    if (isKey(bytes, first, last, HOST_KEY)) return HOST;
    if (isAmong(ORDINAL_KEYS, bytes, first, last)) return ORDINAL;
    if (isKey(bytes, first, last, MATCH_FIELDS_KEY)) this.#list = NODE;
    else if (isKey(bytes, first, last, CLAIM_REFERENCE_KEY)) this.#list = PARTNER;
    else if (list === NODE) {
      if (isKey(bytes, first, last, VALUES_KEY)) return NODE;
      if (isAmong(REQUIREMENT_KEYS, bytes, first, last)) this.#list = NODE;
    } else if (list === PARTNER) {
      const isOne = isKey(bytes, first, last, KIND_KEY);
      if (isOne || isAmong(REFERENCE_KEYS, bytes, first, last)) this.#list = PARTNER;
      if (isAmong(REFERENCED_KEYS, bytes, first, last)) return PARTNER;
    }
    return NONE;
  }

  /** Ends the shape with the order of its holes; gives a number that equal shapes share. */
  finish(): number {
    for (let kind = 0; kind < KINDS; kind++) {
      if (!this.#isOrdered(kind)) continue;
      for (let hole = 0; hole < this.holes; hole++) {
        if (this.kinds[hole] === kind) this.bytes[this.length++] = 0x80 + this.rankOf(hole);
      }
    }
    return this.#hash();
  }

  /** Four bytes at a time, in two lanes: a shape has thousands. */
  #hash(): number {
    const { bytes, length } = this;
    const words = this.#words;
    for (let at = length; at < length + 8; at++) bytes[at] = 0;
    let one = length;
    let other = 0;
    const last = (length + 7) >> 3;
    for (let pair = 0; pair < last; pair++) {
      one = Math.imul(one ^ words[2 * pair]!, 0x9e3779b1);
      one ^= one >>> 15;
      other = Math.imul(other ^ words[2 * pair + 1]!, 0x85ebca6b);
      other ^= other >>> 13;
    }
    return Math.imul(one ^ (other >>> 7) ^ (other << 25), 0xc2b2ae35) >>> 0;
  }

  /**
   * Whether the order of such holes bears on anything. Of two uids one is the object's own, which
   * is sorted among no others; kinds beyond the revision are in no sorted list.
   */
  #isOrdered(kind: number): boolean {
    if (kind > REVISION) return false;
    if (kind !== UUID) return true;
    let count = 0;
    for (let hole = 0; hole < this.holes; hole++) if (this.kinds[hole] === UUID) count++;
    return count > 2;
  }

  /** How many holes of the same kind are below this one. */
  rankOf(hole: number): number {
    const kind = this.kinds[hole]!;
    let rank = 0;
    for (let other = 0; other < this.holes; other++) {
      if (this.kinds[other] !== kind) continue;
      const isBelow =
        kind === TIME
          ? this.seconds[other]! < this.seconds[hole]!
          : this.texts[other]! < this.texts[hole]!;
      if (isBelow) rank++;
    }
    return rank;
  }

  #fail(): boolean {
    this.#isBad = true;
    return false;
  }

  #copy(bytes: Buffer, from: number, to: number): void {
    if (to - from > SHORT_COPY) {
      this.length += bytes.copy(this.bytes, this.length, from, to);
      return;
    }
    const { bytes: out } = this;
    for (let at = from; at < to; at++) out[this.length++] = bytes[at]!;
  }

  #mark(form: number, hole: number): void {
    const { bytes } = this;
    bytes[this.length++] = MARK;
    bytes[this.length++] = form;
    bytes[this.length++] = 0x20 + hole;
  }

  /** References of managedFields from after their opening quote; gives the offset after them. */
  #packed(bytes: Buffer, start: number, open: number, end: number): number {
    let from = start;
    let at = open;
    while (at < end && bytes[at] !== QUOTE) {
      if (bytes[at] === BACKSLASH) return -1;
      at += ID_LENGTH;
      if (bytes[at] !== SEMICOLON) return -1;
      let seconds = 0;
      const timeAt = ++at;
      for (; isBase36(bytes[at]!); at++) {
        const byte = bytes[at]!;
        seconds = seconds * 36 + (byte >= 0x61 ? byte - 0x57 : byte - 0x30);
      }
      if (at > timeAt) {
        this.#copy(bytes, from, timeAt);
        this.#mark(BASE36, this.#time(seconds));
        from = at;
      }
      while (bytes[at] === SEMICOLON) {
        const fill = ++at;
        while (at < end && !endsFill(bytes[at]!)) at++;
        const hole = this.#holeAt(bytes, fill, at);
        if (hole < 0) continue;
        this.#copy(bytes, from, fill);
        this.#mark(this.kinds[hole]!, hole);
        from = at;
      }
      if (bytes[at] === COMMA) at++;
    }
    if (at >= end) return -1;
    this.#copy(bytes, from, at + 1);
    return at + 1;
  }

  /** The hole for the string in `[first, last)`, or -1 where it is none. */
  #holeAt(bytes: Buffer, first: number, last: number): number {
    const length = last - first;
    if (length === 20 && bytes[first + 4] === DASH) {
      const seconds = bytes[last - 1] === ZULU ? timeAt(bytes, first) : -1;
      return seconds < 0 ? -1 : this.#time(seconds);
    }
    if (length === 27 && isMoment(bytes, first)) return this.#text(MOMENT, bytes, first, last);
    if (length === 36 && isUuid(bytes, first)) return this.#text(UUID, bytes, first, last);
    if (length >= 7 && length <= 15 && isAddress(bytes, first, last)) {
      return this.#text(ADDRESS, bytes, first, last);
    }
    if (length === VOLUME_LENGTH && startsWith(bytes, first, VOLUME_START)) {
      const isOne = isDrawn(bytes, first + VOLUME_START.length, last);
      return isOne ? this.#text(VOLUME, bytes, first, last) : -1;
    }
    if (length === 0) return -1;
    if (length === this.#name.length && isText(bytes, first, this.#name)) {
      return this.#value(NAME, this.#name);
    }
    if (length === this.#revision.length && isText(bytes, first, this.#revision)) {
      return this.#value(REVISION, this.#revision);
    }
    return -1;
  }

  #time(seconds: number): number {
    for (let hole = 0; hole < this.holes; hole++) {
      if (this.kinds[hole] === TIME && this.seconds[hole] === seconds) return hole;
    }
    const hole = this.#add(TIME);
    this.seconds[hole] = seconds;
    return hole;
  }

  #text(kind: number, bytes: Buffer, first: number, last: number): number {
    return this.#value(kind, bytes.latin1Slice(first, last));
  }

  #value(kind: number, text: string): number {
    for (let hole = 0; hole < this.holes; hole++) {
      if (this.kinds[hole] === kind && this.texts[hole] === text) return hole;
    }
    const hole = this.#add(kind);
    this.texts[hole] = text;
    return hole;
  }

  #add(kind: number): number {
    if (this.holes === HOLES_MAX) {
      this.#isBad = true;
      return 0;
    }
    this.kinds[this.holes] = kind;
    return this.holes++;
  }
}

function endOfString(bytes: Buffer, first: number, end: number): number {
  for (let at = first; at < end; at++) {
    const byte = bytes[at]!;
    // lower-case letters, which are most of it, need one look
    if (byte > BACKSLASH) continue;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
    else if (byte < 0x20) return -1;
  }
  return -1;
}

function isKey(bytes: Buffer, first: number, last: number, key: Buffer): boolean {
  return last - first === key.length && startsWith(bytes, first, key);
}

/** By length, so that most keys need one look. */
function keysByLength(names: readonly string[]): readonly (Buffer | undefined)[] {
  const keys: (Buffer | undefined)[] = Array.from({ length: 48 });
  for (const name of names) {
    assert(keys[name.length] === undefined, 'one key of a length');
    keys[name.length] = Buffer.from(name);
  }
  return keys;
}

function isAmong(
  keys: readonly (Buffer | undefined)[],
  bytes: Buffer,
  first: number,
  last: number,
): boolean {
  const key = last - first < keys.length ? keys[last - first] : undefined;
  return key !== undefined && startsWith(bytes, first, key);
}

function startsWith(bytes: Buffer, first: number, text: Buffer): boolean {
  for (let at = 0; at < text.length; at++) {
    if (bytes[first + at] !== text[at]) return false;
  }
  return true;
}

/** Characters that stand for themselves in JSON, and are one byte each. */
function isPrintable(bytes: Buffer, first: number, last: number): boolean {
  for (let at = first; at < last; at++) {
    const byte = bytes[at]!;
    if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return false;
  }
  return last > first;
}

/** Labels of a DNS name, none of them empty, in lower case. */
function isNodeName(bytes: Buffer, first: number, last: number): boolean {
  if (last === first || last - first > NODE_BYTES_MAX) return false;
  let isEdge = true;
  for (let at = first; at < last; at++) {
    const byte = bytes[at]!;
    const isInside = byte === DASH || byte === DOT;
    if (isInside ? isEdge : !isBase36(byte)) return false;
    isEdge = byte === DOT;
  }
  return isBase36(bytes[last - 1]!);
}

function isOfKind(kind: number, bytes: Buffer, first: number, last: number): boolean {
  if (kind === NONE) return false;
  if (kind === MESSAGE) return isPrintable(bytes, first, last);
  if (kind === ORDINAL) return isOrdinal(bytes, first, last);
  if (!isNodeName(bytes, first, last)) return false;
  return kind !== HOST || bytes.subarray(first, last).indexOf(DOT) < 0;
}

function isOrdinal(bytes: Buffer, first: number, last: number): boolean {
  if (last === first || last - first > ORDINAL_DIGITS_MAX) return false;
  for (let at = first; at < last; at++) if (!isDigit(bytes[at]!)) return false;
  return true;
}

/** Letters that generated names end in. */
function isDrawn(bytes: Buffer, first: number, last: number): boolean {
  for (let at = first; at < last; at++) {
    const byte = bytes[at]!;
    if (!isBase36(byte) || byte === 0x30 || byte === 0x31 || byte === 0x33) return false;
  }
  return true;
}

function isText(bytes: Buffer, first: number, text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (bytes[first + at] !== text.charCodeAt(at)) return false;
  }
  return true;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isBase36(byte: number): boolean {
  return isDigit(byte) || (byte >= 0x61 && byte <= 0x7a);
}

function endsFill(byte: number): boolean {
  return byte === SEMICOLON || byte === COMMA || byte === QUOTE;
}

/** A time, a dot, six digits and `Z`: what a MicroTime is written as. */
function isMoment(bytes: Buffer, first: number): boolean {
  if (bytes[first + 19] !== DOT || bytes[first + 26] !== ZULU) return false;
  for (let at = first + 20; at < first + 26; at++) if (!isDigit(bytes[at]!)) return false;
  return timeAt(bytes, first) >= 0;
}

/** Seconds since 1970 of a time in its written form but for what follows the seconds, or -1. */
function timeAt(bytes: Buffer, first: number): number {
  for (let at = 0; at < TIME_MARKS.length; at++) {
    const byte = bytes[first + at]!;
    const mark = TIME_MARKS[at]!;
    if (mark === 0 ? !isDigit(byte) : byte !== mark) return -1;
  }
  const year = number(bytes, first) * 100 + number(bytes, first + 2);
  const month = number(bytes, first + 5);
  const day = number(bytes, first + 8);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (year < 1970 || month < 1 || month > 12 || day < 1) return -1;
  if (day > MONTH_DAYS[month]! + (month === 2 && isLeap ? 1 : 0)) return -1;
  const hour = number(bytes, first + 11);
  const minute = number(bytes, first + 14);
  const second = number(bytes, first + 17);
  if (hour > 23 || minute > 59 || second > 59) return -1;
  // days of the civil calendar, in years that begin in March
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const ofEra = shifted - era * 400;
  const ofYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const ofAll = ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear;
  const days = era * 146097 + ofAll - 719468;
  return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

function number(bytes: Buffer, at: number): number {
  return (bytes[at]! - 0x30) * 10 + bytes[at + 1]! - 0x30;
}

/** Lower-case hexadecimal digits and dashes where a uid has them. */
function isUuid(bytes: Buffer, first: number): boolean {
  const hasDashes =
    bytes[first + 8] === DASH &&
    bytes[first + 13] === DASH &&
    bytes[first + 18] === DASH &&
    bytes[first + 23] === DASH;
  if (!hasDashes) return false;
  let digits = 0;
  for (let at = first; at < first + 36; at++) digits += HEX_DIGITS[bytes[at]!]!;
  return digits === 32;
}

/** An IPv4 address without leading zeros. */
function isAddress(bytes: Buffer, first: number, last: number): boolean {
  let parts = 0;
  let at = first;
  while (at < last) {
    const start = at;
    let value = 0;
    for (; at < last && isDigit(bytes[at]!); at++) value = value * 10 + bytes[at]! - 0x30;
    if (at === start || at - start > 3 || value > 255) return false;
    if (bytes[start] === 0x30 && at - start > 1) return false;
    parts++;
    if (at === last) return parts === 4;
    if (bytes[at++] !== DOT) return false;
  }
  return false;
}
