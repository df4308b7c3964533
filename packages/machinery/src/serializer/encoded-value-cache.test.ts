import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EncodedValueCache } from './encoded-value-cache.ts';

const REST_VALUES = 500;

function valueOf(text: string): Buffer {
  return Buffer.from(JSON.stringify([text.padEnd(80, '.')]));
}

test('what came last is found where it comes again, whole and within its bounds', () => {
  const known = new EncodedValueCache();
  const [one, other] = [valueOf('one'), valueOf('other')];
  assert.equal(known.find(one, 0, one.length), null);
  assert.ok(known.wants(one.length));
  known.keep(one, Buffer.from('message'));
  const within = Buffer.concat([Buffer.from('{"k":'), one, Buffer.from('}')]);
  assert.equal(known.find(within, 5, within.length)?.message.toString(), 'message');
  assert.equal(known.find(within, 5, 5 + one.length - 1), null);
  assert.equal(known.find(other, 0, other.length), null);
  assert.equal(known.wants(10), false);
  assert.equal(known.wants(1 << 20), false);
});

test('a field that differs each time is let alone, and looked at again later', () => {
  const known = new EncodedValueCache();
  let kept = 0;
  const pass = (text: string): boolean => {
    const value = valueOf(text);
    if (known.find(value, 0, value.length) !== null) return true;
    if (!known.wants(value.length)) return false;
    known.keep(value, value);
    kept++;
    return false;
  };
  for (let index = 0; index < REST_VALUES; index++) pass(String(index));
  assert.ok(kept < 5, `${kept} kept`);
  let found = 0;
  for (let index = 0; index < REST_VALUES; index++) if (pass('same')) found++;
  assert.ok(found > REST_VALUES / 2, `${found} found`);
});
