import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { parseJson } from '@megaplane/machinery/json-text';
import { resources } from '@megaplane/machinery/kinds';
import { admittingModel } from '../testing/admitting.sim.ts';
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

/** Versions that are served of one resource. */
function versionsOf(group: string, resource: string): string[] {
  const found = resources().filter((one) => one.group === group && one.resource === resource);
  return found.filter(({ served }) => served).map(({ version }) => version);
}

/** Looks while a configuration is in force. */
function under(config: string, look: () => void): void {
  try {
    applyRuntimeConfig(config);
    look();
  } finally {
    applyRuntimeConfig('');
  }
}

test('sets of versions, versions and single resources are chosen, the narrower one last', () => {
  const claims = (): string[] => versionsOf('resource.k8s.io', 'resourceclaims');
  assert.deepEqual(claims(), ['v1']);
  under('api/all=true', () => assert.deepEqual(claims(), ['v1', 'v1beta2', 'v1beta1']));
  under('api/beta', () => assert.deepEqual(claims(), ['v1', 'v1beta2', 'v1beta1']));
  under('api/alpha=1', () => assert.deepEqual(claims(), ['v1']));
  under('resource.k8s.io/v1beta2=false,api/all=true', () => {
    assert.deepEqual(claims(), ['v1', 'v1beta1']);
  });
  under('resource.k8s.io/v1beta2/resourceclaims=true', () => {
    assert.deepEqual(claims(), ['v1', 'v1beta2']);
    assert.deepEqual(versionsOf('resource.k8s.io', 'deviceclasses'), ['v1']);
  });
  under('resource.k8s.io/v1beta2=true,resource.k8s.io/v1beta2/resourceclaims=false', () => {
    assert.deepEqual(claims(), ['v1']);
    assert.deepEqual(versionsOf('resource.k8s.io', 'deviceclasses'), ['v1', 'v1beta2']);
  });
  under('api/v1,v1=true', () => assert.deepEqual(versionsOf('', 'pods'), ['v1']));
  under('batch/v1=false', () => assert.deepEqual(versionsOf('batch', 'jobs'), []));
});

test('what upstream has behind a feature gate is served to who names its version', () => {
  const candidates = (): string[] => versionsOf('coordination.k8s.io', 'leasecandidates');
  under('api/all=true', () => assert.deepEqual(candidates(), []));
  under('coordination.k8s.io/v1beta1', () => assert.deepEqual(candidates(), ['v1beta1']));
});

test('rules of taints and questions about pools are served to who names their version', () => {
  const rules = (): string[] => versionsOf('resource.k8s.io', 'devicetaintrules');
  const pools = (): string[] => versionsOf('resource.k8s.io', 'resourcepoolstatusrequests');
  under('resource.k8s.io/v1alpha3=true', () => {
    assert.deepEqual([rules(), pools()], [['v1alpha3'], ['v1alpha3']]);
  });
  under('resource.k8s.io/v1beta2=true,resource.k8s.io/v1alpha3=true', () => {
    assert.deepEqual(rules(), ['v1beta2', 'v1alpha3']);
  });
});

test('older versions get the defaults of the stable one', () => {
  under('resource.k8s.io/v1beta2=true', () => {
    const { expect } = admittingModel();
    const exactly = { deviceClassName: 'gpu' };
    const body = {
      metadata: { name: 'c' },
      spec: { devices: { requests: [{ name: 'r', exactly }] } },
    };
    const path = '/apis/resource.k8s.io/v1beta2/namespaces/n/resourceclaims';
    const made = parseJson(expect(201, 'POST', path, body).text);
    const filled = { ...exactly, allocationMode: 'ExactCount', count: 1 };
    assert.deepEqual(valueAt(made as JsonObject, 'spec', 'devices', 'requests'), [
      { name: 'r', exactly: filled },
    ]);
    const stable = parseJson(expect(200, 'GET', `${path.replace('v1beta2', 'v1')}/c`).text);
    assert.equal(stringAt(stable as JsonObject, 'apiVersion'), 'resource.k8s.io/v1');
  });
});

test('what cannot be chosen is refused with what can', () => {
  assert.throws(() => applyRuntimeConfig('apps/v2=true'), /apps\/v2=?.* is not known; these are: /);
  assert.throws(() => applyRuntimeConfig('apps=true'), /apps is no version/);
  assert.throws(() => applyRuntimeConfig('apps/v1/pods=true'), /apps\/v1\/pods is not known/);
  assert.throws(() => applyRuntimeConfig('resource.k8s.io/v1beta9'), /v1beta9 is not known/);
  assert.throws(() => applyRuntimeConfig('api/all=false'), /nothing would be served/);
  assert.throws(() => applyRuntimeConfig('constructor/v1=true'), /is not known/);
  assert.throws(() => applyRuntimeConfig('apps/v1=x'), /want true or false/);
  assert.deepEqual(versionsOf('apps', 'deployments'), ['v1']);
});
