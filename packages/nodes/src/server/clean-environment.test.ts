import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cleanEnvironment } from './clean-environment.ts';

test('commands of rules know the path of programs and what the rule names, nothing else', () => {
  process.env['MEGAPLANE_TEST_SECRET'] = 'secret';
  const made = cleanEnvironment({ A: 'b' });
  delete process.env['MEGAPLANE_TEST_SECRET'];
  assert.deepEqual(made, { PATH: process.env['PATH'], A: 'b' });
});
