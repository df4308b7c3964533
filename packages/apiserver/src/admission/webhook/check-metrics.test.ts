import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, messageOf, type AdmittingModel } from '../../testing/admitting.sim.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/n/configmaps';
const CREATES = {
  operations: ['CREATE'],
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['configmaps'],
};

function bound({ expect }: AdmittingModel, kind: string, name: string, spec: object, more: object) {
  const matchConstraints = { resourceRules: [CREATES] };
  const made = { metadata: { name }, spec: { matchConstraints, ...spec } };
  expect(201, 'POST', `${GROUP}/${kind}admissionpolicies`, made);
  const binding = { metadata: { name: `${name}-b` }, spec: { policyName: name, ...more } };
  expect(201, 'POST', `${GROUP}/${kind}admissionpolicybindings`, binding);
}

/** Samples whose name begins so, without buckets and sums. */
function samples({ ask }: AdmittingModel, prefix: string): string[] {
  return ask('GET', '/metrics')
    .text.split('\n')
    .filter((line) => line.startsWith(prefix) && !/_(bucket|sum)\{/.test(line));
}

test('violations are counted by what the actions of a binding make of them', () => {
  const model = admittingModel();
  const validations = [{ expression: 'object.metadata.name != "bad"' }];
  const actions = { validationActions: ['Warn', 'Audit'] };
  bound(model, 'validating', 'told', { validations }, actions);
  const unjudged = [{ expression: 'object.data.none == "a"' }];
  const ignoring = { validations: unjudged, failurePolicy: 'Ignore' };
  bound(model, 'validating', 'quiet', ignoring, { validationActions: ['Deny'] });
  model.expect(201, 'POST', MAPS, { metadata: { name: 'bad' }, data: { a: '' } });
  const check = 'apiserver_validating_admission_policy_check';
  const of = (policy: string, action: string): string =>
    `{enforcement_action="${action}",error_type="invalid_error",policy="${policy}",` +
    `policy_binding="${policy}-b"} 1`;
  const found = [of('quiet', 'allow'), of('told', 'warn'), of('told', 'audit')];
  assert.deepEqual(
    samples(model, `${check}_total{`),
    found.map((one) => `${check}_total${one}`),
  );
  assert.equal(samples(model, `${check}_duration_seconds_count{`).length, 3);
});

test('mutations are counted, and conditions of policies that fail or take their time', () => {
  const model = admittingModel();
  const mutate = (expression: string): object => ({
    reinvocationPolicy: 'Never',
    failurePolicy: 'Ignore',
    matchConditions: [{ name: 'c', expression: 'object.data.a == "1"' }],
    mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
  });
  const good = '[JSONPatch{op: "add", path: "/data/b", value: "2"}]';
  bound(model, 'mutating', 'good', mutate(good), {});
  bound(model, 'mutating', 'poor', mutate('[JSONPatch{op: "remove", path: "/data/z"}]'), {});
  model.expect(201, 'POST', MAPS, { metadata: { name: 'a' }, data: { a: '1' } });
  model.expect(201, 'POST', MAPS, { metadata: { name: 'b' } });
  const check = 'apiserver_mutating_admission_policy_check_total';
  assert.deepEqual(samples(model, `${check}{`), [
    `${check}{error_type="no_error",policy="good",policy_binding="good-b"} 1`,
    `${check}{error_type="invalid_error",policy="poor",policy_binding="poor-b"} 1`,
  ]);
  const condition = 'apiserver_admission_match_condition_evaluation';
  const of = (name: string): string =>
    `{kind="policy",name="${name}",operation="CREATE",type="validate"}`;
  assert.deepEqual(samples(model, `${condition}_errors_total{`), [
    `${condition}_errors_total${of('good')} 1`,
    `${condition}_errors_total${of('poor')} 1`,
  ]);
  // twice for the write that was changed
  assert.equal(samples(model, `${condition}_seconds_count${of('good')} 3`).length, 1);
});

test('a binding that cannot be followed denies, whatever its actions are', () => {
  const model = admittingModel();
  const spec = {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    validations: [{ expression: 'true' }],
  };
  const paramRef = { name: 'gone', parameterNotFoundAction: 'Deny' };
  bound(model, 'validating', 'p', spec, { validationActions: ['Warn'], paramRef });
  const refused = model.expect(422, 'POST', MAPS, { metadata: { name: 'a' } });
  assert.match(messageOf(refused), /no params found for policy binding with `Deny` param/);
});
