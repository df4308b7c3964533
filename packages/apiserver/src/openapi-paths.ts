/** Paths and operations of one resource, as much as clients look at. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { Resource } from '@megaplane/machinery/kinds';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { answerOf, operationId, responsesOf, tagOf, type Subject } from './openapi-operations.ts';
import { schemaName, type Dialect } from './openapi-schemas.ts';

const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
] as const;
/** Custom resources have no schema that strategic patches could merge by. */
const CUSTOM_PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
] as const;
const CUSTOM_BODY_TYPES = ['application/json', 'application/yaml'];
const BODY_TYPES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const STREAM_TYPES = [
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
];
const STATUS = 'io.k8s.apimachinery.pkg.apis.meta.v1.Status';
const DELETE_OPTIONS = 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions';
/** Subresources that lead to somebody else, and the methods that documents tell of. */
const CONNECTED: ReadonlyMap<string, readonly string[]> = new Map([
  ['exec', ['get', 'post']],
  ['attach', ['get', 'post']],
  ['portforward', ['get', 'post']],
  ['proxy', ['get', 'put', 'post', 'delete', 'options', 'head', 'patch']],
]);

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

/** Whether a subresource leads to somebody else, by options that no document tells of. */
export function isConnected(subresource: string): boolean {
  return CONNECTED.has(subresource);
}

interface Target {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind?: string;
  /** What operations are named after. */
  readonly subject: Subject;
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
  const { listKind } = resource;
  const subject = {
    group,
    version,
    kind,
    subresource: '',
    isNamespaced: namespaced,
    isAcross: false,
  };
  const target = { group, version, kind, listKind, subject, ...custom };
  const collection = `${inner}/${resource.resource}`;
  const item = `${collection}/{name}`;
  addPath(paths, collection, resource.verbs, 'collection', target, dialect);
  if (resource.verbs.some((verb) => verb !== 'create')) {
    addPath(paths, item, resource.verbs, 'item', target, dialect);
  }
  if (namespaced && resource.verbs.includes('list')) {
    const across = { ...target, subject: { ...subject, isAcross: true } };
    addPath(paths, `${base}/${resource.resource}`, ['list'], 'collection', across, dialect);
  }
  for (const sub of resource.subresources.values()) {
    const path = `${item}/${sub.name}`;
    const about = { ...subject, subresource: sub.name };
    const methods = CONNECTED.get(sub.name);
    if (methods !== undefined) {
      const own = { ...sub, subject: about };
      paths[path] = connections(path, methods, own, dialect);
      if (sub.name !== 'proxy') continue;
      const further = { ...own, subject: { ...about, subresource: 'proxyWithPath' } };
      paths[`${path}/{path}`] = connections(`${path}/{path}`, methods, further, dialect);
      continue;
    }
    const verbs = sub.verbs.map((verb) => (verb === 'create' ? 'create' : verb));
    const own: JsonObject = {};
    for (const place of ['collection', 'item'] as const) {
      const part: JsonObject = {};
      const isOwn = sub.kind === kind && sub.group === group;
      const named = { ...sub, subject: about };
      addPath(part, path, verbs, place, isOwn ? { ...named, ...custom } : named, dialect);
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
      ...headOf(action, method, target),
      ...parametersOf(parameters, dialect),
    };
    if (isBodied) addBody(operation, method, target, dialect);
    else if (!dialect.wrapsReferences) addDeleteBody(operation, method, dialect);
    addAnswers(operation, action, target, dialect);
    operations[method] = operation;
  }
  if (Object.keys(operations).length === 0) return;
  operations['parameters'] = [
    ...pathParameters(path, dialect),
    parameter('pretty', 'string', dialect),
  ];
  paths[path] = operations;
}

/** Operations without parameters do not tell of them. */
function parametersOf(
  parameters: readonly (readonly [string, string])[],
  dialect: Dialect,
): JsonObject {
  if (parameters.length === 0) return {};
  return { parameters: parameters.map(([name, type]) => parameter(name, type, dialect)) };
}

function pathParameters(path: string, dialect: Dialect): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    ...parameter(name, 'string', dialect),
    in: 'path',
    required: true,
  }));
}

/** What an operation is called, and what it is done to. */
function headOf(action: string, method: string, target: Target): JsonObject {
  return {
    tags: [tagOf(target.subject)],
    operationId: operationId(action, method, target.subject),
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': targetObject(target),
  };
}

/** The methods of a way to somebody else, of whose answers nothing is known. */
function connections(
  path: string,
  methods: readonly string[],
  target: Target,
  dialect: Dialect,
): JsonObject {
  const operations: JsonObject = {};
  const any = ['*/*'];
  for (const method of methods) {
    const schema = { type: 'string' };
    const responses = responsesOf('connect', schema, dialect.wrapsReferences ? any : null);
    const media = dialect.wrapsReferences
      ? {}
      : { consumes: any, produces: any, schemes: ['https'] };
    operations[method] = { ...headOf('connect', method, target), ...media, responses };
  }
  operations['parameters'] = pathParameters(path, dialect);
  return operations;
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
 * What is answered. Clients of kinds that they were not built with (kwok's) find the schema of an
 * object here.
 */
function addAnswers(operation: JsonObject, action: string, target: Target, dialect: Dialect): void {
  const object = schemaOf(target);
  const list = object === '' || target.listKind === undefined ? '' : listSchemaOf(target);
  const name = answerOf(action, target.subject, { object, list, status: STATUS });
  const isText = target.subject.subresource === 'log';
  const known = name === '' ? null : { $ref: dialect.prefix + name };
  const schema = isText ? { type: 'string' } : known;
  const plain = target.schema === undefined ? BODY_TYPES : CUSTOM_BODY_TYPES;
  const own = isText ? ['text/plain', ...plain] : plain;
  const streams = target.schema === undefined ? STREAM_TYPES : [];
  const types = action === 'list' ? [...own, ...streams] : own;
  operation['responses'] = responsesOf(action, schema, dialect.wrapsReferences ? types : null);
  if (dialect.wrapsReferences) return;
  operation['produces'] = [...types];
  operation['schemes'] = ['https'];
  operation['consumes'] ??= target.schema === undefined ? ['*/*'] : [...CUSTOM_BODY_TYPES];
}

function listSchemaOf({ group, version, schema, kind, listKind = '' }: Target): string {
  if (schema !== undefined) return schema.slice(0, schema.length - kind.length) + listKind;
  const type = findTypeOfKind(group === '' ? version : `${group}/${version}`, listKind);
  return type === undefined ? '' : schemaName(type);
}

/** Options of a deletion may come in its body. */
function addDeleteBody(operation: JsonObject, method: string, dialect: Dialect): void {
  if (method !== 'delete') return;
  const body = { name: 'body', in: 'body', schema: { $ref: dialect.prefix + DELETE_OPTIONS } };
  operation['parameters'] = [body, ...(operation['parameters'] as JsonValue[])];
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
