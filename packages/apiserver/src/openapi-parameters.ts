/** Parameters of operations in OpenAPI documents, and which of them a whole path shares. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Resource, Subresource } from '@megaplane/machinery/kinds';
import { findTypeOfKind, type Shape } from '@megaplane/machinery/schema';
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

/** A parameter in the words of the document. */
export function parameterOf([name, type, place]: Parameter, dialect: Dialect): JsonObject {
  const required = place === 'path' ? { required: true } : {};
  const base: JsonObject = { name, in: place, ...required };
  return dialect.wrapsReferences
    ? { ...base, schema: { type, uniqueItems: true } }
    : { ...base, type, uniqueItems: true };
}

/** The fields of the options that connections and logs take as a query. */
export function optionParameters(resource: Resource, sub: Subresource): Parameter[] {
  const kind = sub.name === 'log' ? 'PodLogOptions' : sub.kind;
  if (!kind.endsWith('Options')) return [];
  const fields = findTypeOfKind(resource.apiVersion, kind)?.fields ?? [];
  return fields
    .filter(({ shape }) => shape.kind !== 'object')
    .map(({ name, shape }): Parameter => [name, typeOf(shape), 'query'])
    .filter(([name]) => name !== 'ports' || sub.name === 'portforward')
    .sort(byName);
}

function typeOf(shape: Shape): string {
  const scalar = shape.kind === 'list' ? shape.items : shape;
  if (scalar.kind !== 'scalar') return 'string';
  if (scalar.scalar === 'bool') return 'boolean';
  return scalar.scalar === 'int32' || scalar.scalar === 'int64' ? 'integer' : 'string';
}
