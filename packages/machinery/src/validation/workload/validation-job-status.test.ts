import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { validateUpdate } from '../validation.ts';

const TIME = '2024-01-01T00:00:00Z';

function textsOf(status: JsonObject, before: JsonObject = {}, spec: JsonObject = {}): string[] {
  const resource = findResource('batch', 'v1', 'jobs');
  assert.ok(resource !== undefined);
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' };
  const previous = { metadata, spec, status: before };
  return validateUpdate(resource, { ...previous, status }, previous, 'status').map(fieldErrorText);
}

function are(...types: string[]): JsonObject[] {
  return types.map((type) => ({ type, status: 'True' }));
}

test('a Job ends in one way, after it has said why, and with nothing running', () => {
  const good = { conditions: are('SuccessCriteriaMet', 'Complete'), startTime: TIME };
  assert.deepEqual(textsOf({ ...good, completionTime: TIME }), []);
  const bad = { conditions: are('Failed', 'Complete'), active: 1, terminating: 1 };
  const set = 'status.conditions: Invalid value: cannot set';
  assert.deepEqual(textsOf(bad, {}, { successPolicy: {} }), [
    `${set} Complete=True and Failed=true conditions`,
    'status.completionTime: Required value: completionTime is required for Complete jobs',
    `${set} Failed=True condition without the FailureTarget=true condition`,
    `${set} Complete=True condition without the SuccessCriteriaMet=true condition`,
    'status.active: Invalid value: 1: active>0 is invalid for finished job',
    'status.startTime: Required value: startTime is required for finished job',
    'status.terminating: Invalid value: 1: terminating>0 is invalid for finished job',
    `${set} Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True`,
  ]);
});

test('indexes of a Job are below its completions, and have either failed or completed', () => {
  const spec = { completionMode: 'Indexed', completions: 5, backoffLimitPerIndex: 1 };
  assert.deepEqual(textsOf({ completedIndexes: '0-2', failedIndexes: '4' }, {}, spec), []);
  assert.deepEqual(textsOf({ completedIndexes: '0,2-3', failedIndexes: '3' }, {}, spec), [
    'status.failedIndexes: Invalid value: "3": ' +
      'failedIndexes and completedIndexes overlap at index: 3',
  ]);
  assert.deepEqual(textsOf({ completedIndexes: '2,1', failedIndexes: 'x' }, {}, spec), [
    'status.completedIndexes: Invalid value: "2,1": ' +
      'error parsing completedIndexes: non-increasing order, previous: 2, current: 1',
    'status.failedIndexes: Invalid value: "x": ' +
      'error parsing failedIndexes: cannot convert string to integer for index: "x"',
  ]);
  assert.deepEqual(textsOf({ completedIndexes: '2', failedIndexes: '' }), [
    'status.completedIndexes: Invalid value: "2": ' +
      'cannot set non-empty completedIndexes when non-indexed completion mode',
    'status.failedIndexes: Invalid value: "": ' +
      'cannot set non-null failedIndexes when backoffLimitPerIndex is null',
  ]);
});

test('what a Job has said it stays with', () => {
  const before = { conditions: are('SuccessCriteriaMet'), failed: 2, startTime: TIME };
  assert.deepEqual(textsOf({ failed: 1, ready: 1 }, before), [
    'status.ready: Invalid value: 1: cannot set more ready pods than active',
    'status.failed: Invalid value: 1: cannot decrease the failed counter',
    'status.startTime: Invalid value: null: field is immutable for unsuspended job once set',
    'status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition',
  ]);
  const paused = { ...before, conditions: are('SuccessCriteriaMet', 'Suspended') };
  const resumed = [...are('SuccessCriteriaMet'), { type: 'Suspended', status: 'False' }];
  assert.deepEqual(textsOf({ failed: 2, conditions: resumed }, paused), []);
});
