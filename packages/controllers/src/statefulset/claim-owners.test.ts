import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { judgeClaim } from './claim-owners.ts';

const OWNER = { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace: 'd', name: 'web', uid: 'u' };
const POD = { apiVersion: 'v1', kind: 'Pod', name: 'web-1', uid: 'p', controller: true };
const SET = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u', controller: true };
const OTHER = { apiVersion: 'x/v1', kind: 'Other', name: 'o', uid: 'o' };

/** Kinds that own the claim afterwards, or that nothing is written; `!` where somebody disturbs. */
function judge(policy: string, isScaledAway: boolean, references: JsonObject[]): string {
  const [whenDeleted = '', whenScaled = ''] = policy.split(' ');
  const set = { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled } } };
  const pod = { name: 'web-1', uid: 'p', isScaledAway };
  const { owners, hasConflict } = judgeClaim(references, set, OWNER, pod);
  const kinds = owners?.map((one) => stringAt(one, 'kind')).join(' ') ?? 'as it is';
  return hasConflict ? `${kinds}!` : kinds;
}

test('claims belong to whom they go with', () => {
  assert.equal(judge('Retain Retain', true, [OTHER]), 'as it is');
  assert.equal(judge('Delete Retain', true, [OTHER]), 'Other StatefulSet');
  assert.equal(judge('Delete Retain', false, [SET, OTHER]), 'as it is');
  assert.equal(judge('Delete Delete', true, [OTHER]), 'Other Pod');
  assert.equal(judge('Delete Delete', true, [SET]), 'Pod');
  assert.equal(judge('Retain Delete', false, []), 'as it is');
  assert.equal(judge('Retain Retain', false, [SET]), '');
});

test('a claim whose pod is wanted again goes with that pod no more', () => {
  assert.equal(judge('Delete Delete', false, [POD]), 'StatefulSet');
  assert.equal(judge('Retain Delete', false, [POD, OTHER]), 'Other');
});

test('an owner that does not control is made to', () => {
  assert.equal(judge('Delete Retain', false, [{ ...SET, controller: false }]), 'StatefulSet');
});

test('claims of an earlier set or pod, or of another controller, are left alone', () => {
  assert.equal(judge('Delete Retain', false, [{ ...SET, uid: 'earlier' }]), 'as it is!');
  assert.equal(judge('Delete Delete', true, [{ ...POD, uid: 'earlier' }]), 'as it is!');
  assert.equal(judge('Delete Retain', false, [{ ...OTHER, controller: true }]), 'as it is!');
  assert.equal(judge('Delete Retain', false, [{ ...OTHER, controller: true }, SET]), 'Other!');
  assert.equal(judge('Retain Retain', false, [{ ...OTHER, controller: true }]), 'as it is');
});
