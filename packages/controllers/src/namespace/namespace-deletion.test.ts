import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { internalError } from '@megaplane/machinery/status';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';
import { againAfterMs, type Left } from './namespace-deletion.ts';

const isCollection = (path: string): boolean => path.split('?')[0]?.endsWith('/pods') === true;

/** Its pods stay however often they are deleted. */
class StuckApi extends WorkloadApi {
  tries = 0;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const isPods = request.method === 'DELETE' && isCollection(request.path);
    if (isPods) this.tries++;
    return isPods
      ? { ok: true, code: 200, object: {}, bytes: Buffer.from('{}') }
      : super.request(request);
  }
}

test('pods that outlive their grace without a finalizer are told of as unexpected', async () => {
  const api = new StuckApi();
  startManager(api, ['namespace-controller']);
  await api.advance(100);
  const about = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } };
  await api.request({ method: 'POST', path: '/api/v1/namespaces', body: about });
  const pod = { metadata: { name: 'p' }, spec: { terminationGracePeriodSeconds: 60 } };
  await api.request({ method: 'POST', path: '/api/v1/namespaces/n/pods', body: pod });
  await api.request({ method: 'DELETE', path: '/api/v1/namespaces/n' });
  const failure = (): string => {
    const conditions = listAt(api.objects.get('/api/v1/namespaces /n'), 'status', 'conditions');
    const type = 'NamespaceDeletionContentFailure';
    const found = conditions.find((one) => stringAt(one, 'type') === type);
    return stringAt(found, 'message');
  };
  await api.advance(50_000);
  const before = api.tries;
  assert(before > 0 && before <= 14, `${before} tries`);
  assert.equal(failure(), 'All content successfully deleted, may be waiting on finalization');
  await api.advance(60_000);
  const text = 'unexpected items still remain in namespace: n for gvr: /v1, Resource=pods';
  assert.equal(failure(), `Failed to delete all resource types, 1 remaining: ${text}`);
  const more = api.tries - before;
  assert(more > 0 && more <= 6, `${more} tries in the minute in which they should have gone`);
});

/** One of its pods goes at a time. */
class MeltingApi extends WorkloadApi {
  looks = 0;
  #gone = 0;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const { method, path } = request;
    if (method === 'GET' && path === '/api/v1/namespaces/n') this.looks++;
    if (method !== 'DELETE' || !isCollection(path)) return super.request(request);
    return super.request({ ...request, path: `/api/v1/namespaces/n/pods/p${this.#gone++}` });
  }
}

test('what the conditions say of a namespace that empties is no reason to look again', async () => {
  const api = new MeltingApi();
  startManager(api, ['namespace-controller']);
  await api.advance(100);
  const about = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } };
  await api.request({ method: 'POST', path: '/api/v1/namespaces', body: about });
  for (let i = 0; i < 50; i++) {
    const pod = { metadata: { name: `p${i}` }, spec: {} };
    await api.request({ method: 'POST', path: '/api/v1/namespaces/n/pods', body: pod });
  }
  await api.request({ method: 'DELETE', path: '/api/v1/namespaces/n' });
  await api.advance(10_000);
  assert(api.looks > 3 && api.looks < 20, `${api.looks} looks`);
});

/** A server that it passes requests on to does not answer. */
class MutedApi extends WorkloadApi {
  isMuted = true;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const answer = await super.request(request);
    if (!this.isMuted || request.path !== '/apis' || !answer.ok) return answer;
    const versions = [{ version: 'v1', freshness: 'Stale' }];
    const items = [...listAt(answer.object, 'items'), { metadata: { name: 'x.io' }, versions }];
    return { ...answer, object: { ...answer.object, items } };
  }
}

