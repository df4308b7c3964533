/**
 * Schemas as graphs in which equal parts are one node, whichever version or definition they come
 * from. Versions of one kind are nearly equal, and providers embed the same types (a pod template,
 * a secret reference, conditions) in hundreds of kinds.
 *
 * A node's key is its own content and the ids of the nodes below it, so parts are compared from the
 * leaves up and each once. Nodes count who uses them and go with the last one.
 */
import { ownMember } from '@megaplane/base/members';
import { partsOf } from './schema-json.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { effectiveFormat, formatCheck } from './formats.ts';
import { TYPE_BITS, type SchemaNode } from './schema-node.ts';
import type { ValidationRule, NumberRule } from './validation-rule.ts';

interface Entry {
  readonly node: SchemaNode;
  readonly key: string;
  readonly parts: readonly SchemaNode[];
  uses: number;
}

/** Of a node without anything: the object, its fields, the entry in the table. */
const NODE_BYTES = 720;
const MEMBER_BYTES = 56;
/** Of a node with rules: the types that they see; of each rule, and of each character of it. */
const RULES_BYTES = 8 * 1024;
const RULE_BYTES = 4 * 1024;
const RULE_FACTOR = 60;

/** Of a type that there is not, which no value has. */
const NO_TYPE_BIT = 64;

const NO_NODES: readonly SchemaNode[] = [];
const NO_NAMES: readonly string[] = [];
const NO_RULES: readonly ValidationRule[] = [];

/** Parts of a node that are nodes themselves. */
interface Parts {
  readonly properties: ReadonlyMap<string, SchemaNode> | null;
  readonly items: SchemaNode | null;
  readonly additional: SchemaNode | null;
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | null;
}

/** Nodes that one step adds. */
const STEP_NODES = 64;

type Made = ReadonlyMap<JsonObject, SchemaNode>;
const NOTHING_MADE: Made = new Map();

