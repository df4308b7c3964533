import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { RE2JS } from 're2js';
import { plainPattern } from './plain-pattern.ts';

test('patterns of real schemas are plain, others stay with RE2', () => {
  const plain = [
    '^[a-z0-9-]+$',
    '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
    '^v[0-9]+([a-z][0-9]*)?$',
    '^(?:https://)?example\\.com/[A-Za-z0-9_.]{1,63}$',
    '^[0-9]+$',
  ];
  for (const pattern of plain) assert.notEqual(plainPattern(pattern), null, pattern);
  const others = [
    'abc',
    '^abc',
    '^a|b$',
    '^.*$',
    '^[^a]$',
    '^\\d+$',
    '^(a+)+$',
    '^(a*)*$',
    '^a+?$',
    '^a*a*a*$',
    '^a?a?a?a?aaaa$',
    '^[[:alpha:]]$',
    '^é$',
    '^[a-é]$',
    '^a$b$',
    '^(?i)a$',
    '^[+-.]$',
    '^((a))$',
  ];
  for (const pattern of others) assert.equal(plainPattern(pattern), null, pattern);
});

/** A pattern of the parts that plain ones are made of, and some that they are not. */
function patternOf(random: Random): string {
  const units = [
    'a',
    'b',
    '-',
    '\\.',
    '[ab]',
    '[a-c]',
    '[-a]',
    '[a-]',
    '[0-9.]',
    '\\*',
    '[*+]',
    '"',
  ];
  const signs = ['', '', '', '*', '+', '?', '{2}', '{1,2}', '{0,}'];
  const pick = (from: readonly string[]): string => from[random.below(from.length)] ?? '';
  const run = (count: number): string =>
    Array.from({ length: count }, () => pick(units) + pick(signs)).join('');
  const group = random.below(2) === 0 ? '' : `(${run(1 + random.below(2))})${pick(['', '?'])}`;
  return `^${run(random.below(3))}${group}${run(random.below(2))}$`;
}

test('both engines agree on what a plain pattern matches', () => {
  const random = new Random(7);
  const letters = ['a', 'b', 'c', '-', '.', '*', '+', '0', '9', '"', '\n', 'é', '😀'];
  let count = 0;
  let hits = 0;
  while (count < 3000) {
    const pattern = patternOf(random);
    const plain = plainPattern(pattern);
    if (plain === null) continue;
    count++;
    const re2 = RE2JS.compile(pattern);
    for (let run = 0; run < 8; run++) {
      const length = random.below(6);
      const text = Array.from({ length }, () => letters[random.below(letters.length)]).join('');
      const isMatch = re2.test(text);
      if (isMatch) hits++;
      assert.equal(plain.test(text), isMatch, `${pattern} on ${JSON.stringify(text)}`);
    }
  }
  assert.ok(hits > 500, `${hits} matches`);
});

test('the slowest of them are quick', () => {
  for (const pattern of ['^a*a*b$', '^[ab]*(a?[ab]*)?a?c$', '^(a*a{0,})?(b)?(c)?d$']) {
    const plain = plainPattern(pattern);
    assert.ok(plain, pattern);
    const start = process.cpuUsage();
    for (let run = 0; run < 20; run++) plain.test('a'.repeat(128));
    const { user } = process.cpuUsage(start);
    assert.ok(user / 20 < 3000, `${pattern}: ${user / 20} us`);
  }
});
