import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ByteRing } from './ring.ts';

const operation = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('append'), length: fc.nat(150) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('drop'), length: fc.nat(3) }) },
);

test('a ring holds exactly the latest records that fit its budget', () => {
  const options = fc.record({
    bytesMax: fc.integer({ min: 200, max: 2000 }),
    chunkBytes: fc.integer({ min: 64, max: 400 }),
    firstSequence: fc.constantFrom(0, 4090, 10 ** 12),
  });
  fc.assert(
    fc.property(options, fc.array(operation, { maxLength: 200 }), (options, operations) => {
      const ring = new ByteRing(options);
      const model = new Map<number, Buffer>();
      let next = options.firstSequence;
      let used = 0;
      const cost = (record: Buffer): number => ((record.length + 7) & ~7) + 16;
      const drop = (): void => {
        const oldest = model.keys().next().value ?? NaN;
        used -= cost(model.get(oldest) ?? Buffer.alloc(0));
        model.delete(oldest);
      };
      for (const { kind, length } of operations) {
        if (kind === 'drop') {
          ring.dropBefore(next - model.size + length);
          for (let i = 0; i < length && model.size > 0; i++) drop();
        } else {
          const record = Buffer.alloc(length, next % 251);
          const isTooLong = length > ring.recordBytesMax;
          assert.equal(ring.append(record, 0, length), isTooLong ? -1 : next);
          if (isTooLong) continue;
          used += cost(record);
          model.set(next++, record);
          while (used > options.bytesMax) drop();
        }
        assert.deepEqual([ring.usedBytes, ring.nextSequence], [used, next]);
        assert.equal(ring.firstSequence, next - model.size);
      }
      for (const [sequence, record] of model) {
        const start = ring.startAt(sequence);
        const found = ring.bytesAt(sequence).subarray(start, start + ring.lengthAt(sequence));
        assert.ok(found.equals(record), `record ${sequence}`);
      }
      assert.equal(ring.has(next), false);
      assert.equal(ring.has(ring.firstSequence - 1), false);
      assert.throws(() => ring.startAt(next), /does not hold/);
    }),
    { numRuns: 300 },
  );
});

test('the memory of a ring stays within its budget and two chunks, however much passes', () => {
  const ring = new ByteRing({ bytesMax: 100_000, chunkBytes: 8192 });
  const record = Buffer.alloc(500, 1);
  for (let i = 0; i < 50_000; i++) ring.append(record, 0, 1 + (i % 500));
  assert.ok(ring.usedBytes <= 100_000);
  assert.ok(ring.memoryBytes <= 100_000 + 2 * 8192 + 2 * 4096 * 12, `${ring.memoryBytes} bytes`);
  while (ring.dropOldest());
  assert.equal(ring.usedBytes, 0);
  assert.equal(ring.append(record, 0, 500), 50_000);
});
