import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeptEncodings } from './kept-encodings.ts';
import { emptyRow, type Row } from '../storage/storage.ts';
import { Rig } from '../testing/rig.sim.ts';

const MAPS = '/api/v1/namespaces/a/configmaps';
const PROTOBUF = { accept: 'application/vnd.kubernetes.protobuf' };
const CHUNK_BYTES = 1000;

function rowOf(name: string, revision: number): Row {
  const key = Buffer.from(`/registry/things/${name}`);
  return { ...emptyRow(), key, keyStart: 0, keyEnd: key.length, modRevision: revision };
}

test('what is found is what was kept for that object at that revision, within the budget', () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'cc'),
    revision: fc.integer({ min: 1, max: 30 }),
    space: fc.integer({ min: 0, max: 1 }),
    isTick: fc.integer({ min: 0, max: 9 }).map((value) => value === 0),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const kept = new KeptEncodings(3 * CHUNK_BYTES, CHUNK_BYTES);
      const spaces = [kept.space(), kept.space()];
      const held: (readonly [Buffer, string])[] = [];
      for (const { name, revision, space, isTick } of steps) {
        if (isTick) for (let count = 0; count < 120; count++) kept.tick();
        const row = rowOf(name, revision);
        const text = `${space} ${name} ${revision} `.repeat(1 + (revision % 20));
        const found = spaces[space]?.find(row) ?? null;
        if (found !== null) held.push([found, text]);
        else spaces[space]?.keep(row, Buffer.from(text));
        assert(kept.bytes <= 3 * CHUNK_BYTES);
      }
      // what was found stays good for those who are still sending it
      for (const [found, text] of held) assert.equal(found.toString(), text);
    }),
    { numRuns: 100 },
  );
});

test('what nobody asks for any more makes room, and in the end all of it is given back', () => {
  const kept = new KeptEncodings(2 * CHUNK_BYTES, CHUNK_BYTES);
  const space = kept.space();
  const item = Buffer.alloc(200);
  const period = (): void => {
    for (let count = 0; count < 120; count++) kept.tick();
  };
  for (let index = 0; index < 20; index++) space?.keep(rowOf(`old-${index}`, index + 1), item);
  assert.equal(kept.bytes, 2 * CHUNK_BYTES);
  assert.equal(space?.find(rowOf('old-19', 20)), null, 'what is in use is not given up for more');
  period();
  for (let index = 0; index < 4; index++) space?.find(rowOf(`old-${index}`, index + 1));
  period();
  for (let index = 0; index < 3; index++) space?.keep(rowOf(`new-${index}`, 100 + index), item);
  assert.notEqual(space?.find(rowOf('new-2', 102)), null);
  assert.notEqual(space?.find(rowOf('old-1', 2)), null);
  period();
  period();
  assert.equal(kept.bytes, 0);
});

test('lists in protobuf say the same whether their items were kept or not', () => {
  const rig = new Rig();
  const list = (): Buffer => rig.ask('GET', MAPS, undefined, PROTOBUF).bytes;
  for (let index = 0; index < 20; index++) {
    rig.ask('POST', MAPS, { metadata: { name: `m-${index}` }, data: { k: 'x'.repeat(index * 9) } });
  }
  const first = list();
  assert(list().equals(first));
  const data = { k: 'changed' };
  rig.ask('PUT', `${MAPS}/m-7`, { metadata: { name: 'm-7', namespace: 'a' }, data });
  const changed = list();
  assert(!changed.equals(first));
  assert(changed.includes('changed'));
  assert.equal(changed.includes('m-19'), true);
  rig.ask('DELETE', `${MAPS}/m-19`);
  assert.equal(list().includes('m-19'), false);
});
