/**
 * The types of the built-in API as a graph of fields, read from the generated table when first
 * asked for.
 *
 * Fields stand in the order in which upstream writes them. The facts come from upstream's Go
 * structs (protobuf numbers, what an encoder omits) and OpenAPI (list types and merge keys). /
 */

import { ownMember } from '@megaplane/base/members';
import { embeddedPath } from './embedded-structs.ts';
import type { JsonValue } from '../json/json-value.ts';
import { TYPES } from './tables/types.ts';
import { zeroOf, zeroOfStruct, type Scalar } from './zero-values.ts';

export type Shape =
  | { readonly kind: 'scalar'; readonly scalar: Scalar }
  | { readonly kind: 'object'; readonly type: Type }
  /** `isMessage`: in protobuf the list is a message that holds the items as field 1. */
  | { readonly kind: 'list'; readonly items: Shape; readonly isMessage: boolean }
  | { readonly kind: 'map'; readonly values: Shape };

/** When a value that is present is left out. */
export type Omission =
  /** Never: it is written whatever it is. */
  | 'kept'
  /** When it is `null`, `''`, `0` or `false`. */
  | 'zero'
  /** When it is a list or a map without members. */
  | 'void'
  /** When it is `null`. */
  | 'null';

export interface Field {
  readonly name: string;
  /** Protobuf field number, 0 if the field has none (JSON only). */
  readonly number: number;
  /** Numbers of the messages around it, outermost first, where JSON has the fields inline. */
  readonly within: readonly number[];
  /** As decoders name it in errors, after the structs that Go embeds around it. */
  readonly errorPath: string;
  readonly shape: Shape;
  /** Null is a value of its own: zero and absent differ. */
  readonly isPointer: boolean;
  /**
   * When a JSON encoder leaves the field out: `empty` when it is zero, except that structs are
   * always written; `zero` when it is zero, structs too; `never`: written always, `null` or zero if
   * need be. /
   */
  readonly omitted: 'empty' | 'zero' | 'never';
  /** The same, ready for a loop over many fields. */
  readonly omission: Omission;
  /**
   * What is written where the field is absent; undefined: nothing. `absentType`: its empty object.
   */
  readonly absent: JsonValue | undefined;
  readonly absentType: Type | undefined;
  readonly isRequired: boolean;
  readonly listType: '' | 'atomic' | 'set' | 'map';
  readonly listMapKeys: readonly string[];
  readonly mapType: '' | 'atomic' | 'granular';
  /** Of strategic merge patch: '' when the list is replaced as a whole. */
  readonly mergeKey: string;
  readonly patchStrategies: readonly string[];
  /**
   * The Go type as messages of Go's JSON decoder name it: `v1.RestartPolicy`, `[]v1.Container`,
   * `int32`.
   */
  readonly goType: string;
}

const SCALARS: Readonly<Record<string, readonly [Scalar, string]>> = {
  s: ['string', 'string'],
  i: ['int32', 'int32'],
  l: ['int64', 'int64'],
  b: ['bool', 'bool'],
  y: ['bytes', '[]uint8'],
  d: ['double', 'float64'],
  T: ['time', 'v1.Time'],
  M: ['microTime', 'v1.MicroTime'],
  D: ['duration', 'v1.Duration'],
  F: ['fieldsV1', 'v1.FieldsV1'],
  Q: ['quantity', 'resource.Quantity'],
  I: ['intOrString', 'intstr.IntOrString'],
  R: ['raw', 'runtime.RawExtension'],
  J: ['json', 'v1.JSON'],
  B: ['schemaOrBool', 'v1.JSONSchemaPropsOrBool'],
  A: ['schemaOrArray', 'v1.JSONSchemaPropsOrArray'],
  P: ['schemaOrStringArray', 'v1.JSONSchemaPropsOrStringArray'],
};

const NO_NAMES: readonly string[] = [];
const NO_NUMBERS: readonly number[] = [];

