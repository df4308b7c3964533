import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compilePattern, matchesRe2 } from './regex-library.ts';

/** What Go 1.26's regexp says of each; '' where it compiles. */
const SAID: readonly (readonly [pattern: string, error: string])[] = [
  ['a\\', 'trailing backslash at end of expression: ``'],
  ['(?P<n>a)(?P<n>b)', ''],
  ['(?<n>a)|\\((?P<n>b)', ''],
  ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
  ['a{1001}', 'invalid repeat count: `{1001}`'],
];

test('patterns compile, or are refused, as with Go', () => {
  for (const [pattern, error] of SAID) {
    const compiled = compilePattern(pattern);
    const text = compiled.ok ? '' : compiled.message.replace('error parsing regexp: ', '');
    assert.equal(text, error, pattern);
  }
  assert.equal(compilePattern('(?P<n>a)(?P<n>').ok, false);
  assert.equal(matchesRe2('(b', '(?<n>a)|\\((?P<n>b)'), true);
  assert.equal(matchesRe2('x', '(?<n>a)|\\((?P<n>b)'), false);
});
