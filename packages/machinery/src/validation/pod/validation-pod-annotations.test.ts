import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { validateCreate, validateUpdate } from '../validation.ts';
import { appArmorOf } from './validation-pod-annotations.ts';

const MIRROR = 'kubernetes.io/config.mirror';
const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';
const SECCOMP = 'container.seccomp.security.alpha.kubernetes.io/';

function pod(
  annotations: JsonObject,
  container: JsonObject = {},
  more: JsonObject = {},
): JsonObject {
  const fixed = { name: 'c', image: 'x', imagePullPolicy: 'Always' };
  return {
    metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', annotations },
    spec: {
      containers: [{ ...fixed, terminationMessagePolicy: 'File', ...container }],
      ...{ restartPolicy: 'Always', dnsPolicy: 'ClusterFirst', terminationGracePeriodSeconds: 30 },
      ...more,
    },
  };
}

function resource(): NonNullable<ReturnType<typeof findResource>> {
  const found = findResource('', 'v1', 'pods');
  assert.ok(found !== undefined);
  return found;
}

const made = (...parts: Parameters<typeof pod>): string[] =>
  validateCreate(resource(), pod(...parts)).map(fieldErrorText);

const changed = (before: JsonObject, after: JsonObject, part = ''): string[] =>
  validateUpdate(resource(), pod(after), pod(before), part).map(fieldErrorText);

test('a mirror pod has a node and no claims of devices, and stays a mirror', () => {
  const at = `metadata.annotations[${MIRROR}]`;
  const text = 'must set spec.nodeName if mirror pod annotation is set';
  assert.deepEqual(made({ [MIRROR]: 'x' }), [`${at}: Invalid value: "x": ${text}`]);
  const resourceClaims = [{ name: 'r', resourceClaimName: 'q' }];
  assert.deepEqual(made({ [MIRROR]: 'x' }, {}, { nodeName: 'n', resourceClaims }), [
    '[]: Forbidden: static pods do not support resource claims',
  ]);
  const [first] = changed({}, { [MIRROR]: 'x' });
  assert.equal(first, `${at}: Invalid value: "x": ${text}`);
  assert.deepEqual(changed({ [MIRROR]: 'x' }, {}, 'status'), [
    `${at}: Forbidden: may not remove or update mirror pod annotation`,
  ]);
});

test('annotations and fields name one profile', () => {
  const at = 'spec.containers[0].securityContext';
  const confined = (field: string, type: string, more: JsonObject = {}): JsonObject => ({
    securityContext: { [field]: { type, ...more } },
  });
  const differs = 'Forbidden: seccomp type in annotation and field must match';
  const note = { [`${SECCOMP}c`]: 'docker/default' };
  assert.deepEqual(made(note, confined('seccompProfile', 'RuntimeDefault')), []);
  assert.deepEqual(made(note, confined('seccompProfile', 'Unconfined')), [
    `${at}.seccompProfile.type: ${differs}`,
  ]);
  const file = confined('appArmorProfile', 'Localhost', { localhostProfile: 'p' });
  assert.deepEqual(made({ [`${APPARMOR}c`]: 'localhost/p' }, file), []);
  assert.deepEqual(made({ [`${APPARMOR}c`]: 'localhost/q' }, file), [
    `${at}.appArmorProfile.localhostProfile: ` +
      'Forbidden: apparmor profile in annotation and field must match',
  ]);
  assert.deepEqual(made({ [`${APPARMOR}z`]: 'bad' }), [
    `metadata.annotations[${APPARMOR}z]: Invalid value: "z": container not found`,
    `metadata.annotations[${APPARMOR}z]: Invalid value: "bad": ` +
      'invalid AppArmor profile name: "bad"',
  ]);
  assert.deepEqual(appArmorOf('localhost/ p'), undefined);
});

test('the cost of a deletion is a plain number of 32 bits', () => {
  const key = 'controller.kubernetes.io/pod-deletion-cost';
  for (const cost of ['0', '-5', '-05', '2147483647', '-2147483648']) {
    assert.deepEqual(made({ [key]: cost }), []);
  }
  for (const cost of ['', '+5', '05', 'x', '2147483648']) {
    assert.deepEqual(made({ [key]: cost }), [
      `metadata.annotations[${key}]: Invalid value: "${cost}": must be a 32bit integer`,
    ]);
  }
});

test('tolerations by annotation are read as Go reads them', () => {
  const key = 'scheduler.alpha.kubernetes.io/tolerations';
  const at = `metadata.annotations: Invalid value: "${key}"`;
  assert.deepEqual(made({ [key]: '{}' }), [
    `${at}: json: cannot unmarshal object into Go value of type []core.Toleration`,
  ]);
  assert.deepEqual(made({ [key]: '[{"key":1}]' }), [
    `${at}: json: cannot unmarshal number into Go struct field Toleration.Key of type string`,
  ]);
  assert.deepEqual(made({ [key]: '[{' }), [`${at}: unexpected end of JSON input`]);
});
