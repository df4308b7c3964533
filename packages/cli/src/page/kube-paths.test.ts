import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCollection, isObjectPath, namedBy } from './kube-paths.ts';

test('collections and objects are open', () => {
  for (const path of [
    '/api/v1/pods',
    '/api/v1/nodes',
    '/api/v1/namespaces',
    '/api/v1/namespaces/default/pods',
    '/apis/apps/v1/deployments',
    '/apis/apps/v1/namespaces/kube-system/deployments',
  ]) {
    assert(isCollection(path), path);
  }
  for (const path of [
    '/api/v1/nodes/node-0',
    '/api/v1/namespaces/default',
    '/api/v1/namespaces/default/pods/web-0',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node',
    '/apis/apps/v1/namespaces/default/deployments/web',
  ]) {
    assert(isObjectPath(path), path);
  }
});

test('ways into things, and paths that lead elsewhere, are closed', () => {
  for (const path of [
    '/api/v1/nodes/node-0/proxy',
    '/api/v1/nodes/node-0/proxy/run',
    '/api/v1/namespaces/default/pods/web-0/exec',
    '/api/v1/namespaces/default/pods/web-0/proxy/',
    '/api/v1/namespaces/default/serviceaccounts/default/token',
    '/api/v1/namespaces/default/pods/../secrets/x',
    '/api/v1/namespaces/default/pods/%2e%2e',
    '/api/v1/namespaces/default/pods/a%2fexec',
    '/api/v1/namespaces/default/pods/%',
    '/api/v1/pods?watch=1',
    '/metrics',
    '/logs/x',
    '//api/v1/pods',
    '',
  ]) {
    assert(!isCollection(path), path);
    assert(!isObjectPath(path), path);
  }
});

test('what a path names', () => {
  assert.deepEqual(namedBy('/apis/apps/v1/namespaces/a/deployments/web'), {
    group: 'apps',
    version: 'v1',
    namespace: 'a',
    resource: 'deployments',
    name: 'web',
  });
  assert.equal(namedBy('/api/v1/namespaces/a').resource, 'namespaces');
  assert.equal(namedBy('/api/v1/namespaces/a').name, 'a');
  assert.equal(namedBy('/api/v1/nodes').resource, 'nodes');
});
