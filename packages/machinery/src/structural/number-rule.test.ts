import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isNumber } from '../json/json-value.ts';
import { parseJson } from '../json/json-text.ts';
import { numberFaults } from './number-rule.ts';

interface Vector {
  /** JSON, as is `value`. */
  readonly schema: string;
  readonly value: string;
  readonly errors: readonly string[];
}

interface Schema {
  readonly type: 'integer' | 'number';
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
}

/*
 * Made by k8s.io/kube-openapi v0.0.0-20260317180543-43fb72c5454a with Go 1.26: `schema` is read as
 * spec.Schema, `value` by k8s.io/apimachinery/pkg/util/json, and NewSchemaValidator's errors for
 * the path `a` are kept but those about the type alone. A fraction that a double of such a size
 * loses is left out: Go tells it from an integer in one message.
 */
const VECTORS = JSON.parse(
  readFileSync(join(import.meta.dirname, 'number-facets.vectors'), 'utf8'),
) as readonly Vector[];

test('bounds and multiples beyond 2^53 are judged and told as by kube-openapi', () => {
  assert(VECTORS.length > 300);
  const wrong: string[] = [];
  for (const { schema, value: text, errors } of VECTORS) {
    const {
      type,
      format = '',
      minimum,
      maximum,
      exclusiveMaximum,
      multipleOf,
    } = JSON.parse(schema) as Schema;
    const value = parseJson(text);
    assert(isNumber(value));
    const isMaximumExclusive = exclusiveMaximum === true;
    const rule = { type, format, minimum, maximum, multipleOf, isMaximumExclusive };
    const found = numberFaults({ ...rule, isMinimumExclusive: false }, value, 'a');
    const told = found.map((fault) => fault.text).join();
    const wanted = errors.join();
    if (told !== wanted) wrong.push(`${schema} ${text}: ${told} | ${wanted}`);
  }
  assert.deepEqual(wrong, []);
});
