/** Parameters of operations in OpenAPI documents, and which of them a whole path shares. */
import { ownMember, putMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Resource, Subresource } from '@megaplane/machinery/kinds';
import { findTypeOfKind, type Shape } from '@megaplane/machinery/schema';
import { descriptionOf, worded } from './openapi-descriptions.ts';
import type { Dialect } from './openapi-schemas.ts';

/** Name, type, where it stands. */
export type Parameter = readonly [string, string, 'query' | 'path'];

const PRETTY: Parameter = ['pretty', 'string', 'query'];

export const WRITE_PARAMETERS: readonly Parameter[] = [
  ['dryRun', 'string', 'query'],
  ['fieldManager', 'string', 'query'],
  ['fieldValidation', 'string', 'query'],
];
export const LIST_PARAMETERS: readonly Parameter[] = [
  ['allowWatchBookmarks', 'boolean', 'query'],
  ['continue', 'string', 'query'],
  ['fieldSelector', 'string', 'query'],
  ['labelSelector', 'string', 'query'],
  ['limit', 'integer', 'query'],
  ['resourceVersion', 'string', 'query'],
  ['resourceVersionMatch', 'string', 'query'],
  ['sendInitialEvents', 'boolean', 'query'],
  ['shardSelector', 'string', 'query'],
  ['timeoutSeconds', 'integer', 'query'],
  ['watch', 'boolean', 'query'],
];
/** Parameters of a list that a watch alone has. */
const WATCH_ONLY: ReadonlySet<string> = new Set(['watch', 'allowWatchBookmarks']);
export const DELETE_PARAMETERS: readonly Parameter[] = [
  ['dryRun', 'string', 'query'],
  ['gracePeriodSeconds', 'integer', 'query'],
  ['ignoreStoreReadErrorWithClusterBreakingPotential', 'boolean', 'query'],
  ['orphanDependents', 'boolean', 'query'],
  ['propagationPolicy', 'string', 'query'],
];
export const DELETE_LIST_PARAMETERS: readonly Parameter[] = [
  ...LIST_PARAMETERS.filter(([name]) => !WATCH_ONLY.has(name)),
  ...DELETE_PARAMETERS,
].sort(byName);

function byName([one, , place]: Parameter, [other]: Parameter): number {
  // a proxy's path stands in the path, and in the query once more
  if (one === other) return place === 'path' ? -1 : 1;
  return one < other ? -1 : 1;
}

/** What the path itself names, and (but for connections) how answers are to look. */
export function pathParameters(path: string, isConnected: boolean): Parameter[] {
  const own = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]): Parameter => [
    name ?? '',
    'string',
    'path',
  ]);
  return isConnected ? own : [...own, PRETTY];
}

/** Parameters that all operations of a path have, in their order; those of the path among them. */
export function commonOf(
  operations: readonly (readonly Parameter[])[],
  path: readonly Parameter[],
): Parameter[] {
  const [first = [], ...others] = operations;
  const shared = first.filter((one) => others.every((other) => has(other, one)));
  return [...shared, ...path].sort(byName);
}

function has(all: readonly Parameter[], [name]: Parameter): boolean {
  return all.some(([other]) => other === name);
}

export function withoutCommon(
  parameters: readonly Parameter[],
  common: readonly Parameter[],
): Parameter[] {
  return parameters.filter((one) => one[2] === 'path' || !has(common, one)).sort(byName);
}

/** What a parameter belongs to, by which its words are chosen. */
export interface ParameterPlace {
  /** Kind of what the path names. */
  readonly kind: string;
  /** `pods/exec`. */
  readonly resource: string;
  /** '' for what all operations of a path share. */
  readonly method: string;
}

/** A parameter in the words of the document. */
export function parameterOf(
  [name, type, where]: Parameter,
  place: ParameterPlace,
  dialect: Dialect,
): JsonObject {
  if (name === 'name' && where === 'path') {
    return written(name, type, where, `name of the ${place.kind}`, dialect);
  }
  const words = descriptionOf(`parameters in ${where}`).fields;
  const narrowed = [`${place.resource} ${name}`, `${place.method} ${name}`];
  const own = narrowed.find((one) => words.has(one)) ?? name;
  const key = `${dialect.prefix} ${where} ${type} ${name} ${own}`;
  let parameter = known.get(key);
  if (parameter === undefined) {
    parameter = written(name, type, where, words.get(own) ?? '', dialect);
    known.set(key, parameter);
  }
  return parameter;
}

/** Parameters of many operations, each written once: their words are long. */
const known = new Map<string, JsonObject>();