const generated: readonly string[] = TYPES.split('\n');
const metadataId = generated.findIndex((row) => row.startsWith('meta.v1.ObjectMeta '));
/** What lists of metadata consist of: the struct is an alias in Go, which the tables leave out. */
const rows: readonly string[] = [
  ...generated,
  ...['v1', 'v1beta1'].map((version) => {
    const name = 'PartialObjectMetadata';
    const field = `metadata|1|o|@${metadataId.toString(36)}`;
    return `meta.${version}.${name} meta.k8s.io/${version}/${name}  ${field}`;
  }),
];
const types: (Type | undefined)[] = [];
const idByName = new Map<string, number>();
/** By kind, then by what stands before it; the core group's versions with a slash and without. */
const idByKind = new Map<string, Map<string, number>>();

for (let id = 0; id < rows.length; id++) {
  const row = rows[id] ?? '';
  const nameEnd = row.indexOf(' ');
  const kindEnd = row.indexOf(' ', nameEnd + 1);
  idByName.set(row.slice(0, nameEnd), id);
  if (kindEnd > nameEnd + 1) addKind(row.slice(nameEnd + 1, kindEnd), id);
}

function addKind(path: string, id: number): void {
  const slash = path.lastIndexOf('/');
  const [apiVersion, kind] = [path.slice(0, slash), path.slice(slash + 1)];
  let ids = idByKind.get(kind);
  if (ids === undefined) idByKind.set(kind, (ids = new Map()));
  ids.set(apiVersion, id);
  if (apiVersion.startsWith('/')) ids.set(apiVersion.slice(1), id);
}

/** A struct of the API: a kind, or a part of one. One instance each; compare with `===`. */
export class Type {
  /** `core.v1.PodSpec`, `meta.v1.ObjectMeta`: package, version, name. */
  readonly name: string;
  /** `PodSpec`. */
  readonly goName: string;
  /** `v1.PodSpec`. */
  readonly goType: string;
  readonly group: string;
  readonly version: string;
  /** '' unless objects of this type stand alone. */
  readonly kind: string;
  /** The whole is replaced by server-side apply, never merged. */
  readonly isAtomic: boolean;
  readonly #columns: readonly string[];
  #fields: readonly Field[] | undefined;
  #byName: ReadonlyMap<string, Field> | undefined;

  constructor(row: string) {
    const [name = '', kind = '', mapType = '', ...columns] = row.split(' ');
    const [group = '', version = '', kindName = ''] = kind.split('/');
    this.name = name;
    this.goName = name.slice(name.lastIndexOf('.') + 1);
    this.goType = name.split('.').slice(-2).join('.');
    this.group = group;
    this.version = version;
    this.kind = kind === '*' ? this.goName : kindName;
    this.isAtomic = mapType === 'atomic';
    this.#columns = columns;
  }

