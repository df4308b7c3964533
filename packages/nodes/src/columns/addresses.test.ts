import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AddressPool, addressNumber, addressText, parseCidr } from './addresses.ts';

test('networks are read as written and bad ones refused', () => {
  assert.deepEqual(parseCidr('10.1.2.3/24'), { base: addressNumber('10.1.2.0'), size: 256 });
  for (const bad of ['10.0.0.0', '10.0.0.0/7', '10.0.0.0/31', '10.0.0.256/24', '::/64', '']) {
    assert.equal(parseCidr(bad), undefined, bad);
  }
});

test('text and number of an address agree', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (address) => {
      assert.equal(addressNumber(addressText(address)), address);
    }),
  );
  assert.equal(addressNumber('10.0.0'), -1);
  for (const odd of ['10.0.0.1000', '10.0.0.256', '10..0.1', '.0.0.1', '1.2.3.', '1.2.3.4.5', '']) {
    assert.equal(addressNumber(odd), -1, odd);
  }
  assert.equal(addressNumber('010.0.0.1'), 10 * 2 ** 24 + 1);
});

test('an address is never given out twice, and all of them are', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constant(-1), fc.integer({ min: 0, max: 40 })), { maxLength: 200 }),
      (script) => {
        const pool = new AddressPool('10.0.0.0/27');
        const used = new Set<number>();
        for (const item of script) {
          if (item < 0) {
            const address = pool.allocate();
            assert.equal(address < 0, used.size === pool.capacity);
            assert(!used.has(address));
            if (address >= 0) used.add(address);
          } else {
            const address = addressNumber('10.0.0.0') + item;
            pool.free(address);
            used.delete(address);
            if (item % 3 === 0 && item > 0 && item < 31) {
              pool.take(address);
              used.add(address);
            }
          }
          assert.equal(pool.used, used.size);
        }
      },
    ),
  );
});
