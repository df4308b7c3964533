/**
 * Profiles as `go tool pprof` reads them: profile.proto of github.com/google/pprof, gzipped.
 *
 *   Profile   1 sample_type  2 sample  4 location  5 function  6 string_table
 *             9 time_nanos  10 duration_nanos  11 period_type  12 period
 *   Sample    1 location_id, the innermost first  2 value
 *   Location  1 id  4 line { 1 function_id  2 line }
 *   Function  1 id  2 name  3 system_name  4 filename  5 start_line
 */
import { gzipSync } from 'node:zlib';

/** A place in the program. */
export interface Frame {
  readonly name: string;
  readonly file: string;
  /** Of the function, counted from 1; 0: unknown. */
  readonly line: number;
}

/** One stack, the innermost frame first, with a value for each type. */
export interface Sample {
  readonly stack: readonly Frame[];
  readonly values: readonly number[];
}

export interface Profile {
  /** Name and unit of each value of a sample. */
  readonly types: readonly (readonly [name: string, unit: string])[];
  readonly samples: readonly Sample[];
  readonly startedMs: number;
  readonly durationMs: number;
  readonly periodType: readonly [name: string, unit: string];
  readonly period: number;
}

export function encodeProfile(profile: Profile): Buffer {
  const tables = new Tables();
  const samples = profile.samples.map(({ stack, values }) =>
    message([
      packed(
        1,
        stack.map((frame) => tables.location(frame)),
      ),
      packed(2, values),
    ]),
  );
  const valueType = ([name, unit]: readonly [string, string]): Buffer =>
    message([number(1, tables.text(name)), number(2, tables.text(unit))]);
  const fields = [
    ...profile.types.map((type) => bytes(1, valueType(type))),
    ...samples.map((sample) => bytes(2, sample)),
    ...tables.locations.map((location) => bytes(4, location)),
    ...tables.functions.map((one) => bytes(5, one)),
    number(9, profile.startedMs * 1e6),
    number(10, Math.round(profile.durationMs * 1e6)),
    bytes(11, valueType(profile.periodType)),
    number(12, profile.period),
  ];
  // the table of texts is complete only now; the order of fields is free
  for (const text of tables.texts.keys()) fields.push(bytes(6, Buffer.from(text)));
  return gzipSync(message(fields));
}

/** What samples refer to by numbers. */
class Tables {
  /** In the order of their numbers; the first is empty, as the format wants it. */
  readonly texts: Map<string, number> = new Map([['', 0]]);
  readonly locations: Buffer[] = [];
  readonly functions: Buffer[] = [];
  readonly #known = new Map<string, number>();

  text(text: string): number {
    let index = this.texts.get(text);
    if (index === undefined) this.texts.set(text, (index = this.texts.size));
    return index;
  }

  /** Each function is one place: a profile of V8 tells no lines within. */
  location({ name, file, line }: Frame): number {
    const key = `${name} ${file} ${line}`;
    let id = this.#known.get(key);
    if (id !== undefined) return id;
    this.#known.set(key, (id = this.#known.size + 1));
    const [called, where] = [this.text(name), this.text(file)];
    this.functions.push(
      message([
        number(1, id),
        number(2, called),
        number(3, called),
        number(4, where),
        number(5, line),
      ]),
    );
    this.locations.push(
      message([number(1, id), bytes(4, message([number(1, id), number(2, line)]))]),
    );
    return id;
  }
}

function message(fields: readonly Buffer[]): Buffer {
  return Buffer.concat(fields);
}

function bytes(field: number, content: Buffer): Buffer {
  return Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);
}

function number(field: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.concat([varint(field * 8), varint(value)]);
}

function packed(field: number, values: readonly number[]): Buffer {
  return bytes(field, Buffer.concat(values.map(varint)));
}

function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = BigInt(Math.max(0, Math.round(value)));
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest === 0n ? low : low | 128);
  } while (rest !== 0n);
  return Buffer.from(out);
}
