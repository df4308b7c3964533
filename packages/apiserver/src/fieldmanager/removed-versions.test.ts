import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, messageOf } from '../testing/admitting.sim.ts';

const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.x.io';
const APPLY = 'application/apply-patch+yaml';

function definition(...names: string[]): object {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    metadata: { name: 'as.x.io' },
    spec: {
      group: 'x.io',
      scope: 'Namespaced',
      names: { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' },
      versions: names.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: schema },
      })),
    },
  };
}

test('an owner of a version that is gone is in the way of applies, lost to updates', async () => {
  const { ask, expect } = admittingModel();
  expect(201, 'POST', DEFINITION.slice(0, -'/as.x.io'.length), definition('v2', 'v1'));
  await new Promise((resolve) => void setTimeout(resolve, 20));
  const apply = (version: string, manager: string, value: number) => {
    const path = `/apis/x.io/${version}/namespaces/n/as/a?fieldManager=${manager}`;
    const object = { apiVersion: `x.io/${version}`, kind: 'A', spec: { [manager]: value } };
    const body = { ...object, metadata: { name: 'a' } };
    return ask('PATCH', path, body, { 'content-type': APPLY });
  };
  assert.equal(apply('v1', 'old', 1).status, 201);
  assert.equal(apply('v2', 'new', 1).status, 200);
  const owners = (text: string): unknown[] => {
    const { metadata } = JSON.parse(text) as { metadata: { managedFields?: unknown[] } };
    return metadata.managedFields ?? [];
  };
  const stored = expect(200, 'GET', DEFINITION);
  const { metadata } = JSON.parse(stored.text) as { metadata: { resourceVersion: string } };
  const { resourceVersion } = metadata;
  const spec = { spec: (definition('v2') as { spec: object }).spec };
  expect(200, 'PATCH', DEFINITION, { metadata: { resourceVersion }, ...spec });
  expect(200, 'PATCH', `${DEFINITION}/status`, { status: { storedVersions: ['v2'] } });
  await new Promise((resolve) => void setTimeout(resolve, 20));
  for (const manager of ['new', 'other']) {
    const refused = apply('v2', manager, 2);
    assert.equal(refused.status, 500, refused.text);
    const why = 'request to convert CR to an invalid group/version: x.io/v1';
    assert.equal(messageOf(refused), why);
  }
  const path = '/apis/x.io/v2/namespaces/n/as/a';
  assert.equal(owners(expect(200, 'GET', path).text).length, 2);
  const updated = ask('PATCH', path, { spec: { new: 3 } });
  assert.equal(updated.status, 200, updated.text);
  assert.deepEqual(owners(updated.text), []);
  assert.equal(apply('v2', 'new', 4).status, 409);
});
