import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Arenas } from './arenas.ts';
import { KeyIndex } from './key-index.ts';
import { Liveness } from './liveness.ts';

const KEYS = 60;
/** More than two slabs of 131,072. */
const ENTRIES = 300_000;

interface Entry {
  readonly revision: number;
  readonly name: string;
  readonly sign: number;
}

function indexOf(names: readonly string[]): { keys: KeyIndex; ids: number[] } {
  const arenas = new Arenas();
  const keys = new KeyIndex(arenas, 1);
  const ids = names.map((name) => {
    const bytes = Buffer.from(name);
    const ref = arenas.allocate(0, Arenas.sizeOf(bytes.length, 0, false));
    arenas.words[ref >>> 18]![((ref & 0x3ffff) << 2) + 9] = bytes.length;
    bytes.copy(arenas.buffer(ref), arenas.keyAt(ref));
    keys.load(bytes, 0, bytes.length);
    return keys.insert(ref, 0);
  });
  return { keys, ids };
}

test('changes since a revision are counted as by a list, over cuts and slabs', () => {
  const random = new Random(5);
  const names = Array.from({ length: KEYS }, (_, i) => `key${String((i * 7) % KEYS).padStart(2)}`);
  const { keys, ids } = indexOf(names);
  const liveness = new Liveness(keys, (a, b) => keys.compareIds(a, b));
  let entries: Entry[] = [];
  let boundary = 0;
  const ask = (): void => {
    const last = entries.at(-1)?.revision ?? 0;
    const revision = boundary + random.below(last - boundary + 1);
    const from = `key${String(random.below(KEYS)).padStart(2)}`;
    const bytes = Buffer.from(from);
    keys.load(bytes, 0, bytes.length);
    let sum = 0;
    for (const one of entries) if (one.revision > revision && one.name >= from) sum += one.sign;
    assert.equal(liveness.changesFromLoaded(revision), sum);
  };
  for (let i = 0; i < ENTRIES; i++) {
    const key = random.below(KEYS);
    const sign = random.below(2) === 0 ? 1 : -1;
    // Several changes have one revision.
    const revision = Math.floor(i / 3);
    entries.push({ revision, name: names[key]!, sign });
    liveness.append(revision, ids[key]!, sign);
    if (i % 10_007 === 0) ask();
    if (i % 90_001 === 90_000) {
      boundary = revision - 1000;
      liveness.cut(boundary);
      entries = entries.filter((one) => one.revision > boundary);
      ask();
      while (liveness.sortNext()) ask();
    }
  }
  liveness.clear();
  keys.load(Buffer.from('a'), 0, 1);
  assert.equal(liveness.changesFromLoaded(0), 0);
});
