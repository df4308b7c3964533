/** Schemas of the API's types in OpenAPI's words, from the same tables that decode bodies. */
import { ownMember, putMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { resources } from '@megaplane/machinery/kinds';
import { findType } from '@megaplane/machinery/schema';
import type { Field, Shape, Type } from '@megaplane/machinery/schema';
import { descriptionOf, worded } from './openapi-descriptions.ts';
import { SCHEMA_DEFAULTS, SCHEMA_UNIONS, schemaValues } from '../tables/openapi-values.ts';
import type { Scalar } from '@megaplane/machinery/zero-values';

export const META_PACKAGE = 'io.k8s.apimachinery.pkg.apis.meta';

const PACKAGES: Readonly<Record<string, string>> = {
  meta: META_PACKAGE,
  apiextensions: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  apiregistration: 'io.k8s.kube-aggregator.pkg.apis.apiregistration',
};

/** Scalars that have a schema of their own, by name. */
const NAMED: Partial<Readonly<Record<Scalar, string>>> = {
  time: 'io.k8s.apimachinery.pkg.apis.meta.v1.Time',
  microTime: 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime',
  duration: 'io.k8s.apimachinery.pkg.apis.meta.v1.Duration',
  quantity: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
  intOrString: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
  fieldsV1: 'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1',
  raw: 'io.k8s.apimachinery.pkg.runtime.RawExtension',
  json: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON',
  schemaOrBool: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool',
  schemaOrArray: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray',
  schemaOrStringArray:
    'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray',
};

const SCALARS: Readonly<Record<Scalar, JsonObject>> = {
  string: { type: 'string' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  bool: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
  double: { type: 'number', format: 'double' },
  time: { type: 'string', format: 'date-time' },
  microTime: { type: 'string', format: 'date-time' },
  duration: { type: 'string' },
  quantity: { type: 'string' },
  intOrString: { type: 'string', format: 'int-or-string' },
  fieldsV1: { type: 'object' },
  raw: { type: 'object' },
  json: {},
  schemaOrBool: {},
  schemaOrArray: {},
  schemaOrStringArray: {},
};
/** What version 3 can say more exactly. */
const SCALARS_3: Partial<Readonly<Record<Scalar, JsonObject>>> = {
  quantity: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  intOrString: { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
};
/** Zero values, which version 3 gives as defaults of what is always written. */
const ZEROS: Partial<Readonly<Record<Scalar, JsonValue>>> = {
  string: '',
  int32: 0,
  int64: 0,
  bool: false,
  double: 0,
};

/** What tells the two versions of OpenAPI apart: where schemas lie. */
export interface Dialect {
  /** `#/components/schemas/` or `#/definitions/`. */
  readonly prefix: string;
  /** A reference beside other keywords must be wrapped (version 3). */
  readonly wrapsReferences: boolean;
}

export const VERSION_3: Dialect = { prefix: '#/components/schemas/', wrapsReferences: true };
export const VERSION_2: Dialect = { prefix: '#/definitions/', wrapsReferences: false };

/** `io.k8s.api.core.v1.PodSpec` of `core.v1.PodSpec`. */
export function schemaName(type: Type): string {
  const dot = type.name.indexOf('.');
  const first = type.name.slice(0, dot);
  return `${ownMember(PACKAGES, first) ?? `io.k8s.api.${first}`}.${type.name.slice(dot + 1)}`;
}

/** Adds the schema of `type`, and of all types that it mentions, to `schemas`. */
export function addSchemas(schemas: JsonObject, type: Type, dialect: Dialect): void {
  const name = schemaName(type);
  if (ownMember(schemas, name) !== undefined) return;
  const { text, fields } = descriptionOf(name);
  const schema: JsonObject = { ...worded(text), type: 'object' };
  putMember(schemas, name, schema);
  const properties: JsonObject = {};
  const isRoot = standsAlone(type);
  if (isRoot && type.kind !== 'WatchEvent') {
    for (const own of ['apiVersion', 'kind']) {
      properties[own] = { ...worded(fields.get(own)), type: 'string' };
    }
  }
  const required: string[] = [];
  for (const field of type.fields) {
    putMember(
      properties,
      field.name,
      unwrapped({
        ...worded(fields.get(field.name)),
        ...fieldSchema(type, field, dialect),
      }),
    );
    if (field.isRequired) required.push(field.name);
    addShape(schemas, field.shape, dialect);
  }
  if (Object.keys(properties).length > 0) schema['properties'] = properties;
  if (required.length > 0) schema['required'] = required;
  if (type.isAtomic) schema['x-kubernetes-map-type'] = 'atomic';
  const unions = ownMember(SCHEMA_UNIONS, type.name);
  if (unions !== undefined) schema['x-kubernetes-unions'] = unions;
  if (!isRoot) return;
  const { kind } = type;
  // kinds that all groups share are said to be of the core's
  const isShared = type.group === '*' || type.group === 'meta';
  const [group, version] = isShared ? ['', 'v1'] : [type.group, type.version];
  schema['x-kubernetes-group-version-kind'] = [{ group, kind, version }];
}

/** A reference that nothing stands beside needs no wrapping. */
function unwrapped(schema: JsonObject): JsonObject {
  const { allOf, ...others } = schema;
  const only = Array.isArray(allOf) && Object.keys(others).length === 0 ? allOf[0] : undefined;
  return isObject(only) ? only : schema;
}

let rootKinds: Set<string> | undefined;

/** True for types whose objects are sent and answered by themselves. */
function standsAlone({ name, group, version, kind }: Type): boolean {
  if (kind === '') return false;
  if (name.startsWith('meta.')) return true;
  rootKinds ??= new Set(
    resources().flatMap((one) => [
      `${one.group}/${one.version} ${one.kind}`,
      `${one.group}/${one.version} ${one.listKind}`,
      ...[...one.subresources.values()].map((sub) => `${sub.group}/${sub.version} ${sub.kind}`),
    ]),
  );
  return rootKinds.has(`${group}/${version} ${kind}`);
}

function addShape(schemas: JsonObject, shape: Shape, dialect: Dialect): void {
  if (shape.kind === 'object') addSchemas(schemas, shape.type, dialect);
  else if (shape.kind === 'list') addShape(schemas, shape.items, dialect);
  else if (shape.kind === 'map') addShape(schemas, shape.values, dialect);
  else {
    const name = NAMED[shape.scalar];
    if (name !== undefined) {
      putMember(schemas, name, {
        ...worded(descriptionOf(name).text),
        ...scalarSchema(shape.scalar, dialect),
      });
    }
  }
}

function scalarSchema(scalar: Scalar, dialect: Dialect): JsonObject {
  const exact = dialect.wrapsReferences ? SCALARS_3[scalar] : undefined;
  return exact ?? SCALARS[scalar];
}

function fieldSchema(type: Type, field: Field, dialect: Dialect): JsonObject {
  const { shape } = field;
  const schema: JsonObject = { ...shapeSchema(shape, dialect, true) };
  const place = `${type.name}.${field.name}`;
  const values = schemaValues(place);
  if (values !== undefined) {
    const { items, additionalProperties: named } = schema;
    if (isObject(items)) schema['items'] = { ...items, enum: [...values] };
    else if (isObject(named)) schema['additionalProperties'] = { ...named, enum: [...values] };
    else schema['enum'] = [...values];
  }
  if (dialect.wrapsReferences) addDefault(schema, field, place);
  if (field.listType !== '') schema['x-kubernetes-list-type'] = field.listType;
  if (field.listMapKeys.length > 0) schema['x-kubernetes-list-map-keys'] = [...field.listMapKeys];
  if (field.mapType !== '') schema['x-kubernetes-map-type'] = field.mapType;
  if (field.mergeKey !== '') schema['x-kubernetes-patch-merge-key'] = field.mergeKey;
  const strategies = field.patchStrategies.join(',');
  if (strategies !== '') schema['x-kubernetes-patch-strategy'] = strategies;
  return schema;
}

/** Version 2 has no defaults. */
function addDefault(schema: JsonObject, field: Field, place: string): void {
  const { shape } = field;
  const own = ownMember(SCHEMA_DEFAULTS, place);
  if (own !== undefined) schema['default'] = own;
  else if (field.isPointer) return;
  else if (shape.kind === 'object') schema['default'] = {};
  else if (shape.kind === 'scalar' && field.omitted === 'never') addZero(schema, shape.scalar);
}

function addZero(schema: JsonObject, scalar: Scalar): void {
  const zero = ZEROS[scalar];
  if (zero !== undefined) schema['default'] = zero;
}

/** `isProperty`: other keywords may stand beside it. */
function shapeSchema(shape: Shape, dialect: Dialect, isProperty: boolean): JsonObject {
  switch (shape.kind) {
    case 'scalar': {
      const name = NAMED[shape.scalar];
      if (name === undefined) return SCALARS[shape.scalar];
      return reference(name, dialect, isProperty);
    }
    case 'object':
      return reference(schemaName(shape.type), dialect, isProperty);
    case 'list':
      return { type: 'array', items: elementSchema(shape.items, dialect) };
    case 'map':
      return { type: 'object', additionalProperties: elementSchema(shape.values, dialect) };
  }
}

/** Of the values of a list or map. */
function elementSchema(shape: Shape, dialect: Dialect): JsonObject {
  if (!dialect.wrapsReferences) return shapeSchema(shape, dialect, false);
  const isStruct = shape.kind === 'object';
  const schema: JsonObject = { ...shapeSchema(shape, dialect, isStruct) };
  if (isStruct) schema['default'] = {};
  else if (shape.kind === 'scalar') addZero(schema, shape.scalar);
  return schema;
}

/** A reference to a schema; in version 3 nothing may stand beside one, so it is wrapped. */
export function reference(name: string, dialect: Dialect, isWrapped: boolean): JsonObject {
  const plain = { $ref: dialect.prefix + name };
  return dialect.wrapsReferences && isWrapped ? { allOf: [plain] } : plain;
}

/** Kinds that answers and bodies of any resource are of. */
const COMMON_KINDS = ['DeleteOptions', 'Status', 'WatchEvent', 'APIResourceList'] as const;
const PATCH = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch';

/** Adds the schemas that operations mention besides those of their resource. */
export function addCommonSchemas(schemas: JsonObject, dialect: Dialect): void {
  schemas[PATCH] = { ...worded(descriptionOf(PATCH).text), type: 'object' };
  for (const kind of COMMON_KINDS) {
    const type = findType(`meta.v1.${kind}`);
    if (type !== undefined) addSchemas(schemas, type, dialect);
  }
}
