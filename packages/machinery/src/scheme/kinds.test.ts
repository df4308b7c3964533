import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import { generate } from '../../tools/generate.ts';
import {
  allStorages,
  apiVersionOf,
  findKind,
  findResource,
  findStorage,
  groups,
  groupVersionOf,
  isStored,
  resources,
} from './kinds.ts';
import { findTypeOfKind } from './schema.ts';

const SHARED = corpus('kubernetes');

test('the committed tables are what the generator makes of their sources', () => {
  for (const [name, text] of generate(SHARED)) {
    const committed = readFileSync(join(import.meta.dirname, 'tables', name), 'utf8');
    assert.ok(committed === text, `${name} is stale: node packages/machinery/tools/generate.ts`);
  }
});

test('protobuf numbers agree with the published definitions', () => {
  const published = JSON.parse(readFileSync(join(SHARED, 'proto-fields.json'), 'utf8')) as Record<
    string,
    [number: number, name: string, type: string][]
  >;
  let compared = 0;
  for (const resource of resources()) {
    const type = findTypeOfKind(resource.apiVersion, resource.kind);
    const fields = published[`k8s.io.api.${type?.name ?? ''}`];
    if (type === undefined || fields === undefined) continue;
    for (const [number, name] of fields) {
      const field = type.field(name);
      if (field === undefined) continue;
      assert.equal(field.number, number, `${type.name}.${name}`);
      compared++;
    }
  }
  assert.ok(compared > 200);
});

test('pods, nodes and deployments are what kubectl expects', () => {
  const pods = findResource('', 'v1', 'pods');
  assert.deepEqual(pods?.shortNames, ['po']);
  assert.deepEqual(pods.categories, ['all']);
  assert.equal(pods.singular, 'pod');
  assert.equal(pods.listKind, 'PodList');
  assert.equal(pods.storage.prefix, '/registry/pods/');
  assert.deepEqual(pods.subresources.get('eviction'), {
    name: 'eviction',
    verbs: ['create'],
    group: 'policy',
    version: 'v1',
    kind: 'Eviction',
  });
  assert.equal(findKind('v1', 'Node')?.storage.prefix, '/registry/minions/');
  assert.equal(findKind('v1', 'Service')?.storage.prefix, '/registry/services/specs/');
  assert.equal(findKind('apps/v1', 'Deployment')?.storage.name, 'deployments.apps');
  assert.equal(findResource('', 'v1', 'namespaces')?.verbs.includes('deletecollection'), false);
});

test('resources that are one set of objects share a storage', () => {
  const events = findStorage('events');
  assert.deepEqual(
    events?.resources.map((resource) => resource.apiVersion),
    ['v1', 'events.k8s.io/v1'],
  );
  assert.equal(events.apiVersion, 'v1');
  const autoscalers = findStorage('horizontalpodautoscalers.autoscaling');
  assert.equal(autoscalers?.apiVersion, 'autoscaling/v2');
  assert.equal(autoscalers.resources.length, 2);
});

test('discovery lists groups by priority and only what is served', () => {
  const names = groups().map((group) => group.name);
  assert.deepEqual(names.slice(0, 4), ['apiregistration.k8s.io', '', 'apps', 'events.k8s.io']);
  const scaling = groups().find((group) => group.name === 'autoscaling');
  assert.deepEqual(
    scaling?.versions.map((version) => version.version),
    ['v2', 'v1'],
  );
  assert.equal(names.includes('internal.apiserver.k8s.io'), false);
  assert.ok(groups(() => true).length > groups().length);
});

test('ids are dense, prefixes unique, every stored kind has a type', () => {
  for (const [index, resource] of resources().entries()) {
    assert.equal(resource.id, index);
    assert.equal(findResource(resource.group, resource.version, resource.resource), resource);
    assert.ok(findTypeOfKind(resource.apiVersion, resource.kind), resource.kind);
    if (isStored(resource)) assert.ok(findTypeOfKind(resource.apiVersion, resource.listKind));
  }
  const prefixes = new Set(allStorages().map((storage) => storage.prefix));
  assert.equal(prefixes.size, allStorages().length);
  for (const [index, storage] of allStorages().entries()) assert.equal(storage.id, index);
});

test('api versions are split and joined', () => {
  assert.deepEqual(groupVersionOf('v1'), { group: '', version: 'v1' });
  assert.deepEqual(groupVersionOf('apps/v1'), { group: 'apps', version: 'v1' });
  assert.equal(groupVersionOf('a/b/c'), undefined);
  assert.equal(apiVersionOf('', 'v1'), 'v1');
  assert.equal(apiVersionOf('apps', 'v1'), 'apps/v1');
});
