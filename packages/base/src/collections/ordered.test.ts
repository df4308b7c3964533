import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyTable } from './keytable.ts';
import { OrderedIndex } from './ordered.ts';
import { Random } from '../random/random.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === '1' ? 5000 : 150;

/** An index beside a sorted array of the same keys, checked against each other. */
class Pair {
  readonly keys: KeyTable = new KeyTable({ random: new Random(7) });
  readonly index: OrderedIndex = new OrderedIndex(this.keys);
  readonly model: Buffer[] = [];

  #rank(key: Buffer): number {
    let low = 0;
    let high = this.model.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (Buffer.compare(this.model[middle] ?? key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  insert(key: Buffer): void {
    const id = this.keys.insert(key, 0, key.length);
    const rank = this.#rank(key);
    const isKnown = this.model[rank]?.equals(key) === true;
    assert.equal(this.index.insert(id), !isKnown);
    if (!isKnown) this.model.splice(rank, 0, key);
  }

  remove(key: Buffer): void {
    const id = this.keys.find(key, 0, key.length);
    const rank = this.#rank(key);
    const isKnown = this.model[rank]?.equals(key) === true;
    assert.equal(id >= 0, isKnown);
    if (!isKnown) return;
    assert.equal(this.index.delete(id), true);
    assert.equal(this.index.delete(id), false);
    this.keys.remove(id);
    this.model.splice(rank, 1);
  }

  at(fraction: number): Buffer | undefined {
    return this.model[Math.floor(fraction * this.model.length)];
  }

  text(id: number): Buffer {
    const start = this.keys.keyStart(id);
    return this.keys.keyBytes(id).subarray(start, start + this.keys.keyLength(id));
  }

  probe(key: Buffer): void {
    const rank = this.#rank(key);
    assert.equal(this.index.lowerBound(key, 0, key.length), rank);
    assert.equal(this.index.seek(key, 0, key.length), this.index.seekRank(rank));
    assert.equal(this.index.seekBefore(key, 0, key.length), this.index.seekRank(rank - 1));
  }

  verify(): void {
    assert.equal(this.index.size, this.model.length);
    let position = this.index.first();
    for (const [rank, key] of this.model.entries()) {
      assert.ok(this.text(this.index.idAt(position)).equals(key), `rank ${rank}`);
      assert.equal(this.index.seekRank(rank), position);
      position = this.index.next(position);
    }
    assert.equal(position, -1);
    position = this.index.last();
    for (let rank = this.model.length - 1; rank >= 0; rank--) {
      assert.equal(this.index.seekRank(rank), position);
      position = this.index.previous(position);
    }
    assert.equal(position, -1);
  }
}

// Few letters, long shared beginnings, zero bytes and keys that are beginnings of others.
const letters = fc.array(fc.constantFrom(0, 1, 97, 98, 255), { maxLength: 6 });
const shared = fc.constantFrom('', 'a', '/registry/pods/default/', 'x'.repeat(95), 'x'.repeat(120));
const key = fc
  .tuple(shared, letters)
  .map(([start, rest]) => Buffer.concat([Buffer.from(start), Buffer.from(rest)]));

test('an ordered index agrees with a sorted array after any inserts and deletes', () => {
  const operation = fc.record({
    kind: fc.constantFrom('insert', 'insert', 'remove', 'removeKnown', 'probe'),
    key,
    fraction: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 300, size: 'max' }), (operations) => {
      const pair = new Pair();
      for (const { kind, key, fraction } of operations) {
        if (kind === 'insert') pair.insert(key);
        else if (kind === 'remove') pair.remove(key);
        else if (kind === 'probe') pair.probe(key);
        else pair.remove(pair.at(fraction) ?? key);
      }
      pair.verify();
    }),
    { numRuns: RUNS },
  );
});

/** Keys as a cluster has them; `n` decides the place. */
function clusterKey(n: number): Buffer {
  const kind = ['leases/kube-node-lease', 'minions', 'pods/default', 'pods/kube-system'][n % 4];
  return Buffer.from(`/registry/${kind}/node-${(n * 7919) % 1_000_003}`);
}

test('an ordered index grows and shrinks to nothing in any order', () => {
  const random = new Random(3);
  for (const order of ['random', 'ascending', 'descending']) {
    const pair = new Pair();
    const many = Array.from({ length: 4000 }, (_, n) => clusterKey(n));
    if (order !== 'random') many.sort((a, b) => Buffer.compare(a, b));
    if (order === 'descending') many.reverse();
    for (const key of many) pair.insert(key);
    for (let i = 0; i < 500; i++) pair.probe(clusterKey(random.below(20_000)));
    pair.verify();
    while (pair.model.length > 0) {
      pair.remove(pair.at(order === 'random' ? random.next() : 0) ?? Buffer.alloc(0));
      if (pair.model.length % 1000 === 0) pair.verify();
      if (random.below(4) === 0) pair.insert(clusterKey(random.below(20_000)));
      if (random.below(2) === 0) pair.remove(pair.at(random.next()) ?? Buffer.alloc(0));
    }
    assert.ok(pair.index.memoryBytes > 0);
    pair.insert(Buffer.from('again'));
    pair.verify();
  }
});

test('an index of three levels keeps its order while half of it comes and goes', () => {
  const keys = new KeyTable({ random: new Random(7) });
  const index = new OrderedIndex(keys);
  const random = new Random(6);
  const texts = Array.from({ length: 70_000 }, (_, n) => clusterKey(n));
  const ids = texts.map((text) => keys.insert(text, 0, text.length));
  const text = (id: number): Buffer => texts[id] ?? Buffer.alloc(0);
  const sorted = ids.toSorted((a, b) => Buffer.compare(text(a), text(b)));
  const isIn = new Uint8Array(ids.length);
  const verify = (): void => {
    const expected = sorted.filter((id) => isIn[id] === 1);
    let at = index.first();
    for (const [rank, id] of expected.entries()) {
      assert.equal(index.idAt(at), id);
      if (rank % 97 === 0) assert.equal(index.rankOf(id), rank);
      at = index.next(at);
    }
    assert.equal(at, -1);
  };
  for (const id of ids) isIn[id] = Number(index.insert(id));
  verify();
  for (let share = 10; share >= 0; share--) {
    // From the front, so that first keys of subtrees go away, and at random.
    for (const id of sorted) {
      if (isIn[id] === 0 ? random.below(10) < 3 && share > 0 : random.below(10) >= share) {
        assert.equal(isIn[id] === 0 ? index.insert(id) : index.delete(id), true);
        isIn[id] = 1 - (isIn[id] ?? 0);
      }
    }
    verify();
  }
  assert.equal(index.size, 0);
});

test('a range is counted without being walked', () => {
  const pair = new Pair();
  for (let n = 0; n < 1000; n++) pair.insert(Buffer.from(`k${String(n).padStart(4, '0')}`));
  const from = Buffer.from('k0100');
  const to = Buffer.from('k0350');
  assert.equal(pair.index.countRange(from, 0, 5, to, 0, 5), 250);
  assert.equal(pair.index.countRange(to, 0, 5, from, 0, 5), 0);
  assert.equal(pair.keys.keyText(pair.index.at(100)), 'k0100');
  assert.equal(pair.index.rankOf(pair.keys.find(to, 0, 5)), 350);
  assert.equal(pair.index.at(1000), -1);
  assert.equal(pair.index.at(-1), -1);
});
