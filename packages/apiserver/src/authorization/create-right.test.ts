import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccessModel } from '../testing/access.sim.ts';
import type { Authorizer } from './authorization.ts';
import { identityOf } from '../request/identity.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const DEFINITION = {
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};

/** Paths of things that are not there, by how their kind is called. */
const KINDS = {
  ConfigMap: ['v1', '/api/v1/namespaces/n/configmaps'],
  Lease: ['coordination.k8s.io/v1', '/apis/coordination.k8s.io/v1/namespaces/n/leases'],
  Namespace: ['v1', '/api/v1/namespaces'],
  Role: ['rbac.authorization.k8s.io/v1', '/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles'],
  Thing: ['example.com/v1', '/apis/example.com/v1/namespaces/n/things'],
} as const;

/** Kinds that a PUT creates. */
const BY_PUT = ['Lease', 'Role'];

/** Somebody called by the verbs that they may use, `update+create`. */
function server(decide: (verbs: readonly string[], verb: string) => boolean | 'later') {
  const storage = new StorageModel();
  let later: (() => void)[] = [];
  const asked = new Set<string>();
  const authorize: Authorizer = ({ user }, { verb, resource }) => {
    const decision = decide(user.split('+'), verb);
    const question = `${user} ${verb} ${resource}`;
    if (decision === 'later' && !asked.has(question)) {
      asked.add(question);
      return { allowed: false, reason: '', pending: (then) => void later.push(then) };
    }
    return { allowed: decision !== false, reason: decision === false ? 'not that' : '' };
  };
  const model = new AccessModel({
    storage,
    authorizers: [authorize],
    tokenReaders: () => [(token) => identityOf(token, [])],
  });
  const put = (path: string, object: object): void => {
    assert.equal(model.ask('POST', path, object).status, 201, path);
  };
  put('/api/v1/namespaces', { metadata: { name: 'n' } });
  put('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', DEFINITION);
  const settle = (): void => {
    while (later.length > 0) {
      const now = later;
      later = [];
      for (const then of now) then();
    }
  };
  return { model, settle };
}

const may = (verbs: readonly string[], verb: string): boolean => verbs.includes(verb);

test('a PUT or an apply that creates wants the right to create, whatever the kind', () => {
  const { model } = server(may);
  for (const [kind, [apiVersion, path]] of Object.entries(KINDS)) {
    const object = { apiVersion, kind, metadata: { name: 'x' } };
    const one = `${path}/x`;
    const refused = model.ask('PATCH', `${one}?fieldManager=m`, object, 'patch', APPLY);
    assert.equal(refused.status, 403, `${kind}: ${refused.text}`);
    assert.match(refused.text, /User \\"patch\\" cannot create resource .*: not that/);
    const tried = `${one}?fieldManager=m&dryRun=All`;
    assert.equal(model.ask('PATCH', tried, object, 'patch', APPLY).status, 403, kind);
    for (const type of ['merge-patch', 'strategic-merge-patch', 'json-patch']) {
      const body = type === 'json-patch' ? [] : object;
      const headers = { 'content-type': `application/${type}+json` };
      const { status } = model.ask('PATCH', one, body, 'patch+create', headers);
      assert.ok(
        status === 404 || (kind === 'Thing' && status === 415),
        `${kind} ${type} ${status}`,
      );
    }
    if (BY_PUT.includes(kind)) {
      assert.equal(model.ask('PUT', one, object, 'update').status, 403, kind);
      assert.equal(model.ask('GET', one).status, 404, kind);
      assert.equal(model.ask('PUT', one, object, 'update+create').status, 201, kind);
      // of a Lease, the revision has to be named
      const changed = kind === 'Lease' ? 422 : 200;
      assert.equal(model.ask('PUT', one, object, 'update').status, changed, kind);
      assert.equal(model.ask('DELETE', one).status, 200, kind);
    } else {
      assert.equal(model.ask('PUT', one, object, 'update+create').status, 404, kind);
    }
    assert.equal(model.ask('GET', one).status, 404, kind);
    const applied = model.ask('PATCH', `${one}?fieldManager=m`, object, 'patch+create', APPLY);
    assert.equal(applied.status, 201, applied.text);
    // what is there is changed by the right to change it
    const again = model.ask('PATCH', `${one}?fieldManager=m`, object, 'patch', APPLY);
    assert.equal(again.status, 200, again.text);
  }
});

test('an apply to a part of what is not there creates nothing', () => {
  const { model } = server(may);
  const [apiVersion, path] = KINDS.Thing;
  const object = { apiVersion, kind: 'Thing', metadata: { name: 'x' } };
  const status = `${path}/x/status?fieldManager=m`;
  assert.equal(model.ask('PATCH', status, object, 'patch+create', APPLY).status, 404);
});

test('rules are told before the right is asked for, and what nothing may be called', () => {
  const { model } = server(may);
  const [apiVersion, path] = KINDS.ConfigMap;
  const object = { apiVersion, kind: 'ConfigMap', metadata: { name: 'X_1' } };
  const { status, text } = model.ask('PATCH', `${path}/X_1?fieldManager=m`, object, 'patch', APPLY);
  assert.equal(status, 422, text);
});

test('a right that somebody else is asked for is waited for', () => {
  const { model, settle } = server((verbs, verb) =>
    verb === 'create' ? (verbs.includes('create') ? 'later' : false) : true,
  );
  const [apiVersion, path] = KINDS.ConfigMap;
  const object = { apiVersion, kind: 'ConfigMap', metadata: { name: 'x' } };
  const asked = model.ask('PATCH', `${path}/x?fieldManager=m`, object, 'patch+create', APPLY);
  assert.equal(asked.status, 0);
  settle();
  model.settle();
  assert.equal(asked.status, 201, asked.text);
});
