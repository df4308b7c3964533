import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { TriedCounts } from './tried-counts.ts';

test('copies of copies are as maps that were copied whole', () => {
  const random = new Random(1);
  for (let round = 0; round < 300; round++) {
    let tried = new TriedCounts();
    let plain = new Map<string, number>();
    for (let depth = 0; depth < 3; depth++) {
      for (let step = 0; step < 1 + random.below(8); step++) {
        const domain = `d${random.below(6)}`;
        const count = random.below(3);
        tried.set(domain, count);
        plain.set(domain, count);
        if (random.below(2) === 0) assert.equal(tried.least(), Math.min(...plain.values()));
      }
      assert.equal(tried.size, plain.size);
      assert.equal(tried.least(), Math.min(...plain.values()));
      for (let domain = 0; domain < 6; domain++) {
        assert.equal(tried.get(`d${domain}`), plain.get(`d${domain}`));
      }
      tried = new TriedCounts(tried);
      plain = new Map(plain);
    }
  }
});