function written(
  name: string,
  type: string,
  where: string,
  words: string,
  { wrapsReferences }: Dialect,
): JsonObject {
  const description = worded(words);
  const required = where === 'path' ? { required: true } : {};
  // in the order of Go's types, from which the names of what is shared are made
  return wrapsReferences
    ? { name, in: where, ...description, ...required, schema: { type, uniqueItems: true } }
    : { uniqueItems: true, type, ...description, name, in: where, ...required };
}

/**
 * Parameters that operations of a document of version 2 refer to, as upstream's builder shares them
 * (kube-openapi `pkg/builder/parameters.go`): all but those that are of one kind, and two that old
 * versions of kubectl look for in the operations.
 */
export class SharedParameters {
  readonly #named = new Map<string, JsonObject>();
  /** By the text of the parameter, and by the parameter. */
  readonly #references = new Map<string | JsonObject, JsonObject>();

  get definitions(): JsonObject {
    return Object.fromEntries([...this.#named].sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** `paths` with references in place of what is shared. */
  referTo(paths: JsonObject): JsonObject {
    const referring: JsonObject = {};
    for (const [name, path] of Object.entries(paths)) {
      const members: JsonObject = {};
      for (const [method, operation] of Object.entries(isObject(path) ? path : {})) {
        putMember(
          members,
          method,
          method === 'parameters' ? this.#list(operation) : this.#operation(operation),
        );
      }
      putMember(referring, name, members);
    }
    return referring;
  }

  #operation(operation: JsonValue | undefined): JsonValue | undefined {
    if (!isObject(operation) || operation['parameters'] === undefined) return operation;
    return { ...operation, parameters: this.#list(operation['parameters']) };
  }

  #list(parameters: JsonValue | undefined): JsonValue | undefined {
    if (!Array.isArray(parameters)) return parameters;
    return parameters.map((one) => (isShared(one) ? this.#referenceOf(one) : one));
  }

  #referenceOf(parameter: JsonObject): JsonObject {
    const same = this.#references.get(parameter);
    if (same !== undefined) return same;
    const reference = this.#referenceByText(parameter);
    // bodies are objects of their own
    if (parameter['in'] !== 'body') this.#references.set(parameter, reference);
    return reference;
  }

  #referenceByText(parameter: JsonObject): JsonObject {
    const text = goJson(parameter);
    let reference = this.#references.get(text);
    if (reference === undefined) {
      const { name: own } = parameter;
      const name = `${typeof own === 'string' ? own : 'param'}-${shortHash(text)}`;
      this.#named.set(name, parameter);
      reference = { $ref: `#/parameters/${name}` };
      this.#references.set(text, reference);
    }
    return reference;
  }
}

const UNSHARED: ReadonlySet<JsonValue | undefined> = new Set(['name', 'fieldValidation', 'dryRun']);

function isShared(parameter: JsonValue): parameter is JsonObject {
  if (!isObject(parameter) || parameter['$ref'] !== undefined) return false;
  const { name, in: where, schema } = parameter;
  if (where !== 'body') return !UNSHARED.has(name) || (name !== 'name' && where === 'path');
  const reference = isObject(schema) ? schema['$ref'] : undefined;
  if (name !== 'body' || typeof reference !== 'string') return true;
  return reference.startsWith('#/definitions/io.k8s.apimachinery');
}

/** As Go writes it: it escapes what is markup in HTML. */
function goJson(value: JsonObject): string {
  return JSON.stringify(value).replaceAll(/[<>&]/g, (one) => ownMember(GO_ESCAPES, one) ?? one);
}

const GO_ESCAPES: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
};

/** The first 6 bytes of FNV-1 of 64 bits, in the alphabet of URLs. */
function shortHash(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) {
    hash = BigInt.asUintN(64, hash * 0x100000001b3n) ^ BigInt(byte);
  }
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(hash);
  return bytes.subarray(0, 6).toString('base64url');
}

/** The fields of the options that connections and logs take as a query. */
export function optionParameters(resource: Resource, sub: Subresource): Parameter[] {
  const kind = sub.name === 'log' ? 'PodLogOptions' : sub.kind;
  if (!kind.endsWith('Options')) return [];
  const fields = findTypeOfKind(resource.apiVersion, kind)?.fields ?? [];
  return (
    fields
      .filter(({ shape }) => shape.kind !== 'object')
      .map(({ name, shape }): Parameter => [name, typeOf(shape), 'query'])
      .filter(([name]) => name !== 'ports' || sub.name === 'portforward')
      // upstream has no form for a time in a query
      .filter(([name]) => name !== 'sinceTime')
      .sort(byName)
  );
}

function typeOf(shape: Shape): string {
  const scalar = shape.kind === 'list' ? shape.items : shape;
  if (scalar.kind !== 'scalar') return 'string';
  if (scalar.scalar === 'bool') return 'boolean';
  return scalar.scalar === 'int32' || scalar.scalar === 'int64' ? 'integer' : 'string';
}
