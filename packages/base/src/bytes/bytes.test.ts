import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as bytes from './bytes.ts';

const some = fc.oneof(
  fc.uint8Array({ maxLength: 12 }),
  fc.array(fc.constantFrom(0, 97, 255), { maxLength: 6 }).map((values) => Uint8Array.from(values)),
);

/** The range somewhere inside a larger array, so that wrong offsets show. */
function inside(range: Uint8Array, before: number): Uint8Array {
  return Uint8Array.from([...Array.from({ length: before }, () => 7), ...range, 9, 9, 9]);
}

test('ranges compare, match and share beginnings as arrays of numbers do', () => {
  fc.assert(
    fc.property(some, some, fc.nat(5), fc.nat(5), (a, b, i, j) => {
      const left = inside(a, i);
      const right = inside(b, j);
      const args = [left, i, i + a.length, right, j, j + b.length] as const;
      assert.equal(Math.sign(bytes.compareBytes(...args)), Buffer.compare(a, b));
      assert.equal(bytes.equalBytes(...args), Buffer.compare(a, b) === 0);
      const shared = bytes.commonPrefix(...args);
      assert.deepEqual(a.subarray(0, shared), b.subarray(0, shared));
      assert.ok(shared === a.length || shared === b.length || a[shared] !== b[shared]);
      assert.equal(bytes.startsWith(left, i, i + a.length, b), shared === b.length);
    }),
  );
});

test('a copy moves exactly the range, short or long', () => {
  for (const length of [0, 1, 7, 23, 24, 129, 4000]) {
    const source = Uint8Array.from({ length: length + 20 }, (_, i) => i % 251);
    const target = new Uint8Array(length + 20).fill(255);
    bytes.copyBytes(source, 3, 3 + length, target, 10);
    assert.deepEqual(target.subarray(10, 10 + length), source.subarray(3, 3 + length));
    assert.equal(target[9], 255);
    assert.equal(target[10 + length], 255);
  }
});

/** HalfSipHash-1-3 step by step on unsigned numbers, as its specification is laid out. */
function slowHash(low: number, high: number, message: Uint8Array): number {
  const v = [low, high, low ^ 0x6c796765, high ^ 0x74656462].map((x) => BigInt(x >>> 0));
  const add = (x: number, y: number): void => {
    v[x] = BigInt.asUintN(32, (v[x] ?? 0n) + (v[y] ?? 0n));
  };
  const rotate = (x: number, bits: bigint): void => {
    const value = v[x] ?? 0n;
    v[x] = BigInt.asUintN(32, value << bits) | (value >> (32n - bits));
  };
  const mix = (x: number, y: bigint): void => {
    v[x] = (v[x] ?? 0n) ^ y;
  };
  const round = (): void => {
    for (const [x, y, bits, turn] of [
      [0, 1, 5n, 16n],
      [2, 3, 8n, 0n],
      [0, 3, 7n, 0n],
      [2, 1, 13n, 16n],
    ] as const) {
      add(x, y);
      rotate(y, bits);
      mix(y, v[x] ?? 0n);
      if (turn > 0n) rotate(x, turn);
    }
  };
  const padded = new Uint8Array(Math.floor(message.length / 4) * 4 + 4);
  padded.set(message);
  padded[padded.length - 1] = message.length & 255;
  const view = new DataView(padded.buffer);
  for (let at = 0; at < padded.length; at += 4) {
    const word = BigInt(view.getUint32(at, true));
    mix(3, word);
    round();
    mix(0, word);
  }
  mix(2, 0xffn);
  for (let i = 0; i < 3; i++) round();
  return Number(BigInt.asIntN(32, (v[1] ?? 0n) ^ (v[3] ?? 0n)));
}

test('the hash is HalfSipHash-1-3 of the range under its secret', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer(), some, fc.nat(5), (low, high, range, before) => {
      const array = inside(range, before);
      const words = new Int32Array(4).fill(-1);
      const count = bytes.loadWords(array, before, before + range.length, words);
      assert.equal(count, (range.length >> 2) + 1);
      const hash = bytes.hashWords(low, high, words, range.length);
      assert.equal(hash, slowHash(low, high, range));
      const copy = Buffer.from(words.buffer).subarray(0, (range.length + 4) & ~3);
      assert.deepEqual(copy, Buffer.concat([range, Buffer.alloc(copy.length - range.length)]));
    }),
  );
});

test('texts are written and read back, ASCII or not, short or long', () => {
  const target = Buffer.alloc(2000);
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'grapheme' })), fc.nat(9), (text, at) => {
      for (const whole of [text, text.repeat(9).slice(0, 500)]) {
        const wellFormed = whole.toWellFormed();
        const end = bytes.writeText(target, at, wellFormed);
        assert.equal(end - at, Buffer.byteLength(wellFormed));
        assert.equal(bytes.readText(target, at, end), wellFormed);
      }
    }),
  );
});

test('hexadecimal digits are written and read back, and others are refused', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (array) => {
      const text = bytes.toHex(array, 0, array.length);
      assert.equal(text, Buffer.from(array).toString('hex'));
      assert.deepEqual(new Uint8Array(bytes.fromHex(text.toUpperCase()) ?? []), array);
    }),
  );
  for (const text of ['0', 'xy', '0g', '00 ', '-1']) assert.equal(bytes.fromHex(text), undefined);
});

test('a view of an array as a Buffer shares its memory', () => {
  const array = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
  const buffer = bytes.asBuffer(array);
  buffer[0] = 9;
  assert.deepEqual([array[0], buffer.length], [9, 2]);
  assert.equal(bytes.asBuffer(buffer), buffer);
});

test('what is kept long has memory of its own, and keeps no pool', () => {
  for (const text of ['', 'plain', 'größer \u{1f600}', '\ud800']) {
    const own = bytes.ownText(text);
    assert.equal(own.buffer.byteLength, own.length);
    assert.deepEqual(own, Buffer.from(text));
  }
  assert.deepEqual(bytes.ownText('é', 'latin1'), Buffer.from([0xe9]));
  const copied = bytes.ownBytes(Buffer.from('abcd'), 1, 3);
  assert.deepEqual([copied.toString(), copied.buffer.byteLength], ['bc', 2]);
});
