// data plane: searching and editing one node of an ordered index
import { commonPrefix, compareBytes } from '../bytes/bytes.ts';
import {
  CHILDREN,
  COUNT,
  COUNTS,
  HEADS,
  IDS,
  LEVEL,
  type NodePool,
  PREFIX,
  PREFIX_BYTES_MAX,
  PREFIX_LENGTH,
} from './ordered-nodes.ts';

/** What an index must know of the keys behind its ids; a `KeyTable` is one. */
export interface KeySource {
  /** The memory in which the key of an id lies. */
  keyBytes(id: number): Uint8Array;
  /** Where in it the key starts. */
  keyStart(id: number): number;
  /** Length of the key in bytes. */
  keyLength(id: number): number;
  /** Order of the key of an id and a range, as memcmp; both agree before byte `skip`. */
  compareKey(id: number, bytes: Uint8Array, start: number, end: number, skip: number): number;
}

// Signed comparison of words is what V8 does best: the top bit is turned over so that the signed
// order is the order of the bytes.
const SIGN = 0x80000000 | 0;

/** Four bytes of a key from `at` on, zeros behind its end, as a number that orders like them. */
export function headOf(bytes: Uint8Array, at: number, end: number): number {
  if (at + 4 <= end) {
    const word =
      (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    return word ^ SIGN;
  }
  let head = 0;
  for (let i = 0; i < 4; i++) head = (head << 8) | (at + i < end ? bytes[at + i]! : 0);
  return head ^ SIGN;
}

/** First entry from `low` to `high` whose head is not below `head`. */
function lowerHead(
  words: Int32Array,
  heads: number,
  low: number,
  high: number,
  head: number,
): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (words[heads + middle]! < head) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * How many entries of a node have keys before the given one. Where an entry has exactly that key
 * the result has bit 16 set as well.
 */
export function searchNode(
  keys: KeySource,
  pool: NodePool,
  node: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const words = pool.words(node);
  const base = pool.at(node);
  const entries = words[base + COUNT]!;
  const skip = words[base + PREFIX_LENGTH]!;
  const order = comparePrefix(pool.bytes(node), (base + PREFIX) * 4, skip, bytes, start, end);
  if (order !== 0) return order < 0 ? 0 : entries;
  const head = headOf(bytes, start + skip, end);
  const heads = base + HEADS;
  let low = lowerHead(words, heads, 0, entries, head);
  if (low === entries || words[heads + low] !== head) return low;
  // Among equal heads the keys decide; most often there is only one.
  let high = low + 1;
  if (high < entries && words[heads + high] === head) {
    high = head === 0x7fffffff ? entries : lowerHead(words, heads, high, entries, head + 1);
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    const difference = keys.compareKey(words[base + IDS + middle]!, bytes, start, end, skip);
    if (difference === 0) return middle | EXACT;
    if (difference < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Set in a result of `searchNode` when the key was found. */
export const EXACT = 0x10000;

/** Order of a key and the common bytes of a node: 0 if the key starts with all of them. */
function comparePrefix(
  prefix: Uint8Array,
  prefixStart: number,
  length: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  for (let i = 0; i < length; i++) {
    if (start + i === end) return -1;
    const difference = bytes[start + i]! - prefix[prefixStart + i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Finds the bytes that all keys of a node share, and takes all heads from behind them. */
export function measureNode(keys: KeySource, pool: NodePool, node: number): void {
  const words = pool.words(node);
  const base = pool.at(node);
  const entries = words[base + COUNT]!;
  if (entries === 0) return;
  const first = words[base + IDS]!;
  const last = words[base + IDS + entries - 1]!;
  const bytes = keys.keyBytes(first);
  const start = keys.keyStart(first);
  const lastStart = keys.keyStart(last);
  const shared = Math.min(
    PREFIX_BYTES_MAX,
    commonPrefix(
      bytes,
      start,
      start + keys.keyLength(first),
      keys.keyBytes(last),
      lastStart,
      lastStart + keys.keyLength(last),
    ),
  );
  // Unchanged: the heads are right as they are.
  if (shared === words[base + PREFIX_LENGTH]) return;
  words[base + PREFIX_LENGTH] = shared;
  const prefix = pool.bytes(node);
  const prefixStart = (base + PREFIX) * 4;
  for (let i = 0; i < shared; i++) prefix[prefixStart + i] = bytes[start + i]!;
  for (let i = 0; i < entries; i++) {
    words[base + HEADS + i] = headOfId(keys, words[base + IDS + i]!, shared);
  }
}

function headOfId(keys: KeySource, id: number, skip: number): number {
  const start = keys.keyStart(id);
  return headOf(keys.keyBytes(id), start + skip, start + keys.keyLength(id));
}

/**
 * Makes sure that a key may enter a node: the common bytes shrink to those that it shares. The
 * new heads follow from the old ones and the bytes given up, without a look at any key.
 */
function admit(keys: KeySource, pool: NodePool, node: number, id: number): void {
  const words = pool.words(node);
  const base = pool.at(node);
  const length = words[base + PREFIX_LENGTH]!;
  const prefix = pool.bytes(node);
  const prefixStart = (base + PREFIX) * 4;
  const start = keys.keyStart(id);
  const end = start + keys.keyLength(id);
  const bytes = keys.keyBytes(id);
  if (comparePrefix(prefix, prefixStart, length, bytes, start, end) === 0) return;
  const shared = commonPrefix(prefix, prefixStart, prefixStart + length, bytes, start, end);
  words[base + PREFIX_LENGTH] = shared;
  const given = headOf(prefix, prefixStart + shared, prefixStart + length) ^ SIGN;
  const bits = (length - shared) * 8;
  const entries = words[base + COUNT]!;
  for (let i = 0; i < entries; i++) {
    const tail = bits >= 32 ? 0 : (words[base + HEADS + i]! ^ SIGN) >>> bits;
    words[base + HEADS + i] = (given | tail) ^ SIGN;
  }
}

/** Puts an entry before entry `position`; the node has room. */
export function insertEntry(
  keys: KeySource,
  pool: NodePool,
  node: number,
  position: number,
  id: number,
): void {
  const words = pool.words(node);
  const base = pool.at(node);
  const entries = words[base + COUNT]!;
  if (entries === 0) {
    // The first key shares nothing with nobody: take it up with no common bytes, then measure.
    words[base + COUNT] = 1;
    words[base + IDS] = id;
    words[base + PREFIX_LENGTH] = -1;
    measureNode(keys, pool, node);
    return;
  }
  admit(keys, pool, node, id);
  shift(words, base + HEADS, position, entries);
  shift(words, base + IDS, position, entries);
  if (words[base + LEVEL]! > 0) {
    shift(words, base + CHILDREN, position, entries);
    shift(words, base + COUNTS, position, entries);
  }
  words[base + IDS + position] = id;
  words[base + HEADS + position] = headOfId(keys, id, words[base + PREFIX_LENGTH]!);
  words[base + COUNT] = entries + 1;
}

/** Another key takes the place of an entry's, between the same neighbours. */
export function replaceEntry(
  keys: KeySource,
  pool: NodePool,
  node: number,
  position: number,
  id: number,
): void {
  admit(keys, pool, node, id);
  const words = pool.words(node);
  const base = pool.at(node);
  words[base + IDS + position] = id;
  words[base + HEADS + position] = headOfId(keys, id, words[base + PREFIX_LENGTH]!);
}

/** Takes an entry out. */
export function removeEntry(pool: NodePool, node: number, position: number): void {
  const words = pool.words(node);
  const base = pool.at(node);
  const entries = words[base + COUNT]!;
  close(words, base + HEADS, position, entries);
  close(words, base + IDS, position, entries);
  if (words[base + LEVEL]! > 0) {
    close(words, base + CHILDREN, position, entries);
    close(words, base + COUNTS, position, entries);
  }
  words[base + COUNT] = entries - 1;
}

/** Moves the entries of a node from `position` on to the end of another with the same level. */
export function moveEntries(
  keys: KeySource,
  pool: NodePool,
  from: number,
  position: number,
  to: number,
): void {
  const words = pool.words(from);
  const base = pool.at(from);
  const target = pool.words(to);
  const targetBase = pool.at(to);
  const entries = words[base + COUNT]!;
  const present = target[targetBase + COUNT]!;
  const isInner = words[base + LEVEL]! > 0;
  for (let i = position; i < entries; i++) {
    const at = present + i - position;
    target[targetBase + IDS + at] = words[base + IDS + i]!;
    target[targetBase + HEADS + at] = words[base + HEADS + i]!;
    if (!isInner) continue;
    target[targetBase + CHILDREN + at] = words[base + CHILDREN + i]!;
    target[targetBase + COUNTS + at] = words[base + COUNTS + i]!;
  }
  target[targetBase + COUNT] = present + entries - position;
  words[base + COUNT] = position;
  if (present === 0) {
    // The heads came along: they are right if the common bytes stay as many as they were.
    const prefixStart = (base + PREFIX) * 4;
    const bytes = pool.bytes(from);
    pool
      .bytes(to)
      .set(bytes.subarray(prefixStart, prefixStart + PREFIX_BYTES_MAX), (targetBase + PREFIX) * 4);
    target[targetBase + PREFIX_LENGTH] = words[base + PREFIX_LENGTH]!;
  } else {
    target[targetBase + PREFIX_LENGTH] = -1;
  }
  measureNode(keys, pool, to);
  measureNode(keys, pool, from);
}

function shift(words: Int32Array, start: number, position: number, entries: number): void {
  if (entries - position > 48) {
    words.copyWithin(start + position + 1, start + position, start + entries);
    return;
  }
  for (let i = start + entries; i > start + position; i--) words[i] = words[i - 1]!;
}

function close(words: Int32Array, start: number, position: number, entries: number): void {
  if (entries - position > 48) {
    words.copyWithin(start + position, start + position + 1, start + entries);
    return;
  }
  for (let i = start + position; i < start + entries - 1; i++) words[i] = words[i + 1]!;
}

/** Order of two keys of one table. */
export function compareIds(keys: KeySource, left: number, right: number): number {
  const start = keys.keyStart(right);
  return compareBytes(
    keys.keyBytes(left),
    keys.keyStart(left),
    keys.keyStart(left) + keys.keyLength(left),
    keys.keyBytes(right),
    start,
    start + keys.keyLength(right),
  );
}
