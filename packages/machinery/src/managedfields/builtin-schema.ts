/** The schemas of the built-in types, made from the tables when first asked for. */

import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '../json/json-value.ts';
import { findTypeOfKind, type Field, type Shape, type Type } from '../scheme/schema.ts';
import {
  ATOMIC_SCHEMA,
  DEDUCED_SCHEMA,
  listSchema,
  mapSchema,
  plainMap,
  scalarSchema,
  type FieldSchema,
  type MapForm,
  type SortedFields,
  type ScalarForm,
} from './field-schema.ts';
import type { Scalar } from '../scheme/zero-values.ts';

const SCALAR_FORMS: Readonly<Partial<Record<Scalar, ScalarForm>>> = {
  string: 'string',
  bytes: 'string',
  duration: 'string',
  int32: 'numeric',
  int64: 'numeric',
  double: 'numeric',
  bool: 'boolean',
  time: 'untyped',
  microTime: 'untyped',
  quantity: 'untyped',
};

/** Defaults of fields that are keys of lists, beyond the zero of their type. */
const KEY_DEFAULTS: Readonly<Record<string, Readonly<Record<string, JsonValue>>>> = {
  ContainerPort: { protocol: 'TCP' },
  LocalObjectReference: { name: '' },
  ServicePort: { protocol: 'TCP' },
};

const schemas = new Map<Type, FieldSchema>();

/** The schema of a built-in kind; undefined where there is no such kind. */
export function builtinSchema(apiVersion: string, kind: string): FieldSchema | undefined {
  const type = findTypeOfKind(apiVersion, kind);
  return type === undefined ? undefined : schemaOfType(type);
}

function schemaOfType(type: Type): FieldSchema {
  let schema = schemas.get(type);
  if (schema === undefined) {
    schema = mapSchema(new StructForm(type, type.isAtomic));
    schemas.set(type, schema);
  }
  return schema;
}

/**
 * A struct of the tables. Its fields' schemas are made when first met: types contain themselves.
 */
class StructForm implements MapForm {
  readonly isAtomic: boolean;
  readonly elements = null;
  readonly #type: Type;
  #fields: Map<string, FieldSchema> | null = null;
  #sorted: SortedFields | null = null;

  constructor(type: Type, isAtomic: boolean) {
    this.#type = type;
    this.isAtomic = isAtomic;
  }

  field(name: string): FieldSchema | undefined {
    return (this.#fields ??= this.#build()).get(name);
  }

  sorted(): SortedFields {
    if (this.#sorted === null) {
      const fields = (this.#fields ??= this.#build());
      const names = [...fields.keys()].sort();
      this.#sorted = {
        names,
        steps: names.map((name) => `"f:${name}"`),
        schemas: names.flatMap((name) => fields.get(name) ?? []),
      };
    }
    return this.#sorted;
  }

  #build(): Map<string, FieldSchema> {
    const fields = new Map<string, FieldSchema>();
    for (const field of this.#type.fields) fields.set(field.name, schemaOfField(field));
    if (this.#type.kind !== '') {
      fields.set('kind', scalarSchema('string'));
      fields.set('apiVersion', scalarSchema('string'));
    }
    return fields;
  }

  defaultOf(name: string): JsonValue | undefined {
    const own = ownMember(ownMember(KEY_DEFAULTS, this.#type.goName), name);
    if (own !== undefined) return own;
    const field = this.#type.field(name);
    if (field === undefined || field.isPointer || field.omitted !== 'never') return undefined;
    if (field.shape.kind !== 'scalar') return undefined;
    const form = SCALAR_FORMS[field.shape.scalar];
    if (form === 'string') return '';
    if (form === 'numeric') return 0;
    return form === 'boolean' ? false : undefined;
  }
}

function schemaOfField(field: Field): FieldSchema {
  const { shape } = field;
  if (shape.kind === 'list') {
    const items = schemaOfShape(shape.items);
    if (field.listType === 'map') return listSchema(items, false, field.listMapKeys);
    if (field.listType === 'set') return listSchema(items, false);
    const isMerged = field.listType === '' && field.patchStrategies.includes('merge');
    if (!isMerged) return listSchema(items, true);
    return listSchema(items, false, field.mergeKey === '' ? [] : [field.mergeKey]);
  }
  if (field.mapType === 'granular' && shape.kind === 'object') {
    return mapSchema(new StructForm(shape.type, false));
  }
  if (field.mapType !== 'atomic') return schemaOfShape(shape);
  if (shape.kind === 'map') return mapSchema(plainMap(schemaOfShape(shape.values), true));
  if (shape.kind === 'object') return mapSchema(new AtomicForm(schemaOfShape(shape)));
  return schemaOfShape(shape);
}

/** A struct that is one value where a field says so, though its type does not. */
class AtomicForm implements MapForm {
  readonly isAtomic = true;
  readonly elements: FieldSchema | null;
  readonly #own: MapForm | null;

  constructor(schema: FieldSchema) {
    this.#own = schema.map;
    this.elements = schema.map?.elements ?? null;
  }

  field(name: string): FieldSchema | undefined {
    return this.#own?.field(name);
  }

  defaultOf(name: string): JsonValue | undefined {
    return this.#own?.defaultOf(name);
  }
}

function schemaOfShape(shape: Shape): FieldSchema {
  switch (shape.kind) {
    case 'object':
      return schemaOfType(shape.type);
    case 'list':
      return listSchema(schemaOfShape(shape.items), true);
    case 'map':
      return mapSchema(plainMap(schemaOfShape(shape.values), false));
    case 'scalar': {
      const form = SCALAR_FORMS[shape.scalar];
      if (form !== undefined) return scalarSchema(form);
      // raw extensions hold what nobody looks into, the rest any value
      if (shape.scalar === 'raw') return ATOMIC_SCHEMA;
      const isMap = shape.scalar === 'fieldsV1';
      return isMap ? mapSchema(plainMap(DEDUCED_SCHEMA, false)) : DEDUCED_SCHEMA;
    }
  }
}
