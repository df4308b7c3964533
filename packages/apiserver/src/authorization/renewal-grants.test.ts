import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { createApiServer } from '../server/assembly.ts';
import { identityOf } from '../request/identity.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { AccessModel } from '../testing/access.sim.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/n/leases/l';
const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/n';

const MEMBER = identityOf('u', ['renewers']);
const OTHER = identityOf('u', []);

function renewingServer() {
  const tokens = new Map([
    ['member', MEMBER],
    ['other', OTHER],
  ]);
  const model = new AccessModel({ tokenReaders: () => [(token) => tokens.get(token) ?? null] });
  const make = (path: string, object: object): void => {
    const { status, text } = model.ask('POST', path, object);
    assert.equal(status, 201, text);
  };
  make('/api/v1/namespaces', { metadata: { name: 'n' } });
  make(LEASE.slice(0, -2), { metadata: { name: 'l' }, spec: { holderIdentity: 'l' } });
  const rules = [{ apiGroups: ['*'], resources: ['leases'], verbs: ['update'] }];
  make(`${RBAC}/roles`, { metadata: { name: 'r' }, rules });
  make(`${RBAC}/rolebindings`, {
    metadata: { name: 'b' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'renewers' }],
  });
  let second = 0;
  const renew = (token: string, headers: Record<string, string> = {}): number => {
    const lease = JSON.parse(model.ask('GET', LEASE).text) as JsonObject;
    const renewTime = `2026-01-02T03:04:${String(second++).padStart(2, '0')}.000000Z`;
    const body = { ...lease, spec: { holderIdentity: 'l', renewTime } };
    return model.ask('PUT', LEASE, body, token, headers).status;
  };
  return { model, renew };
}

test('what a group may renew is not for another user of the same name', () => {
  const { renew } = renewingServer();
  assert.equal(renew('member'), 200);
  assert.equal(renew('member'), 200);
  assert.equal(renew('other'), 403);
  assert.equal(renew('member'), 200);
});

test('a renewal is refused from the moment on that nobody allows it any more', () => {
  const { model, renew } = renewingServer();
  assert.equal(renew('member'), 200);
  assert.equal(model.ask('DELETE', `${RBAC}/rolebindings/b`).status, 200);
  assert.equal(renew('member'), 403);
});

test('who acts for others without saying for whom renews nothing', () => {
  const { renew } = renewingServer();
  assert.equal(renew('member'), 200);
  for (const name of ['impersonate-user', 'impersonate-group', 'impersonate-uid']) {
    assert.notEqual(renew('member', { [name]: 'x' }), 200, name);
  }
});

test('where requests are written down, no renewal goes the short way', () => {
  const edge = {
    nowMs: () => 0,
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const auditor = {
    clockMs: () => 0,
    received: (_: unknown, then: (isKept: boolean) => void) => then(true),
    started: () => undefined,
    complete: () => undefined,
    unauthenticated: () => undefined,
    refused: () => undefined,
    tick: () => undefined,
    addTo: () => undefined,
  };
  const storage = new StorageModel();
  const api = createApiServer({ storage, edge, address: '', tracking: { auditor } });
  assert.equal(api.parts.renewals, null);
});
