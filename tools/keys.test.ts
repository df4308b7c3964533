import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { findKeys } from './keys.ts';

const MEMBERS = readFileSync(
  join(import.meta.dirname, '../packages/base/src/collections/members.ts'),
  'utf8',
);
const ROOT = '/planted';

/** How many places the law finds in files of the tree with these texts, in their order. */
function found(ways: readonly string[]): number[] {
  const pathOf = (at: number): string => `packages/base/src/collections/planted-${at}.ts`;
  const files = new Map([
    [`${ROOT}/tsconfig.json`, TSCONFIG],
    [`${ROOT}/packages/base/src/collections/members.ts`, MEMBERS],
    ...ways.map((way, at) => [`${ROOT}/${pathOf(at)}`, HEAD + way] as const),
  ]);
  const folders = new Set([...files.keys()].flatMap((path) => parents(path)));
  const namesIn = (folder: string, paths: Iterable<string>): string[] =>
    [...paths].filter((path) => parents(path)[0] === folder).map((path) => basename(path));
  const isPlanted = (path: string): boolean => path === ROOT || path.startsWith(`${ROOT}/`);
  const places = findKeys(ROOT, {
    readFile: (path) => (isPlanted(path) ? (files.get(path) ?? null) : undefined),
    fileExists: (path) => (isPlanted(path) ? files.has(path) : undefined),
    directoryExists: (path) => (isPlanted(path) ? folders.has(path) : undefined),
    getAccessibleEntries: (path) =>
      isPlanted(path)
        ? { files: namesIn(path, files.keys()), directories: namesIn(path, folders) }
        : undefined,
    realpath: (path) => path,
  });
  return ways.map((_way, at) => places.filter(({ path }) => path === pathOf(at)).length);
}

function parents(path: string): string[] {
  const at = path.lastIndexOf('/');
  return at <= 0 ? [] : [path.slice(0, at), ...parents(path.slice(0, at))];
}

const TSCONFIG = JSON.stringify({
  compilerOptions: {
    target: 'esnext',
    module: 'nodenext',
    types: [],
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
  },
  include: ['packages/*/src'],
});

const HEAD = `
import { bareOf, ownMember, type Bare } from './members.ts';
declare const name: string;
declare const verb: 'get' | 'put';
declare const odd: 'get' | 'constructor';
declare const given: any;
declare const list: string[];
declare const count: number;
const TABLE: Readonly<Record<string, number>> = { a: 1 };
const FEW = { get: 1, put: 2 };
type Json = { [name: string]: Json | undefined };
declare const data: Json;
declare const other: Json;
declare const bare: Readonly<Record<string, string>> & Bare;
export const used = [bareOf, ownMember];
`;

test('the law of keys bites: each way to index a plain object by a text of unknown origin', () => {
  const ways = [
    'export const a = TABLE[name];',
    'export const a = TABLE[given];',
    'export const a = TABLE[`${name}/status`];',
    'export const a = TABLE[`to${name}`];',
    "export const a = TABLE[name + '/status'];",
    'export const a = TABLE[name]?.toFixed();',
    'export const a = TABLE[odd];',
    "export const a = TABLE['constructor'];",
    'export const a = FEW[name as keyof typeof FEW];',
    'export const a = (data as Json)[(name)];',
    'data[name] = {};',
    'data[name] ??= {};',
    'export const a = name in TABLE;',
    'export const { [name]: a } = TABLE;',
    'for (const one of Object.keys(other)) data[one] = other;',
    'for (const [one] of Object.entries(other)) data[one] = other;',
    'for (const one in other) data[one] = other;',
    'export const a = list.map((one) => TABLE[one]);',
    'export const a = [name].map((one) => TABLE[one]);',
    'export function a<K extends string>(key: K): unknown { return TABLE[key]; }',
    'Object.assign(data, other);',
    'Object.assign({}, { ...other });',
    'export const a = Reflect.get(data, name);',
    'export const a = data.__proto__;',
    'if (Object.hasOwn(data, name)) other[name] = data;',
    'if (Object.hasOwn(other, name)) data[name] = {};',
    'if (!Object.hasOwn(data, name)) data[name] = {};',
    'if (Object.hasOwn(data, name) || count > 1) data[name] = {};',
  ];
  const places = found(ways);
  assert.deepEqual(
    ways.filter((_way, at) => places[at] !== 1),
    [],
  );
});

test('the law of keys lets pass what cannot be a name of what objects inherit', () => {
  const ways = [
    'export const a = FEW[verb];',
    'export const a = list[count];',
    'export const a = ownMember(TABLE, name);',
    'export const a = new Map<string, number>().get(name);',
    'export const a = bare[name];',
    "export const a = ['x', 'y'].map((one) => TABLE[one]);",
    "const NAMES: readonly string[] = ['x']; for (const one of NAMES) data[one] = {};",
    "const NAMES: ReadonlySet<string> = new Set(['x']); for (const one of NAMES) data[one] = {};",
    "const NAME: string = 'x.io/y'; export const a = data[NAME];",
    'export const a = TABLE[`x.io/${name}`];',
    "const PREFIX: string = 'x.io/'; export const a = TABLE[PREFIX + name];",
    'export const a = Object.hasOwn(TABLE, name) ? TABLE[name] : 0;',
    'export const a = Object.hasOwn(FEW, name) ? FEW[name as keyof typeof FEW] : 0;',
    'export const a = Object.hasOwn(TABLE, name) && TABLE[name] === 1;',
    'export const a = !Object.hasOwn(TABLE, name) || TABLE[name] === 1;',
    'export function a(): unknown { if (!Object.hasOwn(data, name)) return 0; return data[name]; }',
    'export const a = Object.keys(data).map((one) => data[one]);',
    'for (const one of Object.keys(data).sort()) data[one] = {};',
    'for (const one in data) data[one] = {};',
    'delete data[name];',
    'export const a = { [name]: 1 };',
    'export function a<K extends keyof typeof FEW>(key: K): number { return FEW[key]; }',
    'Object.assign(data, { a: {} });',
  ];
  const places = found(ways);
  assert.deepEqual(
    ways.filter((_way, at) => places[at] !== 0),
    [],
  );
});
