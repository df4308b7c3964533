import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { createApiServer } from '../server/assembly.ts';
import { bootstrap } from './bootstrap.ts';
import { CONTROLLERS_GROUP, NODES_GROUP } from '../authorization/component-grants.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { bootstrapPolicy, upkeepPolicy } from './bootstrap-policy.ts';

const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
const BINDINGS = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';

function cluster() {
  let uids = 0;
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 31, 10),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uids).padStart(12, '0')}`,
    defer: (work: () => void) => work(),
    deferPiece: (work: () => void) => work(),
  };
  const api = createApiServer({ storage: new StorageModel(), edge, address: '' });
  const ask = (method: string, path: string, body?: unknown): JsonObject => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const exchange = new ExchangeModel(method, path, body, { 'content-type': type });
    api.handle(exchange);
    return JSON.parse(exchange.text) as JsonObject;
  };
  bootstrap(api.parts.world, { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 6443 });
  return { world: api.parts.world, ask };
}

test('each object of the policy is one that the server takes, and is there', () => {
  const { ask } = cluster();
  const policy = bootstrapPolicy();
  const count = (kind: string): number => policy.filter((one) => one['kind'] === kind).length;
  assert.equal(listAt(ask('GET', ROLES), 'items').length, count('ClusterRole'));
  assert.equal(listAt(ask('GET', BINDINGS), 'items').length, count('ClusterRoleBinding'));
  for (const kind of ['roles', 'rolebindings']) {
    const all = listAt(ask('GET', `/apis/rbac.authorization.k8s.io/v1/${kind}`), 'items');
    assert.equal(all.length, count(kind === 'roles' ? 'Role' : 'RoleBinding'));
  }
  for (const object of policy) {
    const plural = `${stringAt(object, 'kind').toLowerCase()}s`;
    const namespace = stringAt(object, 'metadata', 'namespace');
    const place = namespace === '' ? plural : `namespaces/${namespace}/${plural}`;
    const path = `/apis/rbac.authorization.k8s.io/v1/${place}`;
    const name = stringAt(object, 'metadata', 'name');
    const other = { ...object, metadata: { ...objectAt(object, 'metadata'), name: `x-${name}` } };
    const made = ask('POST', `${path}?dryRun=All`, other);
    assert.equal(made['kind'], object['kind'], JSON.stringify(made));
  }
});

test('what a role or binding has lost comes back, and what was added to it stays', () => {
  const { world, ask } = cluster();
  const extra = { verbs: ['get'], apiGroups: ['x.io'], resources: ['things'] };
  ask('PATCH', `${ROLES}/system:basic-user`, { rules: [extra], metadata: { labels: null } });
  const joe = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'joe' };
  ask('PATCH', `${BINDINGS}/system:basic-user`, { subjects: [joe] });
  const off = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' };
  ask('PATCH', `${ROLES}/system:discovery`, { rules: [], metadata: { annotations: off } });
  upkeepPolicy(world);
  const role = ask('GET', `${ROLES}/system:basic-user`);
  assert.deepEqual(listAt(role, 'rules')[0], extra);
  assert.equal(listAt(role, 'rules').length, 3);
  assert.deepEqual(objectAt(role, 'metadata', 'labels'), {
    'kubernetes.io/bootstrapping': 'rbac-defaults',
  });
  const subjects = listAt(ask('GET', `${BINDINGS}/system:basic-user`), 'subjects');
  assert.deepEqual(
    subjects.map((one) => stringAt(one, 'name')),
    ['joe', 'system:authenticated'],
  );
  assert.deepEqual(listAt(ask('GET', `${ROLES}/system:discovery`), 'rules'), []);
  const revision = (): string =>
    stringAt(ask('GET', `${ROLES}/system:basic-user`), 'metadata', 'resourceVersion');
  const before = revision();
  upkeepPolicy(world);
  assert.equal(revision(), before, 'nothing is lacking: nothing is written');
});

test('a binding that names another role is made anew, unless somebody has it kept', () => {
  const { world, ask } = cluster();
  const metadata = (annotations: JsonObject): JsonObject => ({
    name: 'system:basic-user',
    annotations,
  });
  const joe = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'joe' };
  const admin = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' };
  const remake = (annotations: JsonObject): JsonObject => {
    ask('DELETE', `${BINDINGS}/system:basic-user`);
    const body = { metadata: metadata(annotations), subjects: [joe], roleRef: admin };
    const made = ask('POST', BINDINGS, body);
    upkeepPolicy(world);
    const after = ask('GET', `${BINDINGS}/system:basic-user`);
    const isSame = stringAt(made, 'metadata', 'uid') === stringAt(after, 'metadata', 'uid');
    return { isSame, role: stringAt(after, 'roleRef', 'name'), subjects: after['subjects'] ?? [] };
  };
  assert.deepEqual(remake({ 'rbac.authorization.kubernetes.io/autoupdate': 'false' }), {
    isSame: true,
    role: 'admin',
    subjects: [joe],
  });
  assert.deepEqual(remake({ team: 'a' }), {
    isSame: false,
    role: 'system:basic-user',
    subjects: [{ ...joe, kind: 'Group', name: 'system:authenticated' }],
  });
});

const QUESTIONS = {
  'read /version': { nonResourceAttributes: { verb: 'get', path: '/version' } },
  'read /metrics': { nonResourceAttributes: { verb: 'get', path: '/metrics' } },
  'read the keys of tokens': { nonResourceAttributes: { verb: 'get', path: '/openid/v1/jwks' } },
  'write any path': { nonResourceAttributes: { verb: 'put', path: '/any' } },
  'review itself': {
    resourceAttributes: {
      verb: 'create',
      group: 'authorization.k8s.io',
      resource: 'selfsubjectaccessreviews',
    },
  },
  'list secrets': { resourceAttributes: { verb: 'list', resource: 'secrets' } },
  'act as any group': { resourceAttributes: { verb: 'impersonate', resource: 'groups' } },
} as const;

test('a group may do what its roles or its grant say, and only masters may do everything', () => {
  const { ask } = cluster();
  const bound = bootstrapPolicy()
    .flatMap((one) => listAt(one, 'subjects'))
    .filter((subject) => stringAt(subject, 'kind') === 'Group')
    .map((subject) => stringAt(subject, 'name'));
  const without = ['system:nodes', 'megaplane:controllers'];
  const groups = new Set([...bound, CONTROLLERS_GROUP, NODES_GROUP, ...without]);
  const may = (group: string, question: JsonObject): boolean => {
    const spec = { user: 'u', groups: [group], ...question };
    const answer = ask('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
    return objectAt(answer, 'status')?.['allowed'] === true;
  };
  const shown = [...groups].toSorted().map((group) => {
    const allowed = Object.entries(QUESTIONS).filter(([, question]) => may(group, question));
    return `${group}: ${allowed.map(([name]) => name).join(', ')}`;
  });
  assert.deepEqual(shown, [
    'megaplane:controllers: ',
    'system:authenticated: read /version, review itself',
    `system:masters: ${Object.keys(QUESTIONS).join(', ')}`,
    'system:megaplane:controllers: review itself, list secrets, act as any group',
    'system:megaplane:nodes: list secrets',
    'system:monitoring: read /metrics',
    'system:nodes: ',
    'system:serviceaccounts: read the keys of tokens',
    'system:unauthenticated: read /version',
  ]);
});
