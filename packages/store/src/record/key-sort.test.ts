import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { sortIds } from './key-sort.ts';
import { Store } from '../mvcc/store.ts';

test('ids are sorted by their keys, whatever these have in common', () => {
  const random = new Random(7);
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  const seen = new Map<string, number>();
  const stems = ['/registry/pods/', '/registry/pods/a\0', '/', 'a', '\xff\xff\xff\xff', ''];
  for (let i = 0; i < 4000; i++) {
    const stem = stems[random.below(stems.length)]!;
    // Few different bytes, zeros and the highest among them: keys begin and end alike.
    const tail = Array.from({ length: random.below(9) }, () => '\0\x01a\xff'[random.below(4)]!);
    const key = Buffer.from(`${stem}${tail.join('')}`, 'latin1');
    const name = key.toString('latin1');
    if (name === '' || seen.has(name)) continue;
    store.putIf(key, 0, key.length, -1, key, 0, 0, 0);
    seen.set(name, store.keys.idEnd - 1);
  }
  const ids = Uint32Array.from(seen.values());
  sortIds(store.keys, store.arenas, ids, ids.length);
  const names = [...seen.keys()].sort((a, b) =>
    Buffer.compare(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1')),
  );
  assert.deepEqual(
    [...ids],
    names.map((name) => seen.get(name)),
  );
});
