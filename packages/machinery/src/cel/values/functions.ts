/** Functions of CEL: their signatures, and code for each. */
import { CelError, typeNameOf, CelList, CelMap, CelObject, type CelValue } from './values.ts';
import { parseType, splitTypes, type CelType } from './typing.ts';

/** One signature of a function. The target of a method is the first parameter. */
export interface Overload {
  readonly id: string;
  readonly name: string;
  readonly isMember: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
  readonly apply: (...args: readonly CelValue[]) => CelValue;
}

/** Code of an overload; the declared types hold for its arguments. */
// oxlint-disable-next-line typescript/no-explicit-any -- the signature beside it says the types
export type Code = (...args: any[]) => CelValue;

/** All functions by name. */
export type FunctionTable = ReadonlyMap<string, readonly Overload[]>;

/** Signatures with their code; a method's has its target before a dot: `id: list(A) . max(): A`. */
export type Library = Readonly<Record<string, Code>>;

const SIGNATURE = /^(\w+): (?:(\S.*?) \. )?([^\s(]+)\((.*)\): (.+)$/;

function parseSignature(text: string, apply: Code): Overload {
  const found = SIGNATURE.exec(text);
  if (found === null) throw new Error(`not a signature: ${text}`);
  const [, id = '', target, path = '', params = '', result = ''] = found;
  const types = splitTypes(params).map(parseType);
  return {
    id,
    name: path,
    isMember: target !== undefined,
    params: target === undefined ? types : [parseType(target), ...types],
    result: parseType(result),
    apply,
  };
}

/** One table of several libraries. */
export function tableOf(libraries: readonly Library[]): FunctionTable {
  const table = new Map<string, Overload[]>();
  for (const library of libraries) {
    for (const [text, code] of Object.entries(library)) {
      const overload = parseSignature(text, code);
      const own = table.get(overload.name);
      if (own === undefined) table.set(overload.name, [overload]);
      else own.push(overload);
    }
  }
  return table;
}

/** Whether a value can be an argument of this type; looks at no member of lists and maps. */
/** The first item, or entry, tells for all of them. */
function isListOf(list: CelList, { params: [item] }: CelType): boolean {
  return list.length === 0 || item === undefined || isOfType(list.at(0), item);
}

function isMapOf(map: CelMap, { params: [key, member] }: CelType): boolean {
  if (key === undefined || member === undefined) return true;
  if (isAnything(key) && isAnything(member)) return true;
  if (map.size === 0) return true;
  const [first = null] = map.keys();
  return isOfType(first, key) && isOfType(map.get(first) ?? null, member);
}

function isAnything({ kind }: CelType): boolean {
  return kind === 'dyn' || kind === 'param';
}

export function isOfType(value: CelValue, type: CelType): boolean {
  const kind: string = type.kind;
  switch (kind) {
    case 'dyn':
    case 'param':
      return !(value instanceof CelError);
    case 'list':
      return value instanceof CelList && isListOf(value, type);
    case 'map':
      return value instanceof CelMap && isMapOf(value, type);
    case 'object':
      return value instanceof CelObject || value === null;
    case 'opaque':
      return typeNameOf(value) === type.name;
    case 'timestamp':
      return typeNameOf(value) === 'google.protobuf.Timestamp';
    case 'duration':
      return typeNameOf(value) === 'google.protobuf.Duration';
    case 'null':
      return value === null;
    default:
      return typeNameOf(value) === kind;
  }
}
