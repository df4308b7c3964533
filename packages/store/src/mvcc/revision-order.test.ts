import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RevisionOrder } from './revision-order.ts';
import { Store } from './store.ts';

/** Every record in a store, whatever its age, as (main, sub). */
function everything(store: Store): [number, number][] {
  const found: [number, number][] = [];
  for (let id = 1; id < store.keys.idEnd; id++) {
    for (let ref = store.keys.head(id); ref !== 0; ref = store.arenas.previous(ref)) {
      found.push([store.modRevision(ref), store.arenas.sub(ref)]);
    }
  }
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

function ordered(store: Store, revision: number): [number, number][] {
  const order = new RevisionOrder(store, revision, 'backup', -1);
  while (!order.step());
  const rows = [...order.refs.subarray(0, order.length)];
  const found = rows.map((ref): [number, number] => [
    store.modRevision(ref),
    store.arenas.sub(ref),
  ]);
  order.end();
  return found;
}

test('records of any history come in order of main and sub, up to the revision', () => {
  const op = fc.record({ key: fc.nat(40), isDelete: fc.boolean(), size: fc.nat(3) });
  fc.assert(
    fc.property(
      fc.array(fc.array(op, { minLength: 1, maxLength: 6 }), { maxLength: 60, size: 'max' }),
      fc.nat(),
      (turns, at) => {
        const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 7);
        for (const ops of turns) {
          store.begin();
          for (const { key, isDelete, size } of ops) {
            const bytes = Buffer.from(`key-${key}`);
            if (isDelete) store.delete(bytes, 0, bytes.length);
            else store.put(bytes, 0, bytes.length, bytes, 0, size, 0);
          }
          store.commit();
        }
        const revision = 1 + (at % store.appliedRevision);
        const expected = everything(store).filter(([main]) => main <= revision);
        assert.deepEqual(ordered(store, revision), expected);
      },
    ),
    { numRuns: 60 },
  );
});

test('many runs are merged, and what is written meanwhile is left out', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 7);
  const key = Buffer.alloc(4);
  const put = (number: number): void => {
    key.writeUInt32BE((number * 7919) % 50_000);
    store.putIf(key, 0, 4, -1, key, 0, 4, 0);
  };
  for (let i = 0; i < 70_000; i++) put(i);
  const order = new RevisionOrder(store, store.appliedRevision, 'backup');
  let extra = 70_000;
  while (!order.step()) put(extra++);
  assert.equal(order.length, 70_000);
  for (let i = 0; i < order.length; i++) {
    assert.equal(store.modRevision(order.refs[i] ?? 0), i + 2);
  }
  store.compact(store.appliedRevision);
  store.flush();
  store.tick(1);
  assert.equal(store.modRevision(order.refs[0] ?? 0), 2);
  order.end();
  assert.ok(store.sweep.hasWork);
});
