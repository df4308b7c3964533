/**
 * CustomResourceDefinitions of the shapes that real providers install: many kinds to a group, one
 * to three versions that are nearly the same, long descriptions, references, selectors and
 * conditions that all of them share. Made up from a seed; nothing is copied from anywhere.
 */
import { Random } from '@megaplane/base/random';
import type { JsonObject } from '@megaplane/machinery/json-value';

const SYLLABLES = [
  'ba',
  'cor',
  'del',
  'fin',
  'gra',
  'hol',
  'ist',
  'lum',
  'mer',
  'nod',
  'per',
  'ral',
];
const WORDS = [
  ...['address', 'allowed', 'attached', 'bucket', 'by', 'capacity', 'cluster', 'default', 'each'],
  ...['encryption', 'endpoint', 'for', 'from', 'gateway', 'identity', 'in', 'key', 'limit', 'name'],
  ...['network', 'of', 'optional', 'policy', 'quota', 'region', 'resource', 'rule', 'service'],
  ...['subnet', 'that', 'the', 'to', 'used', 'value', 'volume', 'when', 'which', 'with', 'zone'],
] as const;
const KINDS_PER_GROUP = 20;

/** Sizes of definitions, bytes of JSON, by how many in a hundred have them. */
const SIZES: readonly (readonly [number, number])[] = [
  [25, 2_000],
  [40, 6_000],
  [22, 14_000],
  [9, 30_000],
  [3, 60_000],
  [1, 180_000],
];

export interface Shape {
  /** `shared`: sub-schemas as providers share them; `distinct`: no field is like another. */
  readonly sharing: 'shared' | 'distinct';
  /** Bytes of every definition; 0: as real ones are spread. */
  readonly bytes: number;
}