test('a namespace stays while a server does not tell what it has of it', async () => {
  const api = new MutedApi();
  startManager(api, ['namespace-controller']);
  await api.advance(100);
  const about = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } };
  await api.request({ method: 'POST', path: '/api/v1/namespaces', body: about });
  await api.request({ method: 'DELETE', path: '/api/v1/namespaces/n' });
  await api.advance(10_000);
  const namespace = api.objects.get('/api/v1/namespaces /n');
  const [condition] = listAt(namespace, 'status', 'conditions');
  assert.equal(
    stringAt(condition, 'message'),
    'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of ' +
      'server APIs: x.io/v1: stale GroupVersion discovery: x.io/v1',
  );
  api.isMuted = false;
  await api.advance(60_000);
  assert.equal(api.objects.get('/api/v1/namespaces /n'), undefined);
});

test('what empties steadily is looked at when it should be empty, what is stuck ever later', () => {
  const left = (rounds: number, objects: number, atMs: number): Left => {
    return { rounds, objects, atMs, told: new Set() };
  };
  assert.equal(againAfterMs(left(1, 100, 0), null), 500);
  assert.equal(againAfterMs(left(9, 100, 50_000), left(8, 100, 40_000)), 500 * 1.5 ** 8);
  assert.equal(againAfterMs(left(12, 100, 50_000), left(11, 100, 40_000)), 15_000);
  assert.equal(againAfterMs(left(9, 100, 50_000), left(8, 1100, 40_000)), 1000);
  assert.equal(againAfterMs(left(9, 1, 50_000), left(8, 1100, 40_000)), 500);
  assert.equal(againAfterMs(left(3, 1000, 3000), left(2, 1001, 2000)), 500 * 1.5 ** 2);
});

/** The first deletion of its pods is broken off when all that a look sees were told. */
class BrokenApi extends WorkloadApi {
  tries = 0;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const { method, path } = request;
    if (method !== 'DELETE' || !isCollection(path)) return super.request(request);
    this.tries++;
    for (const pod of this.objects.values()) {
      if (pod['kind'] !== 'Pod') continue;
      pod['metadata'] = { ...objectAt(pod, 'metadata'), deletionTimestamp: '2026-01-31T10:00:00Z' };
    }
    if (this.tries > 1) return { ok: true, code: 200, object: {}, bytes: Buffer.from('{}') };
    return { ok: false, code: 500, status: internalError('broken off') };
  }
}

test('pods are told to go until one deletion of all went through, then now and then', async () => {
  const api = new BrokenApi();
  startManager(api, ['namespace-controller']);
  await api.advance(100);
  const about = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } };
  await api.request({ method: 'POST', path: '/api/v1/namespaces', body: about });
  const body = { kind: 'Pod', metadata: { name: 'p', finalizers: ['a/b'] }, spec: {} };
  await api.request({ method: 'POST', path: '/api/v1/namespaces/n/pods', body });
  await api.request({ method: 'DELETE', path: '/api/v1/namespaces/n' });
  await api.advance(6000);
  assert(api.tries === 2 || api.tries === 3, `${api.tries} tries`);
  await api.advance(300_000);
  assert(api.tries > 4 && api.tries < 12, `${api.tries} tries`);
});

for (const hidden of ['/api/v1/namespaces/n/pods', '/api']) {
  test(`what pods lean on stays while GET ${hidden} fails`, async () => {
    const api = new WorkloadApi();
    const leases = '/apis/coordination.k8s.io/v1';
    startManager(api, ['namespace-controller']);
    await api.advance(100);
    const about = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } };
    await api.request({ method: 'POST', path: '/api/v1/namespaces', body: about });
    for (const path of [`${leases}/namespaces/n/leases`, '/api/v1/namespaces/n/pods']) {
      await api.request({ method: 'POST', path, body: { metadata: { name: 'one' } } });
    }
    api.hidden = hidden;
    await api.request({ method: 'DELETE', path: '/api/v1/namespaces/n' });
    await api.advance(10_000);
    assert(api.objects.has(`${leases}/leases n/one`));
    api.hidden = '';
    await api.advance(60_000);
    const left = [...api.objects.keys()].filter((key) => key.endsWith('n/one'));
    assert.deepEqual(left, []);
  });
}
