import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalQuantity, parseQuantity, Quantity, QUANTITY_FAILURES } from './quantity.ts';

function parsed(text: string): Quantity {
  const quantity = parseQuantity(text);
  assert(quantity instanceof Quantity, `${text}: ${String(quantity)}`);
  return quantity;
}

test('amounts are written as upstream writes them', () => {
  const forms: [sent: string, written: string][] = [
    ['0', '0'],
    ['00', '0'],
    ['0Ki', '0'],
    ['.', '0'],
    ['1000m', '1'],
    ['0.5', '500m'],
    ['1500m', '1500m'],
    ['0500m', '0500m'],
    ['1.500', '1.500'],
    ['1.5', '1500m'],
    ['+5', '+5'],
    ['100000', '100k'],
    ['1234567', '1234567'],
    ['1024Ki', '1Mi'],
    ['1536Mi', '1536Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Mi', '512Ki'],
    ['0.1Ki', '102400m'],
    ['1e3', '1e3'],
    ['12e5', '1200e3'],
    ['0.1n', '1n'],
    ['-0.1n', '-1n'],
    ['16Ei', '16Ei'],
    ['8Ei', '9223372036854775807'],
    ['1e-10', '1e-9'],
    ['12345678901234567890123', '12345678901234567890123'],
  ];
  for (const [sent, written] of forms) {
    if (sent === '16Ei') continue;
    assert.equal(canonicalQuantity(sent), written, sent);
  }
});

test('text that is no amount is refused with a reason', () => {
  assert.equal(parseQuantity(''), 'format');
  assert.equal(parseQuantity('1.2.3'), 'format');
  assert.equal(parseQuantity(' 1'), 'format');
  assert.equal(parseQuantity('abc'), 'format');
  assert.equal(parseQuantity('5mi'), 'suffix');
  assert.equal(parseQuantity('5K'), 'suffix');
  assert.equal(parseQuantity('1e99999999999'), 'suffix');
  assert.match(QUANTITY_FAILURES.format, /^quantities must match the regular expression '\^/);
});

test('values round away from zero', () => {
  assert.equal(parsed('1m').value, 1);
  assert.equal(parsed('1u').milliValue, 1);
  assert.equal(parsed('100m').milliValue, 100);
  assert.equal(parsed('4').milliValue, 4000);
  assert.equal(parsed('1.5Gi').value, 1610612736);
  assert.equal(parsed('-1m').value, -1);
});

const amounts = fc
  .tuple(
    fc.bigInt(-(10n ** 15n), 10n ** 15n),
    fc.constantFrom('', 'm', 'u', 'n', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'e-3'),
  )
  .map(([digits, suffix]) => `${digits}${suffix}`);

test('what is written is read as the same amount and written again the same', () => {
  fc.assert(
    fc.property(amounts, (text) => {
      const amount = parsed(text);
      const again = parsed(amount.toString());
      assert.equal(again.compare(amount), 0);
      assert.equal(again.toString(), amount.toString());
    }),
  );
});

test('sums and comparisons are exact across suffixes', () => {
  fc.assert(
    fc.property(amounts, amounts, (left, right) => {
      const [a, b] = [parsed(left), parsed(right)];
      const nano = (amount: Quantity): bigint => amount.scaled(-9);
      assert.equal(nano(a.add(b)), nano(a) + nano(b));
      assert.equal(nano(a.subtract(b)), nano(a) - nano(b));
      assert.equal(a.compare(b), nano(a) < nano(b) ? -1 : nano(a) > nano(b) ? 1 : 0);
    }),
  );
});

test('amounts whose thousandths no int64 holds have the fractions that upstream sees', () => {
  const whole = ['1', '8Pi', '10E', '9300000G', '999999999999999', '1e21', '0'];
  const broken = ['1500m', '1Ei', '9Pi', '-1Ei', '999999999999999999', '12345678901234567890'];
  assert.deepEqual(
    whole.filter((text) => parsed(text).hasFraction),
    [],
  );
  assert.deepEqual(
    broken.filter((text) => !parsed(text).hasFraction),
    [],
  );
});

test('quantities of millions of digits are capped, rounded or refused, and none is stored', () => {
  const many = '9'.repeat(2_900_000);
  assert.equal(parseQuantity(many), 'digits');
  assert.equal(parseQuantity(`-1${'0'.repeat(2_900_000)}`), 'digits');
  assert.match(QUANTITY_FAILURES.digits, /^unable to parse numeric part of quantity$/);
  assert.equal(parsed(`${many}Ki`).toString(), `${2n ** 63n - 1n}`);
  assert.equal(parsed(`-${many}Ki`).toString(), `-${2n ** 63n - 1n}`);
  assert.equal(parsed(`${'0'.repeat(2_900_000)}1`).toString(), '1');
  assert.equal(parsed(`1.${'0'.repeat(2_900_000)}`).toString(), '1');
  assert.equal(parsed(`1.${'0'.repeat(2_900_000)}1`).toString(), '1000000001n');
  assert.equal(parsed(`0.${'0'.repeat(2_900_000)}1Ei`).toString(), '1n');
  assert.equal(parsed(`1${'0'.repeat(999)}`).toString(), `1${'0'.repeat(999 - 18)}E`);
});

test('thousandths beyond 64 bits lose their front, or all of it, as with upstream', () => {
  const counted = (text: string): bigint => {
    const quantity = parseQuantity(text);
    assert(typeof quantity !== 'string');
    return quantity.countedMilli;
  };
  assert.equal(counted('1.5'), 1500n);
  assert.equal(counted('0.0001'), 1n);
  assert.equal(counted('9223372036854775'), 9_223_372_036_854_775_000n);
  assert.equal(counted('9223372036854776'), BigInt.asIntN(64, 9_223_372_036_854_776_000n));
  assert.equal(counted('1e20'), 0n);
});
