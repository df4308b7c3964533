import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRandom } from './entropy.ts';
import { Random } from './random.ts';

function draw(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => random.int32());
}

test('a seed determines the stream, and different seeds differ', () => {
  assert.deepEqual(draw(new Random(42), 20), draw(new Random(42), 20));
  const streams = [0, 1, -1, 2 ** 32, 2 ** 32 + 1, 2 ** 52].map((seed) =>
    draw(new Random(seed), 4).join(),
  );
  assert.equal(new Set(streams).size, streams.length);
});

test('neighbouring seeds begin with unrelated numbers', () => {
  let changed = 0;
  for (let seed = 0; seed < 1000; seed++) {
    let bits = new Random(seed).int32() ^ new Random(seed + 1).int32();
    for (; bits !== 0; bits &= bits - 1) changed++;
  }
  assert.ok(Math.abs(changed - 16_000) < 600, `${changed} of 32,000 bits changed`);
});

test('forks are named streams that do not depend on what was drawn', () => {
  const early = new Random(9).fork('leases');
  const random = new Random(9);
  draw(random, 100);
  assert.deepEqual(draw(random.fork('leases'), 10), draw(early, 10));
  const names = ['leases', 'pods', 'leases2', '', 'a', 'b'];
  const streams = names.map((name) => draw(new Random(9).fork(name), 4).join());
  assert.equal(new Set(streams).size, names.length);
  assert.notDeepEqual(draw(new Random(9).fork('a').fork('b'), 4), draw(new Random(9), 4));
});

test('numbers spread evenly and stay in their bounds', () => {
  const random = new Random(1);
  const counts = new Uint32Array(10);
  let sum = 0;
  for (let i = 0; i < 100_000; i++) {
    const n = random.below(10);
    assert.ok(Number.isInteger(n) && n >= 0 && n < 10);
    counts[n] = (counts[n] ?? 0) + 1;
    const fraction = random.next();
    assert.ok(fraction >= 0 && fraction < 1);
    sum += fraction;
  }
  for (const count of counts) assert.ok(Math.abs(count - 10_000) < 500, `${count} of 10,000`);
  assert.ok(Math.abs(sum / 100_000 - 0.5) < 0.01);
  assert.throws(() => random.below(0), /from 1/);
});

test('the seed of the machine is new each time', () => {
  assert.notEqual(draw(systemRandom(), 4).join(), draw(systemRandom(), 4).join());
});
