import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { applyRuntimeConfig } from './runtime-config.ts';
import { findServed } from '../storage/served.ts';
import { bootstrapPolicy } from '../controlplane/bootstrap-policy.ts';

/** Rules that kube-scheduler has about groups of pods. */
function rights(): string {
  const roles = bootstrapPolicy();
  const role = roles.find((one) => stringAt(one, 'metadata', 'name') === 'system:kube-scheduler');
  assert(role !== undefined);
  return JSON.stringify(
    listAt(role, 'rules').filter((rule) => JSON.stringify(rule).includes('podgroups')),
  );
}

test('groups of pods are served, and may be used, where they are asked for', () => {
  const find = () => findServed('scheduling.k8s.io', 'v1alpha2', 'podgroups');
  assert.equal(find(), undefined);
  assert.equal(rights(), '[]');
  try {
    applyRuntimeConfig('scheduling.k8s.io/v1alpha2=true');
    assert.equal(find()?.resource.kind, 'PodGroup');
    assert.match(rights(), /"podgroups\/status"/);
  } finally {
    applyRuntimeConfig('scheduling.k8s.io/v1alpha2=false');
  }
  assert.equal(find(), undefined);
});

test('what cannot be chosen is refused with what can', () => {
  assert.throws(() => applyRuntimeConfig('apps/v2=true'), /apps\/v2 cannot be chosen here/);
  const version = 'scheduling.k8s.io/v1alpha2';
  assert.throws(() => applyRuntimeConfig(`${version}=x`), /want true or false/);
});
