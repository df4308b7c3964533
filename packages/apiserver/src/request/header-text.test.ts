import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fieldLines } from '@megaplane/wire/http1-output';
import { fieldValue, headerText, plainTarget, unsendableField } from './header-text.ts';

test('a text is the same after it went over the wire as a field', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const value = fieldValue(text);
      assert.equal(headerText(value), text);
      if (unsendableField(['x-remote-user', value]) !== undefined) return;
      const lines = fieldLines(['x-remote-user', value, 'x-remote-group', 'dev']);
      const bytes = Buffer.from(lines, 'latin1').toString();
      assert.equal(bytes, `x-remote-user: ${text}\r\nx-remote-group: dev\r\n`);
    }),
    { seed: 10, numRuns: 500 },
  );
});

test('characters whose low bytes end lines end none, and what is no field value is told', () => {
  const user = 'x\u010d\u010aX-Remote-Group: system:masters';
  const lines = Buffer.from(fieldLines(['x-remote-user', fieldValue(user)]), 'latin1');
  assert.deepEqual(lines.toString().split('\r\n'), [`x-remote-user: ${user}`, '']);
  // whoever forgets to encode it sends no line end either
  assert.doesNotMatch(fieldLines(['x-remote-user', user]), /[\r\n]X-Remote/);
  for (const value of ['a\r\nb: c', 'a\nb', 'a\0', 'a\x7f', 'a\x01']) {
    assert.equal(unsendableField(['a', 'b', 'x-remote-user', fieldValue(value)]), 'x-remote-user');
  }
  assert.equal(unsendableField(['a b', 'c']), 'a b');
  assert.equal(unsendableField(['a', '\tb \xff']), undefined);
});

test('what stands beyond ASCII in a target is escaped where it is written down', () => {
  assert.equal(plainTarget('/api/v1/nodes/\xc5\xae?x=%41'), '/api/v1/nodes/%C5%AE?x=%41');
});
