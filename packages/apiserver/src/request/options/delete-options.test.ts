import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, messageOf } from '../../testing/admitting.sim.ts';

const MAPS = '/api/v1/namespaces/n/configmaps';

test('options count by their kind, of whatever version, and faults are told without a head', () => {
  const { expect } = admittingModel();
  const kind = 'DeleteOptions';
  expect(201, 'POST', MAPS, { metadata: { name: 'a' } });
  const wrong = { apiVersion: 'v1', kind, gracePeriodSeconds: 'x' };
  assert.equal(
    messageOf(expect(400, 'DELETE', `${MAPS}/a`, wrong)),
    'json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds ' +
      'of type int64',
  );
  const foreign = expect(400, 'DELETE', `${MAPS}/a`, { kind: 'Foo' });
  assert.match(messageOf(foreign), /^no kind "Foo" is registered for version "meta.k8s.io\/v1"/);
  expect(200, 'DELETE', `${MAPS}/a`, { apiVersion: 'v2', kind });
});

test('uid and resourceVersion in the query are preconditions', () => {
  const { expect } = admittingModel();
  expect(201, 'POST', MAPS, { metadata: { name: 'a' } });
  const refused = expect(409, 'DELETE', `${MAPS}/a?uid=x`);
  assert.match(messageOf(refused), /the UID in the precondition \(x\) does not match/);
  // as the collection was then, with an object of an older revision
  const { text } = expect(201, 'POST', MAPS, { metadata: { name: 'b' } });
  const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } })
    .metadata;
  const match = `resourceVersion=${resourceVersion}&resourceVersionMatch=NotOlderThan`;
  expect(409, 'DELETE', `${MAPS}?${match}`);
});

test('who asks for the dependents first learns that the object still stands', () => {
  const { expect } = admittingModel();
  const metadata = { name: 'a', finalizers: ['x.io/y'] };
  expect(201, 'POST', MAPS, { metadata });
  expect(202, 'DELETE', `${MAPS}/a`, { orphanDependents: false });
});

test('a deleted collection is answered as it was found, with the count of what is left', () => {
  const { expect } = admittingModel();
  for (const name of ['a', 'b', 'c']) {
    expect(201, 'POST', MAPS, { metadata: { name, finalizers: ['x.io/y'] } });
  }
  const answer = JSON.parse(expect(200, 'DELETE', `${MAPS}?limit=1`).text) as {
    metadata: { remainingItemCount?: number };
    items: { metadata: { name: string; deletionTimestamp?: string } }[];
  };
  assert.equal(answer.metadata.remainingItemCount, 2);
  assert.deepEqual(
    answer.items.map(({ metadata }) => [metadata.name, metadata.deletionTimestamp]),
    [['a', undefined]],
  );
});

test('the first deletion of a namespace marks it even where nothing holds it', () => {
  const { expect } = admittingModel();
  const path = '/api/v1/namespaces/n';
  const bare = { metadata: { name: 'n' }, spec: {} };
  expect(200, 'PUT', `${path}/finalize`, bare);
  const marked = JSON.parse(expect(200, 'DELETE', path, { propagationPolicy: 'Foreground' }).text);
  assert.deepEqual(marked.metadata.finalizers, ['foregroundDeletion']);
  assert.equal(marked.status.phase, 'Terminating');
});
