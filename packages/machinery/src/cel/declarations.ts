/**
 * Structural schemas as types of CEL, with the sizes that cost estimates rest on. A type's fields
 * are made when first asked for: most expressions name few of them.
 */
import { ownMember } from '@megaplane/base/members';
import type { SchemaNode } from '../structural/schema/schema-node.ts';
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  type FieldType,
  INT,
  keywordName,
  listOf,
  mapOf,
  STRING,
  TIMESTAMP,
} from './values/typing.ts';

/** Bytes of the largest request; bounds what a schema leaves open. */
const REQUEST_BYTES_MAX = 3 * 1024 * 1024;
/** Quotes, colon and comma around a member. */
const MEMBER_BYTES = 4;

const FORMAT_BYTES_MAX: Readonly<Record<string, number>> = {
  duration: 32,
  date: 12,
  'date-time': 37,
};

/** A property's name as expressions write it; null where they cannot. */
export function escapeName(name: string): string | null {
  const declared = keywordName(name);
  if (declared !== name) return declared;
  const escaped = name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(escaped) ? escaped : null;
}

interface Measures {
  /** Bytes of the shortest JSON of a value; -1 where values cannot be named. */
  readonly plain: number;
  /** The same as the root of a resource, whose own fields are declared whatever it says. */
  readonly asRoot: number;
}

const measured = new WeakMap<SchemaNode, Measures>();

function measuresOf(node: SchemaNode): Measures {
  let found = measured.get(node);
  if (found === undefined) {
    found = { plain: bytesMinOf(node, node.properties), asRoot: rootBytesMin(node) };
    measured.set(node, found);
  }
  return found;
}

function bytesMin(node: SchemaNode): number {
  const { plain, asRoot } = measuresOf(node);
  return node.isEmbedded ? asRoot : plain;
}

function rootBytesMin(node: SchemaNode): number {
  if (node.type !== 'object' || node.additional !== null || declaresRoot(node)) {
    return bytesMinOf(node, node.properties);
  }
  const own = Array.from(node.properties ?? []).filter(([name]) => !ROOT_FIELDS.has(name));
  let least = bytesMinOf(node, own);
  for (const name of ROOT_FIELDS) {
    if (node.required.includes(name)) least += name.length + 2 + MEMBER_BYTES;
  }
  return least;
}

function bytesMinOf(
  node: SchemaNode,
  properties: Iterable<readonly [string, SchemaNode]> | null,
): number {
  if (node.isIntOrString) return 1;
  switch (node.type) {
    case 'array':
      return node.items === null || bytesMin(node.items) < 0 ? -1 : 2;
    case 'object':
      break;
    case 'string':
      return ownMember(TEXT_BYTES_MIN, node.format) ?? 2;
    case 'boolean':
      return 4;
    case 'number':
    case 'integer':
      return 1;
    default:
      return -1;
  }
  if (node.additional !== null) return bytesMin(node.additional) < 0 ? -1 : 2;
  let least = 2;
  for (const [name, property] of properties ?? []) {
    if (!node.required.includes(name) || property.defaultValue !== undefined) continue;
    const own = bytesMin(property);
    if (own >= 0) least += name.length + own + MEMBER_BYTES;
  }
  return least;
}

/** Whether values of a node can be named at all. */
export function isDeclared(node: SchemaNode): boolean {
  return measuresOf(node).plain >= 0;
}

const ROOT_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Whether a schema says all that is known of the root anyway; it may then say more. */
function declaresRoot({ properties }: SchemaNode): boolean {
  const metadata = properties?.get('metadata');
  return (
    properties?.get('kind')?.type === 'string' &&
    properties.get('apiVersion')?.type === 'string' &&
    metadata?.type === 'object' &&
    metadata.properties?.get('name')?.type === 'string' &&
    metadata.properties.get('generateName')?.type === 'string'
  );
}

/**
 * The type of a node; null where it has none (its values cannot be named). `name` is what messages
 * call the type; the root of a resource has kind, apiVersion, and of its metadata the names.
 *
 * `metadata`: its type where all of it is known, as in OpenAPI documents, which do not tell CEL
 * that a value may be null.
 */
export function declaredType(
  node: SchemaNode,
  name: string,
  isRoot = false,
  metadata: CelType | null = null,
): CelType | null {
  const type = typeOfNode(node, name, isRoot, metadata);
  // what is typed by a class says it by itself
  if (type === null || type instanceof ObjectType) return type;
  return { ...type, isNullable: metadata === null && node.isNullable };
}

function typeOfNode(
  node: SchemaNode,
  name: string,
  isRoot: boolean,
  metadata: CelType | null,
): CelType | null {
  if (node.isIntOrString) {
    const longest = node.lengthMax === Infinity ? null : Math.max(0, node.lengthMax) * 4;
    const sizeMax = longest ?? REQUEST_BYTES_MAX - 2;
    return { ...DYN, sizeMax, bytesMin: 1, isIntOrString: true };
  }
  if (!isDeclared(node)) return null;
  switch (node.type) {
    case 'array':
      return listType(node, name, metadata);
    case 'object':
      return node.additional === null
        ? new ObjectType(node, name, isRoot, metadata)
        : mapType(node, node.additional, name, metadata);
    case 'string':
      return stringType(node);
    case 'boolean':
      return { ...BOOL, sizeMax: 0, bytesMin: 4 };
    case 'number':
      return { ...DOUBLE, sizeMax: 0, bytesMin: 1 };
    default:
      return { ...INT, sizeMax: 0, bytesMin: 1 };
  }
}

