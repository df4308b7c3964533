/** Schemas of the API's types in OpenAPI's words, from the same tables that decode bodies. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Field, Scalar, Shape, Type } from '@megaplane/machinery/schema';

const PACKAGES: Readonly<Record<string, string>> = {
  meta: 'io.k8s.apimachinery.pkg.apis.meta',
  apiextensions: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  apiregistration: 'io.k8s.kube-aggregator.pkg.apis.apiregistration',
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
  return `${PACKAGES[first] ?? `io.k8s.api.${first}`}.${type.name.slice(dot + 1)}`;
}

/** Adds the schema of `type`, and of all types that it mentions, to `schemas`. */
export function addSchemas(schemas: JsonObject, type: Type, dialect: Dialect): void {
  const name = schemaName(type);
  if (schemas[name] !== undefined) return;
  const schema: JsonObject = { type: 'object' };
  schemas[name] = schema;
  const properties: JsonObject = {};
  if (type.kind !== '') {
    properties['apiVersion'] = { type: 'string' };
    properties['kind'] = { type: 'string' };
  }
  const required: string[] = [];
  for (const field of type.fields) {
    properties[field.name] = fieldSchema(field, dialect);
    if (field.isRequired) required.push(field.name);
    addShape(schemas, field.shape, dialect);
  }
  schema['properties'] = properties;
  if (required.length > 0) schema['required'] = required;
  if (type.isAtomic) schema['x-kubernetes-map-type'] = 'atomic';
  if (type.kind !== '') {
    const { group, version, kind } = type;
    schema['x-kubernetes-group-version-kind'] = [{ group, kind, version }];
  }
}

function addShape(schemas: JsonObject, shape: Shape, dialect: Dialect): void {
  if (shape.kind === 'object') addSchemas(schemas, shape.type, dialect);
  else if (shape.kind === 'list') addShape(schemas, shape.items, dialect);
  else if (shape.kind === 'map') addShape(schemas, shape.values, dialect);
}

function fieldSchema(field: Field, dialect: Dialect): JsonObject {
  const schema: JsonObject = { ...shapeSchema(field.shape, dialect) };
  if (field.listType !== '') schema['x-kubernetes-list-type'] = field.listType;
  if (field.listMapKeys.length > 0) schema['x-kubernetes-list-map-keys'] = [...field.listMapKeys];
  if (field.mapType !== '') schema['x-kubernetes-map-type'] = field.mapType;
  if (field.mergeKey !== '') schema['x-kubernetes-patch-merge-key'] = field.mergeKey;
  const strategies = field.patchStrategies.join(',');
  if (strategies !== '') schema['x-kubernetes-patch-strategy'] = strategies;
  return schema;
}

function shapeSchema(shape: Shape, dialect: Dialect): JsonObject {
  switch (shape.kind) {
    case 'scalar':
      return SCALARS[shape.scalar];
    case 'object':
      return reference(schemaName(shape.type), dialect);
    case 'list':
      return { type: 'array', items: shapeSchema(shape.items, dialect) };
    case 'map':
      return { type: 'object', additionalProperties: shapeSchema(shape.values, dialect) };
  }
}

/** A reference to a schema; kubectl reads the wrapped form of version 3. */
export function reference(name: string, dialect: Dialect): JsonObject {
  const plain = { $ref: dialect.prefix + name };
  return dialect.wrapsReferences ? { allOf: [plain], default: {} } : plain;
}