  /** In the order in which upstream writes them; `kind` and `apiVersion` are not among them. */
  get fields(): readonly Field[] {
    return (this.#fields ??= this.#columns.map((column) => parseField(column, this.goName)));
  }

  field(name: string): Field | undefined {
    this.#byName ??= new Map(this.fields.map((field) => [field.name, field]));
    return this.#byName.get(name);
  }
}

/** Their quantities go by names of their own; all other maps of quantities are one type. */
const OF_DEVICES: ReadonlySet<string> = new Set([
  'CapacityRequirements',
  'DeviceRequestAllocationResult',
]);

function parseField(column: string, owner: string): Field {
  const [name = '', number = '', flags = '', code = '', patch = ''] = column.split('|');
  const [listType = '', keys = '', mergeKey = '', strategies = '', mapType = ''] = patch.split(',');
  const numbers = number.split('.').map(Number);
  const isPointer = code.startsWith('*');
  const bare = isPointer ? code.slice(1) : code;
  const [shape, goType] = parseShape(bare);
  const omitted = flags.includes('z') ? 'zero' : flags.includes('o') ? 'empty' : 'never';
  const isStruct = shape.kind === 'object' && !isPointer && omitted !== 'zero';
  return {
    name,
    number: numbers.at(-1) ?? 0,
    within: numbers.length > 1 ? numbers.slice(0, -1) : NO_NUMBERS,
    errorPath: embeddedPath(owner, numbers.length - 1, name),
    shape,
    isPointer,
    omitted,
    omission: omissionOf(shape, isPointer, omitted),
    absent: absentOf(shape, isPointer, omitted),
    absentType: isStruct ? shape.type : undefined,
    isRequired: flags.includes('r'),
    listType: listType as Field['listType'],
    listMapKeys: keys === '' ? NO_NAMES : keys.split('+'),
    mapType: mapType as Field['mapType'],
    mergeKey,
    patchStrategies: strategies === '' ? NO_NAMES : strategies.split('+'),
    goType: bare === '{Q' && !OF_DEVICES.has(owner) ? 'v1.ResourceList' : goType,
  };
}

function omissionOf(shape: Shape, isPointer: boolean, omitted: Field['omitted']): Omission {
  if (isPointer || omitted === 'never') return 'kept';
  if (shape.kind === 'list' || shape.kind === 'map') return 'void';
  if (shape.kind === 'object') return omitted === 'zero' ? 'void' : 'null';
  if (zeroOfStruct(shape.scalar) === undefined) return 'zero';
  return omitted === 'zero' ? 'null' : 'kept';
}

function absentOf(
  shape: Shape,
  isPointer: boolean,
  omitted: Field['omitted'],
): JsonValue | undefined {
  if (omitted === 'zero') return undefined;
  if (isPointer || shape.kind !== 'scalar') return omitted === 'never' ? null : undefined;
  const zero = zeroOfStruct(shape.scalar);
  return zero === undefined && omitted === 'never' ? zeroOf(shape.scalar) : zero;
}

/** See `tools/types.ts` for the code. */
function parseShape(code: string): [shape: Shape, goType: string] {
  const first = code[0] ?? '';
  const rest = code.slice(1);
  if (first === '[' || first === '&') {
    const [items, goType] = parseShape(rest);
    return [{ kind: 'list', items, isMessage: first === '&' }, `[]${goType}`];
  }
  if (first === '{') {
    const [values, goType] = parseShape(rest);
    return [{ kind: 'map', values }, `map[string]${goType}`];
  }
  if (first === '*') return parseShape(rest);
  if (first === '@') {
    const type = typeById(Number.parseInt(rest, 36));
    return [{ kind: 'object', type }, type.goType];
  }
  const scalar = ownMember(SCALARS, first);
  if (scalar === undefined) throw new Error(`types table: no scalar of code ${code}`);
  return [{ kind: 'scalar', scalar: scalar[0] }, rest === '' ? scalar[1] : rest.slice(1)];
}

function typeById(id: number): Type {
  return (types[id] ??= new Type(rows[id] ?? ''));
}

/** By package, version and name: `core.v1.PodSpec`, `meta.v1.ObjectMeta`, `meta.v1.Status`. */
export function findType(name: string): Type | undefined {
  const id = idByName.get(name);
  return id === undefined ? undefined : typeById(id);
}

/**
 * The version that an object is read as where `expected` is wanted: an older one may be of the same
 * form.
 */
export function versionRead(apiVersion: string, kind: string, expected: string): string {
  if (apiVersion === expected) return expected;
  return OLDER_VERSIONS.get(`${apiVersion}/${kind}`) === expected ? expected : apiVersion;
}

/** Kinds that upstream reads in an older version too, though no path of it is served. */
const OLDER_VERSIONS: ReadonlyMap<string, string> = new Map([
  ['policy/v1beta1/Eviction', 'policy/v1'],
]);

/**
 * The type of an object by what it says of itself. `Status`, `WatchEvent`, the options and the
 * lists of partial objects are found in `v1` and `meta.k8s.io/v1`; delete options and watch events
 * in every group. /
 */
export function findTypeOfKind(apiVersion: string, kind: string): Type | undefined {
  const id = idByKind.get(kind)?.get(apiVersion);
  if (id !== undefined) return typeById(id);
  const isMeta = apiVersion === 'v1' || apiVersion === 'meta.k8s.io/v1';
  if (!isMeta && kind !== 'DeleteOptions' && kind !== 'WatchEvent') return undefined;
  return findType(`meta.v1.${kind}`);
}
