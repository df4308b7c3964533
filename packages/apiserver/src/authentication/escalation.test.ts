import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { identityOf } from '../request/identity.ts';
import { AccessModel } from '../testing/access.sim.ts';

const GROUP = 'rbac.authorization.k8s.io';
const CLUSTER = `/apis/${GROUP}/v1`;
const LOCAL = `${CLUSTER}/namespaces/n`;
const LIST_PODS = { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] };

interface Told {
  readonly status: number;
  readonly message: string;
}

/** A namespace in which joe may write roles and bindings, and do what `rules` say. */
function cluster(rules: readonly object[] = [LIST_PODS]) {
  const model = new AccessModel({ tokenReaders: () => [(name) => identityOf(name, ['devs'])] });
  const told = (method: string, path: string, body: object, who = 'joe'): Told => {
    const { status, text } = model.ask(method, path, body, who);
    return { status, message: stringAt(JSON.parse(text) as JsonObject, 'message') };
  };
  const admin = (path: string, body: object): void => {
    const answer = model.ask('POST', path, body);
    assert.equal(answer.status, 201, answer.text);
  };
  admin('/api/v1/namespaces', { metadata: { name: 'n' } });
  const writes = { apiGroups: [GROUP], resources: ['*'], verbs: ['create', 'update', 'patch'] };
  admin(`${CLUSTER}/clusterroles`, { metadata: { name: 'joes' }, rules: [writes, ...rules] });
  const joe = { kind: 'User', apiGroup: GROUP, name: 'joe' };
  const roleRef = { apiGroup: GROUP, kind: 'ClusterRole', name: 'joes' };
  admin(`${CLUSTER}/clusterrolebindings`, { metadata: { name: 'joes' }, subjects: [joe], roleRef });
  return { told, admin };
}

test('a role holds what its author may do, and nothing more', () => {
  const { told } = cluster([
    LIST_PODS,
    { apiGroups: ['apps'], resources: ['*/scale'], verbs: ['*'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['get'] },
    { nonResourceURLs: ['/metrics/*'], verbs: ['get'] },
  ]);
  let count = 0;
  const make = (rule: object, path = `${LOCAL}/roles`): Told =>
    told('POST', path, { metadata: { name: `r${++count}` }, rules: [rule] });
  const allowed = [
    LIST_PODS,
    { apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['get'] },
  ];
  for (const rule of allowed) assert.equal(make(rule).status, 201, JSON.stringify(rule));
  const cases: [object, string][] = [
    [
      { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['list', 'delete', 'get'] },
      '{APIGroups:[""], Resources:["nodes"], Verbs:["list" "delete" "get"]}\n' +
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
    ],
    [
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] },
      '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}',
    ],
    [
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ],
    [
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['a', 'b'], verbs: ['get'] },
      '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
    ],
  ];
  for (const [rule, missing] of cases) {
    assert.deepEqual(make(rule), {
      status: 403,
      message:
        `roles.${GROUP} "r${count}" is forbidden: user "joe" (groups=["devs" ` +
        '"system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
        missing,
    });
  }
  const paths = (path: string): number =>
    make({ nonResourceURLs: [path], verbs: ['get'] }, `${CLUSTER}/clusterroles`).status;
  assert.deepEqual(['/metrics/a', '/metrics/*', '/metrics', '/*'].map(paths), [201, 201, 403, 403]);
});

test('a refusal names the roles that bindings of the author lack', () => {
  const { told, admin } = cluster();
  const joe = { kind: 'User', apiGroup: GROUP, name: 'joe' };
  const devs = { kind: 'Group', apiGroup: GROUP, name: 'devs' };
  const bind = (path: string, subject: object, name: string): void =>
    admin(path, {
      metadata: { name },
      subjects: [subject],
      roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name },
    });
  bind(`${CLUSTER}/clusterrolebindings`, devs, 'gone-a');
  const rules = [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }];
  const why = (): string => {
    const { message } = told('POST', `${LOCAL}/roles`, { metadata: { name: 'r' }, rules });
    return message.slice(message.indexOf('; '));
  };
  const lost = (name: string): string => `roles.${GROUP} "${name}" not found`;
  assert.equal(why(), `; resolution errors: [${lost('gone-a')}]`);
  bind(`${LOCAL}/rolebindings`, joe, 'gone-b');
  assert.equal(why(), `; resolution errors: [[${lost('gone-a')}, ${lost('gone-b')}]]`);
  const { message } = told('POST', '/api/v1/namespaces/n/secrets', {});
  const role = (name: string): string => `clusterrole.${GROUP} "${name}" not found`;
  assert.ok(message.endsWith(`RBAC: [${role('gone-a')}, ${role('gone-b')}]`), message);
});

