import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { identityOf } from '../request/identity.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { AccessModel } from '../testing/access.sim.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const METHODS = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

/** Everything in the store but what is in the namespace `foo`. */
function elsewhere(storage: StorageModel): string {
  const rows: string[] = [];
  storage.page(Buffer.from('/'), Buffer.from('0'), 0, (row) => {
    const key = row.key.toString('utf8', row.keyStart, row.keyEnd);
    const isOwn = key.includes('/foo/') || key === '/registry/namespaces/foo';
    if (!isOwn) rows.push(`${key} ${row.modRevision}`);
    return true;
  });
  return rows.join('\n');
}

/** Ann may do everything in the namespace `foo`; whatever is elsewhere is marked. */
function annInFoo() {
  const storage = new StorageModel();
  const model = new AccessModel({ storage, tokenReaders: () => [(name) => identityOf(name, [])] });
  const make = (path: string, object: object): void => {
    const { status, text } = model.ask('POST', path, object);
    assert.equal(status, 201, text);
  };
  const annotations = { marked: 'elsewhere' };
  for (const name of ['foo', 'bar']) {
    const metadata = name === 'foo' ? { name } : { name, annotations };
    make('/api/v1/namespaces', { metadata });
    const own = name === 'foo' ? { name: 'own' } : { name, annotations };
    make(`/api/v1/namespaces/${name}/configmaps`, { metadata: own });
  }
  make('/api/v1/nodes', { metadata: { name: 'bar', annotations } });
  make(`${RBAC}/clusterroles`, { metadata: { name: 'bar', annotations }, rules: [] });
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  make(`${RBAC}/namespaces/foo/roles`, { metadata: { name: 'all' }, rules });
  make(`${RBAC}/namespaces/foo/rolebindings`, {
    metadata: { name: 'ann' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'all' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
  });
  const before = elsewhere(storage);
  const asAnn = (method: string, path: string) => {
    const body =
      method === 'PATCH' || method === 'PUT' || method === 'POST'
        ? { metadata: { name: 'bar', annotations: { changed: 'by ann' } } }
        : undefined;
    const type = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
    const answer = model.ask(method, path, body, 'ann', type);
    assert.doesNotMatch(answer.text, /"marked"/, `${method} ${path} showed what is elsewhere`);
    assert.equal(elsewhere(storage), before, `${method} ${path} changed what is elsewhere`);
    return answer;
  };
  return { model, asAnn };
}

test('who may do all in one namespace reaches nothing else by another way to write a path', () => {
  const { model, asAnn } = annInFoo();
  assert.equal(asAnn('GET', '/api/v1/namespaces/foo/configmaps/own').status, 200);
  assert.match(model.ask('GET', '/api/v1/namespaces/bar').text, /"marked"/);
  const paths = [
    '/apis//v1/namespaces/foo/namespaces/bar',
    '/apis//v1/namespaces/foo/namespaces',
    '/apis//v1/namespaces/foo/nodes/bar',
    '/api//v1/namespaces/foo/namespaces/bar',
    '//api/v1/namespaces/foo/namespaces/bar',
    '/api/v1/namespaces/foo/namespaces/bar',
    '/api/v1/namespaces/foo/namespaces/bar/status',
    '/api/v1/namespaces/foo/namespaces/bar/finalize',
    '/api/v1/namespaces/foo/namespaces',
    '/api/v1/namespaces/foo/nodes/bar',
    '/api/v1/namespaces/foo/nodes/bar/proxy/x',
    '/api/v1/watch/namespaces/foo/namespaces/bar',
    '/api/v1/watch/namespaces/foo/namespaces',
    '/api/v1/watch/namespaces/foo/nodes',
    '/api/v1/proxy/namespaces/foo/nodes/bar',
    '/api/v1/namespaces/foo%2Fnamespaces%2Fbar',
    '/api/v1/namespaces/foo/..%2Fbar/configmaps',
    '/api/v1/namespaces/foo/../bar/configmaps/bar',
    '/api/v1/namespaces/foo/configmaps/..%2F..%2Fbar',
    '/api/v1/namespaces/foo/configmaps/..%2Fbar%2Fbar',
    '/api/v1/namespaces/foo%00/configmaps/bar',
    '/api/v1/namespaces/foo//configmaps/bar',
    `${RBAC}/namespaces/foo/clusterroles/bar`,
    `${RBAC}/namespaces/foo/clusterroles`,
    `${RBAC}/watch/namespaces/foo/clusterroles/bar`,
    '/api/v1/namespaces/foo/configmaps?fieldSelector=metadata.namespace%3Dbar',
    '/api/v1/namespaces/foo/configmaps?fieldSelector=metadata.name%3D..%2Fbar',
    '/api/v1/namespaces?fieldSelector=metadata.name%3Dfoo,metadata.name%3Dbar',
  ];
  for (const path of paths) {
    for (const method of METHODS) {
      const { status } = asAnn(method, path);
      if (path.includes('foo/n') && !path.includes('watch')) {
        assert.ok([403, 404, 405].includes(status), `${method} ${path}: ${status}`);
      }
    }
  }
});

test('no path leads out of the namespace that one may do all in', () => {
  const { asAnn } = annInFoo();
  const words = [
    ...['api', 'apis', 'v1', 'rbac.authorization.k8s.io', 'namespaces', 'watch', 'proxy', ''],
    ...['foo', 'bar', 'nodes', 'configmaps', 'clusterroles', 'status', 'finalize', '..', '.'],
    ...['%2F', '%2e%2e', '%00', 'f%6Fo', 'b%61r', '%C5%AE', '\xc5\xae'],
  ];
  const objects = ['namespaces/bar', 'nodes/bar', 'configmaps/bar', 'clusterroles/bar'];
  const word = fc.oneof(fc.constantFrom(...objects), fc.constantFrom(...words));
  const starts = fc.constantFrom(
    ...['/', '/api/v1/', '/apis//v1/', `${RBAC}/`, '//api/v1/', '/api/v1/watch/'],
    ...['/api/v1/namespaces/foo/', '/api/v1/watch/namespaces/foo/', '/apis//v1/namespaces/foo/'],
  );
  const rest = fc.array(word, { minLength: 1, maxLength: 3 });
  const query = fc.constantFrom('', '?watch=1', '?fieldSelector=metadata.name%3Dbar', '?limit=1');
  const request = fc.tuple(fc.constantFrom(...METHODS), starts, rest, query);
  fc.assert(
    fc.property(request, ([method, start, segments, asked]) => {
      asAnn(method, start + segments.join('/') + asked);
    }),
    { seed: 25, numRuns: 2500 },
  );
});
