/** A collection that is deleted is answered whole, however much of it there is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AccessModel } from './access/access.sim.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

for (const [count, what] of [
  [0, 'nothing'],
  [3, 'a few'],
  [300, 'many'],
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
