import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSchema } from './compiled-schema.ts';
import { ALTERNATIVES_MAX } from './openapi-faults.ts';

const ALTERNATIVES = 1000;
const ITEMS: number = (2 * ALTERNATIVES_MAX) / ALTERNATIVES;

function faultsOf(junctor: 'anyOf' | 'oneOf' | 'allOf', good: number): string[] {
  const each = Array.from({ length: ALTERNATIVES }, (_, at) => ({ required: [`k${at}`] }));
  const item = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, [junctor]: each };
  const schema = { type: 'object', properties: { list: { type: 'array', items: item } } };
  const whole = Object.fromEntries(each.map((_, at) => [`k${at}`, 1]));
  const isGood = junctor === 'allOf' ? whole : { [`k${ALTERNATIVES - 1}`]: 1 };
  const list = Array.from({ length: ITEMS }, (_, at) => (at === good ? isGood : { z: 1 }));
  const scope = { part: 'object', scale: null, found: [] } as const;
  const found = compileSchema(schema).validate({ list }, null, scope);
  return found.map((error) => JSON.stringify(error));
}

for (const junctor of ['anyOf', 'oneOf', 'allOf'] as const) {
  test(`of very many alternatives it is told that they fail, not how: ${junctor}`, () => {
    const last = ITEMS - 1;
    const faults = faultsOf(junctor, last);
    const of = (at: number): string[] => faults.filter((one) => one.includes(`list[${at}]`));
    assert(of(0).length >= 2, 'the first item has its best alternative told');
    assert.deepEqual(of(last), [], 'what holds is held to hold behind the bound, too');
    if (junctor === 'allOf') return;
    // room for texts is left
    assert.equal(of(last - 1).length, 1);
    assert.match(of(last - 1)[0] ?? '', new RegExp(junctor));
  });
}
