/** JSON of a request into the bytes of its message, by the rules of Go's jsonpb. */
import { ownMember } from '@megaplane/base/members';
import { decodeBase64 } from '@megaplane/base/base64';
import { JsonDocuments, JsonError, type Json } from './json-text.ts';
import { ENUMS, type Field, type Kind, messageOf } from '../codec/schema.ts';

const INT64_MIN = -(2n ** 63n);
const LIMITS: Readonly<Record<string, readonly [bigint, bigint]>> = {
  int64: [INT64_MIN, 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  uint8: [0n, 255n],
};
const GO_TYPES: Readonly<Record<Kind, string>> = {
  int64: 'int64',
  uint64: 'uint64',
  uint32: 'uint32',
  bool: 'bool',
  bytes: '[]uint8',
  string: 'string',
};

/** The message's bytes. Throws a JsonError whose text goes to the client. */
export function encodeJson(json: Json, name: string): Buffer {
  if (json.kind === 'null') return Buffer.alloc(0);
  if (json.kind !== 'object') throw mismatch(json, 'map[string]json.RawMessage');
  const parts: Buffer[] = [];
  // By the fields, not by the members: unknown names are passed over, as etcd's gateway does, and
  // the first field that is wrong is the one that is told.
  for (const field of messageOf(name).fields) {
    const value = json.members.get(field.camel) ?? json.members.get(field.name);
    if (value === undefined || value.kind === 'null') continue;
    if (!field.isRepeated) parts.push(...encodeField(field, value));
    else if (value.kind !== 'array') throw mismatch(value, '[]json.RawMessage');
    else for (const item of value.items) parts.push(...encodeField(field, item));
  }
  return Buffer.concat(parts);
}

function mismatch(json: Json, goType: string): JsonError {
  const isInteger = Object.hasOwn(LIMITS, goType) || Object.hasOwn(ENUMS, goType);
  const shown = json.kind === 'number' && isInteger ? `number ${json.text}` : json.kind;
  return new JsonError(`json: cannot unmarshal ${shown} into Go value of type ${goType}`);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

function delimited(number: number, content: Buffer): Buffer[] {
  return [varint(BigInt(number * 8 + 2)), varint(BigInt(content.length)), content];
}

function encodeField(field: Field, json: Json): Buffer[] {
  const { kind, number } = field;
  if (typeof kind === 'object') {
    if ('message' in kind) return delimited(number, encodeJson(json, kind.message));
    return [varint(BigInt(number * 8)), varint(enumValue(kind.enum, json))];
  }
  switch (kind) {
    case 'bytes':
      return delimited(number, bytesOf(json));
    case 'string':
      if (json.kind !== 'string') throw mismatch(json, GO_TYPES.string);
      return delimited(number, Buffer.from(json.value, 'utf8'));
    case 'bool':
      if (json.kind !== 'bool') throw mismatch(json, GO_TYPES.bool);
      return [varint(BigInt(number * 8)), varint(json.value ? 1n : 0n)];
    case 'int64':
    case 'uint64':
    case 'uint32':
      return [varint(BigInt(number * 8)), varint(integer(json, GO_TYPES[kind]))];
  }
}

function bytesOf(json: Json): Buffer {
  // Go takes a list of numbers for bytes, too.
  if (json.kind === 'array') {
    return Buffer.from(json.items.map((item) => Number(plainInteger(item, 'uint8'))));
  }
  if (json.kind !== 'string') throw mismatch(json, GO_TYPES.bytes);
  const bytes = decodeBase64(json.value);
  if (typeof bytes !== 'number') return bytes;
  throw new JsonError(`illegal base64 data at input byte ${bytes}`);
}

function enumValue(name: string, json: Json): bigint {
  if (json.kind !== 'string') return plainInteger(json, name);
  const value = (ownMember(ENUMS, name) ?? []).indexOf(json.raw);
  if (value < 0) throw new JsonError(`unknown value ${JSON.stringify(json.raw)} for enum ${name}`);
  return BigInt(value);
}

/** A number, or one in quotes, as 64-bit numbers come: what stands there is JSON again. */
function integer(json: Json, goType: string): bigint {
  return plainInteger(json.kind === 'string' ? new JsonDocuments(json.raw).only() : json, goType);
}

function plainInteger(json: Json, goType: string): bigint {
  // Go leaves what it had, which is zero.
  if (json.kind === 'null') return 0n;
  if (json.kind !== 'number' || !/^-?\d+$/.test(json.text)) throw mismatch(json, goType);
  const value = BigInt(json.text);
  const [least, most] = ownMember(LIMITS, Object.hasOwn(LIMITS, goType) ? goType : 'int32') ?? [
    0n,
    0n,
  ];
  if (value < least || value > most) throw mismatch(json, goType);
  return value;
}
