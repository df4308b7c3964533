import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, messageOf, type AdmittingModel } from '../../testing/admitting.sim.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/n/configmaps';
const CREATES = {
  ...{ apiGroups: [''], apiVersions: ['v1'] },
  ...{ operations: ['CREATE'], resources: ['configmaps'] },
};
const NONE = '[JSONPatch{op: "remove", path: "/data/none"}]';

const add = (key: string, value = '"1"'): string =>
  `[JSONPatch{op: "add", path: "/data/${key}", value: ${value}}]`;
const count = (key: string): string =>
  add(key, `string(int(object.data[?"${key}"].orValue("0")) + 1)`);

/** A policy of JSON patches and its binding, of one name. */
function mutate(
  { expect }: AdmittingModel,
  name: string,
  patches: readonly string[],
  more: object = {},
  binding: object = {},
): void {
  const mutations = patches.map((expression) => ({
    patchType: 'JSONPatch',
    jsonPatch: { expression },
  }));
  const matchConstraints = { resourceRules: [CREATES] };
  const spec = { matchConstraints, reinvocationPolicy: 'Never', mutations, ...more };
  expect(201, 'POST', `${GROUP}/mutatingadmissionpolicies`, { metadata: { name }, spec });
  const bound = { metadata: { name }, spec: { policyName: name, ...binding } };
  expect(201, 'POST', `${GROUP}/mutatingadmissionpolicybindings`, bound);
}

function dataOf({ expect }: AdmittingModel): object {
  const made = expect(201, 'POST', MAPS, { metadata: { name: 'm' }, data: { a: '' } });
  return (JSON.parse(made.text) as { data: object }).data;
}

test('in the second pass those are asked again that were asked before', () => {
  const model = admittingModel();
  const isLate = { matchConditions: [{ name: 'late', expression: '"x" in object.data' }] };
  mutate(model, 'again', [count('again')], { reinvocationPolicy: 'IfNeeded' });
  mutate(model, 'late', [count('late')], { reinvocationPolicy: 'IfNeeded', ...isLate });
  mutate(model, 'once', [add('x')]);
  assert.deepEqual(dataOf(model), { a: '', again: '2', x: '1' });
});

test('where failures are ignored, other mutations of the policy stand', () => {
  const model = admittingModel();
  mutate(model, 'p', [add('x'), NONE, add('y')], { failurePolicy: 'Ignore' });
  assert.deepEqual(dataOf(model), { a: '', x: '1', y: '1' });
});

test('all that denies is told, first what is wrong with policies and bindings', () => {
  const model = admittingModel();
  mutate(model, 'a', [NONE, NONE]);
  const lost = { paramKind: { apiVersion: 'nobody.example.com/v1', kind: 'Z' } };
  mutate(model, 'b', [add('x')], lost);
  const paramRef = { name: 'gone', parameterNotFoundAction: 'Deny' };
  mutate(model, 'c', [add('x')], { paramKind: { apiVersion: 'v1', kind: 'Secret' } }, { paramRef });
  const refused = model.expect(403, 'POST', MAPS, { metadata: { name: 'm' }, data: { a: '' } });
  const { reason, details } = JSON.parse(refused.text) as {
    reason: string;
    details: { causes: { message: string }[] };
  };
  const causes = details.causes.map(({ message }) => message.replace(/^policy /, ''));
  const missing =
    "JSON Patch: error in remove for path: '/data/none': Unable to remove nonexistent key: none: " +
    'missing value';
  assert.deepEqual(causes, [
    '"b" denied request: failed to configure policy: failed to find resource referenced by ' +
      "paramKind: 'nobody.example.com/v1, Kind=Z'",
    "'c' with binding 'c' denied request: failed to configure binding: no params found for " +
      'policy binding with `Deny` parameterNotFoundAction',
    `'a' with binding 'a' denied request: ${missing}`,
    `'a' with binding 'a' denied request: ${missing}`,
  ]);
  assert.equal(messageOf(refused), `policy ${causes[0]}`);
  assert.equal(reason, 'Forbidden');
});

test('a validating policy that cannot be followed denies without a word of bindings', () => {
  const model = admittingModel();
  const spec = {
    paramKind: { apiVersion: 'nobody.example.com/v1', kind: 'Z' },
    matchConstraints: { resourceRules: [CREATES] },
    validations: [{ expression: 'true' }],
  };
  const metadata = { name: 'p' };
  model.expect(201, 'POST', `${GROUP}/validatingadmissionpolicies`, { metadata, spec });
  const binding = { policyName: 'p', validationActions: ['Warn'] };
  model.expect(201, 'POST', `${GROUP}/validatingadmissionpolicybindings`, {
    metadata,
    spec: binding,
  });
  const refused = model.expect(422, 'POST', MAPS, { metadata: { name: 'm' } });
  assert.equal(
    messageOf(refused),
    'configmaps "m" is forbidden: ValidatingAdmissionPolicy \'p\' denied request: failed to ' +
      "configure policy: failed to find resource referenced by paramKind: 'nobody.example.com/v1," +
      " Kind=Z'",
  );
});

