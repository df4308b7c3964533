/**
 * A custom resource's schema as OpenAPI publishes it: with the standard metadata, the lists' schema
 * and `x-kubernetes-group-version-kind`; version 2 with what it cannot say left out.
 */
import { putMember } from '@megaplane/base/members';
import { equals, objectAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';

/** What the published form has to know of a definition beside its schema. */
export interface PublishedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  /** Paths of the fields that selectors of lists may name. */
  readonly selectable: readonly string[];
}

/** Names as components: `com.example.v1.Widget`, `com.example.v1.WidgetList`. */
export interface PublishedSchemas {
  readonly name: string;
  readonly listName: string;
  /** By name: the schema of the kind, and of its list. Refs name `io.k8s...` components. */
  readonly schemas: Readonly<Record<string, JsonObject>>;
}

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.';
const VERSION_3 = '#/components/schemas/';
const VERSION_2 = '#/definitions/';

const CONVENTIONS =
  'https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md';
/** The words of upstream's types, which `kubectl explain` shows. */
const TYPE_META: JsonObject = {
  apiVersion: {
    type: 'string',
    description:
      'APIVersion defines the versioned schema of this representation of an object. Servers ' +
      'should convert recognized schemas to the latest internal value, and may reject ' +
      `unrecognized values. More info: ${CONVENTIONS}#resources`,
  },
  kind: {
    type: 'string',
    description:
      'Kind is a string value representing the REST resource this object represents. Servers may ' +
      'infer this from the endpoint the client submits requests to. Cannot be updated. In ' +
      `CamelCase. More info: ${CONVENTIONS}#types-kinds`,
  },
};
/** The same of objects within others. */
const EMBEDDED_TEXTS: Readonly<Record<string, string>> = {
  apiVersion:
    'apiVersion defines the versioned schema of this representation of an object. ' +
    `More info: ${CONVENTIONS}#resources`,
  kind:
    'kind is a string value representing the type of this object. In CamelCase. ' +
    `More info: ${CONVENTIONS}#types-kinds`,
};
const METADATA_TEXT = `Standard object's metadata. More info: ${CONVENTIONS}#metadata`;
const LIST_METADATA_TEXT = `Standard list metadata. More info: ${CONVENTIONS}#types-kinds`;

/** Parts of a schema that upstream's structural form does not hold. */
const UNPUBLISHED: ReadonlySet<string> = new Set(['$schema', 'id']);
/** Parts whose values are schemas, as one, as a list, and by name. */
const INNER: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not']);
const INNER_LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf']);

/** Components of `/openapi/v3/apis/{group}/{version}`. */
export function openapiV3Schemas(kind: PublishedKind, schema: JsonObject): PublishedSchemas {
  return published(kind, publishedNode(schema, VERSION_3), VERSION_3);
}

/** Definitions of `/openapi/v2`. */
export function openapiV2Schemas(kind: PublishedKind, schema: JsonObject): PublishedSchemas {
  // a root that keeps everything must not look as if it knew its fields: kubectl refuses others
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const root = isOpen ? null : publishedNode(schema, VERSION_2);
  return published(kind, root, VERSION_2);
}

