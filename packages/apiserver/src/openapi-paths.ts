/** Paths and operations of one resource, as much as clients look at. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { Resource } from '@megaplane/machinery/kinds';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { schemaName, type Dialect } from './openapi-schemas.ts';

const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
] as const;
/** Custom resources have no schema that strategic patches could merge by. */
const CUSTOM_PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
] as const;
const CUSTOM_BODY_TYPES = ['application/json', 'application/yaml'];
const BODY_TYPES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];

const WRITE_PARAMETERS: readonly (readonly [string, string])[] = [
  ['dryRun', 'string'],
  ['fieldManager', 'string'],
  ['fieldValidation', 'string'],
];
const LIST_PARAMETERS: readonly (readonly [string, string])[] = [
  ['allowWatchBookmarks', 'boolean'],
  ['continue', 'string'],
  ['fieldSelector', 'string'],
  ['labelSelector', 'string'],
  ['limit', 'integer'],
  ['resourceVersion', 'string'],
  ['resourceVersionMatch', 'string'],
  ['sendInitialEvents', 'boolean'],
  ['shardSelector', 'string'],
  ['timeoutSeconds', 'integer'],
  ['watch', 'boolean'],
];
/** Parameters of a list that a watch alone has. */
const WATCH_ONLY: ReadonlySet<string> = new Set(['watch', 'allowWatchBookmarks']);
const DELETE_PARAMETERS: readonly (readonly [string, string])[] = [
  ['dryRun', 'string'],
  ['gracePeriodSeconds', 'integer'],
  ['orphanDependents', 'boolean'],
  ['propagationPolicy', 'string'],
];

const DELETE_LIST_PARAMETERS: readonly (readonly [string, string])[] = [
  ...LIST_PARAMETERS.filter(([name]) => !WATCH_ONLY.has(name)),
  ...DELETE_PARAMETERS,
].sort(([one], [other]) => (one < other ? -1 : 1));

/** Verb of the API, method, action of the extension, parameters of the query. */
const OPERATIONS: readonly (readonly [
  string,
  string,
  string,
  readonly (readonly [string, string])[],
  'collection' | 'item',
])[] = [
  ['list', 'get', 'list', LIST_PARAMETERS, 'collection'],
  ['create', 'post', 'post', WRITE_PARAMETERS, 'collection'],
  ['deletecollection', 'delete', 'deletecollection', DELETE_LIST_PARAMETERS, 'collection'],
  ['get', 'get', 'get', [], 'item'],
  ['update', 'put', 'put', WRITE_PARAMETERS, 'item'],
  ['patch', 'patch', 'patch', [...WRITE_PARAMETERS, ['force', 'boolean']], 'item'],
  ['delete', 'delete', 'delete', DELETE_PARAMETERS, 'item'],
];

interface Target {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Name of the schema of a custom resource; absent for built-ins. */
  readonly schema?: string;
}

/**
 * Adds the paths of `resource` and its subresources to `paths`; `schema` names the one of a custom
 * resource.
 */
export function addPaths(
  paths: JsonObject,
  resource: Resource,
  dialect: Dialect,
  schema?: string,
): void {
  const { group, version, kind, namespaced } = resource;
  const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const inner = namespaced ? `${base}/namespaces/{namespace}` : base;
  const custom = schema === undefined ? {} : { schema };
  const target = { group, version, kind, ...custom };
  const collection = `${inner}/${resource.resource}`;
  const item = `${collection}/{name}`;
  addPath(paths, collection, resource.verbs, 'collection', target, dialect);
  if (resource.verbs.some((verb) => verb !== 'create')) {
    addPath(paths, item, resource.verbs, 'item', target, dialect);
  }
  if (namespaced && resource.verbs.includes('list')) {
    addPath(paths, `${base}/${resource.resource}`, ['list'], 'collection', target, dialect);
  }
  for (const sub of resource.subresources.values()) {
    const path = `${item}/${sub.name}`;
    const verbs = sub.verbs.map((verb) => (verb === 'create' ? 'create' : verb));
    const own: JsonObject = {};
    for (const place of ['collection', 'item'] as const) {
      const part: JsonObject = {};
      const isOwn = sub.kind === kind && sub.group === group;
      addPath(part, path, verbs, place, isOwn ? { ...sub, ...custom } : sub, dialect);
      Object.assign(own, part[path] ?? {});
    }
    if (Object.keys(own).length > 0) paths[path] = own;
  }
}

