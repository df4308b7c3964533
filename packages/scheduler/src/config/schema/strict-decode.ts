/**
 * Reads a configuration by the Go types that upstream reads it with: the same members, the same
 * types, and the same complaints, which operators search the web for.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { base64Fault } from '@megaplane/machinery/base64';
import { isNumber, isObject } from '@megaplane/machinery/json-value';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isWrittenInteger, type NumberLiterals } from '@megaplane/machinery/number-literals';
import { durationFault, formatDuration, parseGoDuration } from '@megaplane/machinery/times';

export type Schema =
  | { readonly kind: 'int32' | 'int64' | 'float32' | 'bool' | 'duration' | 'bytes' }
  /** `type`: where it is not plain, as errors call it. */
  | { readonly kind: 'string'; readonly type?: string }
  /** Kept as it is. */
  | { readonly kind: 'raw' }
  | { readonly kind: 'list'; readonly of: Schema }
  | { readonly kind: 'map'; readonly of: Schema }
  | StructSchema;

export interface StructSchema {
  readonly kind: 'struct';
  /** As errors about the whole call it: `v1.Plugins`. */
  readonly type: string;
  readonly members: Readonly<Record<string, Schema>>;
  /** Members that are of a struct within, which errors about them name. */
  readonly embedded?: Readonly<Record<string, string>>;
}

/** What was read, or the thing that cannot be read and is told; unknown members are all listed. */
export interface Decoded {
  readonly value: JsonValue;
  readonly error: string;
  readonly unknown: readonly string[];
}

function goTypeOf(schema: Schema): string {
  switch (schema.kind) {
    case 'list':
      return `[]${goTypeOf(schema.of)}`;
    case 'map':
      return `map[string]${goTypeOf(schema.of)}`;
    case 'struct':
      return schema.type;
    case 'duration':
      return 'string';
    case 'bytes':
      return '[]uint8';
    case 'raw':
      return 'runtime.RawExtension';
    case 'string':
      return schema.type ?? schema.kind;
    case 'int32':
    case 'int64':
    case 'float32':
    case 'bool':
      return schema.kind;
  }
}

/** What `null` in a list stands for. */
function emptyOf({ kind }: Schema): JsonValue {
  if (kind === 'struct') return {};
  return kind === 'string' ? '' : null;
}

/** What Go's errors call a value. */
export function jsonTypeOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (isNumber(value)) return 'number';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}

/** Where a value stands: the type around it, the members down to it, and its path with indices. */
interface Place {
  readonly struct: string;
  readonly members: readonly string[];
  readonly path: string;
  /** Of a number, as it is written, where that is not as plain integers are. */
  readonly literal?: string | undefined;
}

class Decoder {
  readonly #numbers: NumberLiterals | undefined;
  /** The first value of a wrong type. */
  #wrong = '';
  /** The first duration that is none: upstream stops there and forgets what was wrong before. */
  #last = '';
  readonly unknown: string[] = [];

  constructor(numbers: NumberLiterals | undefined) {
    this.#numbers = numbers;
  }

  get error(): string {
    return this.#last === '' ? this.#wrong : this.#last;
  }

  read(value: JsonValue, schema: Schema, place: Place): JsonValue {
    if (schema.kind === 'raw') return value;
    // Upstream reads `null` as a text that is empty there, and refuses it.
    if (value === null)
      return schema.kind === 'duration' ? this.#duration('', schema, place) : null;
    switch (schema.kind) {
      case 'struct':
        return this.#struct(value, schema, place);
      case 'list':
        if (!Array.isArray(value)) return this.#mismatch(jsonTypeOf(value), schema, place);
        return value.map((item, index) =>
          this.read(item ?? emptyOf(schema.of), schema.of, {
            ...place,
            path: `${place.path}[${index}]`,
          }),
        );
      case 'map':
        if (!isObject(value)) return this.#mismatch(jsonTypeOf(value), schema, place);
        return Object.fromEntries(
          Object.entries(value).map(([key, item = null]) => [
            key,
            this.read(item, schema.of, place),
          ]),
        );
      case 'duration':
        return this.#duration(value, schema, place);
      case 'string':
        return typeof value === 'string' ? value : this.#mismatch(jsonTypeOf(value), schema, place);
      case 'bytes':
        return this.#bytes(value, schema, place);
      case 'bool':
        return typeof value === 'boolean'
          ? value
          : this.#mismatch(jsonTypeOf(value), schema, place);
      case 'int32':
      case 'int64':
      case 'float32':
        return this.#number(value, schema, place);
    }
  }

