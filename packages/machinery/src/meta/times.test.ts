import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  canonicalMicroTime,
  canonicalTime,
  formatDuration,
  formatMicroTime,
  formatTime,
  isMicroTime,
  parseDuration,
  parseGoDuration,
  parseTime,
  timeFailure,
} from './times.ts';

const seconds = fc.integer({ min: -62167219200, max: 253402300799 });

test('times are written and read as the calendar has them', () => {
  fc.assert(
    fc.property(seconds, fc.nat(999999), (at, micros) => {
      const expected = new Date(at * 1000).toISOString().slice(0, 19);
      assert.equal(formatTime(at), `${expected}Z`);
      assert.deepEqual(parseTime(`${expected}Z`), { seconds: at, nanos: 0 });
      const text = formatMicroTime(at, micros * 1000);
      assert.equal(text, `${expected}.${String(micros).padStart(6, '0')}Z`);
      assert.deepEqual(parseTime(text), { seconds: at, nanos: micros * 1000 });
    }),
  );
});

test('zones are applied, days that do not exist are refused', () => {
  assert.equal(parseTime('2026-01-02T03:04:05+02:30')?.seconds, 1767314045);
  assert.equal(canonicalTime('2026-01-02T03:04:05.999-01:00'), '2026-01-02T04:04:05Z');
  assert.equal(canonicalTime('0001-01-01T00:00:00Z'), null);
  assert.equal(
    canonicalMicroTime('2026-01-02T03:04:05.000001+00:00'),
    '2026-01-02T03:04:05.000001Z',
  );
  for (const text of [
    '2023-02-29T00:00:00Z',
    '2024-02-30T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01 00:00:00Z',
    '2024-01-01T00:00:00',
    '2024-1-1T00:00:00Z',
    '',
  ]) {
    assert.equal(parseTime(text), undefined, text);
    assert.equal(canonicalTime(text), undefined, text);
  }
  assert.ok(parseTime('2024-02-29T00:00:00Z'));
  assert.equal(isMicroTime('2026-01-02T03:04:05.12345Z'), false);
  assert.equal(canonicalMicroTime('2026-01-02T03:04:05Z'), undefined);
});

test('what is no time is explained as by Go', () => {
  const layout = '2006-01-02T15:04:05Z07:00';
  assert.equal(
    timeFailure('2026-1-02', false),
    `parsing time "2026-1-02" as "${layout}": cannot parse "1-02" as "01"`,
  );
  assert.equal(
    timeFailure('2026-13-01T00:00:00Z', false),
    'parsing time "2026-13-01T00:00:00Z": month out of range',
  );
  assert.match(timeFailure('2026-01-02T03:04:05Z', true), /cannot parse "Z" as "\.000000"$/);
});

test('durations are those of Go', () => {
  const forms: [text: string, written: string][] = [
    ['1h', '1h0m0s'],
    ['90s', '1m30s'],
    ['1.5s', '1.5s'],
    ['100ms', '100ms'],
    ['1h15m30.918s', '1h15m30.918s'],
    ['-1m', '-1m0s'],
    ['0', '0s'],
    ['300us', '300µs'],
  ];
  for (const [text, written] of forms) {
    assert.equal(formatDuration(parseDuration(text) ?? Number.NaN), written, text);
  }
  for (const text of ['', '1', 'h', '1x', '1 s']) assert.equal(parseDuration(text), undefined);
});

function vectors<T>(name: string): readonly T[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8')) as readonly T[];
}

test('durations are read to the nanosecond, and shown as Go shows them', () => {
  type Vector = { readonly text: string; readonly nanos?: string; readonly shown?: string };
  for (const { text, nanos, shown } of vectors<Vector>('go-durations.vectors')) {
    const value = parseGoDuration(text);
    assert.equal(value === undefined ? value : String(value), nanos, text);
    if (value !== undefined) assert.equal(formatDuration(value), shown, text);
  }
});

test('points in time are read as Go reads RFC 3339, and refused in its words', () => {
  type Vector = { readonly text: string; readonly shown?: string; readonly error?: string };
  for (const { text, shown, error } of vectors<Vector>('go-times.vectors')) {
    const time = parseTime(text);
    const read = time && new Date(time.seconds * 1000).toISOString().slice(0, 19);
    assert.equal(read, shown?.slice(0, 19), text);
    if (error !== undefined) assert.equal(timeFailure(text, false), error);
  }
});
