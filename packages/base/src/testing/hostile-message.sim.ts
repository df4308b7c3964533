/**
 * For tests: messages of protobuf with any values in their fields, from a description of the
 * fields; what their readers must know how to refuse.
 */
import fc from 'fast-check';

/** A field; those of a message are asked for late, since messages may hold themselves. */
export type MessageField =
  | { readonly number: number; readonly kind: 'varint' | 'fixed32' | 'fixed64' | 'bytes' }
  | { readonly number: number; readonly kind: 'message'; readonly fields: FieldsOf };
type FieldsOf = () => readonly MessageField[];

const DEPTH_MAX = 4;
const FIELDS_MAX = 5;
const NUMBERS = [
  ...[0n, 1n, 2n, 3n, 5n, 100n, 0x7fff_ffffn, 0x8000_0000n, 2n ** 53n + 1n, 2n ** 63n - 1n],
  ...[-1n, -(2n ** 63n)],
];
const TEXTS = [
  ...['', 'a', 'b', 'root', '\0', 'key', 'constructor', '__proto__', 'c1', 's1', 'cpu', '1', '1Gi'],
  ...['999999999999999999999999999999e99', '-1', 'v1alpha1', '\u00ff', 'a=b', 'http://a:1', '/'],
];

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

function tagged(number: number, wireType: number, ...rest: readonly Buffer[]): Buffer {
  return Buffer.concat([varint(BigInt(number * 8 + wireType)), ...rest]);
}

function chunk(number: number, bytes: Uint8Array): Buffer {
  return tagged(number, 2, varint(BigInt(bytes.length)), Buffer.from(bytes));
}

const number = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
);
const chars = fc.oneof(
  fc.constantFrom(...TEXTS).map((text) => Buffer.from(text)),
  fc.constantFrom(...TEXTS).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
  fc.integer({ min: 100, max: 3000 }).map((length) => Buffer.alloc(length, 'x')),
);

function fieldBytes(field: MessageField, depth: number): fc.Arbitrary<Buffer> {
  const at = field.number;
  switch (field.kind) {
    case 'varint':
      return number.map((value) => tagged(at, 0, varint(value)));
    case 'fixed32':
      return fc
        .uint8Array({ minLength: 4, maxLength: 4 })
        .map((bytes) => tagged(at, 5, Buffer.from(bytes)));
    case 'fixed64':
      return fc.double().map((value) => {
        const bytes = Buffer.alloc(8);
        bytes.writeDoubleLE(value);
        return tagged(at, 1, bytes);
      });
    case 'bytes':
      return chars.map((bytes) => chunk(at, bytes));
    case 'message':
      return messageBytes(field.fields(), depth + 1).map((bytes) => chunk(at, bytes));
  }
}

/** Messages of these fields, in any number and order. */
export function messageBytes(fields: readonly MessageField[], depth = 0): fc.Arbitrary<Buffer> {
  const possible = depth < DEPTH_MAX ? fields : fields.filter(({ kind }) => kind !== 'message');
  if (possible.length === 0) return fc.constant(Buffer.alloc(0));
  const one = fc.constantFrom(...possible).chain((field) => fieldBytes(field, depth));
  return fc.array(one, { maxLength: FIELDS_MAX }).map((parts) => Buffer.concat(parts));
}
