/** Writes of custom resources: `node packages/machinery/src/custom/compiled-schema.bench.ts`. */
import type { JsonObject } from '../json-value.ts';
import { compileSchema } from './compiled-schema.ts';
import { validateDefinition } from './definition.ts';

const OBJECTS = 5_000;
const RUNS = 5;
/** Groups of ten nodes in the schema, of which objects fill every second one. */
const GROUPS = 20;

const text = { type: 'string', maxLength: 63, description: 'Some words about a field. '.repeat(3) };

function group(): JsonObject {
  return {
    type: 'object',
    required: ['name'],
    properties: {
      name: { ...text, pattern: '^[a-z0-9-]+$' },
      kind: { ...text, enum: ['A', 'B', 'C'], default: 'A' },
      replicas: { type: 'integer', minimum: 0, maximum: 100, format: 'int32' },
      port: { 'x-kubernetes-int-or-string': true },
      labels: { type: 'object', maxProperties: 20, additionalProperties: text },
      hosts: { type: 'array', maxItems: 10, items: text, 'x-kubernetes-list-type': 'set' },
      isOn: { type: 'boolean', default: true },
    },
  };
}

function schemaOf(rules: readonly JsonObject[]): JsonObject {
  const properties: JsonObject = {};
  for (let i = 0; i < GROUPS; i++) properties[`group${i}`] = group();
  const spec = { type: 'object', properties, 'x-kubernetes-validations': [...rules] };
  return { type: 'object', properties: { spec } };
}

const RULES: readonly JsonObject[] = [
  { rule: 'self.group0.replicas <= self.group2.replicas' },
  { rule: "self.group0.name.startsWith('g')" },
  { rule: 'self.group2.hosts.all(host, host.size() > 2)' },
  { rule: '!has(self.group1) || self.group1.replicas > 0' },
  { rule: "self.group4.labels.all(key, key != 'bad')", message: 'no bad labels' },
];

function objectOf(index: number): JsonObject {
  const spec: JsonObject = {};
  for (let i = 0; i < GROUPS; i += 2) {
    spec[`group${i}`] = {
      name: `group-${index}-${i}`,
      replicas: 3 + i,
      port: 'http',
      labels: { app: 'one', tier: 'two', zone: 'three', owner: 'somebody' },
      hosts: ['host-a.example.com', 'host-b.example.com'],
    };
  }
  const metadata = { name: `w${index}`, namespace: 'default' };
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata, spec };
}

const SCOPE = { part: 'object', scale: null, found: [] } as const;

function timed(name: string, count: number, run: () => void): void {
  const times: number[] = [];
  for (let i = 0; i < RUNS; i++) {
    const started = process.cpuUsage();
    run();
    times.push(process.cpuUsage(started).user / count);
  }
  const median = times.sort((a, b) => a - b)[Math.floor(RUNS / 2)] ?? 0;
  console.log(`${name}: ${median.toFixed(1)} µs of CPU`);
}

const schema = compileSchema(schemaOf(RULES));
console.log(`${JSON.stringify(objectOf(0)).length} bytes an object`);

let faults = 0;
timed('prune, default, validate', OBJECTS, () => {
  for (let i = 0; i < OBJECTS; i++) {
    const object = objectOf(i);
    schema.decode(object, { isTracked: false, isStored: false });
    schema.applyDefaults(object);
    faults += schema.validate(object, null, SCOPE).length;
  }
});
timed('of which making the object', OBJECTS, () => {
  for (let i = 0; i < OBJECTS; i++) faults += objectOf(i) === null ? 1 : 0;
});
const plain = compileSchema(schemaOf([]));
timed('without rules', OBJECTS, () => {
  for (let i = 0; i < OBJECTS; i++) {
    const object = objectOf(i);
    plain.decode(object, { isTracked: false, isStored: false });
    plain.applyDefaults(object);
    faults += plain.validate(object, null, SCOPE).length;
  }
});
if (faults > 0) throw new Error(`${faults} faults`);

const names = { plural: 'widgets', kind: 'Widget', singular: 'widget', listKind: 'WidgetList' };
const versions = [
  { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schemaOf(RULES) } },
];
const definition: JsonObject = {
  metadata: { name: 'widgets.example.com' },
  spec: { group: 'example.com', scope: 'Namespaced', names, versions },
  status: { storedVersions: ['v1'] },
};
console.log(`${JSON.stringify(definition).length} bytes a definition`);
const DEFINITIONS = 200;
timed('a definition, with its rules', DEFINITIONS, () => {
  for (let i = 0; i < DEFINITIONS; i++) faults += validateDefinition(definition, null).length;
});
timed('a schema compiled', DEFINITIONS, () => {
  for (let i = 0; i < DEFINITIONS; i++)
    faults += compileSchema(schemaOf(RULES)).root.depth > 1 ? 0 : 1;
});
if (faults > 0) throw new Error(`${faults} faults`);
