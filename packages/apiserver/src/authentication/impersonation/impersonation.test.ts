/** Acting as somebody else (KEP-5284): by which mode, as whom, and in which words not. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { Headers } from '../../testing/exchange-model.sim.ts';
import { identityOf, serviceAccountIdentity, type Identity } from '../../request/identity.ts';
import { AccessModel } from '../../testing/access.sim.ts';

const PODS = '/api/v1/namespaces/default/pods';
const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const NODE_KEY = 'authentication.kubernetes.io/node-name';
const AUTH = 'authentication.k8s.io';

const PEOPLE = new Map<string, Identity>([
  ['joe', identityOf('joe', [])],
  ['root', identityOf('root', ['system:masters'])],
  ['agent', serviceAccountIdentity('default', 'agent', '', { [NODE_KEY]: ['n1'], pod: ['x'] })],
]);

type Rule = readonly [verb: string, group: string, resource: string, name?: string];

/** A server where `joe` and the agent have these rules. */
function serverWith(...rules: readonly Rule[]): AccessModel {
  const model = new AccessModel({ tokenReaders: () => [(token) => PEOPLE.get(token) ?? null] });
  grant(model, 'r', rules);
  return model;
}

function grant(model: AccessModel, name: string, rules: readonly Rule[]): void {
  model.ask('POST', `${RBAC}/clusterroles`, {
    metadata: { name },
    rules: rules.map(([verb, group, resource, only]) => ({
      verbs: [verb],
      apiGroups: [group],
      resources: [resource],
      ...(only === undefined ? {} : { resourceNames: [only] }),
    })),
  });
  const apiGroup = 'rbac.authorization.k8s.io';
  model.ask('POST', `${RBAC}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [
      { apiGroup, kind: 'User', name: 'joe' },
      { kind: 'ServiceAccount', name: 'agent', namespace: 'default' },
    ],
  });
}

function review(model: AccessModel, token: string, headers: Headers): JsonObject {
  const asked = model.ask('POST', REVIEWS, { kind: 'SelfSubjectReview' }, token, headers);
  return JSON.parse(asked.text) as JsonObject;
}

function whoIs(model: AccessModel, token: string, headers: Headers): JsonObject | undefined {
  return objectAt(review(model, token, headers), 'status', 'userInfo');
}

function whyNot(model: AccessModel, token: string, headers: Headers): string {
  return stringAt(review(model, token, headers), 'message');
}

function refusalOf(model: AccessModel, headers: Headers, token = 'joe'): string {
  const asked = model.ask('GET', PODS, undefined, token, headers);
  return `${asked.status} ${stringAt(JSON.parse(asked.text) as JsonObject, 'message')}`;
}

test('a user is acted as for the verbs that are allowed, and for no others', () => {
  const model = serverWith(
    ['impersonate-on:user-info:create', AUTH, 'selfsubjectreviews'],
    ['impersonate:user-info', AUTH, 'users', 'jane'],
    ['impersonate:user-info', AUTH, 'groups', 'dev'],
    ['impersonate:user-info', AUTH, 'userextras/acme.io/team', 'a'],
  );
  const jane = { 'impersonate-user': 'jane', 'impersonate-group': 'dev' };
  assert.deepEqual(whoIs(model, 'joe', { ...jane, 'impersonate-extra-acme.io%2fteam': 'a' }), {
    username: 'jane',
    groups: ['dev', 'system:authenticated'],
    extra: { 'acme.io/team': ['a'] },
  });
  assert.equal(
    refusalOf(model, jane),
    '403 pods is forbidden: User "joe" cannot impersonate-on:user-info:list resource "pods" ' +
      'in API group "" in the namespace "default"',
  );
  assert.match(
    whyNot(model, 'joe', { ...jane, 'impersonate-uid': '7' }),
    /uids\.authentication\.k8s\.io "7" is forbidden: User "joe" cannot impersonate:user-info/,
  );
});

test('names beyond ASCII come as UTF-8', () => {
  const model = serverWith();
  const bytes = (text: string): string => Buffer.from(text).toString('latin1');
  const headers = {
    'impersonate-user': bytes('jürgen'),
    'impersonate-group': bytes('gäste'),
    'impersonate-extra-team': bytes('日本'),
  };
  assert.deepEqual(whoIs(model, 'root', headers), {
    username: 'jürgen',
    groups: ['gäste', 'system:authenticated'],
    extra: { team: ['日本'] },
  });
});

test('a node that is acted as has the group of nodes, unless the old verb is used', () => {
  const model = serverWith(
    ['impersonate-on:arbitrary-node:create', AUTH, 'selfsubjectreviews'],
    ['impersonate:arbitrary-node', AUTH, 'nodes', 'n1'],
  );
  const groups = ['system:nodes', 'system:authenticated'];
  const node = { username: 'system:node:n1', groups };
  assert.deepEqual(whoIs(model, 'joe', { 'impersonate-user': 'system:node:n1' }), node);
  assert.match(
    whyNot(model, 'joe', { 'impersonate-user': 'system:node:n2' }),
    /User "joe" cannot impersonate:arbitrary-node resource "nodes" in API group "authen/,
  );
  grant(model, 'old', [['impersonate', '', 'users', 'system:node:n2']]);
  assert.deepEqual(whoIs(model, 'joe', { 'impersonate-user': 'system:node:n2' }), {
    username: 'system:node:n2',
    groups: ['system:authenticated'],
  });
});

test('an agent may be the node that its token is bound to, and no other', () => {
  const model = serverWith(
    ['impersonate-on:associated-node:create', AUTH, 'selfsubjectreviews'],
    ['impersonate:associated-node', AUTH, 'nodes'],
  );
  const own = whoIs(model, 'agent', { 'impersonate-user': 'system:node:n1' });
  assert.deepEqual(own, {
    username: 'system:node:n1',
    groups: ['system:nodes', 'system:authenticated'],
  });
  const other = whyNot(model, 'agent', { 'impersonate-user': 'system:node:n2' });
  assert.match(other, /cannot impersonate-on:arbitrary-node:create/);
  const joe = whyNot(model, 'joe', { 'impersonate-user': 'system:node:n1' });
  assert.match(joe, /cannot impersonate-on:arbitrary-node:create/);
});

test('the right to one node by name is none for an associated node', () => {
  const model = serverWith(
    ['impersonate-on:associated-node:create', AUTH, 'selfsubjectreviews'],
    ['impersonate:associated-node', AUTH, 'nodes', 'n1'],
  );
  const answer = whyNot(model, 'agent', { 'impersonate-user': 'system:node:n1' });
  assert.match(answer, /^nodes\.authentication\.k8s\.io "\*" is forbidden: .*associated/);
});

test('a service account brings its groups, and takes no others but by the old verb', () => {
  const account = 'system:serviceaccount:default:a';
  const model = serverWith(
    ['impersonate-on:serviceaccount:create', AUTH, 'selfsubjectreviews'],
    ['impersonate:serviceaccount', AUTH, 'serviceaccounts', 'a'],
  );
  assert.deepEqual(whoIs(model, 'joe', { 'impersonate-user': account }), {
    username: account,
    groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
  });
  assert.match(
    whyNot(model, 'joe', { 'impersonate-user': account, 'impersonate-group': 'g' }),
    /serviceaccounts "a" is forbidden: User "joe" cannot impersonate resource "serviceaccounts"/,
  );
});

test('masters act as anybody, and as masters by the old verb alone', () => {
  const model = serverWith();
  const masters = { 'impersonate-user': 'jane', 'impersonate-group': ['system:masters', 'a'] };
  assert.deepEqual(whoIs(model, 'root', masters), {
    username: 'jane',
    groups: ['system:masters', 'a', 'system:authenticated'],
  });
  const upper = { 'impersonate-user': 'jane', 'impersonate-extra-team': 'a' };
  assert.deepEqual(whoIs(model, 'root', upper), {
    username: 'jane',
    groups: ['system:authenticated'],
    extra: { team: ['a'] },
  });
});

test('who may be many groups at once is asked about all of them first', () => {
  const model = serverWith(
    ['impersonate-on:user-info:create', AUTH, 'selfsubjectreviews'],
    ['impersonate:user-info', AUTH, 'users'],
    ['impersonate:user-info', AUTH, 'groups', '*'],
  );
  const groups = ['a', 'b', 'c', 'd'];
  const many = { 'impersonate-user': 'jane', 'impersonate-group': groups };
  assert.deepEqual(whoIs(model, 'joe', many), {
    username: 'jane',
    groups: [...groups, 'system:authenticated'],
  });
  const few = { 'impersonate-user': 'jane', 'impersonate-group': groups.slice(1) };
  assert.match(whyNot(model, 'joe', few), /groups\.authentication\.k8s\.io "b" is forbidden/);
});

test('who last used the old verb hears its words', () => {
  const model = serverWith(['impersonate', '', 'users', 'jane']);
  assert.match(
    refusalOf(model, { 'impersonate-user': 'jim' }),
    /cannot impersonate-on:user-info:l/,
  );
  assert.match(refusalOf(model, { 'impersonate-user': 'jane' }), /User "jane" cannot list/);
  assert.equal(
    refusalOf(model, { 'impersonate-user': 'jim' }),
    '403 users "jim" is forbidden: User "joe" cannot impersonate resource "users" ' +
      'in API group "" at the cluster scope',
  );
  const { text } = model.ask('GET', '/metrics');
  for (const [labels, count] of [
    ['attempts_total{decision="denied",mode=""}', 2],
    ['attempts_total{decision="allowed",mode="legacy"}', 1],
    ['authorization_attempts_total{decision="denied",mode="user-info"}', 3],
    ['authorization_attempts_total{decision="denied",mode="legacy"}', 2],
  ] as const) {
    assert.ok(text.includes(`\napiserver_impersonation_${labels} ${count}\n`), labels);
  }
});

test('groups, uid or extra without a user are a bad request', () => {
  const model = serverWith();
  assert.equal(
    refusalOf(model, { 'impersonate-group': ['a', 'b'] }, 'root'),
    '400 requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a", "b"}, ' +
      'Extra:map[string][]string(nil)} without impersonating a user name',
  );
  assert.match(refusalOf(model, { 'impersonate-user': '' }, 'root'), /^200 /);
});