test('a role that exists is guarded as a new one, but for its finalizers and owners', () => {
  const { told, admin } = cluster();
  const rules = [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }];
  admin(`${LOCAL}/roles`, { metadata: { name: 'r' }, rules });
  const change = (metadata: object, more: object = {}): number =>
    told('PUT', `${LOCAL}/roles/r`, { metadata: { name: 'r', ...metadata }, rules, ...more })
      .status;
  assert.equal(change({ finalizers: ['a/b'] }), 200);
  assert.equal(change({ labels: { a: 'b' } }), 403);
  assert.equal(change({}, { rules: [LIST_PODS] }), 200);
});

test('a binding needs what its role grants, or the right to bind it', () => {
  const bind = {
    apiGroups: [GROUP],
    resources: ['clusterroles'],
    resourceNames: ['free'],
    verbs: ['bind'],
  };
  const { told, admin } = cluster([LIST_PODS, bind]);
  const nodes = { apiGroups: [''], resources: ['nodes'], verbs: ['get'] };
  for (const [name, rule] of [
    ['less', LIST_PODS],
    ['more', nodes],
    ['free', nodes],
  ] as const) {
    admin(`${CLUSTER}/clusterroles`, { metadata: { name }, rules: [rule] });
  }
  const make = (path: string, kind: string, name: string): Told =>
    told('POST', path, { metadata: { name }, roleRef: { apiGroup: GROUP, kind, name } });
  for (const path of [`${LOCAL}/rolebindings`, `${CLUSTER}/clusterrolebindings`]) {
    const statuses = ['less', 'more', 'free', 'none'].map(
      (name) => make(path, 'ClusterRole', name).status,
    );
    assert.deepEqual(statuses, [201, 403, 201, 404]);
  }
  assert.deepEqual(make(`${LOCAL}/rolebindings`, 'Role', 'x'), {
    status: 404,
    message: `rolebindings.${GROUP} "x" not found`,
  });
  assert.deepEqual(make(`${CLUSTER}/clusterrolebindings`, 'Role', 'x'), {
    status: 400,
    message: 'Namespace parameter required.',
  });
  const { status, message } = make(`${LOCAL}/rolebindings`, 'Roll', 'x');
  assert.deepEqual([status, message], [500, 'unsupported role reference kind: "Roll"']);
  const all = cluster([{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]);
  const roll = { metadata: { name: 'x' }, roleRef: { apiGroup: GROUP, kind: 'Roll', name: 'x' } };
  assert.equal(all.told('POST', `${LOCAL}/rolebindings`, roll).status, 500);
});

test('an aggregation rule takes everything, and so does escalation by its verb', () => {
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] };
  const body = { metadata: { name: 'sum' }, aggregationRule };
  const poor = cluster().told('POST', `${CLUSTER}/clusterroles`, body);
  assert.deepEqual(poor, {
    status: 403,
    message:
      `clusterroles.${GROUP} "sum" is forbidden: ` +
      'must have cluster-admin privileges to use the aggregationRule',
  });
  const all = [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ];
  assert.equal(cluster(all).told('POST', `${CLUSTER}/clusterroles`, body).status, 201);
  const escalate = { apiGroups: [GROUP], resources: ['clusterroles'], verbs: ['escalate'] };
  const free = cluster([escalate]);
  assert.equal(free.told('POST', `${CLUSTER}/clusterroles`, body).status, 201);
  const role = { metadata: { name: 'r' }, rules: all };
  assert.equal(free.told('POST', `${CLUSTER}/clusterroles`, role).status, 201);
  assert.equal(free.told('POST', `${LOCAL}/roles`, role).status, 403);
});
