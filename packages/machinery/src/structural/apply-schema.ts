/**
 * What apply has to know of custom resources, made from the nodes of their schemas as upstream
 * makes it from the published form: lists are one value unless the schema says otherwise, maps are
 * not; whatever lies below a node that keeps unknown fields may have more fields than declared.
 */
import { builtinSchema } from '../managedfields/builtin-schema.ts';
import {
  ATOMIC_SCHEMA,
  DEDUCED_SCHEMA,
  mapSchema,
  scalarSchema,
  type FieldSchema,
  type ListForm,
  type MapForm,
  type SortedFields,
} from '../managedfields/field-schema.ts';
import type { JsonValue } from '../json/json-value.ts';
import type { SchemaNode } from './schema/schema-node.ts';

/** Equal nodes share what was made of them; by whether unknown fields are kept above. */
const closed = new WeakMap<SchemaNode, FieldSchema>();
const open = new WeakMap<SchemaNode, FieldSchema>();
const roots = new WeakMap<SchemaNode, FieldSchema>();

/** The schema of whole objects of a custom kind, with their metadata. */
export function applySchemaOf(root: SchemaNode): FieldSchema {
  let schema = roots.get(root);
  if (schema === undefined) {
    schema = mapSchema(mapForm(root, root.preservesUnknown, true));
    roots.set(root, schema);
  }
  return schema;
}

function schemaOf(node: SchemaNode, keepsAbove: boolean): FieldSchema {
  const keeps = keepsAbove || node.preservesUnknown;
  const schemas = keeps ? open : closed;
  let schema = schemas.get(node);
  if (schema === undefined) schemas.set(node, (schema = make(node, keeps)));
  return schema;
}

function make(node: SchemaNode, keeps: boolean): FieldSchema {
  switch (node.type) {
    case 'object':
      return mapSchema(mapForm(node, keeps, node.isEmbedded));
    case 'array':
      return { scalar: null, list: listForm(node, keeps), map: null };
    case 'integer':
    case 'number':
      return scalarSchema('numeric');
    case 'boolean':
      return scalarSchema('boolean');
    case 'string':
      return scalarSchema(node.format === '' || node.format === 'byte' ? 'string' : 'untyped');
    default: {
      const map = mapForm(node, keeps, node.isEmbedded);
      return { scalar: 'untyped', list: listForm(node, keeps), map };
    }
  }
}

function listForm(node: SchemaNode, keeps: boolean): ListForm {
  const { items, listType, mapKeys } = node;
  const isAtomic = listType !== 'set' && listType !== 'map';
  const keys = listType === 'map' ? mapKeys : [];
  return { isAtomic, keys, items: items === null ? ATOMIC_SCHEMA : schemaOf(items, keeps) };
}

const TEXT = scalarSchema('string');

function metadataSchema(): FieldSchema {
  return builtinSchema('v1', 'Namespace')?.map?.field('metadata') ?? DEDUCED_SCHEMA;
}

/** An object of a node. Schemas of its fields are made when first met. */
class NodeForm implements MapForm {
  readonly isAtomic: boolean;
  readonly elements: FieldSchema | null;
  readonly #node: SchemaNode;
  readonly #keeps: boolean;
  /** It has a kind, an apiVersion and metadata, whatever it declares. */
  readonly #isResource: boolean;

  constructor(node: SchemaNode, keeps: boolean, isResource: boolean) {
    this.#node = node;
    this.#keeps = keeps;
    this.#isResource = isResource;
    this.isAtomic = node.mapType === 'atomic';
    this.elements = this.#others();
  }

  #others(): FieldSchema | null {
    const { additional, additionalKind, properties } = this.#node;
    if (additional !== null) return schemaOf(additional, this.#keeps);
    if (additionalKind === 'allowed') return DEDUCED_SCHEMA;
    if (additionalKind === 'denied') return null;
    const isBare = properties === null && !this.#isResource;
    return this.#keeps || isBare ? DEDUCED_SCHEMA : null;
  }

  field(name: string): FieldSchema | undefined {
    if (this.#isResource) {
      if (name === 'metadata') return metadataSchema();
      if (name === 'apiVersion' || name === 'kind') return TEXT;
    }
    const node = this.#node.properties?.get(name);
    return node === undefined ? undefined : schemaOf(node, this.#keeps);
  }

  defaultOf(name: string): JsonValue | undefined {
    return this.#node.properties?.get(name)?.defaultValue;
  }

  protected names(): string[] {
    const declared = [...(this.#node.properties?.keys() ?? [])];
    const own = this.#isResource ? ['apiVersion', 'kind', 'metadata'] : [];
    return [...new Set([...declared, ...own])].sort();
  }
}

/** One that has no other fields than it declares. */
class ClosedForm extends NodeForm {
  #sorted: SortedFields | null = null;

  sorted(): SortedFields {
    if (this.#sorted === null) {
      const names = this.names();
      this.#sorted = {
        names,
        steps: names.map((name) => `"f:${name}"`),
        schemas: names.flatMap((name) => this.field(name) ?? []),
      };
    }
    return this.#sorted;
  }
}

function mapForm(node: SchemaNode, keeps: boolean, isResource: boolean): MapForm {
  const form = new NodeForm(node, keeps, isResource);
  return form.elements === null ? new ClosedForm(node, keeps, isResource) : form;
}