/** Members of a schema that change what it does with values, but for those that are schemas. */
const OWN_MEMBERS = [
  ...['type', 'format', 'nullable', 'default', 'enum', 'required', 'pattern', 'multipleOf'],
  ...['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'maxLength', 'minLength'],
  ...['maxItems', 'minItems', 'maxProperties', 'minProperties', 'x-kubernetes-int-or-string'],
  ...['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'x-kubernetes-map-type'],
  'x-kubernetes-validations',
] as const;

export class SchemaGraph {
  readonly #entries = new Map<string, Entry>();
  readonly #byNode = new Map<SchemaNode, Entry>();
  #nextId = 1;
  #bytes = 0;

  /** Bytes of all nodes, each once. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The node of a schema, used once more. Give it back with `release`. */
  add(schema: JsonObject): SchemaNode {
    const node = this.#node(schema);
    this.#retain(node);
    return node;
  }

  /** The same as `add`, a few nodes with each step: large schemas take long. */
  *adding(schema: JsonObject): Generator<void, SchemaNode> {
    const made = new Map<JsonObject, SchemaNode>();
    const waiting = [schema];
    // whoever is named by another stands behind it
    for (let at = 0; at < waiting.length; at++) {
      for (const part of partsOf(waiting[at] ?? {})) waiting.push(part);
      if (at % STEP_NODES === 0) yield;
    }
    for (let at = waiting.length - 1; at > 0; at--) {
      const part = waiting[at] ?? {};
      made.set(part, this.#node(part, made));
      if (at % STEP_NODES === 0) yield;
    }
    const node = this.#node(schema, made);
    this.#retain(node);
    return node;
  }

  release(node: SchemaNode): void {
    const entry = this.#byNode.get(node);
    if (entry === undefined || --entry.uses > 0) return;
    this.#entries.delete(entry.key);
    this.#byNode.delete(node);
    this.#bytes -= node.bytes;
    for (const part of entry.parts) this.release(part);
  }

  #retain(node: SchemaNode): void {
    const entry = this.#byNode.get(node);
    if (entry !== undefined) entry.uses++;
  }

  /** `made`: nodes that are there already, by their schemas. */
  #node(schema: JsonObject, made: Made = NOTHING_MADE): SchemaNode {
    const known = made.get(schema);
    if (known !== undefined) return known;
    const parts = this.#parts(schema, made);
    const key = keyOf(schema, parts);
    const alike = this.#entries.get(key);
    if (alike !== undefined) return alike.node;
    const node = makeNode(this.#nextId++, schema, parts, key.length);
    const below = [
      ...(parts.properties?.values() ?? []),
      ...[parts.items, parts.additional, parts.not].filter((part) => part !== null),
      ...parts.allOf,
      ...parts.anyOf,
      ...parts.oneOf,
    ];
    for (const part of below) this.#retain(part);
    const entry: Entry = { node, key, parts: below, uses: 0 };
    this.#entries.set(key, entry);
    this.#byNode.set(node, entry);
    this.#bytes += node.bytes;
    return node;
  }

  #parts(schema: JsonObject, made: Made): Parts {
    const declared = schema['properties'];
    let properties: Map<string, SchemaNode> | null = null;
    if (isObject(declared)) {
      for (const name of Object.keys(declared)) {
        const property = declared[name];
        if (isObject(property)) (properties ??= new Map()).set(name, this.#node(property, made));
      }
    }
    return {
      properties,
      items: this.#one(schema['items'], made),
      additional: this.#one(schema['additionalProperties'], made),
      allOf: this.#list(schema['allOf'], made),
      anyOf: this.#list(schema['anyOf'], made),
      oneOf: this.#list(schema['oneOf'], made),
      not: this.#one(schema['not'], made),
    };
  }

  #one(schema: JsonValue | undefined, made: Made): SchemaNode | null {
    return isObject(schema) ? this.#node(schema, made) : null;
  }

  #list(schemas: JsonValue | undefined, made: Made): readonly SchemaNode[] {
    if (!Array.isArray(schemas) || schemas.length === 0) return NO_NODES;
    return schemas.filter(isObject).map((schema) => this.#node(schema, made));
  }
}

function keyOf(schema: JsonObject, parts: Parts): string {
  let key = '';
  for (const member of OWN_MEMBERS) {
    const value = ownMember(schema, member);
    if (value !== undefined && value !== null) key += `${member}=${JSON.stringify(value)};`;
  }
  const { properties, items, additional, allOf, anyOf, oneOf, not } = parts;
  if (typeof schema['additionalProperties'] === 'boolean')
    key += `+${schema['additionalProperties']}`;
  if (items !== null) key += `[${items.id}`;
  if (additional !== null) key += `+${additional.id}`;
  if (not !== null) key += `!${not.id}`;
  for (const node of allOf) key += `&${node.id}`;
  for (const node of anyOf) key += `|${node.id}`;
  for (const node of oneOf) key += `^${node.id}`;
  if (properties !== null) {
    for (const [name, node] of properties) key += `.${JSON.stringify(name)}${node.id}`;
  }
  return key;
}

function textOf(schema: JsonObject, member: string): string {
  const value = ownMember(schema, member);
  return typeof value === 'string' ? value : '';
}

function numberOf(schema: JsonObject, member: string, absent: number): number {
  const value = ownMember(schema, member);
  return isNumber(value) ? Number(value) : absent;
}

function namesOf(schema: JsonObject, member: string): readonly string[] {
  const value = ownMember(schema, member);
  if (!Array.isArray(value) || value.length === 0) return NO_NAMES;
  return value.filter((name) => typeof name === 'string');
}

function bitsOf(type: string, isIntOrString: boolean): number {
  if (isIntOrString) return TYPE_BITS.integer | TYPE_BITS.string;
  if (Object.hasOwn(TYPE_BITS, type)) return TYPE_BITS[type as keyof typeof TYPE_BITS];
  return type === '' ? 0 : NO_TYPE_BIT;
}

function numberRule(schema: JsonObject, type: string, isIntOrString: boolean): NumberRule | null {
  const isNumeric = !isIntOrString && (type === 'integer' || type === 'number');
  const optional = (member: string): number | undefined => {
    const value = ownMember(schema, member);
    return isNumber(value) ? Number(value) : undefined;
  };
  const rule: NumberRule = {
    type: isNumeric ? type : '',
    format: isNumeric ? effectiveFormat(type, textOf(schema, 'format')) : '',
    multipleOf: optional('multipleOf'),
    maximum: optional('maximum'),
    minimum: optional('minimum'),
    isMaximumExclusive: schema['exclusiveMaximum'] === true,
    isMinimumExclusive: schema['exclusiveMinimum'] === true,
  };
  const isBounded =
    rule.multipleOf !== undefined || rule.maximum !== undefined || rule.minimum !== undefined;
  return isBounded || rule.type === 'integer' || rule.format === 'float' ? rule : null;
}

function rulesOf(schema: JsonObject): readonly ValidationRule[] {
  const listed = schema['x-kubernetes-validations'];
  if (!Array.isArray(listed) || listed.length === 0) return NO_RULES;
  return listed.filter(isObject).map((rule) => ({
    rule: textOf(rule, 'rule'),
    message: textOf(rule, 'message'),
    messageExpression: textOf(rule, 'messageExpression'),
    reason: textOf(rule, 'reason'),
    fieldPath: textOf(rule, 'fieldPath'),
    ...(rule['optionalOldSelf'] === true ? { optionalOldSelf: true } : {}),
  }));
}

function additionalKind(schema: JsonObject, { additional }: Parts): SchemaNode['additionalKind'] {
  if (additional !== null) return 'schema';
  const allowed = schema['additionalProperties'];
  if (typeof allowed !== 'boolean') return 'absent';
  return allowed ? 'allowed' : 'denied';
}

/** What somewhere in a node's values is: by the structure, without what junctors add. */
function below({ properties, items, additional }: Parts): readonly SchemaNode[] {
  const nodes = properties === null ? [] : Array.from(properties.values());
  if (items !== null) nodes.push(items);
  if (additional !== null) nodes.push(additional);
  return nodes;
}

function makeNode(id: number, schema: JsonObject, parts: Parts, keyLength: number): SchemaNode {
  const type = textOf(schema, 'type');
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const rules = rulesOf(schema);
  const format = effectiveFormat(isIntOrString ? 'union' : type, textOf(schema, 'format'));
  const listType = textOf(schema, 'x-kubernetes-list-type') as SchemaNode['listType'];
  const inside = below(parts);
  const defaultValue = schema['default'] ?? undefined;
  const defaulted = Array.from(parts.properties ?? []).filter(
    ([, node]) => node.defaultValue !== undefined,
  );
  const junctors = [...parts.allOf, ...parts.anyOf, ...parts.oneOf];
  if (parts.not !== null) junctors.push(parts.not);
  const ruleBytes = rules.reduce(
    (sum, { rule, messageExpression = '' }) =>
      sum + RULE_BYTES + (rule.length + messageExpression.length) * RULE_FACTOR,
    rules.length === 0 ? 0 : RULES_BYTES,
  );
  const listed = schema['enum'];
  const own = ownChecks(schema);
  return {
    id,
    bytes: NODE_BYTES + keyLength * 2 + (parts.properties?.size ?? 0) * MEMBER_BYTES + ruleBytes,
    type,
    typeBits: bitsOf(type, isIntOrString),
    isNullable: schema['nullable'] === true,
    isIntOrString,
    isEmbedded,
    preservesUnknown: schema['x-kubernetes-preserve-unknown-fields'] === true,
    format,
    checkFormat: type === '' || type === 'string' ? formatCheck(format) : null,
    ...own,
    number: numberRule(schema, type, isIntOrString),
    required: namesOf(schema, 'required'),
    enum: Array.isArray(listed) && listed.length > 0 ? listed : null,
    ...parts,
    additionalKind: additionalKind(schema, parts),
    listType,
    mapKeys: namesOf(schema, 'x-kubernetes-list-map-keys'),
    mapType: textOf(schema, 'x-kubernetes-map-type') as SchemaNode['mapType'],
    defaultValue,
    rules,
    defaulted,
    hasDefaults: defaultValue !== undefined || inside.some((node) => node.hasDefaults),
    hasRules: rules.length > 0 || inside.some((node) => node.hasRules),
    hasUniqueLists:
      listType === 'set' || listType === 'map' || inside.some((node) => node.hasUniqueLists),
    hasEmbedded: isEmbedded || inside.some((node) => node.hasEmbedded),
    depth: 1 + [...inside, ...junctors].reduce((most, node) => Math.max(most, node.depth), 0),
  };
}

type OwnChecks = Pick<
  SchemaNode,
  | 'lengthMin'
  | 'lengthMax'
  | 'pattern'
  | 'itemsMin'
  | 'itemsMax'
  | 'propertiesMin'
  | 'propertiesMax'
>;

function ownChecks(schema: JsonObject): OwnChecks {
  return {
    lengthMin: numberOf(schema, 'minLength', 0),
    lengthMax: numberOf(schema, 'maxLength', Infinity),
    pattern: textOf(schema, 'pattern'),
    itemsMin: numberOf(schema, 'minItems', 0),
    itemsMax: numberOf(schema, 'maxItems', Infinity),
    propertiesMin: numberOf(schema, 'minProperties', 0),
    propertiesMax: numberOf(schema, 'maxProperties', Infinity),
  };
}
