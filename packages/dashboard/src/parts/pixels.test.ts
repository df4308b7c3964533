import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countValues, paint, paletteOf, placeAt, shapeOf } from './pixels.ts';

test('each node has a cell of its own, and a point in it leads back to it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000_000 }),
      fc.integer({ min: 50, max: 4000 }),
      fc.integer({ min: 50, max: 2000 }),
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      (count, width, height, part) => {
        const shape = shapeOf(count, width, height);
        assert(shape.columns * shape.rows >= count);
        assert(shape.columns * (shape.rows - 1) < count);
        const place = Math.floor(part * count);
        const x = (((place % shape.columns) + 0.5) / shape.columns) * width;
        const y = ((Math.floor(place / shape.columns) + 0.5) / shape.rows) * height;
        assert.equal(placeAt(shape, count, x, y, width, height), place);
      },
    ),
  );
});

test('beyond the field there is no node', () => {
  const shape = shapeOf(10, 400, 100);
  assert.equal(placeAt(shape, 10, -1, 5, 400, 100), -1);
  assert.equal(placeAt(shape, 10, 400, 5, 400, 100), -1);
  assert.equal(placeAt(shape, 10, 399, 99, 400, 100), -1);
  assert.deepEqual(shapeOf(0, 100, 100), { columns: 1, rows: 1 });
});

test('nodes are painted by their values, and what is none stays clear', () => {
  const pixels = new Uint32Array(4).fill(7);
  paint(new Uint8Array([1, 0, 2]), paletteOf('ready'), pixels);
  const [ready, none, notReady, beyond] = pixels;
  assert.equal(none, 0);
  assert.equal(beyond, 0);
  assert.notEqual(ready, notReady);
  assert.equal((ready ?? 0) >>> 24, 255);
  const counts = countValues(new Uint8Array([1, 0, 2, 2]));
  assert.deepEqual([...counts.subarray(0, 3)], [1, 1, 2]);
});
