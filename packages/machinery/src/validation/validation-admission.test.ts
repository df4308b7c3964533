import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../meta/fielderrors.ts';
import type { JsonObject } from '../json/json-value.ts';
import { findResource } from '../scheme/kinds.ts';
import { validateCreate } from './validation.ts';

function textsOf(plural: string, rest: JsonObject): string[] {
  const resource = findResource('admissionregistration.k8s.io', 'v1', plural);
  assert.ok(resource !== undefined);
  const object = { metadata: { name: 'p', finalizers: ['anything'] }, ...rest };
  return validateCreate(resource, object).map(fieldErrorText);
}

function urlTexts(clientConfig: JsonObject): string[] {
  const webhook = { name: 'a.b.c', sideEffects: 'None', admissionReviewVersions: ['v1'] };
  const found = textsOf('validatingwebhookconfigurations', {
    webhooks: [{ ...webhook, clientConfig }],
  });
  return found.map((text) => text.replace('webhooks[0].clientConfig', ''));
}

const FORMAT = 'desired format: https://host[/path]';

test('webhooks are reached by https, and a service without a namespace lacks its name', () => {
  assert.deepEqual(urlTexts({ url: 'https://a.b/c' }), []);
  assert.deepEqual(urlTexts({ url: 'x' }), [
    `.url: Invalid value: "": 'https' is the only allowed URL scheme; ${FORMAT}`,
    `.url: Invalid value: "": host must be specified; ${FORMAT}`,
  ]);
  assert.deepEqual(urlTexts({ url: '://x' }), [
    '.url: Required value: url must be a valid URL: parse "://x": missing protocol scheme; ' +
      FORMAT,
  ]);
  assert.deepEqual(urlTexts({ url: 'https://a@b:x/c' }), [
    '.url: Required value: url must be a valid URL: parse "https://a@b:x/c": invalid port ":x" ' +
      `after host; ${FORMAT}`,
  ]);
  assert.deepEqual(urlTexts({ service: { name: 's', port: 443, path: '/a//b' } }), [
    '.service.name: Required value',
    '.service.path: Invalid value: "/a//b": segment[1] may not be empty',
  ]);
});

const RULE = {
  apiGroups: ['apps'],
  apiVersions: ['v1'],
  resources: ['deployments'],
  operations: ['CREATE'],
};

test('expressions of policies have exactly the types that are wanted', () => {
  const found = textsOf('validatingadmissionpolicies', {
    spec: {
      matchConstraints: { resourceRules: [RULE] },
      paramKind: { apiVersion: 'a/b/c', kind: 'K_' },
      variables: [{ name: 'in', expression: '' }],
      matchConditions: [{ name: 'x', expression: ' object.x ' }],
      validations: [{ expression: 'true', message: ' ', messageExpression: 'authorizer' }],
      auditAnnotations: [{ key: '-', valueExpression: '1' }],
    },
  });
  assert.equal(found.length, 9, found.join('\n'));
  assert.deepEqual(found.slice(0, 5), [
    'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
    found[1],
    'spec.matchConditions[0].expression: Invalid value: "object.x": must evaluate to bool but ' +
      'got dyn',
    'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
    'spec.variables[0].expression: Required value: expression is not specified',
  ]);
  assert.match(found[1] ?? '', /^spec.paramKind.kind: .* may have mixed case, but should/);
  assert.match(found[5] ?? '', /messageExpression.*undeclared reference to 'authorizer'/s);
  assert.match(found[6] ?? '', /message: Invalid value: " ": must be non-empty if specified$/);
  assert.match(found[7] ?? '', /auditAnnotations\[0\].key: Invalid value: "p\/-": name part must/);
  assert.match(found[8] ?? '', /must evaluate to one of \[string null_type\] but got int$/);
});

test('mutations come with what can be changed, and are patches of one type', () => {
  const found = textsOf('mutatingadmissionpolicies', {
    spec: {
      matchConstraints: { resourceRules: [{ ...RULE, operations: ['DELETE'] }] },
      reinvocationPolicy: 'Never',
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: { expression: '"x"' },
          applyConfiguration: { expression: 'Object{}' },
        },
      ],
    },
  });
  assert.deepEqual(found, [
    'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported ' +
      'values: "*", "CONNECT", "CREATE", "UPDATE"',
    'spec.mutations[0].jsonPatch.expression: Invalid value: "\\"x\\"": must evaluate to ' +
      'list(JSONPatch) but got string',
    'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be ' +
      'specified when patchType is JSONPatch',
  ]);
});
