/** OpenAPI schemas as types of CEL, with the sizes that cost estimates rest on. */
import { isObject, type JsonObject } from '../json-value.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  STRING,
  TIMESTAMP,
  type CelType,
  type FieldType,
} from './typing.ts';

/** Bytes of the largest request; bounds what a schema leaves open. */
const REQUEST_BYTES_MAX = 3 * 1024 * 1024;
/** Quotes, colon and comma around a member. */
const MEMBER_BYTES = 4;

const FORMAT_BYTES_MAX: Readonly<Record<string, number>> = {
  duration: 32,
  date: 12,
  'date-time': 37,
};

const RESERVED: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package ' +
    'namespace return var void while'
  ).split(' '),
);

/** A property's name as expressions write it; null where they cannot. */
export function escapeName(name: string): string | null {
  if (RESERVED.has(name)) return `__${name}__`;
  const escaped = name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(escaped) ? escaped : null;
}

function numberOf(schema: JsonObject, keyword: string): number | null {
  const value = schema[keyword];
  return typeof value === 'number' && value >= 0 ? value : null;
}

function bytesMin(type: CelType): number {
  return type.bytesMin ?? 1;
}

/**
 * The type of a structural schema; null where it has none (its values cannot be named). `name` is
 * what messages call the type; the root of a resource has kind, apiVersion, and of its metadata
 * the names alone.
 */
export function declaredType(schema: JsonObject, name: string, isRoot = false): CelType | null {
  if (schema['x-kubernetes-int-or-string'] === true) {
    return { ...DYN, sizeMax: REQUEST_BYTES_MAX - 2 };
  }
  const type = typeof schema['type'] === 'string' ? schema['type'] : '';
  switch (type) {
    case 'array':
      return listType(schema, name);
    case 'object':
      return objectType(schema, name, isRoot);
    case 'string':
      return stringType(schema);
    case 'boolean':
      return { ...BOOL, sizeMax: 0, bytesMin: 4 };
    case 'number':
      return { ...DOUBLE, sizeMax: 0, bytesMin: 1 };
    case 'integer':
      return { ...INT, sizeMax: 0, bytesMin: 1 };
    default:
      return null;
  }
}

function listType(schema: JsonObject, name: string): CelType | null {
  const items = isObject(schema['items'])
    ? declaredType(schema['items'], `${name}.@items`, isEmbedded(schema['items']))
    : null;
  if (items === null) return null;
  const open = Math.floor((REQUEST_BYTES_MAX - 2) / (bytesMin(items) + 1));
  const listKind = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'];
  return {
    ...listOf(items),
    sizeMax: numberOf(schema, 'maxItems') ?? open,
    bytesMin: 2,
    listType: listKind === 'set' || listKind === 'map' ? listKind : '',
    mapKeys: Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [],
  };
}

function isEmbedded(schema: JsonObject): boolean {
  return schema['x-kubernetes-embedded-resource'] === true;
}

function objectType(schema: JsonObject, name: string, isRoot: boolean): CelType | null {
  const more = schema['additionalProperties'];
  if (isObject(more)) {
    const values = declaredType(more, `${name}.@values`, isEmbedded(more));
    if (values === null) return null;
    const open = Math.floor((REQUEST_BYTES_MAX - 2) / (bytesMin(values) + 6 + 1));
    const keys = { ...STRING, sizeMax: 0 };
    return {
      ...mapOf(keys, values),
      sizeMax: numberOf(schema, 'maxProperties') ?? open,
      bytesMin: 2,
    };
  }
  const fields = new Map<string, FieldType>();
  const listed = schema['required'];
  const required: readonly unknown[] = Array.isArray(listed) ? listed : [];
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  let least = 2;
  for (const [member, property] of Object.entries(properties)) {
    if (!isObject(property) || (isRoot && ROOT_FIELDS.has(member))) continue;
    const type = declaredType(property, `${name}.${member}`, isEmbedded(property));
    if (type === null) continue;
    if (required.includes(member) && property['default'] === undefined) {
      least += member.length + bytesMin(type) + MEMBER_BYTES;
    }
    const escaped = escapeName(member);
    if (escaped !== null) fields.set(escaped, { type, member });
  }
  if (isRoot) addRootFields(fields, name);
  return { kind: 'object', name, params: [], fields, sizeMax: 0, bytesMin: least };
}

const ROOT_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

function addRootFields(fields: Map<string, FieldType>, name: string): void {
  const text = openText();
  fields.set('apiVersion', { type: text, member: 'apiVersion' });
  fields.set('kind', { type: text, member: 'kind' });
  const names = new Map<string, FieldType>([
    ['name', { type: text, member: 'name' }],
    ['generateName', { type: text, member: 'generateName' }],
  ]);
  const metadata: CelType = {
    kind: 'object',
    name: `${name}.metadata`,
    params: [],
    fields: names,
    sizeMax: 0,
    bytesMin: 2,
  };
  fields.set('metadata', { type: metadata, member: 'metadata' });
}

function openText(): CelType {
  return { ...STRING, sizeMax: REQUEST_BYTES_MAX - 2, bytesMin: 2 };
}

function stringType(schema: JsonObject): CelType {
  const format = typeof schema['format'] === 'string' ? schema['format'] : '';
  const longest = numberOf(schema, 'maxLength');
  const open = FORMAT_BYTES_MAX[format] ?? REQUEST_BYTES_MAX - 2;
  switch (format) {
    case 'byte':
      return { ...BYTES, sizeMax: longest ?? open, bytesMin: 2 };
    case 'duration':
      return { ...DURATION, sizeMax: open, bytesMin: 3 };
    case 'date':
      return { ...TIMESTAMP, sizeMax: open, bytesMin: 12 };
    case 'date-time':
      return { ...TIMESTAMP, sizeMax: open, bytesMin: 21 };
    default:
  }
  const listed = schema['enum'];
  if (longest !== null) return { ...STRING, sizeMax: longest * 4, bytesMin: 2 };
  if (Array.isArray(listed)) {
    const lengths = listed.map((one) => (typeof one === 'string' ? one.length : 0));
    return { ...STRING, sizeMax: Math.max(0, ...lengths), bytesMin: 2 };
  }
  return { ...STRING, sizeMax: open, bytesMin: 2 };
}