/** The name of a kind as a component: `com.example.v1.Widget`. */
export function publishedName({
  group,
  version,
  kind,
}: Pick<PublishedKind, 'group' | 'version' | 'kind'>): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`;
}

function published(
  { group, version, kind, listKind, plural, selectable }: PublishedKind,
  root: JsonObject | null,
  prefix: string,
): PublishedSchemas {
  const name = publishedName({ group, version, kind });
  const listName = publishedName({ group, version, kind: listKind });
  const fields: JsonObject =
    selectable.length === 0
      ? {}
      : { 'x-kubernetes-selectable-fields': selectable.map((fieldPath) => ({ fieldPath })) };
  const known = (one: string): JsonObject => {
    return { 'x-kubernetes-group-version-kind': [{ group, version, kind: one }], ...fields };
  };
  const whole =
    root === null ? { type: 'object' } : withStandardFields(root, prefix, METADATA_TEXT);
  const list: JsonObject = {
    type: 'object',
    description: `${listKind} is a list of ${kind}`,
    required: ['items'],
    properties: {
      ...TYPE_META,
      metadata: reference('ListMeta', prefix, LIST_METADATA_TEXT),
      items: {
        type: 'array',
        items: { $ref: prefix + name },
        description: `List of ${plural}. More info: ${CONVENTIONS}`,
      },
    },
    ...known(listKind),
  };
  return { name, listName, schemas: { [name]: { ...whole, ...known(kind) }, [listName]: list } };
}

function withStandardFields(node: JsonObject, prefix: string, text: string): JsonObject {
  const metadata = reference('ObjectMeta', prefix, text);
  return {
    ...node,
    properties: { ...TYPE_META, metadata, ...without(objectAt(node, 'properties') ?? {}) },
  };
}

/** The schema's own fields, but for those that every object has. */
function without(properties: JsonObject): JsonObject {
  const { apiVersion: _, kind: __, metadata: ___, ...own } = properties;
  return own;
}

function reference(type: string, prefix: string, description: string): JsonObject {
  return { ...referenceTo(META + type, prefix), description };
}

/** A reference beside other keywords must be wrapped in version 3. */
function referenceTo(name: string, prefix: string): JsonObject {
  const plain: JsonObject = { $ref: prefix + name };
  return prefix === VERSION_3 ? { allOf: [plain] } : plain;
}

function publishedNode(schema: JsonObject, prefix: string): JsonObject {
  const node: JsonObject = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === undefined || UNPUBLISHED.has(keyword)) continue;
    if (keyword === 'example' && isEmpty(value)) continue;
    putMember(node, keyword, publishedPart(keyword, value, prefix));
  }
  if (prefix === VERSION_2) simplify(node, schema);
  else if (node['x-kubernetes-int-or-string'] === true) unfold(node);
  if (node['x-kubernetes-embedded-resource'] !== true) return node;
  // a node that keeps everything must not look as if it knew its fields, as with the root
  const keepsUnknown = node['x-kubernetes-preserve-unknown-fields'] === true;
  if (prefix === VERSION_2 && keepsUnknown) return node;
  const required: JsonValue[] = Array.isArray(node['required']) ? [...node['required']] : [];
  for (const name of ['kind', 'apiVersion']) if (!required.includes(name)) required.push(name);
  const whole = withStandardFields(node, prefix, METADATA_TEXT);
  const properties = { ...objectAt(whole, 'properties') };
  for (const [name, description] of Object.entries(EMBEDDED_TEXTS)) {
    putMember(properties, name, { type: 'string', description });
  }
  return { ...whole, properties, required };
}

const WHOLE_OR_TEXT: JsonObject = { anyOf: [{ type: 'integer' }, { type: 'string' }] };

/** Says which types a number or text has, where the schema does not itself. */
function unfold(node: JsonObject): void {
  const { anyOf = [], allOf = [] } = node;
  const first = Array.isArray(allOf) ? objectAt(allOf[0]) : undefined;
  if ([anyOf, first?.['anyOf']].some((one) => equals(one, WHOLE_OR_TEXT['anyOf']))) return;
  if (Array.isArray(anyOf) && anyOf.length === 0) node['anyOf'] = WHOLE_OR_TEXT['anyOf'] ?? [];
  else node['allOf'] = [WHOLE_OR_TEXT, ...(Array.isArray(allOf) ? allOf : [])];
}

/** What Go leaves out of JSON where it is empty. */
function isEmpty(value: JsonValue): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === null || value === '';
}

function publishedPart(keyword: string, value: JsonValue, prefix: string): JsonValue {
  if (INNER.has(keyword)) return isObject(value) ? publishedNode(value, prefix) : value;
  if (INNER_LISTS.has(keyword) && Array.isArray(value)) {
    return value.map((one) => (isObject(one) ? publishedNode(one, prefix) : one));
  }
  if (keyword !== 'properties' || !isObject(value)) return value;
  const fields: JsonObject = {};
  for (const [name, one] of Object.entries(value)) {
    putMember(fields, name, isObject(one) ? publishedNode(one, prefix) : one);
  }
  return fields;
}

/**
 * Version 2 has no alternatives, no defaults, no null and no two types at once; and readers of it
 * refuse fields that a schema with `properties` does not have.
 */
function simplify(node: JsonObject, schema: JsonObject): void {
  for (const keyword of ['allOf', 'anyOf', 'oneOf', 'not']) delete node[keyword];
  const isNullable = node['nullable'] === true;
  const keepsUnknown = node['x-kubernetes-preserve-unknown-fields'] === true;
  if (isNullable || keepsUnknown) {
    for (const keyword of ['items', 'properties']) delete node[keyword];
  }
  if (isNullable) delete node['type'];
  requireValues(node, schema);
  if (keepsUnknown || node['x-kubernetes-int-or-string'] === true) delete node['type'];
  for (const keyword of ['nullable', 'default']) delete node[keyword];
}

/** What may be null cannot be required where there is no null. */
function requireValues(node: JsonObject, schema: JsonObject): void {
  const { required } = node;
  if (!Array.isArray(required)) return;
  const mayBeNull = (name: JsonValue): boolean =>
    typeof name === 'string' && objectAt(schema, 'properties', name)?.['nullable'] === true;
  const kept = required.filter((name) => !mayBeNull(name));
  const isAnyNull = objectAt(schema, 'additionalProperties')?.['nullable'] === true;
  if (kept.length === 0 || isAnyNull) delete node['required'];
  else node['required'] = kept;
}
