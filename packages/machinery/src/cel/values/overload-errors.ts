/**
 * What is said of values that no overload of a function takes, in the words of cel-go: the checker
 * lets anything pass where it does not know the types.
 */
import { ownMember } from '@megaplane/base/members';
import {
  CelError,
  CelList,
  CelMap,
  CelObject,
  Duration,
  Opaque,
  Optional,
  Timestamp,
  typeNameOf,
  TypeValue,
  type CelValue,
} from './values.ts';

export const NO_OVERLOAD: CelError = new CelError('no such overload');

const TIMES = ['google.protobuf.Timestamp', 'google.protobuf.Duration'];
const NUMBERS = ['int', 'uint', 'double'];
const COMPARED: ReadonlySet<string> = new Set([...NUMBERS, ...TIMES, 'bool', 'string', 'bytes']);

/** Functions that upstream has once for all types, and the types that have them at all. */
const OF_TYPES: Readonly<Record<string, ReadonlySet<string>>> = {
  '_+_': new Set([...NUMBERS, ...TIMES, 'string', 'bytes', 'list']),
  '_-_': new Set([...NUMBERS, ...TIMES]),
  '_*_': new Set(NUMBERS),
  '_/_': new Set(NUMBERS),
  '_%_': new Set(['int', 'uint']),
  '-_': new Set(['int', 'double', 'bool', 'google.protobuf.Duration']),
  '_<_': COMPARED,
  '_<=_': COMPARED,
  '_>_': COMPARED,
  '_>=_': COMPARED,
  size: new Set(['string', 'bytes', 'list', 'map']),
};

/** Types that are asked for any function by its name, and answer that they do not have it. */
const RECEIVERS: ReadonlySet<string> = new Set([...TIMES, 'string']);

/** Those that say no by themselves. */
const UNNAMED: ReadonlySet<string> = new Set([
  ...['!_', '@in', '_==_', '_!=_', 'contains', 'endsWith', 'startsWith', 'matches'],
]);

export function noOverload(name: string, values: readonly CelValue[]): CelError {
  const types = Object.hasOwn(OF_TYPES, name) ? OF_TYPES[name] : undefined;
  if (types !== undefined) {
    const first = typeNameOf(values[0] ?? null);
    if (types.has(first) || RECEIVERS.has(first)) return NO_OVERLOAD;
    return new CelError(`no such overload: ${name}`);
  }
  if (UNNAMED.has(name)) return NO_OVERLOAD;
  return new CelError(`no such overload: ${name}(${values.map(typeNameOf).join(', ')})`);
}

/** What a member of a value is that has none: a list has no names, and all else no such member. */
export function noMember(value: CelValue, key: CelValue): CelError {
  if (value instanceof CelError) return value;
  if (value instanceof CelList) {
    return new CelError(`unsupported index type '${typeNameOf(key)}' in list`);
  }
  return new CelError(`no such key: ${keyText(key)}`);
}

function keyText(key: CelValue): string {
  if (typeof key === 'string') return key;
  const isPlain = typeof key === 'bigint' || typeof key === 'number' || typeof key === 'boolean';
  return isPlain ? String(key) : typeNameOf(key);
}

/** Whether a value has members by name, or by key. */
export function hasMembers(value: CelValue): value is CelMap | CelObject {
  return value instanceof CelMap || value instanceof CelObject;
}

/** What cel-go's types of values are called. */
const GO_TYPES: Readonly<Record<string, string>> = {
  bool: 'types.Bool',
  bytes: 'types.Bytes',
  double: 'types.Double',
  int: 'types.Int',
  null_type: 'types.Null',
  string: 'types.String',
  uint: 'types.Uint',
  'kubernetes.Quantity': 'cel.Quantity',
  'kubernetes.Semver': 'cel.Semver',
  'kubernetes.URL': 'cel.URL',
  'kubernetes.NamedFormat': '*cel.Format',
  'net.IP': 'cel.IP',
  'net.CIDR': 'cel.CIDR',
  'kubernetes.authorization.Authorizer': 'library.authorizerVal',
};

function goType(value: CelValue): string | undefined {
  if (value instanceof Timestamp) return 'types.Timestamp';
  if (value instanceof Duration) return 'types.Duration';
  if (value instanceof TypeValue) return '*types.Type';
  if (value instanceof Optional) return '*types.Optional';
  return ownMember(GO_TYPES, value instanceof Opaque ? value.typeName : typeNameOf(value));
}

/** `isPair`: a loop with two variables. */
export function notIterable(value: CelValue, isPair: boolean): CelError {
  const name = goType(value);
  if (name === undefined) return NO_OVERLOAD;
  if (isPair) return new CelError(`unsupported comprehension range type: ${name}`);
  return new CelError(`got '${name}', expected iterable type`);
}
