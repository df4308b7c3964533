import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Random } from '@megaplane/base/random';
import { cheapestCover } from './cover.ts';
import type { CoverKind } from './cover.ts';

function kindOf(cost: number, offers: readonly number[], count: number): CoverKind {
  return { cost, offers: Float64Array.from(offers), count };
}

function offered(kinds: readonly CoverKind[], counts: Int32Array, at: number): number {
  return kinds.reduce((sum, { offers }, kind) => sum + (offers[at] ?? 0) * (counts[kind] ?? 0), 0);
}

/** The least cost of all ways to cover, by trying all of them. */
function bruteCost(kinds: readonly CoverKind[], wanted: readonly number[], from = 0): number {
  if (wanted.every((want) => want <= 0)) return 0;
  const kind = kinds[from];
  if (kind === undefined) return Infinity;
  let least = Infinity;
  for (let count = 0; count <= kind.count; count++) {
    const left = wanted.map((want, at) => want - (kind.offers[at] ?? 0) * count);
    least = Math.min(least, kind.cost * count + bruteCost(kinds, left, from + 1));
  }
  return least;
}

const small = fc.record({
  kinds: fc.array(
    fc.record({
      cost: fc.integer({ min: 1, max: 20 }),
      offers: fc.tuple(fc.nat(6), fc.nat(6)),
      count: fc.nat(3),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  wanted: fc.tuple(fc.nat(14), fc.nat(14)),
});

test('few machines are chosen as well as can be, and never more than there are', () => {
  fc.assert(
    fc.property(small, ({ kinds: given, wanted }) => {
      const kinds = given.map(({ cost, offers, count }) => kindOf(cost, offers, count));
      const { counts, cost, bound, isWhole } = cheapestCover(kinds, Float64Array.from(wanted));
      for (const [at, kind] of kinds.entries()) assert.ok((counts[at] ?? 0) <= kind.count);
      const least = bruteCost(kinds, wanted);
      assert.equal(isWhole, least < Infinity);
      if (!isWhole) return;
      for (const at of [0, 1]) assert.ok(offered(kinds, counts, at) >= (wanted[at] ?? 0));
      assert.ok(bound <= least + 1e-6, `bound ${bound}, least ${least}`);
      // the whole parts that are kept may cost a little
      assert.ok(cost <= least * 1.5 + 1e-6, `cost ${cost}, least ${least}`);
    }),
  );
});

test('what cannot be covered is covered as far as it goes, and useless kinds stay', () => {
  const kinds = [kindOf(1, [2, 0], 3), kindOf(1, [0, 0], 5)];
  const { counts, isWhole } = cheapestCover(kinds, Float64Array.from([10, 4]));
  assert.deepEqual([[...counts], isWhole], [[3, 0], false]);
  const nothing = cheapestCover([], Float64Array.from([1]));
  assert.deepEqual([nothing.cost, nothing.isWhole], [0, false]);
});

test('on flexible catalogues the cost is within a twentieth of what fractions would cost', () => {
  const random = new Random(7);
  let sum = 0;
  let worlds = 0;
  for (let world = 0; world < 200; world++) {
    const kinds = Array.from({ length: 5 + random.below(40) }, () => {
      const cores = 2 ** (1 + random.below(6));
      const memory = cores * 2 ** (1 + random.below(3));
      const price = (cores * 0.04 + memory * 0.005) * (0.8 + 0.4 * random.next());
      return kindOf(price, [cores * 1000, memory], 1 + random.below(30));
    });
    const cores = 20 + random.next() * 400;
    const wanted = Float64Array.from([cores * 1000, cores * (2 + random.next() * 6)]);
    const { cost, bound, isWhole } = cheapestCover(kinds, wanted);
    if (!isWhole) continue;
    sum += cost / bound;
    worlds++;
  }
  assert.ok(worlds > 150);
  assert.ok(sum / worlds < 1.05, `${sum / worlds}`);
});
