/** Kinds as types of CEL, to check the expressions of policies against. */
import type { SchemaNode } from '../structural/schema/schema-node.ts';
import { findTypeOfKind, type Shape, type Type } from '../scheme/schema.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DYN,
  INT,
  listOf,
  mapOf,
  STRING,
  TIMESTAMP,
  type CelType,
  type FieldType,
} from './values/typing.ts';
import { declaredType, escapeName } from './declarations.ts';

const SCALARS: Readonly<Record<string, CelType>> = {
  string: STRING,
  duration: STRING,
  int32: INT,
  int64: INT,
  bool: BOOL,
  bytes: BYTES,
  double: DOUBLE,
  time: TIMESTAMP,
  microTime: TIMESTAMP,
};

/** Types contain themselves (schemas of schemas): a type is known before its fields are. */
type Known = Map<Type, CelType>;
const escapedTypes: Known = new Map();
const plainTypes: Known = new Map();

/** The type of objects of a kind; undefined for kinds that are not built in. */
export function builtinType(apiVersion: string, kind: string): CelType | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  return type === undefined ? undefined : objectOf(type, kind, escapedTypes);
}

/** The same with fields by their own names, as Go's types have them: quantities, too. */
export function plainType(apiVersion: string, kind: string): CelType | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  return type === undefined ? undefined : objectOf(type, kind, plainTypes);
}

/** The type of objects of a custom kind, by the schema of their version. */
export function customType(root: SchemaNode, kind: string): CelType {
  const metadata = builtinType('v1', 'ConfigMap')?.fields?.get('metadata')?.type ?? DYN;
  return declaredType(root, kind, true, metadata) ?? DYN;
}

function objectOf(type: Type, name: string, known: Known): CelType {
  const found = known.get(type);
  if (found !== undefined) return found;
  const fields = new Map<string, FieldType>();
  const made: CelType = { kind: 'object', name, params: [], fields };
  known.set(type, made);
  for (const field of type.fields) {
    const escaped = known === plainTypes ? field.name : escapeName(field.name);
    const own = shapeType(field.shape, `${name}.${field.name}`, known);
    if (escaped !== null && own !== null) fields.set(escaped, { type: own, member: field.name });
  }
  return made;
}

/** Null for what CEL cannot name by its schema: quantities are numbers or strings. */
function shapeType(shape: Shape, name: string, known: Known): CelType | null {
  switch (shape.kind) {
    case 'scalar':
      if (shape.scalar === 'quantity') return known === plainTypes ? DYN : null;
      return SCALARS[shape.scalar] ?? DYN;
    case 'object':
      return objectOf(shape.type, name, known);
    case 'list': {
      const items = shapeType(shape.items, name, known);
      return items && listOf(items);
    }
    case 'map': {
      const values = shapeType(shape.values, name, known);
      return values && mapOf(STRING, values);
    }
  }
}
