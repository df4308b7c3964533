import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { identityOf } from '../src/request/identity.ts';
import { AccessModel } from '../src/testing/access.sim.ts';
import { StorageModel } from '../src/storage/storage-model.sim.ts';

const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles';

/** Characters whose low bytes are those of others, of one to four bytes each. */
const LETTERS = [
  'A',
  'Ł',
  'n',
  'Ů',
  'ㅁ',
  'é',
  'Ã',
  '©',
  'e\u0301',
  '😀',
  '🥁',
  ':',
  ' ',
  '\u0142',
];

interface Role {
  readonly metadata: { readonly name: string; readonly annotations?: { readonly a?: string } };
}

function rolesServer() {
  const model = new AccessModel({
    storage: new StorageModel(),
    tokenReaders: () => [(name) => identityOf(name, [])],
  });
  const made = model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  assert.equal(made.status, 201, made.text);
  return model;
}

/** A name as clients write it into a path: escaped, or as the bytes that the wire hands over. */
function inPath(name: string, isRaw: boolean): string {
  if (!isRaw || name.includes(' ')) return encodeURIComponent(name);
  return Buffer.from(name).toString('latin1');
}

const name = fc
  .array(fc.constantFrom(...LETTERS), { minLength: 1, maxLength: 3 })
  .map((letters) => letters.join(''));
const step = fc.record({
  what: fc.constantFrom('create', 'get', 'patch', 'delete', 'list', 'select', 'sweep', 'page'),
  name,
  isRaw: fc.boolean(),
});

function namesIn(text: string): string[] {
  const { items } = JSON.parse(text) as { items: Role[] };
  return items.map(({ metadata }) => metadata.name);
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

test('objects are found by the whole of their names, whatever characters these have', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const server = rolesServer();
      const watch = server.ask('GET', `${ROLES}?watch=1&resourceVersion=1`);
      const kept = new Map<string, string>();
      const told: string[] = [];
      let count = 0;
      for (const { what, name: own, isRaw } of steps) {
        const path = `${ROLES}/${inPath(own, isRaw)}`;
        const selector = `?fieldSelector=${encodeURIComponent(`metadata.name=${own}`)}`;
        if (what === 'create') {
          const { status, text } = server.ask('POST', ROLES, { metadata: { name: own } });
          assert.equal(status, kept.has(own) ? 409 : 201, text);
          if (status === 201) told.push(`ADDED ${own}`);
          if (status === 201) kept.set(own, '');
        } else if (what === 'get') {
          const { status, text } = server.ask('GET', path);
          assert.equal(status, kept.has(own) ? 200 : 404, text);
          if (status === 200) assert.equal((JSON.parse(text) as Role).metadata.name, own);
        } else if (what === 'patch') {
          const a = String(++count);
          const type = { 'content-type': 'application/merge-patch+json' };
          const body = { metadata: { annotations: { a } } };
          const { status, text } = server.ask('PATCH', path, body, '', type);
          assert.equal(status, kept.has(own) ? 200 : 404, text);
          if (status === 200) told.push(`MODIFIED ${own}`);
          if (status === 200) kept.set(own, a);
        } else if (what === 'delete') {
          assert.equal(server.ask('DELETE', path).status, kept.has(own) ? 200 : 404);
          if (kept.delete(own)) told.push(`DELETED ${own}`);
        } else if (what === 'sweep') {
          assert.equal(server.ask('DELETE', ROLES + selector).status, 200);
          if (kept.delete(own)) told.push(`DELETED ${own}`);
        } else if (what === 'select') {
          const { text } = server.ask('GET', ROLES + selector);
          assert.deepEqual(namesIn(text), kept.has(own) ? [own] : []);
        } else if (what === 'list') {
          assert.deepEqual(namesIn(server.ask('GET', ROLES).text), [...kept.keys()].sort(byBytes));
        } else {
          assert.deepEqual(pages(server), [...kept.keys()].sort(byBytes));
        }
      }
      for (const [own, a] of kept) {
        const { text } = server.ask('GET', `${ROLES}/${inPath(own, false)}`);
        assert.equal((JSON.parse(text) as Role).metadata.annotations?.a ?? '', a);
      }
      const lines = watch.text.split('\n').filter((line) => line !== '');
      const events = lines.map((line) => {
        const { type, object } = JSON.parse(line) as { type: string; object: Role };
        return `${type} ${object.metadata.name}`;
      });
      assert.deepEqual(events, told);
    }),
    { seed: 141, numRuns: 120 },
  );
});

/** The names of a list that is read two at a time. */
function pages(server: AccessModel): string[] {
  const names: string[] = [];
  let token = '';
  do {
    const { text } = server.ask('GET', `${ROLES}?limit=2&continue=${encodeURIComponent(token)}`);
    names.push(...namesIn(text));
    token = (JSON.parse(text) as { metadata: { continue?: string } }).metadata.continue ?? '';
  } while (token !== '');
  return names;
}

test('a name that looks like another one by its low bytes is another one', () => {
  const server = rolesServer();
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  server.ask('POST', '/api/v1/nodes', { metadata: { name: 'node-0' } });
  server.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'probe-A' }, rules: [] });
  server.ask('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'm' } });
  assert.equal(server.ask('GET', '/api/v1/nodes/node-0').status, 200);
  assert.equal(server.ask('GET', `/api/v1/nodes/${encodeURIComponent('Ůode-0')}`).status, 404);
  const alike = encodeURIComponent('probe-Ł');
  assert.equal(server.ask('DELETE', `${rbac}/clusterroles/${alike}`).status, 404);
  assert.equal(server.ask('GET', `${rbac}/clusterroles/probe-A`).status, 200);
  const space = `/api/v1/namespaces/${encodeURIComponent('Ů')}`;
  assert.deepEqual(namesIn(server.ask('GET', `${space}/configmaps`).text), []);
  assert.deepEqual(namesIn(server.ask('GET', '/api/v1/namespaces/n/configmaps').text), ['m']);
  assert.equal(server.ask('GET', space).status, 404);
  assert.equal(server.ask('DELETE', `${space}/configmaps`).status, 200);
  assert.equal(server.ask('GET', '/api/v1/namespaces/n/configmaps/m').status, 200);
});

test('a path whose bytes are no UTF-8, or that holds a control character, is refused', () => {
  const server = rolesServer();
  for (const path of ['/api/v1/nodes/\xc5', '/api/v1/nodes/%C5', '/api/v1/nodes/a\x01b']) {
    assert.equal(server.ask('GET', path).status, 400, path);
  }
  assert.equal(server.ask('GET', '/api/v1/nodes/%01').status, 404);
});
