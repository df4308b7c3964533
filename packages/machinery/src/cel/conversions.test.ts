import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { STANDARD_LIBRARY } from './library/standard-library.ts';
import { CelError, Uint, type CelValue } from './values/values.ts';

/** What Go's `strconv` made of a text; a member is absent where it refused. */
interface Vector {
  readonly text: string;
  readonly int?: string;
  readonly uint?: string;
  readonly double?: string;
  readonly bool?: boolean;
}

const VECTORS = JSON.parse(
  readFileSync(join(import.meta.dirname, 'go-conversions.vectors'), 'utf8'),
) as readonly Vector[];

function convert(name: string, text: string): CelValue {
  const [, implementation] =
    STANDARD_LIBRARY.flatMap((library) => Object.entries(library)).find(([key]) =>
      key.startsWith(`${name}:`),
    ) ?? [];
  assert.ok(typeof implementation === 'function', name);
  return (implementation as (text: string) => CelValue)(text);
}

function shown(value: CelValue): string | undefined {
  if (value instanceof CelError) return undefined;
  return `${(value instanceof Uint ? value.value : value) as bigint | number}`;
}

test('texts become numbers as Go’s strconv reads them', () => {
  for (const { text, int, uint, double, bool } of VECTORS) {
    assert.equal(shown(convert('string_to_int64', text)), int, text);
    assert.equal(shown(convert('string_to_uint64', text)), uint, text);
    const value = convert('string_to_double', text);
    if (double === undefined) assert.ok(value instanceof CelError, text);
    else assert.ok(Object.is(value, Number(double.replace('Inf', 'Infinity'))), text);
    assert.equal(shown(convert('string_to_bool', text)), bool === undefined ? bool : `${bool}`);
  }
});

test('a text of a million digits is no number, and takes no time to be none', () => {
  const digits = '9'.repeat(1_000_000);
  for (const name of ['string_to_int64', 'string_to_uint64', 'string_to_double']) {
    assert.ok(convert(name, digits) instanceof CelError, name);
  }
  assert.equal(convert('string_to_int64', `${'0'.repeat(1_000_000)}7`), 7n);
});