/** The definition of an index, always the same one. */
export function definitionAt(index: number, shape: Shape): JsonObject {
  const random = new Random(index + 1);
  const group = groupAt(index);
  const singular = `${wordAt(random)}${wordAt(random)}${index}`;
  const kind = singular.charAt(0).toUpperCase() + singular.slice(1);
  const wanted = shape.bytes > 0 ? shape.bytes : sizeOf(random);
  const versions = wanted > 20_000 ? 2 : 1;
  const maker = new SchemaMaker(random, shape, index);
  const fields = maker.fields(wanted / versions);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.${group}`, labels: { 'bench.example.com/index': `${index}` } },
    spec: {
      group,
      scope: index % 4 === 0 ? 'Namespaced' : 'Cluster',
      names: {
        ...{ plural: `${singular}s`, singular, kind, listKind: `${kind}List` },
        categories: ['managed', `provider${Math.floor(index / 200)}`],
      },
      versions: Array.from({ length: versions }, (_, version) => ({
        name: version === 0 ? 'v1beta1' : `v1beta${version + 1}`,
        served: true,
        storage: version === 0,
        additionalPrinterColumns: COLUMNS,
        schema: { openAPIV3Schema: maker.schema(fields, kind) },
        subresources: { status: {} },
      })),
    },
  };
}

/** The group of the definition of an index. */
export function groupAt(index: number): string {
  const place = Math.floor(index / KINDS_PER_GROUP);
  return `g${place}.provider${Math.floor(place / 10)}.bench.example.com`;
}

function sizeOf(random: Random): number {
  let draw = random.below(100);
  for (const [share, bytes] of SIZES) {
    if (draw < share) return bytes * (0.7 + random.below(60) / 100);
    draw -= share;
  }
  return 10_000;
}

function wordAt(random: Random): string {
  return (SYLLABLES[random.below(SYLLABLES.length)] ?? '') + (SYLLABLES[random.below(12)] ?? '');
}

const COLUMNS: JsonObject[] = [
  { name: 'READY', type: 'string', jsonPath: `.status.conditions[?(@.type=='Ready')].status` },
  { name: 'SYNCED', type: 'string', jsonPath: `.status.conditions[?(@.type=='Synced')].status` },
  { name: 'AGE', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

const text = (description: string): JsonObject => ({ type: 'string', description });

const REFERENCE: JsonObject = {
  type: 'object',
  description: 'Names the object from which the value is taken when it is ready.',
  required: ['name'],
  properties: {
    name: text('Name of the object that is referred to.'),
    policy: {
      type: 'object',
      description: 'What to do while the object is not there.',
      properties: {
        resolution: { type: 'string', enum: ['Required', 'Optional'], default: 'Required' },
        resolve: { type: 'string', enum: ['Always', 'IfNotPresent'] },
      },
    },
  },
};
const SELECTOR: JsonObject = {
  type: 'object',
  description: 'Finds the object from which the value is taken by its labels.',
  properties: {
    matchControllerRef: { type: 'boolean', description: 'Same controller as this object.' },
    matchLabels: { type: 'object', additionalProperties: { type: 'string' } },
  },
};
const CONDITIONS: JsonObject = {
  type: 'array',
  description: 'What is known of the state of the object.',
  items: {
    type: 'object',
    required: ['type', 'status', 'lastTransitionTime', 'reason'],
    properties: {
      type: text('Type of the condition; there is one of each type.'),
      status: text('True, False or Unknown.'),
      reason: text('Why the condition is as it is, in one word.'),
      message: text('Why the condition is as it is, for people.'),
      lastTransitionTime: { type: 'string', format: 'date-time' },
      observedGeneration: { type: 'integer', format: 'int64' },
    },
  },
  'x-kubernetes-list-map-keys': ['type'],
  'x-kubernetes-list-type': 'map',
};

class SchemaMaker {
  readonly #random: Random;
  readonly #shape: Shape;
  readonly #index: number;
  #fieldCount = 0;

  constructor(random: Random, shape: Shape, index: number) {
    this.#random = random;
    this.#shape = shape;
    this.#index = index;
  }

  /** Fields of the kind's own, whose schema takes about `bytes` in all places where it is. */
  fields(bytes: number): JsonObject {
    const shared = JSON.stringify(this.schema({}, '')).length;
    // they stand in the spec twice and once in the status
    const wanted = Math.max(200, (bytes - shared) / 3 - 1200);
    const fields: JsonObject = {};
    let size = 0;
    while (size < wanted) {
      const name = this.#name();
      const schema = this.#field(0);
      fields[name] = schema;
      size += name.length + 4 + JSON.stringify(schema).length;
    }
    return fields;
  }

  #name(): string {
    this.#fieldCount++;
    const word = wordAt(this.#random) + wordAt(this.#random);
    const isOwn = this.#shape.sharing === 'distinct';
    return isOwn ? `${word}${this.#index}x${this.#fieldCount}` : word;
  }

  #field(depth: number): JsonObject {
    const random = this.#random;
    const draw = random.below(depth > 2 ? 7 : 10);
    const description = this.#text();
    if (draw < 4) return { type: 'string', description };
    if (draw === 4) return { type: 'integer', format: 'int64', description };
    if (draw === 5) return { type: 'boolean', description };
    if (draw === 6) {
      return this.#shape.sharing === 'shared' && random.below(2) === 0
        ? SELECTOR
        : { type: 'array', description, items: { type: 'string' }, maxItems: 20 };
    }
    if (draw === 7 && this.#shape.sharing === 'shared') return REFERENCE;
    const count = 2 + random.below(4);
    const properties: JsonObject = {};
    for (let at = 0; at < count; at++) properties[this.#name()] = this.#field(depth + 1);
    const inner: JsonObject = { type: 'object', description, properties };
    return draw === 9 ? { type: 'array', description, items: inner } : inner;
  }

  #text(): string {
    const count = 8 + this.#random.below(20);
    const words = Array.from(
      { length: count },
      () => WORDS[this.#random.below(WORDS.length)] ?? '',
    );
    return `${words.join(' ')}.`;
  }

  schema(fields: JsonObject, kind: string): JsonObject {
    const own = { type: 'object', properties: fields };
    return {
      type: 'object',
      description: `${kind} of the bench`,
      required: ['spec'],
      properties: {
        apiVersion: text('Version of the schema of this object.'),
        kind: text('Kind of the object.'),
        metadata: { type: 'object' },
        spec: {
          type: 'object',
          required: ['forProvider'],
          properties: {
            forProvider: own,
            initProvider: own,
            deletionPolicy: { type: 'string', enum: ['Orphan', 'Delete'], default: 'Delete' },
            providerConfigRef: REFERENCE,
            writeConnectionSecretToRef: REFERENCE,
          },
        },
        status: {
          type: 'object',
          properties: { atProvider: own, conditions: CONDITIONS },
        },
      },
    };
  }
}
