import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import fc from 'fast-check';
import { ARENA_BYTES } from './arenas.ts';
import { PACKED_VALUE_BYTES_MAX, Packer, unpackValue } from './packing.ts';

/** Lays values one behind the other as the store would; where each lies, and how. */
function layAll(values: readonly Buffer[], arena: Buffer) {
  const packer = new Packer();
  let at = 64;
  return values.map((value) => {
    const size = packer.pack(value, 0, value.length, arena);
    const from = at;
    if (size === 0) {
      value.copy(arena, from);
      packer.noteWhole(arena, from, from + value.length);
    } else {
      packer.bytes.copy(arena, from, 0, size);
      packer.noteLiterals(arena, from);
    }
    const to = from + (size === 0 ? value.length : size);
    // Between values lie heads, which change: nothing may be copied from there.
    arena.fill(0x5a, to, to + 48);
    at = to + 48;
    return { from, to, isPacked: size > 0 };
  });
}

const shared = Buffer.alloc(ARENA_BYTES);

function roundTrip(values: readonly Buffer[]): number {
  const arena = shared;
  const places = layAll(values, arena);
  for (const { to } of places) arena.fill(0xa5, to, to + 48);
  const out = Buffer.alloc(PACKED_VALUE_BYTES_MAX + 20);
  let packed = 0;
  for (const [index, { from, to, isPacked }] of places.entries()) {
    if (!isPacked) continue;
    packed++;
    out.fill(0xee);
    const end = unpackValue(arena, from, to, out, 7);
    assert.deepEqual(out.subarray(7, end), values[index]);
    assert.equal(out[end], 0xee, 'nothing behind the value is touched');
  }
  return packed;
}

test('what is packed is unpacked as it was, of whatever pieces it is made', () => {
  const piece = fc.oneof(
    fc.constantFrom(...Array.from({ length: 6 }, (_, n) => `${n}-${'abcdefgh'.repeat(n * 9 + 3)}`)),
    fc.string({ maxLength: 150, size: 'max', unit: 'binary' }),
    fc.constant('\0'.repeat(70)),
  );
  const value = fc
    .array(piece, { maxLength: 14, size: 'max' })
    .map((parts) => Buffer.from(parts.join('')));
  let packed = 0;
  const property = fc.property(
    fc.array(value, { minLength: 1, maxLength: 25, size: 'max' }),
    (values) => {
      packed += roundTrip(values);
    },
  );
  fc.assert(property, { numRuns: 40 });
  assert(packed > 20, `${packed} values were packed`);
});

function pod(n: number, random: Random): Buffer {
  const id = (): string =>
    random
      .below(2 ** 32)
      .toString(16)
      .padStart(8, '0');
  const env = Array.from({ length: 30 }, (_, k) => ({ name: `SETTING_${k}`, value: `of-${k}` }));
  const metadata = { name: `pod-${n}`, uid: `${id()}-${id()}`, labels: { app: 'web' } };
  return Buffer.from(JSON.stringify({ metadata, spec: { env }, status: { ip: `10.0.0.${n}` } }));
}

test('objects of one make take little beside the first, those of no make what they are', () => {
  const random = new Random(3);
  const pods = Array.from({ length: 200 }, (_, n) => pod(n, random));
  assert.equal(roundTrip(pods), 199);
  const last = layAll(pods, shared).at(-1)!;
  assert(last.to - last.from < 80, `a pod takes ${last.to - last.from} bytes`);
  const noise = Array.from({ length: 50 }, () =>
    Buffer.from(Array.from({ length: 3000 }, () => random.below(256))),
  );
  assert.equal(roundTrip(noise), 0);
});

test('values that are tiny, huge or full of short repetitions', () => {
  const text = (size: number): Buffer => Buffer.alloc(size, 'a repetition of thirty-one bytes');
  const sizes = [0, 1, 127, 128, 129, 16_383, PACKED_VALUE_BYTES_MAX, PACKED_VALUE_BYTES_MAX + 1];
  roundTrip(sizes.flatMap((size) => [text(size), text(size)]));
  const parts = Array.from(
    { length: 400 },
    (_, n) => `${'0123456789abcdefghijklmnopqrst'}${n % 7}`,
  );
  const many = Buffer.from(parts.join('#'));
  roundTrip([Buffer.from('0123456789abcdefghijklmnopqrst'.repeat(5)), many, many]);
});
