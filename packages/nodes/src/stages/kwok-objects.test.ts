/** Which of kwok's kinds on the server are read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse, StreamHandle } from '@megaplane/client/client';
import { FakeClient } from '../../test/fake-client.ts';
import { PORT_KINDS } from '../server/port-config.ts';
import { KwokObjects } from './kwok-objects.ts';

const KINDS: readonly (readonly [string, string])[] = [
  ['Stage', 'stages'],
  ...Object.entries(PORT_KINDS),
];

/** Has all of kwok's kinds, and notes what is read. */
class KwokServer extends FakeClient {
  readonly read: Set<string> = new Set();

  override request({ path }: ClientRequest): Promise<ClientResponse> {
    const resources = KINDS.map(([kind, name]) => ({ kind, name, namespaced: true, verbs: [] }));
    const object = path === '/apis' ? { kind: 'APIGroupList', groups: [] } : { resources };
    return Promise.resolve({ ok: true, code: 200, object, etag: '' } as unknown as ClientResponse);
  }

  override stream(path: string): StreamHandle {
    this.read.add(path.split('?')[0]?.split('/').at(-1) ?? '');
    return { pause: () => {}, resume: () => {}, cancel: () => {} };
  }

  override send(_: unknown, path: string): boolean {
    this.stream(path);
    return true;
  }
}

async function readBy(kinds: readonly string[]): Promise<string[]> {
  const client = new KwokServer(1);
  const onTrouble = (message: string): void => assert.fail(message);
  const objects = new KwokObjects({ client, kinds, onChange: () => {}, onTrouble });
  void objects.start();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  objects.stop();
  return [...client.read].toSorted();
}

test('kinds by which pods reach the host are read only where they are named', async () => {
  const harmless = ['clusterresourceusages', 'metrics', 'resourceusages', 'stages'];
  assert.deepEqual(await readBy([]), harmless);
  assert.deepEqual(await readBy(['Stage', 'Exec']), ['execs', 'stages']);
});