function addPath(
  paths: JsonObject,
  path: string,
  verbs: readonly string[],
  place: 'collection' | 'item',
  target: Target,
  dialect: Dialect,
): void {
  const operations: JsonObject = {};
  for (const [verb, method, action, parameters, where] of OPERATIONS) {
    if (where !== place || !verbs.includes(verb)) continue;
    const isBodied = ['post', 'put', 'patch'].includes(method);
    const operation: JsonObject = {
      operationId: action + camelCase(path),
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { ...targetObject(target) },
      parameters: parameters.map(([name, type]) => parameter(name, type, dialect)),
      responses: { '200': { description: 'OK' } },
    };
    if (isBodied) addBody(operation, method, target, dialect);
    if (action !== 'list') addAnswers(operation, method, target, dialect);
    operations[method] = operation;
  }
  if (Object.keys(operations).length === 0) return;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
  if (names.length > 0) {
    operations['parameters'] = names.map((name) => ({
      ...parameter(name, 'string', dialect),
      in: 'path',
      required: true,
    }));
  }
  paths[path] = operations;
}

function camelCase(path: string): string {
  return path.replaceAll(/[^A-Za-z0-9]+(.)?/g, (_, next?: string) => (next ?? '').toUpperCase());
}

function targetObject({ group, version, kind }: Target): JsonObject {
  return { group, kind, version };
}

function parameter(name: string, type: string, dialect: Dialect): JsonObject {
  const base: JsonObject = { name, in: 'query' };
  return dialect.wrapsReferences
    ? { ...base, schema: { type, uniqueItems: true } }
    : { ...base, type, uniqueItems: true };
}

function bodyTypes(method: string, { schema }: Target): readonly string[] {
  if (schema !== undefined) return method === 'patch' ? CUSTOM_PATCH_TYPES : CUSTOM_BODY_TYPES;
  return method === 'patch' ? PATCH_TYPES : BODY_TYPES;
}

function schemaOf(target: Target): string {
  const apiVersion = target.group === '' ? target.version : `${target.group}/${target.version}`;
  const type = findTypeOfKind(apiVersion, target.kind);
  return target.schema ?? (type === undefined ? '' : schemaName(type));
}

/**
 * What is answered, in version 3: clients of kinds that they were not built with (kwok's) find the
 * schema of an object here.
 */
function addAnswers(operation: JsonObject, method: string, target: Target, dialect: Dialect): void {
  const name = schemaOf(target);
  if (!dialect.wrapsReferences || name === '' || method === 'delete') return;
  const schema: JsonObject = { $ref: dialect.prefix + name };
  const types = target.schema === undefined ? BODY_TYPES : CUSTOM_BODY_TYPES;
  const content = Object.fromEntries(types.map((type) => [type, { schema }]));
  const answers: JsonObject = { '200': { description: 'OK', content } };
  if (method !== 'get') answers['201'] = { description: 'Created', content };
  operation['responses'] = { ...answers, '401': { description: 'Unauthorized' } };
}

function addBody(operation: JsonObject, method: string, target: Target, dialect: Dialect): void {
  const types = bodyTypes(method, target);
  const name = schemaOf(target);
  const isTyped = method !== 'patch' && name !== '';
  const schema: JsonObject = isTyped ? { $ref: dialect.prefix + name } : { type: 'object' };
  if (dialect.wrapsReferences) {
    const content: JsonObject = {};
    for (const one of types) content[one] = { schema };
    operation['requestBody'] = { content };
    return;
  }
  const isAny = method !== 'patch' && target.schema === undefined;
  operation['consumes'] = isAny ? ['*/*'] : [...types];
  const parameters = operation['parameters'] as JsonValue[];
  operation['parameters'] = [{ name: 'body', in: 'body', required: true, schema }, ...parameters];
}
