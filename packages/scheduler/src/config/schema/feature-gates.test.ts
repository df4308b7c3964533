import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedGates, DEFAULT_GATES, parseFeatureGates } from './feature-gates.ts';

const errorOf = (text: string): string => {
  const parsed = parseFeatureGates(text);
  return 'error' in parsed ? parsed.error : '';
};
const changedBy = (text: string): string[] => {
  const parsed = parseFeatureGates(text);
  assert('value' in parsed);
  return changedGates(parsed.value);
};

test('gates that are not known, or locked, are refused as kube-scheduler refuses them', () => {
  const answers = {
    'Foo=true': 'unrecognized feature gate: Foo',
    'AllAlpha=true,Foo=false': 'unrecognized feature gate: Foo',
    'kube:Foo=true': 'unrecognized feature gate: Foo',
    'wardle:Foo=true': 'component not registered: wardle',
    GenericWorkload: 'missing bool value for GenericWorkload',
    'GenericWorkload=maybe':
      'invalid value of GenericWorkload=maybe, err: ' +
      'strconv.ParseBool: parsing "maybe": invalid syntax',
    'GenericWorkload=true=1':
      'invalid value of GenericWorkload=true=1, err: ' +
      'strconv.ParseBool: parsing "true=1": invalid syntax',
    'DynamicResourceAllocation=false':
      'cannot set feature gate DynamicResourceAllocation to false, feature is locked to true',
  };
  for (const [text, error] of Object.entries(answers)) assert.equal(errorOf(text), error);
});

test('known gates are taken with or without the component, the last value counts', () => {
  assert.deepEqual(changedBy(''), []);
  assert.deepEqual(changedBy(' kube:GenericWorkload = T , DynamicResourceAllocation=1'), [
    'GenericWorkload=true',
  ]);
  assert.deepEqual(changedBy('GenericWorkload=true,kube:GenericWorkload=false'), []);
});

test('a whole stage is switched but for the gates that are named themselves', () => {
  const changed = changedBy('AllBeta=false,OpportunisticBatching=true');
  const betas = DEFAULT_GATES.filter(({ gate, isOn }) => gate.stage === 'BETA' && isOn);
  assert.equal(changed.length, betas.length - 1);
  assert(!changed.some((text) => text.startsWith('OpportunisticBatching')));
});
