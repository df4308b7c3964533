import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HashSlots } from './hash-slots.ts';
import { KEY_BYTES_MAX, KeyTable } from './keytable.ts';
import { Random } from '../random/random.ts';

const LONG = process.env['MEGAPLANE_LONG'] === '1';

/** A table beside a Map from key text to id. */
class Pair {
  readonly table: KeyTable = new KeyTable({ random: new Random(11) });
  readonly model: Map<string, number> = new Map();
  readonly #ids: Set<number> = new Set();

  insert(key: Buffer): void {
    const text = key.toString('latin1');
    const id = this.table.insert(key, 0, key.length);
    const known = this.model.get(text);
    assert.equal(this.table.isNew, known === undefined);
    if (known !== undefined) return assert.equal(id, known);
    assert.equal(this.#ids.has(id), false, 'an id in use was given out again');
    this.#ids.add(id);
    this.model.set(text, id);
  }

  remove(key: Buffer): void {
    const text = key.toString('latin1');
    const id = this.table.find(key, 0, key.length);
    assert.equal(id, this.model.get(text) ?? -1);
    if (id < 0) return;
    this.table.remove(id);
    assert.equal(this.table.has(id), false);
    assert.throws(() => this.table.remove(id), /not in use/);
    this.#ids.delete(id);
    this.model.delete(text);
  }

  verify(): void {
    assert.equal(this.table.size, this.model.size);
    for (const [text, id] of this.model) {
      const key = Buffer.from(text, 'latin1');
      assert.equal(this.table.find(key, 0, key.length), id);
      assert.equal(this.table.keyLength(id), key.length);
      assert.equal(this.table.compareKey(id, key, 0, key.length), 0);
      const copy = Buffer.alloc(key.length + 2);
      assert.equal(this.table.copyKey(id, copy, 1), key.length + 1);
      assert.ok(copy.subarray(1, key.length + 1).equals(key));
    }
    for (let id = 0; id < this.table.idEnd; id++) {
      assert.equal(this.table.has(id), this.#ids.has(id));
    }
  }
}

test('a key table agrees with a Map after any inserts, removals and compactions', () => {
  const key = fc
    .tuple(fc.constantFrom('', 'k', '/registry/pods/'), fc.nat(40), fc.constantFrom(0, 1, 50, 9000))
    .map(([start, n, tail]) => Buffer.from(start + String(n) + '\0\xff'.repeat(tail), 'latin1'));
  const kind = fc.constantFrom('insert', 'insert', 'remove', 'compact');
  fc.assert(
    fc.property(fc.array(fc.record({ kind, key }), { maxLength: 200 }), (operations) => {
      const pair = new Pair();
      for (const { kind, key } of operations) {
        if (kind === 'insert') pair.insert(key);
        else if (kind === 'remove') pair.remove(key);
        else pair.table.compactStep(20_000);
      }
      pair.verify();
    }),
    { numRuns: LONG ? 5000 : 100 },
  );
});

test('a key table of many segments keeps each key, and gives memory back after removals', () => {
  const pair = new Pair();
  const random = new Random(2);
  const name = (n: number): Buffer =>
    Buffer.from(`/registry/minions/node-${n}-${'x'.repeat(n % 90)}`);
  const count = LONG ? 1_000_000 : 100_000;
  for (let n = 0; n < count; n++) pair.insert(name(n));
  pair.verify();
  const memory = (): number => pair.table.memoryBytes - pair.table.indexBytes;
  const full = memory();
  for (let n = 0; n < count; n++) if (random.below(10) > 0) pair.remove(name(n));
  let steps = 0;
  while (pair.table.compactStep(5000) > 0) steps++;
  assert.ok(steps > 10, `${steps} steps`);
  assert.ok(memory() < full / 2, `${memory()} of ${full} bytes`);
  pair.verify();
  for (let n = 0; n < count / 10; n++) pair.insert(name(n));
  pair.verify();
  assert.ok(pair.table.idEnd <= count, 'ids of removed keys are used again');
});

test('a table takes memory in proportion to its keys, from some hundred bytes on', () => {
  const table = new KeyTable({ random: new Random(7) });
  assert(table.memoryBytes < 512, `${table.memoryBytes} bytes for nothing`);
  const most = new Map([
    [1, 512],
    [10, 2048],
    [100, 16 * 1024],
    [1000, 160 * 1024],
    [10_000, 2 ** 21],
  ]);
  for (let n = 1; n <= 10_000; n++) {
    // Lengths as names have them: a slab has a block size for each.
    const key = Buffer.from(`default/a-name-${'x'.repeat(n % 40)}-${n}`);
    table.insert(key, 0, key.length);
    const limit = most.get(n);
    if (limit === undefined) continue;
    assert(table.memoryBytes < limit, `${table.memoryBytes} bytes for ${n} keys`);
  }
});

test('a small table gives back what its removed keys took', () => {
  const table = new KeyTable({ random: new Random(8) });
  const key = Buffer.alloc(40);
  for (let n = 0; n < 500; n++) {
    key.writeUInt32LE(n);
    table.insert(key, 0, key.length);
  }
  const full = table.memoryBytes;
  for (let id = 5; id < 500; id++) table.remove(id);
  while (table.compactStep(1e6) > 0);
  assert(table.memoryBytes < full / 8, `${table.memoryBytes} of ${full} bytes`);
  for (let n = 0; n < 10; n++) {
    key.writeUInt32LE(n);
    assert.equal(table.find(key, 0, key.length), n < 5 ? n : -1);
  }
  // Keys that come and go for ever need no more room than those that are there.
  for (let n = 1000; n < 20_000; n++) {
    key.writeUInt32LE(n);
    table.remove(table.insert(key, 0, key.length));
  }
  assert(table.memoryBytes < full / 4, `${table.memoryBytes} of ${full} bytes`);
});

test('a table without room answers -1 and stays as it was', () => {
  const table = new KeyTable({ random: new Random(1), keyBytesMax: 2 ** 22 });
  const key = Buffer.alloc(1000);
  let inserted = 0;
  for (; inserted < 10_000; inserted++) {
    key.writeUInt32LE(inserted);
    if (table.insert(key, 0, key.length) < 0) break;
  }
  assert.ok(inserted > 3000 && inserted < 4200, `${inserted} keys of 1000 bytes in 4 MiB`);
  assert.deepEqual([table.size, table.isNew], [inserted, false]);
  assert.equal(table.find(key, 0, key.length), -1);
  table.remove(0);
  assert.equal(table.insert(key, 0, key.length), 0);
  const huge = Buffer.alloc(KEY_BYTES_MAX + 1);
  assert.equal(new KeyTable({ random: new Random(1) }).insert(huge, 0, huge.length), -1);
});

test('hash slots keep refs apart whose hashes are equal or share all but their high bits', () => {
  const hash = fc.oneof(
    fc.constantFrom(5, -5, 0, -1, 2047, 2048, 0x7fffffff),
    fc.integer({ min: 0, max: 9 }).map((n) => (n << 29) | 2047),
  );
  fc.assert(
    fc.property(fc.array(hash, { maxLength: 60 }), fc.nat(), (hashes, removed) => {
      const slots = new HashSlots();
      const model = hashes.map((hash, i) => ({ hash, ref: 0xffff_0000 + i }));
      for (const { hash, ref } of model) slots.insert(hash, ref);
      for (const { hash, ref } of model.splice(removed % 60, 7)) slots.remove(hash, ref);
      const moved = model[0];
      if (moved !== undefined) slots.replace(moved.hash, moved.ref, 7);
      if (moved !== undefined) moved.ref = 7;
      for (const hash of new Set(hashes)) {
        const found: number[] = [];
        for (let ref = slots.first(hash); ref !== 0; ref = slots.next(hash)) found.push(ref);
        const expected = model.filter((row) => row.hash === hash).map((row) => row.ref);
        assert.deepEqual(new Set(found), new Set(expected));
        assert.equal(found.length, expected.length);
      }
    }),
  );
});
