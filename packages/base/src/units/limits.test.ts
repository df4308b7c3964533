import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatByteSize, formatDuration, parseByteSize, parseDurationMs } from './limits.ts';

test('sizes are read as people and Kubernetes write them', () => {
  const sizes: Readonly<Record<string, number>> = {
    '0': 0,
    '512': 512,
    '64KiB': 65_536,
    '64Ki': 65_536,
    '1.5GiB': 1_610_612_736,
    '10MB': 10_000_000,
    '10 m': 10_000_000,
    '.5kib': 512,
    '2TiB': 2 ** 41,
  };
  for (const [text, value] of Object.entries(sizes)) {
    assert.deepEqual(parseByteSize(text), { kind: 'value', value }, text);
  }
});

test('what is not a size or a duration is refused with what to write instead', () => {
  for (const text of ['', 'x', '5X', '-1', '1e3', 'KiB', '1.2.3M', '99999999TiB', 'constructor']) {
    const parsed = parseByteSize(text);
    assert.ok(parsed.kind === 'invalid' && parsed.message.includes('512MiB'), text);
  }
  for (const text of ['', '5', 'ms', '1 s', '1d', '1h-5m', '1hh', '1.s.']) {
    const parsed = parseDurationMs(text);
    assert.ok(parsed.kind === 'invalid' && parsed.message.includes('1h30m'), text);
  }
});

test('durations are read and written as Go does', () => {
  const durations: readonly (readonly [string, number])[] = [
    ['0s', 0],
    ['250ms', 250],
    ['1.5s', 1500],
    ['1m30s', 90_000],
    ['1h30m0s', 5_400_000],
    ['-2m0.5s', -120_500],
    ['70µs', 0.07],
    ['100h0m0s', 360_000_000],
  ];
  for (const [text, value] of durations) {
    assert.deepEqual(parseDurationMs(text), { kind: 'value', value }, text);
    assert.equal(formatDuration(value), text);
  }
  assert.deepEqual(parseDurationMs('0'), { kind: 'value', value: 0 });
  assert.deepEqual(parseDurationMs('+1h1ns'), { kind: 'value', value: 3_600_000.000001 });
});

test('any duration of whole milliseconds survives being written and read', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(10 ** 12), max: 10 ** 12 }), (durationMs) => {
      const parsed = parseDurationMs(formatDuration(durationMs));
      assert.ok(parsed.kind === 'value' && Math.abs(parsed.value - durationMs) < 1e-3);
    }),
  );
});

test('sizes are written short', () => {
  assert.equal(formatByteSize(0), '0 B');
  assert.equal(formatByteSize(1023), '1023 B');
  assert.equal(formatByteSize(1024), '1 KiB');
  assert.equal(formatByteSize(1_610_612_736), '1.5 GiB');
  assert.equal(formatByteSize(2 ** 20 - 1), '1 MiB');
  assert.equal(formatByteSize(5 * 2 ** 50), '5120 TiB');
});
