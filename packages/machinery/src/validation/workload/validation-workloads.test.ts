import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectorMatches } from './validation-workloads.ts';

test('labels have the keys that were written, not those of every object of the language', () => {
  for (const key of ['constructor', 'toString', 'valueOf']) {
    const wants = (operator: string): boolean =>
      selectorMatches({ matchExpressions: [{ key, operator, values: ['b'] }] }, { a: 'b' });
    assert.deepEqual(['Exists', 'DoesNotExist', 'In', 'NotIn'].map(wants), [
      false,
      true,
      false,
      true,
    ]);
    assert.equal(selectorMatches({ matchLabels: { [key]: 'b' } }, { [key]: 'b' }), true);
  }
});
