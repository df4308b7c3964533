import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainLine } from './explain.ts';

function refusal(question: object): string {
  const { error } = JSON.parse(explainLine(JSON.stringify(question))) as { error?: string };
  return error ?? '';
}

function decide(fields: object): string {
  return refusal({ kind: 'decide', profiles: {}, cycles: [], ...fields });
}

test('a question that is wrong somewhere is told where', () => {
  assert.equal(decide({}), '');
  assert.equal(decide({ cycles: {} }), 'question: cycles: a list is needed');
  assert.equal(decide({ cycles: [1] }), 'cycle: an object is needed');
  assert.equal(
    decide({ config: { paused: 1 } }),
    'question: config: paused: true or false is needed',
  );
  const profiles = { p: { requirements: [{ key: 'a', operator: 'Gt' }] } };
  assert.match(decide({ profiles }), /^requirement: operator: one of .*Same is needed$/);
  const machines = [{ id: 'a', state: 'Gone' }];
  assert.equal(decide({ cycles: [{ machines }] }), 'machine a: no state Gone');
  const needs = [{ profile: '__proto__', aggregate: { cpu: '1' } }];
  const rollups = [{ cluster: 'c', needs }];
  assert.equal(decide({ cycles: [{ rollups }] }), 'there is no profile "__proto__"');
});

test('words of a question that are names of every object are names only', () => {
  const labels = '{"__proto__":"x","constructor":"y"}';
  const profile = '{"requirements":[{"key":"__proto__","operator":"In","values":["x"]}]}';
  const line = `{"kind":"decide","profiles":{"p":${profile}},"cycles":[{"at":1,
    "machines":[{"id":"a","state":"Idle","labels":${labels},"allocatable":{"cpu":"1"}}],
    "rollups":[{"cluster":"__proto__","needs":[{"profile":"p","aggregate":{"cpu":"1"}}]}]}]}`;
  const answer = explainLine(line.replaceAll('\n', ' '));
  assert.match(answer, /"kind":"Bootstrap","cluster":"__proto__"/);
});
