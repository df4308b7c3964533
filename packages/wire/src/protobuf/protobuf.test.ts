import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as protobuf from './protobuf.ts';
import * as write from './protobuf-write.ts';

const reader = new protobuf.ProtobufReader();

function read(bytes: readonly number[]): protobuf.ProtobufReader {
  return reader.reset(Uint8Array.from(bytes), 0, bytes.length);
}

/** The definition of a varint, by BigInt. */
function naiveVarint(value: bigint): number[] {
  const bytes = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return bytes;
}

const SAFE = fc.integer({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER });
const out = new Uint8Array(4096);

test('64-bit varints equal their BigInt definition in both shapes', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
      const low = Number(value & 0xffffffffn);
      const high = Number(value >> 32n);
      const end = write.writeVarint64(out, 3, low, high);
      assert.deepEqual([...out.subarray(3, end)], naiveVarint(value));
      assert.equal(write.sizeVarint64(low, high), end - 3);
      reader.reset(out, 3, end).varint();
      assert.deepEqual([reader.low, reader.high, reader.offset], [low, high, end]);
    }),
  );
  fc.assert(
    fc.property(SAFE, (value) => {
      const end = write.writeInt64(out, 0, value);
      assert.deepEqual([...out.subarray(0, end)], naiveVarint(BigInt(value)));
      assert.equal(write.sizeInt64(value), end);
      assert.equal(reader.reset(out, 0, end).int64(), value);
    }),
  );
});

test('varint sizes are right on both sides of each power of two', () => {
  for (let bit = 0; bit <= 53; bit++) {
    for (const value of [2 ** bit - 1, Math.min(2 ** bit, Number.MAX_SAFE_INTEGER)]) {
      assert.equal(write.sizeVarint(value), naiveVarint(BigInt(value)).length, `${value}`);
      assert.equal(write.writeVarint(out, 0, value), naiveVarint(BigInt(value)).length);
      assert.equal(reader.reset(out, 0, 10).uint64(), value);
    }
  }
});

test('zigzag, fixed and floating values come back as they went', () => {
  const half = fc.integer({ min: -(2 ** 52), max: 2 ** 52 });
  fc.assert(
    fc.property(half, fc.integer(), fc.double(), (wide, narrow, floating) => {
      let end = write.writeSint64(out, 0, wide);
      const zigzag = wide >= 0 ? BigInt(wide) * 2n : BigInt(-wide) * 2n - 1n;
      assert.deepEqual([...out.subarray(0, end)], naiveVarint(zigzag));
      assert.equal(reader.reset(out, 0, end).sint64(), wide);
      end = write.writeSint64(out, 0, narrow);
      assert.equal(reader.reset(out, 0, end).sint32(), narrow);
      end = write.writeFixed32(out, 0, narrow >>> 0);
      assert.equal(reader.reset(out, 0, end).fixed32(), narrow >>> 0);
      end = write.writeDouble(out, 0, floating);
      assert.equal(reader.reset(out, 0, end).double(), floating);
      end = write.writeFloat(out, 0, floating);
      assert.equal(reader.reset(out, 0, end).float(), Math.fround(floating));
    }),
  );
});

/** ASCII, the rest of Unicode, and halves of surrogate pairs. */
const text = fc
  .array(fc.oneof(fc.nat(0x7f), fc.nat(0x10ffff)), { maxLength: 100, size: 'max' })
  .map((points) => String.fromCodePoint(...points));

test('text fields of any characters and lengths come back as they went', () => {
  fc.assert(
    fc.property(text, (value) => {
      const end = write.writeTextField(out, 0, 16, value);
      assert.equal(end, write.sizeBytesField(16, write.sizeText(value)));
      reader.reset(out, 0, end);
      assert.ok(reader.next());
      assert.equal(reader.field, 16);
      assert.equal(reader.text(), Buffer.from(value).toString());
      assert.equal(reader.next(), false);
      assert.equal(reader.failure, protobuf.FAILURE_NONE);
    }),
    { numRuns: 200 },
  );
});

test('a nested message of any size gets its length in front of it', () => {
  for (const size of [0, 1, 127, 128, 129, 2000]) {
    const start = write.openMessage(out, 0, 3);
    out.fill(7, start, start + size);
    const end = write.closeMessage(out, start, start + size);
    reader.reset(out, 0, end);
    assert.ok(reader.next());
    reader.chunk();
    assert.equal(reader.chunkEnd - reader.chunkStart, size);
    assert.equal(reader.chunkEnd, end);
    assert.ok(out.subarray(reader.chunkStart, end).every((byte) => byte === 7));
  }
});

test('a buffer that is too small is told by the offset and keeps its bytes', () => {
  const small = new Uint8Array(8);
  assert.ok(write.writeTextField(small, 0, 1, 'longer than eight bytes') > small.length);
  const start = write.openMessage(small, 0, 1);
  assert.ok(write.closeMessage(small, start, start + 200) > small.length);
  const source = new Uint8Array(100);
  assert.ok(write.writeBytesField(small, 0, 1, source, 0, 100) > small.length);
});

test('malformed messages stop the reader with the reason', () => {
  const cases: [number[], number][] = [
    [[0x08], protobuf.FAILURE_TRUNCATED],
    [[0x08, 0x80], protobuf.FAILURE_TRUNCATED],
    [[0x08, ...Array.from({ length: 10 }, () => 0xff), 1], protobuf.FAILURE_VARINT],
    [[0x08, ...Array.from({ length: 9 }, () => 0xff), 2], protobuf.FAILURE_VARINT],
    [[0x0a, 0x05, 1, 2], protobuf.FAILURE_TRUNCATED],
    [[0x0a, ...naiveVarint(2n ** 64n - 1n)], protobuf.FAILURE_TRUNCATED],
    [[0x0d, 1, 2, 3], protobuf.FAILURE_TRUNCATED],
    [[0x09, 1, 2, 3, 4, 5, 6, 7], protobuf.FAILURE_TRUNCATED],
    [[0x00, 0x00], protobuf.FAILURE_FIELD],
    [naiveVarint(2n ** 32n + 8n), protobuf.FAILURE_FIELD],
    [[0x0e, 0x00], protobuf.FAILURE_WIRE_TYPE],
    [[0x0c], protobuf.FAILURE_GROUP],
    [[0x0b, 0x08, 0x01], protobuf.FAILURE_GROUP],
    [[0x0b, 0x14], protobuf.FAILURE_GROUP],
    [Array.from({ length: 200 }, () => 0x0b), protobuf.FAILURE_GROUP],
  ];
  for (const [bytes, failure] of cases) {
    read(bytes);
    while (reader.next()) reader.skip();
    assert.equal(reader.failure, failure, `${protobuf.PROTOBUF_FAILURES[failure]}`);
    assert.equal(reader.offset, bytes.length);
  }
});

test('a group is stepped over as a whole', () => {
  read([0x0b, 0x08, 0x01, 0x13, 0x14, 0x0c, 0x10, 0x2a]);
  assert.ok(reader.next());
  reader.skip();
  assert.ok(reader.next());
  assert.deepEqual([reader.field, reader.uint32()], [2, 42]);
});

test('any bytes end the loop, within bounds', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64, size: 'max' }), (bytes) => {
      reader.reset(bytes, 0, bytes.length);
      let fields = 0;
      while (reader.next()) {
        reader.skip();
        fields++;
        assert.ok(fields <= bytes.length && reader.offset <= bytes.length);
      }
    }),
    { numRuns: 1000 },
  );
});
