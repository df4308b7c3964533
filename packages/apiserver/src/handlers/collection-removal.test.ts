/** A collection that is deleted is answered whole, however much of it there is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AccessModel } from '../testing/access.sim.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { Rig } from '../testing/rig.sim.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

for (const [count, what] of [
  [0, 'nothing'],
  [3, 'a few'],
  [120, 'many'],
] as const) {
  test(`the answer to the deletion of ${what} lists what was there`, () => {
    const model = new AccessModel({});
    model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
    const text = 'é'.repeat(1000);
    for (let at = 0; at < count; at++) {
      const metadata = { name: `m${at}`.padEnd(5, 'x') };
      assert.equal(model.ask('POST', MAPS, { metadata, data: { text } }).status, 201);
    }
    const before = JSON.parse(model.ask('GET', MAPS).text) as JsonObject;
    const answer = model.ask('DELETE', MAPS);
    assert.equal(answer.status, 200);
    const list = JSON.parse(answer.text) as JsonObject;
    assert.deepEqual(Object.keys(list), ['kind', 'apiVersion', 'metadata', 'items']);
    assert.equal(list['kind'], 'ConfigMapList');
    const names = (of: JsonObject): string[] =>
      listAt(of, 'items')
        .map((item) => `${stringAt(item, 'metadata', 'name')} ${stringAt(item, 'data', 'text')}`)
        .toSorted();
    assert.deepEqual(names(list), names(before));
    assert.equal(names(list).length, count);
    const after = JSON.parse(model.ask('GET', MAPS).text) as JsonObject;
    assert.deepEqual(listAt(after, 'items'), []);
  });
}

/** A collection of 4 MB whose deletion somebody asked for who reads nothing yet. */
function slowly(accept: string): { rig: Rig; exchange: ExchangeModel } {
  const rig = new Rig(['default']);
  const text = 'x'.repeat(10_000);
  for (let at = 0; at < 400; at++) {
    const made = rig.ask('POST', MAPS, { metadata: { name: `m${at}` }, data: { text } });
    assert.equal(made.status, 201);
  }
  const exchange = new ExchangeModel('DELETE', MAPS, undefined, { accept });
  exchange.room = 1;
  rig.api.handle(exchange);
  rig.settle();
  return { rig, exchange };
}

for (const accept of ['application/json', 'application/vnd.kubernetes.protobuf']) {
  test(`who reads the answer to a deletion slowly holds none of it in ${accept}`, () => {
    const { rig, exchange } = slowly(accept);
    assert.deepEqual(listAt(JSON.parse(rig.ask('GET', MAPS).text) as JsonObject, 'items'), []);
    assert.ok(exchange.bytes.length < 200_000, `${exchange.bytes.length}`);
    assert(!exchange.isEnded);
    for (let reads = 0; !exchange.isEnded; reads++) {
      assert.ok(reads < 1000, 'it never ends');
      exchange.read(100_000);
      rig.settle();
    }
    assert.equal(exchange.text.match(/x{10000}/g)?.length, 400);
  });
}

test('of an answer that was read too slowly the rest is missed, and seen to be', () => {
  const { rig, exchange } = slowly('application/json');
  rig.store.compact(rig.store.publishedRevision);
  exchange.read(1_000_000);
  rig.settle();
  assert(exchange.isReset && !exchange.isEnded);
});

test('a page of a collection is deleted, and its token goes on with the rest', () => {
  const rig = new Rig(['default']);
  for (let at = 0; at < 250; at++) {
    rig.ask('POST', MAPS, { metadata: { name: `m${String(at).padStart(3, '0')}` } });
  }
  const left = (): number =>
    listAt(JSON.parse(rig.ask('GET', MAPS).text) as JsonObject, 'items').length;
  const first = JSON.parse(rig.ask('DELETE', `${MAPS}?limit=120`).text) as JsonObject;
  assert.equal(listAt(first, 'items').length, 120);
  assert.equal(objectAt(first, 'metadata')?.['remainingItemCount'], 130);
  assert.equal(left(), 130);
  const token = stringAt(first, 'metadata', 'continue');
  const rest = JSON.parse(rig.ask('DELETE', `${MAPS}?limit=130&continue=${token}`).text);
  assert.equal(listAt(rest as JsonObject, 'items').length, 130);
  assert.equal(stringAt(rest as JsonObject, 'metadata', 'continue'), '');
  assert.equal(left(), 0);
});