test('what is applied and cannot be decoded is told in the words of that way', () => {
  const model = admittingModel();
  const rule = { ...CREATES, resources: ['secrets'] };
  const applyConfiguration = { expression: 'Object{data: {"q": "not base64!"}}' };
  const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration }];
  mutate(model, 'p', [], { matchConstraints: { resourceRules: [rule] }, mutations });
  const path = '/api/v1/namespaces/n/secrets';
  const refused = model.expect(403, 'POST', path, { metadata: { name: 's' } });
  assert.match(
    messageOf(refused),
    /: unable to convert unstructured object to \/v1, Kind=Secret: error decoding from json: ill/,
  );
});

test('a patch that makes what a kind does not have fails whatever may be ignored', () => {
  const model = admittingModel();
  const rule = { ...CREATES, resources: ['configmaps'] };
  const jsonPatch = { expression: '[JSONPatch{op: "add", path: "/nope", value: 1}]' };
  const mutations = [{ patchType: 'JSONPatch', jsonPatch }];
  const matchConstraints = { resourceRules: [rule] };
  mutate(model, 'p', [], { matchConstraints, mutations, failurePolicy: 'Ignore' });
  const refused = model.expect(500, 'POST', MAPS, { metadata: { name: 'm' } });
  const text = 'Internal error occurred: strict decoding error: unknown field "nope"';
  assert.equal(messageOf(refused), text);
});

test('nulls that are applied are values that no field is of, and remove nothing', () => {
  const model = admittingModel();
  const matchConstraints = { resourceRules: [CREATES] };
  const applied = (expression: string): string => {
    const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }];
    const name = `p${expression.length}`;
    mutate(model, name, [], { matchConstraints, mutations });
    const refused = model.expect(403, 'POST', MAPS, {
      metadata: { name: 'm' },
      data: { a: 'b' },
    });
    model.expect(200, 'DELETE', `${GROUP}/mutatingadmissionpolicies/${name}`);
    return messageOf(refused).replace(/^.* to typed object: /, '');
  };
  assert.equal(
    applied('Object{data: {"a": null}}'),
    '.data.a: expected string, got &value.valueUnstructured{Value:0}',
  );
  assert.equal(applied('Object{data: null}'), '.data: expected map, got &{NULL_VALUE}');
  assert.equal(
    applied('Object{immutable: null}'),
    '.immutable: expected boolean, got &{NULL_VALUE}',
  );
  assert.equal(
    applied('Object{metadata: Object.metadata{finalizers: null}}'),
    '.metadata.finalizers: expected list, got &{NULL_VALUE}',
  );
});

test('of metadata that a patch makes for a custom kind, what no field can be is left out', () => {
  const model = admittingModel();
  const group = 'example.com';
  const schema = {
    openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  };
  const definition = {
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      names: { plural: 'widgets', kind: 'Widget' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  model.expect(201, 'POST', definitions, definition);
  const resourceRules = [
    { apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE'], resources: ['widgets'] },
  ];
  const patch = '[JSONPatch{op: "add", path: object.path, value: dyn(object.value)}]';
  mutate(model, 'p', [patch], { matchConstraints: { resourceRules } });
  let count = 0;
  const make = (status: number, path: string, value: unknown): string => {
    const metadata = { name: `w${count++}`, labels: { a: 'b' } };
    const body = { apiVersion: `${group}/v1`, kind: 'Widget', metadata, path, value };
    return model.expect(status, 'POST', `/apis/${group}/v1/namespaces/n/widgets`, body).text;
  };
  const made = (path: string, value: unknown): Record<string, unknown> =>
    (JSON.parse(make(201, path, value)) as { metadata: Record<string, unknown> }).metadata;
  const refused = (status: number, path: string, value: unknown): string =>
    (JSON.parse(make(status, path, value)) as { message: string }).message;
  assert.equal(made('/metadata/labels/x', ['a'])['labels'], undefined);
  assert.deepEqual(made('/metadata/labels/x', 'y')['labels'], { a: 'b', x: 'y' });
  const badFinalizers = made('/metadata/finalizers', [1]);
  assert.equal(badFinalizers['finalizers'], undefined);
  assert.deepEqual(badFinalizers['labels'], { a: 'b' });
  assert.equal(made('/metadata/generateName', 5)['generateName'], undefined);
  assert.match(refused(422, '/metadata/ownerReferences', [{ uid: 1 }]), /uid: Invalid value: ""/);
  assert.match(refused(422, '/metadata/name', 5), /name or generateName is required/);
  assert.match(refused(500, '/metadata', 'x'), /system metadata was not initialized$/);
  assert.match(refused(500, '/kind', 5), /unmarshal number into Go struct field \.kind of type/);
  assert.equal(
    refused(500, '/apiVersion', 'v2'),
    'Internal error occurred: failed to convert object: /v2, Kind=Widget is unstructured and is ' +
      'not suitable for converting to "example.com/v1"',
  );
  assert.match(refused(400, '/metadata/namespace', 'other'), /does not match the namespace sent/);
});
