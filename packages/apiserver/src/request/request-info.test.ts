import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isUnrouted, parsePath, parseRequest, pathBehind } from './request-info.ts';

/** One line per request: verb group/version namespace resource/name/subresource. */
function describe(method: string, target: string): string {
  const info = parseRequest(method, target);
  if (info === null) return 'malformed';
  if (!info.isResource) return `${info.verb} ${info.path}`;
  const parts = [info.resource, info.name, info.subresource].filter((part) => part !== '');
  return `${info.verb} ${info.group}/${info.version} [${info.namespace}] ${parts.join('/')}`;
}

test('paths of resources and of everything else are told apart', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['GET', '/api/v1/pods', 'list /v1 [] pods'],
    ['GET', '/api/v1/namespaces/a/pods?watch=1', 'list /v1 [a] pods'],
    ['GET', '/api/v1/namespaces/a/pods/p', 'get /v1 [a] pods/p'],
    ['POST', '/api/v1/namespaces/a/pods/p/binding', 'create /v1 [a] pods/p/binding'],
    ['GET', '/api/v1/namespaces', 'list /v1 [] namespaces'],
    ['GET', '/api/v1/namespaces/a', 'get /v1 [a] namespaces/a'],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update /v1 [a] namespaces/a/finalize'],
    ['PUT', '/api/v1/namespaces/a/status', 'update /v1 [a] namespaces/a/status'],
    [
      'DELETE',
      '/apis/apps/v1/namespaces/a/deployments',
      'deletecollection apps/v1 [a] deployments',
    ],
    ['PATCH', '/apis/apps/v1/namespaces/a/deployments/d', 'patch apps/v1 [a] deployments/d'],
    ['GET', '/api/v1/watch/pods', 'watch /v1 [] pods'],
    ['GET', '/api/v1', 'get /api/v1'],
    ['GET', '/apis/apps/v1', 'get /apis/apps/v1'],
    ['GET', '/apis/', 'get /apis/'],
    ['GET', '/healthz', 'get /healthz'],
    ['GET', '/', 'get /'],
    ['GET', '/api/v1/namespaces/a/configmaps/x%2Fy', 'get /v1 [a] configmaps/x/y'],
    ['GET', '/api/v1/namespaces/a/configmaps/x%zz', 'malformed'],
  ];
  for (const [method, target, expected] of cases) {
    assert.equal(describe(method, target), expected, `${method} ${target}`);
  }
});

test('the path is told as it was written, decoded, and empty segments count', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['/api/v1/pods', '/api/v1/pods', 'list /v1 [] pods'],
    ['//api/v1/pods/', '//api/v1/pods/', 'list /v1 [] pods'],
    ['/api/v1/%70ods', '/api/v1/pods', 'list /v1 [] pods'],
    ['/api/v1//pods', '/api/v1//pods', 'get /v1 [] pods'],
    ['/api/v1/namespaces//pods', '/api/v1/namespaces//pods', 'list /v1 [] pods'],
  ];
  for (const [target, path, expected] of cases) {
    assert.equal(parseRequest('GET', target)?.path, path);
    assert.equal(describe('GET', target), expected);
  }
  assert.equal(parseRequest('FOO', '/api/v1/pods')?.verb, '');
  assert.equal(parseRequest('GET', '/api/v1/watch')?.isBroken, true);
});

test('what was asked for before changes nothing about a path', () => {
  const words = [
    'api',
    'apis',
    'v1',
    'namespaces',
    'pods',
    'watch',
    'proxy',
    'status',
    'a',
    'b',
    '',
  ];
  const segments = fc.array(fc.constantFrom(...words), { maxLength: 9 });
  const start = fc.constantFrom(
    '/',
    '/api/v1/',
    '/apis/g/v1/',
    '/api/v1/namespaces/a/',
    '//api/v1/',
  );
  const method = fc.constantFrom('GET', 'PUT', 'POST', 'FOO');
  fc.assert(
    fc.property(method, start, segments, (verb, before, after) => {
      const path = before + after.join('/');
      assert.deepEqual(parseRequest(verb, path), parsePath(verb, path));
      assert.deepEqual(parseRequest(verb, `${path}?x=/y`), parsePath(verb, path));
    }),
    { numRuns: 3000, examples: [['PUT', '/api/v1/', ['proxy', 'a', 'b', 'b']]] },
  );
  for (const path of ['/api/v1/proxy/a/b/b', '/api/v1/proxy/a/b/c', '/api/v1/proxy/a/b']) {
    assert.deepEqual(parseRequest('PUT', path), parsePath('PUT', path));
  }
});

test('whether a namespace stands before a resource is told, and not found out again', () => {
  const cases: readonly (readonly [string, boolean, string])[] = [
    ['/api/v1/namespaces/foo', false, 'namespaces/foo'],
    ['/api/v1/namespaces/foo/status', false, 'namespaces/foo'],
    ['/api/v1/namespaces/foo/namespaces/bar', true, 'namespaces/bar'],
    ['/apis//v1/namespaces/foo/namespaces/bar', true, 'namespaces/bar'],
    ['/api/v1/watch/namespaces/foo', false, 'namespaces/foo'],
    ['/api/v1/watch/namespaces/foo/namespaces/bar', true, 'namespaces/bar'],
    ['/api/v1/namespaces//nodes/x', true, 'nodes/x'],
    ['/api/v1/namespaces/foo/nodes/x', true, 'nodes/x'],
    ['/api/v1/nodes/x', false, 'nodes/x'],
    ['/api/v1/namespaces/a%2Fpods%2Fb', true, 'pods/b'],
    ['/api/v1/nodes/%C5%AEode', false, 'nodes/\u016eode'],
    ['/api/v1/nodes/\xc5\xaeode', false, 'nodes/\u016eode'],
  ];
  for (const [target, isInside, object] of cases) {
    const info = parseRequest('GET', target);
    assert.equal(info?.isInside, isInside, target);
    assert.equal(`${info.resource}/${info.name}`, object, target);
  }
  // upstream takes no subresource from the form with `proxy` in front
  assert.equal(parseRequest('GET', '/api/v1/proxy/nodes/x/status')?.subresource, '');
  assert.equal(parseRequest('GET', '/api/v1/watch/nodes/x/status')?.subresource, 'status');
});

test('what stands behind a subresource is read from the path as it was understood', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['/api/v1/nodes/n/proxy', ''],
    ['/api/v1/nodes/n/proxy/', '/'],
    ['/api/v1/nodes/n/proxy/a//b/', '/a//b/'],
    ['/api/v1/namespaces/a%2Fpods%2Fx%2Fproxy/pods/y/proxy/secret', '/pods/y/proxy/secret'],
    ['/api/v1/namespaces/a/pods/x/proxy/b%20c', '/b c'],
  ];
  for (const [target, behind] of cases) {
    const info = parseRequest('GET', target);
    assert.ok(info !== null);
    assert.equal(pathBehind(info), behind, target);
  }
});

test('groups have names, and no path begins with two slashes', () => {
  const info = (path: string) => parsePath('GET', path);
  for (const path of ['/apis//v1/pods', '//api/v1/pods', '//apis/apps/v1/deployments']) {
    assert.equal(isUnrouted(info(path)), true, path);
  }
  for (const path of ['/api/v1/pods', '/apis/apps/v1/deployments', '/api//pods']) {
    assert.equal(isUnrouted(info(path)), false, path);
  }
});
