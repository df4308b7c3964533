/**
 * JSON as protobuf messages by tables: which member of an object is which field of its message, and
 * how it is written. Members come in the order of the object, which readers of protobuf allow.
 */
import {
  isNumber,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@megaplane/machinery/json-value';
import {
  closeMessage,
  openMessage,
  writeDouble,
  writeInt64Field,
  writeTag,
  writeTextField,
  writeVarint,
  writeVarint64Field,
} from '@megaplane/wire/protobuf-write';
import { WIRE_FIXED64, WIRE_VARINT } from '@megaplane/wire/protobuf';

/** Writes `value` as the field of the message that is being written. */
export type Write = (out: MessageWriter, field: number, value: JsonValue) => void;

/** What an object becomes. */
export interface Message {
  /** Number and form of each member; others are left out. */
  readonly fields: ReadonlyMap<string, readonly [number, Write]>;
  /** Field of pairs of name and value for members that begin with `x-`. */
  readonly extension: number;
}

export function message(
  fields: Readonly<Record<string, readonly [number, Write]>>,
  extension: number,
): Message {
  return { fields: new Map(Object.entries(fields)), extension };
}

export const text: Write = (out, field, value) => {
  if (typeof value === 'string' && value !== '') out.text(field, value);
};

export const texts: Write = (out, field, value) => {
  for (const one of listOf(value)) if (typeof one === 'string') out.text(field, one);
};

export const bool: Write = (out, field, value) => {
  if (value === true) out.bool(field, true);
};

export const double: Write = (out, field, value) => {
  if (isNumber(value) && value !== 0) out.double(field, Number(value));
};

/** Of 64 bits; what is none, as others' documents may have it, is left out. */
export const integer: Write = (out, field, value) => {
  if (typeof value === 'bigint') out.wide(field, value);
  else if (Number.isSafeInteger(value) && value !== 0) out.integer(field, Number(value));
};

/** Any value as text of YAML, of which JSON is a part. */
export const any: Write = (out, field, value) => {
  out.nest(field, () => out.text(2, JSON.stringify(value)));
};

export const anys: Write = (out, field, value) => {
  for (const one of listOf(value)) any(out, field, one);
};

/** An object; a table that mentions itself is given as a function. */
export function object(table: Message | (() => Message)): Write {
  return (out, field, value) => {
    if (!isObject(value)) return;
    const found = typeof table === 'function' ? table() : table;
    out.nest(field, () => out.members(found, value));
  };
}

/** Each item by itself. */
export function each(write: Write): Write {
  return (out, field, value) => {
    for (const one of listOf(value)) write(out, field, one);
  };
}

/** A message with one field. */
export function within(inner: number, write: Write): Write {
  return (out, field, value) => out.nest(field, () => write(out, inner, value));
}

/** A map as pairs of name and value, within a message whose field `pairs` they are. */
export function named(write: Write, pairs = 1): Write {
  return (out, field, value) => {
    if (!isObject(value)) return;
    out.nest(field, () => {
      for (const [name, one] of Object.entries(value)) {
        if (one === undefined) continue;
        out.nest(pairs, () => {
          out.text(1, name);
          write(out, 2, one);
        });
      }
    });
  };
}

/** One of several forms, within a message that says by its field which it is. */
export function oneOf(choose: (value: JsonValue) => readonly [number, Write] | null): Write {
  return (out, field, value) => {
    const chosen = choose(value);
    out.nest(field, () => chosen?.[1](out, chosen[0], value));
  };
}

/** True for `{ $ref: ... }`, whatever else it says. */
export function isReference(value: JsonValue): boolean {
  return isObject(value) && value['$ref'] !== undefined;
}

export class MessageWriter {
  readonly bytes: Buffer;
  at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  members({ fields, extension }: Message, value: JsonObject): void {
    for (const [name, one] of Object.entries(value)) {
      if (one === undefined) continue;
      const known = fields.get(name);
      if (known !== undefined) known[1](this, known[0], one);
      else if (name.startsWith('x-')) this.#extension(extension, name, one);
    }
  }

  #extension(field: number, name: string, value: JsonValue): void {
    this.nest(field, () => {
      this.text(1, name);
      any(this, 2, value);
    });
  }

  text(field: number, value: string): void {
    this.at = writeTextField(this.bytes, this.at, field, value);
  }

  /** A zero, too, as fields of a `oneof` need it. */
  bool(field: number, value: boolean): void {
    this.at = writeTag(this.bytes, this.at, field, WIRE_VARINT);
    this.at = writeVarint(this.bytes, this.at, value ? 1 : 0);
  }

  /** A zero, too. */
  double(field: number, value: number): void {
    this.at = writeTag(this.bytes, this.at, field, WIRE_FIXED64);
    this.at = writeDouble(this.bytes, this.at, value);
  }

  integer(field: number, value: number): void {
    this.at = writeInt64Field(this.bytes, this.at, field, value);
  }

  wide(field: number, value: bigint): void {
    if (BigInt.asIntN(64, value) !== value) return;
    const low = Number(BigInt.asUintN(32, value));
    const high = Number(BigInt.asUintN(32, value >> 32n));
    this.at = writeVarint64Field(this.bytes, this.at, field, low, high);
  }

  nest(field: number, write: () => void): void {
    const start = openMessage(this.bytes, this.at, field);
    this.at = start;
    write();
    this.at = closeMessage(this.bytes, start, this.at);
  }
}

/** `value` as a message. */
export function encodeMessage(table: Message, value: JsonObject): Buffer {
  // The message is smaller than its JSON except where extensions are text within text.
  let size = JSON.stringify(value).length * 2;
  for (;;) {
    const out = new MessageWriter(Buffer.allocUnsafe(size));
    out.members(table, value);
    if (out.at <= out.bytes.length) return out.bytes.subarray(0, out.at);
    size *= 2;
  }
}

function listOf(value: JsonValue): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
