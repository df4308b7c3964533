import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../testing/admitting.sim.ts';
import { fittingWarnings } from './call.ts';

test('warnings that are too many together are cut, and those beyond are dropped', () => {
  const few = ['a'.repeat(2000), 'b'.repeat(2000)];
  assert.deepEqual(fittingWarnings(few), few);
  const many = Array.from({ length: 40 }, (_, index) => `${index} ${'x'.repeat(300)}`);
  const fitting = fittingWarnings(many);
  assert.ok(fitting.every((text) => text.length === 256));
  assert.equal(fitting.length, 16);
});

test('warnings are counted and cut by characters, however many bytes those have', () => {
  const wide = ['😀'.repeat(2000), '😀'.repeat(2000)];
  assert.deepEqual(fittingWarnings(wide), wide);
});

test('owners that are told twice are kept once, and whoever sent them hears of it', () => {
  const model = admittingModel();
  const maps = '/api/v1/namespaces/n/configmaps';
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'u' };
  const other = { ...owner, name: 'y' };
  const ownerReferences = [owner, owner, other];
  const warned = (method: string, path: string, body: object): string => {
    const answer = model.ask(method, path, body);
    const { metadata } = JSON.parse(answer.text) as { metadata: { ownerReferences: object[] } };
    assert.deepEqual(metadata.ownerReferences, [owner, other]);
    return /entries(.*?);.*observed: (\w+)/.exec(answer.headers.join(' '))?.slice(1).join() ?? '';
  };
  assert.equal(warned('POST', maps, { metadata: { name: 'm', ownerReferences } }), ',u');
  assert.equal(warned('PUT', `${maps}/m`, { metadata: { name: 'm', ownerReferences } }), ',u');
  assert.equal(
    warned('PATCH', `${maps}/m`, { metadata: { ownerReferences } }),
    ' after mutating admission happens,u',
  );
});

test('who scales hears what is odd about the object', () => {
  const model = admittingModel();
  const path = '/apis/apps/v1/namespaces/n/statefulsets';
  const labels = { a: 'b' };
  const spread = { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' };
  const containers = [{ name: 'c', image: 'i' }];
  const spec = { containers, topologySpreadConstraints: [spread] };
  const template = { metadata: { labels }, spec };
  const set = { serviceName: 's', selector: { matchLabels: labels }, template };
  model.expect(201, 'POST', path, { metadata: { name: 'x' }, spec: set });
  const scale = { metadata: { name: 'x', namespace: 'n' }, spec: { replicas: 3 } };
  const { headers } = model.expect(200, 'PUT', `${path}/x/scale`, scale);
  assert.match(headers.join(' '), /a null labelSelector results in matching no pod/);
});