  #struct(value: JsonValue, schema: StructSchema, place: Place): JsonValue {
    if (!isObject(value)) return this.#mismatch(jsonTypeOf(value), schema, place);
    const struct = schema.type.slice(schema.type.indexOf('.') + 1);
    const result: JsonObject = {};
    for (const [name, given = null] of Object.entries(value)) {
      const path = place.path === '' ? name : `${place.path}.${name}`;
      const member = Object.hasOwn(schema.members, name) ? schema.members[name] : undefined;
      if (member === undefined) {
        this.unknown.push(path);
        continue;
      }
      const within = ownMember(schema.embedded, name);
      const down = within === undefined ? [name] : [within, name];
      const literal = this.#numbers?.get(value)?.get(name);
      const inner = { struct, members: [...place.members, ...down], path, literal };
      const read = this.read(given, member, inner);
      if (read !== null) putMember(result, name, read);
    }
    return result;
  }

  #number(value: JsonValue, schema: Schema, place: Place): JsonValue {
    if (!isNumber(value)) return this.#mismatch(jsonTypeOf(value), schema, place);
    const written = place.literal ?? String(value);
    if (schema.kind !== 'int32' && schema.kind !== 'int64') {
      const rounded = Number(value);
      if (Number.isFinite(rounded)) return rounded;
      return this.#mismatch(`number ${written}`, schema, place);
    }
    const bits = schema.kind === 'int32' ? 32 : 64;
    if (isWrittenInteger(written, bits)) return value;
    return this.#mismatch(`number ${written}`, schema, place);
  }

  #bytes(value: JsonValue, schema: Schema, place: Place): JsonValue {
    if (typeof value !== 'string') return this.#mismatch(jsonTypeOf(value), schema, place);
    const wrong = base64Fault(value);
    if (wrong >= 0 && this.#wrong === '') {
      this.#wrong = `illegal base64 data at input byte ${wrong}`;
    }
    return value;
  }

  #duration(value: JsonValue, schema: Schema, place: Place): JsonValue {
    if (this.#last !== '') return value;
    if (typeof value !== 'string') {
      this.#last = mismatch(jsonTypeOf(value), schema, place);
      return value;
    }
    this.#last = durationFault(value);
    return formatDuration(parseGoDuration(value) ?? 0n);
  }

  #mismatch(found: string, schema: Schema, place: Place): null {
    if (this.#wrong === '') this.#wrong = mismatch(found, schema, place);
    return null;
  }
}

function mismatch(found: string, schema: Schema, { struct, members }: Place): string {
  const where =
    members.length === 0 ? 'Go value' : `Go struct field ${struct}.${members.join('.')}`;
  return `json: cannot unmarshal ${found} into ${where} of type ${goTypeOf(schema)}`;
}

/**
 * Members of the value `null` are as good as absent. `numbers`: as they are written, of which Go
 * takes plain digits for integers only.
 */
export function strictDecode(
  value: JsonValue,
  schema: StructSchema,
  numbers?: NumberLiterals,
): Decoded {
  const decoder = new Decoder(numbers);
  const read = decoder.read(value, schema, { struct: '', members: [], path: '' });
  return { value: read, error: decoder.error, unknown: decoder.unknown };
}

/** Unknown members in upstream's words. */
export function strictText(errors: readonly string[]): string {
  return `strict decoding error: ${errors.join(', ')}`;
}
