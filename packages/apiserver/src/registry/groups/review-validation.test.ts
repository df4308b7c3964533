import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, messageOf } from '../../testing/admitting.sim.ts';

const REVIEWS = '/apis/authorization.k8s.io/v1';
const ASKED = { verb: 'get', resource: 'pods' };

test('a review asks one thing, of somebody, in the namespace of its URL', () => {
  const { expect } = admittingModel();
  const said = (path: string, body: object): string =>
    messageOf(expect(422, 'POST', `${REVIEWS}/${path}`, body));
  assert.equal(
    said('subjectaccessreviews', { spec: { user: 'a' } }),
    '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: ' +
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
  );
  assert.match(
    said('subjectaccessreviews', { spec: { resourceAttributes: ASKED } }),
    /spec\.user: Invalid value: "": at least one of user or group must be specified$/,
  );
  const local = 'namespaces/n/localsubjectaccessreviews';
  assert.match(
    said(local, { spec: { user: 'a', resourceAttributes: ASKED } }),
    /spec\.resourceAttributes\.namespace: Invalid value: "": must match metadata\.namespace$/,
  );
  const selector = { ...ASKED, fieldSelector: { rawSelector: 'a', requirements: [{ key: 'b' }] } };
  assert.match(
    said('selfsubjectaccessreviews', { spec: { resourceAttributes: selector } }),
    /rawSelector: Invalid value: "a": may not specified at the same time as requirements$/,
  );
  expect(400, 'POST', `${REVIEWS}/selfsubjectrulesreviews`, { spec: {} });
});

test('a review says by which binding it is allowed, and looks at selectors', () => {
  const { expect } = admittingModel();
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const apiGroup = 'rbac.authorization.k8s.io';
  expect(201, 'POST', `${rbac}/namespaces/n/rolebindings`, {
    metadata: { name: 'b' },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'r' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'm', name: 'robot' }],
  });
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
  expect(201, 'POST', `${rbac}/clusterroles`, { metadata: { name: 'r' }, rules });
  const spec = {
    user: 'system:serviceaccount:m:robot',
    resourceAttributes: { ...ASKED, namespace: 'n' },
  };
  const path = `${REVIEWS}/namespaces/n/localsubjectaccessreviews`;
  const review = JSON.parse(expect(201, 'POST', path, { spec }).text);
  assert.equal(review.metadata.namespace, 'n');
  assert.deepEqual(review.status, {
    allowed: true,
    reason: 'RBAC: allowed by RoleBinding "b/n" of ClusterRole "r" to ServiceAccount "robot/m"',
  });
  const requirements = [{ key: 'spec.nodeName', operator: 'In', values: ['x'] }];
  const node = {
    ...{ user: 'system:node:x', groups: ['system:nodes'] },
    resourceAttributes: { verb: 'list', resource: 'pods', fieldSelector: { requirements } },
  };
  const own = JSON.parse(
    expect(201, 'POST', `${REVIEWS}/subjectaccessreviews`, { spec: node }).text,
  );
  assert.equal(own.status.allowed, true);
});

test('impersonation without a name is refused as Go would print it', () => {
  const { ask } = admittingModel();
  const answer = ask('GET', '/api/v1/namespaces', undefined, { 'impersonate-extra-a': 'x' });
  assert.equal(
    messageOf(answer),
    'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), ' +
      'Extra:map[string][]string{"a":[]string{"x"}}} without impersonating a user name',
  );
  assert.equal(ask('GET', '/api/v1/namespaces', undefined, { 'impersonate-user': '' }).status, 200);
});
