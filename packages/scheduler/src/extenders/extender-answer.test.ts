// What kube-scheduler v1.36.1 said of each, recorded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAnswer, type ResultName } from './extender-answer.ts';

function read(text: string, result: ResultName): string {
  const answer = readAnswer(Buffer.from(text, 'latin1'), result);
  return answer.ok ? JSON.stringify(answer.value) : answer.text;
}

const SCORE = 'struct field HostPriority.Score of type int64';
const VIOLATIONS = 'struct field MetaVictims.NodeNameToMetaVictims.NumPDBViolations of type int64';

const field = (name: string, type: string): string =>
  `struct field ExtenderFilterResult.${name} of type ${type}`;
const victimsField = (type: string): string =>
  `struct field ExtenderPreemptionResult.NodeNameToMetaVictims of type ${type}`;
const filter = (text: string) => ['ExtenderFilterResult', text] as const;
const victims = (text: string) =>
  ['ExtenderPreemptionResult', `{"NodeNameToMetaVictims":${text}}`] as const;
const score = (text: string) => ['HostPriorityList', `[{"Host":"n","Score":${text}}]`] as const;

test('an answer that is no JSON is told of as Go tells of it', () => {
  const start = 'looking for beginning of value';
  const lines = [
    ['\0\u00ff<html>', `invalid character '\\x00' ${start}`],
    ['\u00ef\u00bb\u00bf{}', `invalid character 'ï' ${start}`],
    ['', 'EOF'],
    [' \n', 'EOF'],
    ['{"NodeNames":["n1"', 'unexpected EOF'],
    ['{} and more', '{}'],
    ['null', 'null'],
  ] as const;
  for (const [text, said] of lines) assert.equal(read(text, 'ExtenderFilterResult'), said);
  assert.equal(read('[]x', 'HostPriorityList'), '[]');
});

test('an answer of another shape says nothing, and is an error', () => {
  const lines: readonly (readonly [ResultName, text: string, found: string, place: string])[] = [
    ['ExtenderFilterResult', '[1]', 'array', 'value of type v1.ExtenderFilterResult'],
    ['ExtenderFilterResult', '5', 'number', 'value of type v1.ExtenderFilterResult'],
    ['ExtenderBindingResult', '"n"', 'string', 'value of type v1.ExtenderBindingResult'],
    ['HostPriorityList', '{}', 'object', 'value of type v1.HostPriorityList'],
    [...filter('{"nodenames":"n"}'), 'string', field('NodeNames', '[]string')],
    [...filter('{"NodeNames":[1]}'), 'number', field('NodeNames', 'string')],
    [...filter('{"FailedNodes":{"n":5}}'), 'number', field('FailedNodes', 'string')],
    [...victims('[]'), 'array', victimsField('map[string]*v1.MetaVictims')],
    [...victims('{"n":{"NumPDBViolations":"x"}}'), 'string', VIOLATIONS],
    [...score('1.5'), 'number 1.5', SCORE],
    [...score('1e2'), 'number 1e2', SCORE],
    [...score('92233720368547758070'), 'number 92233720368547758070', SCORE],
  ];
  for (const [result, text, found, place] of lines) {
    assert.equal(read(text, result), `json: cannot unmarshal ${found} into Go ${place}`);
  }
  const fine = '{"NodeNames":null,"FailedNodes":{"n":"why"},"more":[5],"Error":""}';
  assert.equal(read(fine, 'ExtenderFilterResult'), fine);
});

test('what was cut off is told of as the connection tells, unless it was whole already', () => {
  const cut = 'it took too long';
  const half = readAnswer(Buffer.from('{"Error"'), 'ExtenderBindingResult', cut);
  assert.deepEqual(half, { ok: false, text: cut });
  const whole = readAnswer(Buffer.from('{"Error":""}'), 'ExtenderBindingResult', cut);
  assert.deepEqual(whole, { ok: true, value: { Error: '' } });
});
