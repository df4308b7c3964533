/** What stores nothing new, or ends an object, is answered with the object as it is kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rig } from '../testing/rig.sim.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };

interface Shown {
  readonly metadata: { readonly resourceVersion: string; readonly finalizers?: readonly string[] };
}

const POD = { spec: { containers: [{ name: 'c', image: 'i' }] } };
const KINDS: readonly (readonly [string, object])[] = [
  ['/api/v1/namespaces/a/configmaps', {}],
  ['/api/v1/namespaces/a/pods', POD],
  ['/apis/apps/v1/namespaces/a/controllerrevisions', { revision: 1, data: {} }],
];

for (const [path, object] of KINDS) {
  test(`an object on its way out is answered as it is kept: ${path}`, () => {
    const rig = new Rig(['a']);
    const ask = (method: string, at: string, body?: object): Shown => {
      const answer = rig.ask(method, at, body, method === 'PATCH' ? MERGE : {});
      assert.ok(answer.status < 300, answer.text);
      return JSON.parse(answer.text) as Shown;
    };
    const metadata = { name: 'o', finalizers: ['x.example/one', 'x.example/two'] };
    ask('POST', path, { ...object, metadata });
    const first = ask('DELETE', `${path}/o`);
    const { resourceVersion } = ask('GET', `${path}/o`).metadata;
    assert.equal(first.metadata.resourceVersion, resourceVersion);
    for (const query of ['', '?gracePeriodSeconds=0', '?propagationPolicy=Background']) {
      const again = ask('DELETE', `${path}/o${query}`);
      const kept = ask('GET', `${path}/o`).metadata.resourceVersion;
      assert.equal(again.metadata.resourceVersion, kept, query);
    }
    const less = ask('PATCH', `${path}/o`, { metadata: { finalizers: ['x.example/two'] } });
    const { resourceVersion: kept } = ask('GET', `${path}/o`).metadata;
    assert.equal(less.metadata.resourceVersion, kept);
    ask('DELETE', `${path}/o?gracePeriodSeconds=0`);
    const { resourceVersion: last } = ask('GET', `${path}/o`).metadata;
    const gone = ask('PATCH', `${path}/o`, { metadata: { finalizers: null } });
    assert.equal(gone.metadata.resourceVersion, last);
    assert.equal(gone.metadata.finalizers, undefined);
    assert.equal(rig.ask('GET', `${path}/o`).status, 404);
  });
}

test('a resourceVersion in the future is to be asked for again in a second', () => {
  const rig = new Rig(['a']);
  for (const [method, query] of [
    ['GET', 'resourceVersion=999999&resourceVersionMatch=Exact'],
    ['GET', 'resourceVersion=999999&resourceVersionMatch=NotOlderThan'],
    ['DELETE', 'resourceVersion=999999'],
  ] as const) {
    const answer = rig.ask(method, `/api/v1/namespaces/a/configmaps?${query}`);
    rig.pass(5);
    const { details } = JSON.parse(answer.text) as { details: { retryAfterSeconds?: number } };
    assert.equal(details.retryAfterSeconds, 1, `${method} ${query}`);
    assert.equal(answer.answerHeader('retry-after'), '1');
  }
  const events = '/api/v1/namespaces/a/events?resourceVersion=999999&resourceVersionMatch=Exact';
  assert.doesNotMatch(rig.ask('GET', events).text, /retryAfterSeconds/);
});

test('data that are too long are told of no field', () => {
  const data = { text: 'x'.repeat(1_100_000) };
  const answer = new Rig(['a']).ask('POST', '/api/v1/namespaces/a/configmaps', {
    metadata: { name: 'a' },
    data,
  });
  const { message, details } = JSON.parse(answer.text) as {
    message: string;
    details: { causes: { field: string }[] };
  };
  assert.match(message, /^ConfigMap "a" is invalid: \[\]: Too long: may not be more than 1048576/);
  assert.equal(details.causes[0]?.field, '[]');
});
