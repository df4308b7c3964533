import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPatch, parsePatch, patchedNumbers, type PatchKind } from '../patch/patch.ts';
import { decodeJsonBody, refit } from '../codec/request-body.ts';
import { findType } from '../scheme/schema.ts';
import { parseWithLiterals } from './number-literals.ts';

const EVENT = { apiVersion: 'v1', kind: 'Event' };

/** What is said of an Event with such a count, and of what a number in a list is written like. */
function refusal(count: string): string {
  const bytes = Buffer.from(`{"metadata":{"name":"nginx:1.25,"},"count": ${count} }`);
  const body = decodeJsonBody(bytes, 0, bytes.length, EVENT, true);
  return body.ok ? '' : body.message.replace(/.*json: /, '');
}

test('an integer field takes digits only, and what fits into it', () => {
  for (const count of ['1', '-0', '2147483647', '-2147483648']) assert.equal(refusal(count), '');
  for (const count of ['1.0', '1e3', '1E2', '1.50', '2147483648', '99999999999999999999']) {
    const where = 'Go struct field Event.count of type int32';
    assert.equal(refusal(count), `cannot unmarshal number ${count} into ${where}`);
  }
});

test('numbers within strings are no numbers, and those in lists are found by their place', () => {
  assert.equal(parseWithLiterals('{"a":"b:1.25,","c":[1,200]}').numbers.size, 0);
  const { value, numbers } = parseWithLiterals('{"a":[1,2.0]}');
  const { a } = value as { a: object };
  assert.deepEqual([...(numbers.get(a) ?? [])], [['1', '2.0']]);
});

/** What is said of a Pod without a grace period that such a patch gives one, and tolerations. */
function patchRefusal(kind: PatchKind, text: string): string {
  const patch = parsePatch(kind, text);
  const type = findType('core.v1.Pod');
  assert.ok(patch.ok && type !== undefined);
  const pod = { metadata: { name: 'p' }, spec: { tolerations: [{ key: 'a' }], priority: 1 } };
  const patched = applyPatch(patch.value, pod, type);
  assert.ok(patched.ok);
  const form = refit(type, patched.value, false, patchedNumbers(patch.value, patched.value));
  return form.ok ? '' : (/number (\S+) into/.exec(form.message)?.[1] ?? form.message);
}

test('merge and JSON patches are decoded as they are written, strategic ones as doubles', () => {
  const whole = '{"spec":{"terminationGracePeriodSeconds":3e1}}';
  assert.equal(patchRefusal('merge', whole), '3e1');
  assert.equal(patchRefusal('strategic', whole), '');
  const list = '{"spec":{"tolerations":[{"tolerationSeconds":1},{"tolerationSeconds":2.0}]}}';
  assert.equal(patchRefusal('merge', list), '2.0');
  const placed = '[{"op":"replace","path":"/spec/priority","value":5.0}]';
  assert.equal(patchRefusal('json', placed), '5.0');
  const added =
    '[{"op":"add","path":"/spec/tolerations/-","value":{"tolerationSeconds":1.0}},' +
    '{"op":"add","path":"/spec/note","value":1.0}]';
  assert.equal(patchRefusal('json', added), '1.0');
  assert.equal(patchRefusal('json', placed.replace('5.0', '5')), '');
});
