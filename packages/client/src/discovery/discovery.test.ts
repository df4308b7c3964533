import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, ClientRequest, ClientResponse } from '../rest/client.ts';
import { Discovery } from './discovery.ts';

type Answers = Readonly<Record<string, { readonly object: object; readonly etag?: string }>>;

/** A server that answers by path; what it answered last under the same tag is 304. */
function serverOf(answers: Answers): { readonly client: Client; readonly asked: string[] } {
  const asked: string[] = [];
  const request = (request: ClientRequest): Promise<ClientResponse> => {
    const { path, ifNoneMatch = '' } = request;
    asked.push(`${path} ${ifNoneMatch}`.trim());
    const found = answers[path];
    const bytes = Buffer.alloc(0);
    if (found === undefined) {
      const status = { message: `no ${path}` };
      return Promise.resolve({ ok: false, code: 404, status } as unknown as ClientResponse);
    }
    const etag = found.etag ?? '';
    const isSame = etag !== '' && etag === ifNoneMatch;
    const object = isSame ? {} : found.object;
    const code = isSame ? 304 : 200;
    return Promise.resolve({ ok: true, code, object, bytes, etag } as unknown as ClientResponse);
  };
  return { client: { request } as unknown as Client, asked };
}

const group = (name: string, version: string, kind: string, resource: string): object => ({
  metadata: name === '' ? {} : { name },
  versions: [{ version, resources: [{ resource, responseKind: { kind }, scope: 'Namespaced' }] }],
});
const list = (...items: object[]): object => ({ kind: 'APIGroupDiscoveryList', items });

test('all kinds are known after two requests, and asked for again by their tags', async () => {
  const { client, asked } = serverOf({
    '/api': { object: list(group('', 'v1', 'Pod', 'pods')), etag: '"a"' },
    '/apis': { object: list(group('apps', 'v1', 'Deployment', 'deployments')), etag: '"b"' },
  });
  const discovery = new Discovery(client);
  const first = await discovery.all();
  assert.deepEqual(first, [
    { apiVersion: 'v1', kind: 'Pod', resource: 'pods', namespaced: true },
    { apiVersion: 'apps/v1', kind: 'Deployment', resource: 'deployments', namespaced: true },
  ]);
  assert.deepEqual(await discovery.all(), first);
  assert.deepEqual(asked, ['/api', '/apis', '/api "a"', '/apis "b"']);
});

test('a server of the older form alone is asked for one group at a time', async () => {
  const resources = [
    { name: 'stages', kind: 'Stage', namespaced: false },
    { name: 'stages/status', kind: 'Stage', namespaced: false },
  ];
  const { client, asked } = serverOf({
    '/apis': { object: { kind: 'APIGroupList', groups: [] }, etag: '"c"' },
    '/apis/kwok.x-k8s.io/v1alpha1': { object: { kind: 'APIResourceList', resources } },
  });
  const discovery = new Discovery(client);
  const [only, ...others] = await discovery.kindsOf('kwok.x-k8s.io/v1alpha1');
  assert.equal(only?.resource, 'stages');
  assert.deepEqual(others, []);
  assert.deepEqual(asked, ['/apis', '/apis/kwok.x-k8s.io/v1alpha1']);
});

test('a group that the server has not is refused in its words', async () => {
  const { client } = serverOf({ '/apis': { object: list(), etag: '"d"' } });
  await assert.rejects(new Discovery(client).kindsOf('no.such/v1'), /no \/apis\/no\.such\/v1/);
});
