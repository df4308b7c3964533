/** The built-in kinds as types of CEL, to check the expressions of policies against. */
import { findTypeOfKind, type Shape, type Type } from '../schema.ts';
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
} from './typing.ts';
import { escapeName } from './declarations.ts';

const SCALARS: Readonly<Record<string, CelType>> = {
  string: STRING,
  quantity: STRING,
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

/** The same with fields by their own names, as Go's types have them: `namespace`, too. */
export function plainType(apiVersion: string, kind: string): CelType | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  return type === undefined ? undefined : objectOf(type, kind, plainTypes);
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
    if (escaped !== null) fields.set(escaped, { type: own, member: field.name });
  }
  return made;
}

function shapeType(shape: Shape, name: string, known: Known): CelType {
  switch (shape.kind) {
    case 'scalar':
      return SCALARS[shape.scalar] ?? DYN;
    case 'object':
      return objectOf(shape.type, name, known);
    case 'list':
      return listOf(shapeType(shape.items, name, known));
    case 'map':
      return mapOf(STRING, shapeType(shape.values, name, known));
  }
}
