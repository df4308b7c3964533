import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { JsonValue } from '@megaplane/machinery/json-value';
import fc from 'fast-check';
import { JqError } from './jq-lexer.ts';
import { JqQuery } from './jq.ts';

/** Recorded from gojq 0.12.17: all values, null after an error, or `refused` when compiled. */
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
    if (values === 'refused') assert.throws(() => new JqQuery(query), JqError, query);
    else assert.deepEqual(new JqQuery(query).run(data), values, query);
  }
});

test('what is not supported is refused by its name', () => {
  assert.throws(() => new JqQuery('.a | ascii'), /function not defined: ascii\/0/);
  assert.throws(() => new JqQuery('def f: 1; f'), JqError);
  assert.throws(() => new JqQuery('.a |= 1'), /unexpected token "="/);
  assert.throws(() => new JqQuery('.a.[] | select('), /unexpected EOF/);
});

test('no text makes a query do anything but answer or be refused', () => {
  const piece = fc.constantFrom(
    ...['.', '.a', '[', ']', '|', '(', ')', '//', '"s"', '"\\(1)"', 'if', 'then', 'else', 'end'],
    ...['select', 'map', '$x', 'as', '{', '}', ':', ',', '1', '-', '?', 'reduce', 'try', '..'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      try {
        new JqQuery(pieces.join(' ')).run({ a: [1, { b: null }] });
      } catch (error) {
        assert(error instanceof JqError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});
