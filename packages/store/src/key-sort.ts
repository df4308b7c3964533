// data plane: sorts many key ids by their keys
/**
 * Most keys share long prefixes, so comparing them pairwise reads the same bytes again and again.
 * Here a group of ids with a known common prefix is sorted by the next three bytes after the
 * longest prefix that all of it shares: three bytes and the place in the group are packed into
 * one double, doubles are sorted natively, and runs of equal bytes are groups again.
 */
import type { Arenas } from './arenas.ts';
import type { KeyIndex } from './key-index.ts';

/** Groups up to this size are sorted by comparison. */
const SMALL_GROUP = 24;
const PLACE_SPAN = 2 ** 28;

/** Sorts ids[0, count) in place. */
export function sortIds(keys: KeyIndex, arenas: Arenas, ids: Uint32Array, count: number): void {
  if (isSorted(keys, ids, count)) return;
  const packed = new Float64Array(count);
  const spare = new Uint32Array(count);
  // Groups to do: from, to, bytes that all of the group share.
  const groups: number[] = [0, count, 0];
  while (groups.length > 0) {
    const shared = groups.pop()!;
    const to = groups.pop()!;
    const from = groups.pop()!;
    if (to - from <= SMALL_GROUP) sortSmall(keys, ids, from, to);
    else sortGroup(keys, arenas, ids, from, to, shared, packed, spare, groups);
  }
}

function isSorted(keys: KeyIndex, ids: Uint32Array, count: number): boolean {
  for (let i = 1; i < count; i++) if (keys.compareIds(ids[i - 1]!, ids[i]!) > 0) return false;
  return true;
}

function sortSmall(keys: KeyIndex, ids: Uint32Array, from: number, to: number): void {
  for (let i = from + 1; i < to; i++) {
    const id = ids[i]!;
    let place = i;
    while (place > from && keys.compareIds(ids[place - 1]!, id) > 0) {
      ids[place] = ids[place - 1]!;
      place--;
    }
    ids[place] = id;
  }
}

function sortGroup(
  keys: KeyIndex,
  arenas: Arenas,
  ids: Uint32Array,
  from: number,
  to: number,
  known: number,
  packed: Float64Array,
  spare: Uint32Array,
  groups: number[],
): void {
  const shared = sharedPrefix(keys, arenas, ids, from, to, known);
  for (let i = from; i < to; i++) {
    const ref = keys.head(ids[i]!);
    const bytes = arenas.buffer(ref);
    const at = arenas.keyAt(ref) + shared;
    const size = arenas.keySize(ref) - shared;
    // A missing byte sorts before byte 0: digits count from 1, three of them in base 257.
    let digits = size > 0 ? bytes[at]! + 1 : 0;
    digits = digits * 257 + (size > 1 ? bytes[at + 1]! + 1 : 0);
    digits = digits * 257 + (size > 2 ? bytes[at + 2]! + 1 : 0);
    packed[i] = digits * PLACE_SPAN + (i - from);
    spare[i] = ids[i]!;
  }
  packed.subarray(from, to).sort();
  let runFrom = from;
  let runDigits = -1;
  for (let i = from; i < to; i++) {
    const digits = Math.floor(packed[i]! / PLACE_SPAN);
    ids[i] = spare[from + (packed[i]! - digits * PLACE_SPAN)]!;
    if (digits === runDigits) continue;
    if (i - runFrom > 1 && runDigits % 257 !== 0) groups.push(runFrom, i, shared + 3);
    runFrom = i;
    runDigits = digits;
  }
  if (to - runFrom > 1 && runDigits % 257 !== 0) groups.push(runFrom, to, shared + 3);
}

/** Bytes that all keys of a group share; `known` of them are known to be. */
function sharedPrefix(
  keys: KeyIndex,
  arenas: Arenas,
  ids: Uint32Array,
  from: number,
  to: number,
  known: number,
): number {
  const first = keys.head(ids[from]!);
  const firstBytes = arenas.buffer(first);
  const firstAt = arenas.keyAt(first);
  let shared = arenas.keySize(first);
  for (let i = from + 1; i < to && shared > known; i++) {
    const ref = keys.head(ids[i]!);
    const bytes = arenas.buffer(ref);
    const at = arenas.keyAt(ref);
    const size = Math.min(shared, arenas.keySize(ref));
    let same = known;
    while (same < size && bytes[at + same] === firstBytes[firstAt + same]) same++;
    shared = same;
  }
  return shared;
}