function listType(node: SchemaNode, name: string, metadata: CelType | null): CelType | null {
  const items =
    node.items === null
      ? null
      : declaredType(node.items, `${name}.@idx`, node.items.isEmbedded, metadata);
  if (items === null || node.items === null) return null;
  const open = Math.floor((REQUEST_BYTES_MAX - 2) / (bytesMin(node.items) + 1));
  return {
    ...listOf(items),
    sizeMax: node.itemsMax === Infinity ? open : Math.max(0, node.itemsMax),
    bytesMin: 2,
    listType: node.listType === 'set' || node.listType === 'map' ? node.listType : '',
    mapKeys: node.mapKeys,
  };
}

function mapType(
  node: SchemaNode,
  more: SchemaNode,
  name: string,
  metadata: CelType | null,
): CelType | null {
  const values = declaredType(more, `${name}.@elem`, more.isEmbedded, metadata);
  if (values === null) return null;
  const open = Math.floor((REQUEST_BYTES_MAX - 2) / (bytesMin(more) + 6));
  const keys = { ...STRING, sizeMax: 0 };
  return {
    ...mapOf(keys, values),
    sizeMax: node.propertiesMax === Infinity ? open : Math.max(0, node.propertiesMax),
    bytesMin: 2,
  };
}

class ObjectType implements CelType {
  readonly kind = 'object';
  readonly name: string;
  readonly params: readonly CelType[] = [];
  readonly sizeMax = 0;
  readonly isNullable: boolean;
  readonly #node: SchemaNode;
  readonly #isRoot: boolean;
  readonly #metadata: CelType | null;
  #fields: ReadonlyMap<string, FieldType> | null = null;

  constructor(node: SchemaNode, name: string, isRoot: boolean, metadata: CelType | null) {
    this.#node = node;
    this.name = name;
    this.#isRoot = isRoot;
    this.#metadata = metadata;
    this.isNullable = metadata === null && node.isNullable;
  }

  get bytesMin(): number {
    const { plain, asRoot } = measuresOf(this.#node);
    return this.#isRoot ? asRoot : plain;
  }

  get fields(): ReadonlyMap<string, FieldType> {
    return (this.#fields ??= this.#make());
  }

  #make(): ReadonlyMap<string, FieldType> {
    const fields = new Map<string, FieldType>();
    const metadata = this.#metadata;
    const isImplied = this.#isRoot && (metadata !== null || !declaresRoot(this.#node));
    for (const [member, property] of this.#node.properties ?? []) {
      if (isImplied && ROOT_FIELDS.has(member)) continue;
      const escaped = escapeName(member);
      const type =
        escaped === null
          ? null
          : declaredType(property, `${this.name}.${escaped}`, property.isEmbedded, metadata);
      if (type !== null && escaped !== null) fields.set(escaped, { type, member });
    }
    if (!isImplied) return fields;
    const text = openText();
    fields.set('apiVersion', { type: text, member: 'apiVersion' });
    fields.set('kind', { type: text, member: 'kind' });
    const type = metadata ?? impliedMetadata(`${this.name}.metadata`);
    fields.set('metadata', { type, member: 'metadata' });
    return fields;
  }
}

/** What is known of the metadata of every resource: its names. */
function impliedMetadata(name: string): CelType {
  const text = openText();
  const names = new Map<string, FieldType>([
    ['name', { type: text, member: 'name' }],
    ['generateName', { type: text, member: 'generateName' }],
  ]);
  return { kind: 'object', name, params: [], fields: names, sizeMax: 0, bytesMin: 2 };
}

function openText(): CelType {
  return { ...STRING, sizeMax: REQUEST_BYTES_MAX - 2, bytesMin: 2 };
}

const TEXT_BYTES_MIN: Readonly<Record<string, number>> = {
  duration: 3,
  date: 12,
  'date-time': 21,
};

function stringType(node: SchemaNode): CelType {
  const { format } = node;
  const longest = node.lengthMax === Infinity ? null : Math.max(0, node.lengthMax);
  const open = ownMember(FORMAT_BYTES_MAX, format) ?? REQUEST_BYTES_MAX - 2;
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
  if (longest !== null) return { ...STRING, sizeMax: longest * 4, bytesMin: 2 };
  if (node.enum !== null) {
    const lengths = node.enum.map((one) => (typeof one === 'string' ? Buffer.byteLength(one) : 0));
    return { ...STRING, sizeMax: Math.max(0, ...lengths), bytesMin: 2 };
  }
  return { ...STRING, sizeMax: open, bytesMin: 2 };
}
