import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, ClientRequest, ClientResponse } from '@megaplane/client/client';
import { ResourceDiscovery } from './api-resources.ts';

interface Document {
  readonly etag: string;
  readonly object: object;
}

/** A server that tells documents by path, and of those that are asked for by their tag nothing. */
function serverOf(documents: Map<string, Document>): {
  readonly client: Client;
  readonly answered: string[];
} {
  const answered: string[] = [];
  const request = async ({ path, ifNoneMatch }: ClientRequest): Promise<ClientResponse> => {
    const document = documents.get(path);
    const code = document === undefined ? 503 : document.etag === ifNoneMatch ? 304 : 200;
    answered.push(`${path} ${code}`);
    if (document === undefined) return { ok: false, code } as ClientResponse;
    const object = code === 304 ? {} : document.object;
    return { ok: true, code, object, etag: document.etag } as unknown as ClientResponse;
  };
  return { client: { request } as unknown as Client, answered };
}

function listOf(resource: string, freshness = 'Current'): object {
  const kind = { responseKind: { kind: 'Any' }, scope: 'Namespaced', verbs: ['list', 'watch'] };
  const versions = [{ version: 'v1', freshness, resources: [{ resource, ...kind }] }];
  const items = [{ metadata: { name: 'own' }, versions }];
  return { kind: 'APIGroupDiscoveryList', items };
}

test('what has not changed is answered without a body, and known as before', async () => {
  const documents = new Map<string, Document>([
    ['/api', { etag: '"a"', object: listOf('pods') }],
    ['/apis', { etag: '"b"', object: listOf('jobs') }],
  ]);
  const { client, answered } = serverOf(documents);
  const discovery = new ResourceDiscovery(client);
  const names = async (): Promise<readonly string[]> => {
    const { resources, failed } = await discovery.discover();
    assert.deepEqual(failed, []);
    return resources.map(({ resource }) => resource);
  };
  assert.deepEqual(await names(), ['pods', 'jobs']);
  assert.deepEqual(await names(), ['pods', 'jobs']);
  documents.set('/apis', { etag: '"c"', object: listOf('cronjobs') });
  assert.deepEqual(await names(), ['pods', 'cronjobs']);
  assert.deepEqual(answered, [
    ...['/api 200', '/apis 200'],
    ...['/api 304', '/apis 304'],
    ...['/api 304', '/apis 200'],
  ]);
});

test('what failed or is stale is told each time, and asked for anew', async () => {
  const documents = new Map<string, Document>([
    ['/apis', { etag: '"b"', object: listOf('jobs', 'Stale') }],
  ]);
  const { client, answered } = serverOf(documents);
  const discovery = new ResourceDiscovery(client);
  for (let round = 0; round < 2; round++) {
    const { resources, failed } = await discovery.discover();
    assert.deepEqual(resources, []);
    assert.deepEqual(failed, ['/api', 'own/v1: stale GroupVersion discovery: own/v1']);
  }
  assert.deepEqual(answered, ['/api 503', '/apis 200', '/api 503', '/apis 200']);
});
