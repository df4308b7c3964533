import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRule, type PolicyRule } from '../../authorization/rbac.ts';
import { missingRights } from '../../authorization/rbac-cover.ts';
import { admittingModel, messageOf, type AdmittingModel } from '../../testing/admitting.sim.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const GROUP = 'rbac.authorization.k8s.io';

function rules(...list: Parameters<typeof parseRule>[0][]): PolicyRule[] {
  return list.map(parseRule);
}

test('what is missing is told by group, resource and name, its verbs together', () => {
  const held = rules(
    { apiGroups: [''], resources: ['pods', '*/status'], verbs: ['get', 'list'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['s1'], verbs: ['get'] },
    { nonResourceURLs: ['/foo/*'], verbs: ['get'] },
  );
  const covered = rules(
    { apiGroups: [''], resources: ['pods', 'nodes/status'], verbs: ['list'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['s1'], verbs: ['get'] },
    { nonResourceURLs: ['/foo/bar'], verbs: ['get'] },
  );
  assert.deepEqual(missingRights(held, covered), []);
  const wanted = rules(
    { apiGroups: ['', 'apps'], resources: ['pods'], verbs: ['get', 'watch', 'delete'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['s1', 's2'], verbs: ['get'] },
    { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
    { nonResourceURLs: ['/bar'], verbs: ['get', 'post'] },
  );
  assert.deepEqual(missingRights(held, wanted), [
    '{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}',
    '{APIGroups:[""], Resources:["secrets"], ResourceNames:["s2"], Verbs:["get"]}',
    '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "watch" "delete"]}',
    '{NonResourceURLs:["/bar"], Verbs:["get"]}',
    '{NonResourceURLs:["/bar"], Verbs:["post"]}',
  ]);
});

function grant({ expect }: AdmittingModel, name: string, list: object[]): void {
  expect(201, 'POST', `${RBAC}/clusterroles`, { metadata: { name }, rules: list });
  expect(201, 'POST', `${RBAC}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name },
    subjects: [{ kind: 'User', apiGroup: GROUP, name: 'alice' }],
  });
}

const AS_ALICE = { 'impersonate-user': 'alice' };
const READ_PODS = { apiGroups: [''], resources: ['pods'], verbs: ['get'] };
const READ_SECRETS = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
const ALL = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] };
const WRITE_ROLES = {
  apiGroups: [GROUP],
  resources: ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'],
  verbs: ['create', 'update', 'patch'],
};

test('nobody gives by a role or a binding what they do not have', () => {
  const model = admittingModel();
  grant(model, 'writer', [WRITE_ROLES, READ_PODS]);
  const roles = `${RBAC}/namespaces/n/roles`;
  const role = (name: string, rule: object): object => ({ metadata: { name }, rules: [rule] });
  assert.equal(model.ask('POST', roles, role('a', READ_PODS), AS_ALICE).status, 201);
  const refused = model.ask('POST', roles, role('b', READ_SECRETS), AS_ALICE);
  assert.equal(refused.status, 403);
  assert.equal(
    messageOf(refused),
    'roles.rbac.authorization.k8s.io "b" is forbidden: user "alice" ' +
      '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently ' +
      'held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
  );
  const change = { rules: [READ_SECRETS] };
  assert.equal(model.ask('PATCH', `${roles}/a`, change, AS_ALICE).status, 403);
  const finalizers = { metadata: { finalizers: ['x.io/y'] } };
  model.expect(201, 'POST', roles, role('c', READ_SECRETS));
  assert.equal(model.ask('PATCH', `${roles}/c`, finalizers, AS_ALICE).status, 200);
  const bindings = `${RBAC}/namespaces/n/rolebindings`;
  const binding = (name: string, kind: string): object => ({
    metadata: { name },
    roleRef: { apiGroup: GROUP, kind, name },
    subjects: [],
  });
  assert.equal(model.ask('POST', bindings, binding('a', 'Role'), AS_ALICE).status, 201);
  assert.equal(model.ask('POST', bindings, binding('c', 'Role'), AS_ALICE).status, 403);
  const lost = model.ask('POST', bindings, binding('lost', 'Role'), AS_ALICE);
  assert.equal(messageOf(lost), 'rolebindings.rbac.authorization.k8s.io "lost" not found');
});

test('who may escalate gives more, who may bind gives a role, and aggregation wants all', () => {
  const model = admittingModel();
  grant(model, 'writer', [WRITE_ROLES]);
  model.expect(201, 'POST', `${RBAC}/clusterroles`, { metadata: { name: 'big' }, rules: [ALL] });
  const aggregated = {
    metadata: { name: 'sum' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
  };
  const refused = model.ask('POST', `${RBAC}/clusterroles`, aggregated, AS_ALICE);
  assert.match(
    messageOf(refused),
    /must have cluster-admin privileges to use the aggregationRule$/,
  );
  const binding = {
    metadata: { name: 'b' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'big' },
    subjects: [],
  };
  assert.equal(model.ask('POST', `${RBAC}/clusterrolebindings`, binding, AS_ALICE).status, 403);
  const bind = { apiGroups: [GROUP], resources: ['clusterroles'], verbs: ['bind'] };
  grant(model, 'binder', [{ ...bind, resourceNames: ['big'] }]);
  assert.equal(model.ask('POST', `${RBAC}/clusterrolebindings`, binding, AS_ALICE).status, 201);
  grant(model, 'escalator', [{ ...bind, verbs: ['escalate'] }]);
  const role = { metadata: { name: 'huge' }, rules: [ALL] };
  assert.equal(model.ask('POST', `${RBAC}/clusterroles`, role, AS_ALICE).status, 201);
});
