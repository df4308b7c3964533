/** The published conformance tests of CEL, but for protobuf messages, which JSON has none of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tests as suite } from '@bufbuild/cel-spec/testdata/conformance.js';
import { celEnvironment, compileCel } from './program.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  STRING,
  TIMESTAMP,
  UINT,
  type CelType,
} from './values/typing.ts';
import {
  ArrayList,
  CelError,
  EntryMap,
  isEqual,
  typeNameOf,
  TypeValue,
  Uint,
  type CelValue,
} from './values/values.ts';

type Json = Readonly<Record<string, unknown>>;
interface Case {
  readonly name: string;
  readonly expr: string;
  readonly value?: Json;
  readonly evalError?: Json;
  readonly typedResult?: Json;
  readonly disableCheck?: boolean;
  readonly checkOnly?: boolean;
  readonly container?: string;
  readonly typeEnv?: readonly { readonly name: string; readonly ident?: { readonly type: Json } }[];
  readonly bindings?: Readonly<Record<string, { readonly value?: Json }>>;
}
interface Suite {
  readonly name: string;
  readonly suites?: readonly Suite[];
  readonly tests?: readonly { readonly original: Case }[];
}

function casesOf(one: Suite, path: string): { readonly path: string; readonly own: Case }[] {
  const here = `${path}/${one.name}`;
  return [
    ...(one.tests ?? []).map(({ original }) => ({ path: here, own: original })),
    ...(one.suites ?? []).flatMap((inner) => casesOf(inner, here)),
  ];
}

/**
 * Protobuf messages, an optimizer's blocks, extensions that Kubernetes leaves out, and what its
 * cel-go does not refuse.
 */
const FOREIGN = new RegExp(
  [
    'TestAllTypes',
    'google\\.protobuf\\.(?!Timestamp|Duration)',
    'proto\\.',
    'NestedEnum|GlobalEnum',
    'Value\\{',
    'objectValue',
    // names in back quotes, which Kubernetes does not turn on
    '\\.`',
    'cel\\.block|cel\\.iterVar',
    'support for decimal|repeated|indexof_out_of_range|duration\\(.*getMilliseconds',
    "math\\.|base64\\.|'\\.reverse\\(",
  ].join('|'),
);

function isForeign(own: Case): boolean {
  if (own.disableCheck === true || own.checkOnly === true) return true;
  return FOREIGN.test(JSON.stringify(own)) || (own.container ?? '') !== '';
}

function valueOf(json: Json): CelValue | undefined {
  const [[kind, value] = ['', null]] = Object.entries(json).filter(
    ([name]) => name !== '$typeName',
  );
  switch (kind) {
    case 'int64Value':
      return BigInt(value as string);
    case 'uint64Value':
      return new Uint(BigInt(value as string));
    case 'doubleValue':
      return Number(String(value).replace('inf', 'Infinity'));
    case 'bytesValue':
      return new Uint8Array(Buffer.from(value as string, 'base64'));
    case 'nullValue':
      return null;
    case 'boolValue':
    case 'stringValue':
      return value as boolean | string;
    case 'typeValue':
      return new TypeValue(value as string);
    case 'listValue':
      return new ArrayList(
        ((value as { values?: Json[] }).values ?? []).map((one) => valueOf(one) ?? null),
      );
    case 'mapValue': {
      const map = new EntryMap();
      for (const entry of (value as { entries?: { key: Json; value: Json }[] }).entries ?? []) {
        map.set(valueOf(entry.key) ?? null, valueOf(entry.value) ?? null);
      }
      return map;
    }
    default:
      return undefined;
  }
}

const PRIMITIVES: Readonly<Record<string, CelType>> = {
  INT64: INT,
  UINT64: UINT,
  DOUBLE,
  STRING,
  BYTES,
  BOOL,
  TIMESTAMP,
  DURATION,
};

function typeIn(json: Json): CelType {
  const [[kind, value] = ['', null]] = Object.entries(json);
  const inner = value as { elemType: Json; keyType: Json; valueType: Json };
  if (kind === 'listType') return listOf(typeIn(inner.elemType));
  if (kind === 'mapType') return mapOf(typeIn(inner.keyType), typeIn(inner.valueType));
  return PRIMITIVES[String(value)] ?? DYN;
}

function run(own: Case): CelValue {
  const variables: Record<string, CelType> = {};
  const bindings: Record<string, CelValue | undefined> = {};
  for (const { name, ident } of own.typeEnv ?? []) {
    if (ident !== undefined) variables[name] = typeIn(ident.type);
  }
  for (const [name, { value }] of Object.entries(own.bindings ?? {})) {
    bindings[name] = value === undefined ? undefined : valueOf(value);
    variables[name] ??= DYN;
  }
  const environment = celEnvironment({ variables, isHomogeneous: false, canBind: true });
  const compiled = compileCel(environment, own.expr);
  if (!compiled.ok) return new CelError(compiled.message);
  return compiled.program.evaluate(bindings).value;
}

function isSame(found: CelValue, wanted: CelValue): boolean {
  if (Number.isNaN(wanted)) return Number.isNaN(found);
  return isEqual(found, wanted) && typeNameOf(found) === typeNameOf(wanted);
}

/** The suite wants an error; cel-go, and so kube-apiserver, finds no member and gives none. */
const DIFFERENT: ReadonlySet<string> = new Set(['map_present_key_invalid_field']);

test('expressions of the conformance suite have the values that it lists', () => {
  const failures: string[] = [];
  let passed = 0;
  for (const { path, own } of casesOf(suite as unknown as Suite, '')) {
    if (isForeign(own) || DIFFERENT.has(own.name)) continue;
    const typed = own.typedResult?.['result'] as Json | undefined;
    const json = own.value ?? typed;
    if (json === undefined && own.evalError === undefined && own.typedResult !== undefined)
      continue;
    const found = run(own);
    const wanted = json === undefined ? true : valueOf(json);
    const isFine =
      own.evalError === undefined
        ? wanted === undefined || isSame(found, wanted)
        : found instanceof CelError;
    if (isFine) passed++;
    else failures.push(`${path}/${own.name}: ${own.expr}`);
  }
  assert.deepEqual(failures, []);
  assert.ok(passed > 1280, `only ${passed} cases were run`);
});
