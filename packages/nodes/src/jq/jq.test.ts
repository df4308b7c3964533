import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { JsonValue } from '@megaplane/machinery/json-value';
import fc from 'fast-check';
import { JqError } from './jq-lexer.ts';
import { JqQuery } from './jq.ts';

function read(query: string): JqQuery {
  return new JqQuery(query, () => 1_700_000_000_500);
}

/** Recorded from gojq as kwok 0.8 has it: values, null after an error, `refused` if compiled. */
interface Recorded {
  readonly data: JsonValue;
  readonly cases: readonly (readonly [
    query: string,
    values: readonly JsonValue[] | string | null,
  ])[];
}

test('queries give what gojq gives for them', () => {
  const file = new URL('../../test/gojq.json', import.meta.url);
  const { data, cases } = JSON.parse(readFileSync(file, 'utf8')) as Recorded;
  assert(cases.length > 100);
  for (const [query, values] of cases) {
    if (values === 'refused') assert.throws(() => read(query), JqError, query);
    else assert.deepEqual(read(query).run(data), values, query);
  }
});

test('what is not supported is refused by its name', () => {
  assert.throws(() => read('.a | input'), /function not defined: input\/0/);
  assert.throws(() => read('def f: 1; g'), /function not defined: g\/0/);
  assert.throws(() => read('@base7'), /format not defined: @base7/);
  assert.throws(() => read('break $out'), /label not defined: \$out/);
  assert.throws(() => read('.a.[] | select('), /unexpected EOF/);
});

test('nothing runs for ever, and `now` is the time of the program', () => {
  for (const query of [
    'def f: f; f',
    'def f: [f]; f',
    'repeat(1)',
    '[recurse(.)]',
    'until(false; .)',
  ]) {
    assert.equal(read(query).run(null), null, query);
  }
  assert.deepEqual(read('now, (now | todate)').run(null), [
    1_700_000_000.5,
    '2023-11-14T22:13:20Z',
  ]);
});

test('no text makes a query do anything but answer or be refused', () => {
  const piece = fc.constantFrom(
    ...['.', '.a', '[', ']', '|', '(', ')', '//', '"s"', '"\\(1)"', 'if', 'then', 'else', 'end'],
    ...['def', 'f', ';', 'label', 'break', 'foreach', '|=', '?//', '@base64', 'path', '$x'],
    ...['select', 'map', '$x', 'as', '{', '}', ':', ',', '1', '-', '?', 'reduce', 'try', '..'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      try {
        read(pieces.join(' ')).run({ a: [1, { b: null }] });
      } catch (error) {
        assert(error instanceof JqError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

test('integers of 64 bits are reckoned with to the last digit, and compared so', () => {
  const data = { long: 9007199254740993n, next: 9007199254740994n, one: 1 };
  for (const [query, value] of [
    ['.long', 9007199254740993n],
    ['.long + .one', 9007199254740994n],
    ['.next - .long', 1],
    ['.long * 2', 18014398509481986n],
    ['.long % 10', 3],
    ['.long == .next', false],
    ['.long < .next', true],
    ['.long | type', 'number'],
    ['.long | tostring', '9007199254740993'],
    ['"9007199254740993" | tonumber', 9007199254740993n],
    ['.long / 1.5', 6004799503160661],
    ['[.next, .long] | sort | .[0]', 9007199254740993n],
    ['-.long', -9007199254740993n],
    ['.long | length', 9007199254740993n],
    ['.long | floor', 9007199254740992],
  ] as const) {
    assert.deepEqual(read(query).run(data), [value], query);
  }
});
