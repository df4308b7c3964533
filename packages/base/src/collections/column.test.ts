import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Float64Column, Int32Column, Uint16Column, Uint32Column, Uint8Column } from './column.ts';

const kinds = [
  { column: Uint8Column, array: Uint8Array },
  { column: Uint16Column, array: Uint16Array },
  { column: Int32Column, array: Int32Array },
  { column: Uint32Column, array: Uint32Array },
  { column: Float64Column, array: Float64Array },
];
const id = fc.oneof(fc.nat(100_000), fc.constantFrom(0, 16_383, 16_384, 32_768));
const value = fc.oneof(fc.integer({ min: -300, max: 300 }), fc.integer({ min: -1e10, max: 1e10 }));

test('a column is a typed array of unknown length that reads 0 where nothing was written', () => {
  const write = fc.record({ id, value, isSum: fc.boolean() });
  fc.assert(
    fc.property(fc.constantFrom(...kinds), fc.array(write), id, (kind, writes, probe) => {
      const column = new kind.column();
      const model = new kind.array(100_001);
      for (const { id, value, isSum } of writes) {
        if (isSum) {
          model[id] = (model[id] ?? 0) + value;
          column.add(id, value);
        } else {
          model[id] = value;
          column.set(id, value);
        }
        assert.equal(column.get(id), model[id]);
      }
      assert.equal(column.get(probe), model[probe]);
      for (const { id } of writes) assert.equal(column.get(id), model[id]);
      const last = Math.max(-1, ...writes.map(({ id }) => id));
      const { BYTES_PER_ELEMENT } = kind.array;
      const chunks = Math.ceil((last + 1) / 16_384);
      assert(column.memoryBytes <= chunks * 16_384 * BYTES_PER_ELEMENT);
    }),
  );
});

test('a column of few ids takes as few bytes, and zeros take none', () => {
  for (const { column: Column, array } of kinds) {
    const column = new Column();
    column.set(5000, 0);
    assert.equal(column.memoryBytes, 0);
    column.set(0, 1);
    assert.equal(column.memoryBytes, 64);
    for (let id = 0; id < 40_000; id++) {
      column.set(id, 7);
      const bytes = (id + 1) * array.BYTES_PER_ELEMENT;
      const isLong = id >= 16_384;
      const most = isLong ? bytes + 16_384 * array.BYTES_PER_ELEMENT : Math.max(64, bytes * 2);
      const held: number = column.memoryBytes;
      assert(held <= most, `${held} bytes for ${id + 1} ids`);
      assert.equal(column.get(id + 1), 0);
    }
    for (let id = 0; id < 40_000; id++) assert.equal(column.get(id), 7);
  }
});
