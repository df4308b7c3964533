import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isTimeZone, parseSchedule, type Schedule } from './schedule.ts';

function schedule(text: string, zone = ''): Schedule {
  const parsed = parseSchedule(text, zone);
  assert(parsed.ok, parsed.ok ? '' : parsed.message);
  return parsed.schedule;
}

function next(text: string, after: string, zone = ''): string {
  return new Date(schedule(text, zone).next(Date.parse(after))).toISOString().slice(0, 16);
}

test('the next time of a schedule is found', () => {
  const cases: readonly (readonly [text: string, after: string, next: string])[] = [
    ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:01'],
    ['*/15 * * * *', '2026-01-01T00:16:10Z', '2026-01-01T00:30'],
    ['0 0 1 1 *', '2025-06-01T00:00:00Z', '2026-01-01T00:00'],
    ['30 6-16/4 * * 1-5', '2026-11-20T15:00:00Z', '2026-11-23T06:30'],
    ['0 0 13 * 5', '2026-02-01T00:00:00Z', '2026-02-06T00:00'],
    ['0 0 * * SUN', '2026-11-21T00:00:00Z', '2026-11-22T00:00'],
    ['5,35 12 * feb *', '2026-11-21T00:00:00Z', '2027-02-01T12:05'],
    ['0 0 29 2 *', '2026-11-21T00:00:00Z', '2028-02-29T00:00'],
    ['@hourly', '2026-11-21T10:59:59Z', '2026-11-21T11:00'],
    ['@weekly', '2026-11-21T10:00:00Z', '2026-11-22T00:00'],
    ['20/15 * * * *', '2026-11-21T10:00:00Z', '2026-11-21T10:20'],
    ['0 0 ? * *', '2026-11-21T10:00:00Z', '2026-11-22T00:00'],
  ];
  for (const [text, after, expected] of cases) assert.equal(next(text, after), expected, text);
  assert.equal(schedule('0 0 31 2 *').next(Date.parse('2026-01-01T00:00:00Z')), Infinity);
  const every = schedule('@every 1h30m').next(Date.parse('2026-01-01T00:00:00.400Z'));
  assert.equal(every, Date.parse('2026-01-01T01:30:00Z'));
  // All that the API server takes for a duration, with the same result as upstream's parser.
  const durations: readonly (readonly [string, number])[] = [
    ...([
      ['+5m', 300],
      ['.5h', 1800],
      ['1.5s', 1],
      ['5us', 1],
      ['-5m', 1],
      ['0', 1],
    ] as const),
    ...([
      ['2h0.5m', 7230],
      ['3000ms', 3],
      ['9µs', 1],
    ] as const),
  ];
  for (const [text, seconds] of durations) {
    assert.equal(schedule(`@every ${text}`).next(0), seconds * 1000, text);
  }
});

test('a schedule follows the clock of its time zone', () => {
  assert.equal(next('0 9 * * *', '2026-07-01T00:00:00Z', 'America/New_York'), '2026-07-01T13:00');
  assert.equal(next('0 9 * * *', '2026-12-01T00:00:00Z', 'America/New_York'), '2026-12-01T14:00');
  // 02:30 does not exist on this day in Berlin.
  assert.equal(next('30 2 * * *', '2026-03-28T12:00:00Z', 'Europe/Berlin'), '2026-03-30T00:30');
  assert.equal(isTimeZone('Europe/Berlin'), true);
  assert.equal(isTimeZone('Mars/Olympus'), false);
});

test('where clocks change, runs are those of the library that upstream uses', () => {
  // What github.com/robfig/cron/v3 3.0.1 says.
  const cases: readonly (readonly [string, zone: string, after: string, ...next: string[]])[] = [
    [
      '15,59 2 * * 6,2',
      'Atlantic/Azores',
      '2026-03-28T03:59:00Z',
      '2026-03-29T02:15',
      '2026-03-31T02:15',
    ],
    [
      '44 */14 * * 6',
      'America/Asuncion',
      '2024-10-05T18:44:00Z',
      '2024-10-06T17:44',
      '2024-10-12T03:44',
    ],
    [
      '28 20,19 * * 2-6',
      'America/Havana',
      '2024-03-10T01:28:00Z',
      '2024-03-10T23:28',
      '2024-03-12T23:28',
    ],
    ['30 * * */7 *', 'America/Asuncion', '2023-09-29T15:20:58Z', '2024-01-31T02:30'],
    ['*/45 2 * * */4', 'Asia/Beirut', '2025-03-28T14:29:02Z', '2025-04-02T23:00'],
    [
      '56 1 * * *',
      'Australia/Lord_Howe',
      '2024-10-04T15:26:00Z',
      '2024-10-05T15:26',
      '2024-10-05T15:56',
      '2024-10-06T14:56',
    ],
  ];
  for (const [text, zone, after, ...expected] of cases) {
    let from = after;
    for (const one of expected) {
      const found = next(text, from, zone);
      assert.equal(found, one, `${text} in ${zone} after ${from}`);
      from = `${found}:00Z`;
    }
  }
});

test('what is no schedule is refused', () => {
  for (const text of ['', '* * * *', '* * * * * *', '60 * * * *', '* 24 * * *', '* * 0 * *']) {
    assert.equal(parseSchedule(text, '').ok, false, text);
  }
  for (const text of [
    '5-1 * * * *',
    '*/0 * * * *',
    'x * * * *',
    '@never',
    '@every soon',
    '1--2 * * * *',
  ]) {
    assert.equal(parseSchedule(text, '').ok, false, text);
  }
});

test('no time between two results matches', () => {
  const part = (most: number): fc.Arbitrary<string> =>
    fc.oneof(fc.constant('*'), fc.nat({ max: most }).map(String), fc.constant('*/7'));
  const text = fc.tuple(part(59), part(23), fc.constant('*'), fc.constant('*'), part(6));
  fc.assert(
    fc.property(text, fc.nat({ max: 2 ** 31 }), (fields, seconds) => {
      const one = schedule(fields.join(' '));
      const first = one.next(seconds * 1000);
      assert(first > seconds * 1000 && first % 60_000 === 0);
      const between = seconds * 1000 + Math.floor((first - seconds * 1000) / 2);
      assert.equal(one.next(between), first, 'it is found from everywhere before it');
      assert.equal(one.next(first - 1), first);
    }),
  );
});
