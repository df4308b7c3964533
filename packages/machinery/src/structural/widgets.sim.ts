/** A definition and its objects as benchmarks write them: 200 nodes, five rules, 2 KB each. */
import type { JsonObject } from '../json/json-value.ts';

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

/** The schema of a widget, with the rules that are given. */
export function widgetSchema(rules: readonly JsonObject[]): JsonObject {
  const properties: JsonObject = {};
  for (let i = 0; i < GROUPS; i++) properties[`group${i}`] = group();
  const spec = { type: 'object', properties, 'x-kubernetes-validations': [...rules] };
  return { type: 'object', properties: { spec } };
}

export const WIDGET_RULES: readonly JsonObject[] = [
  { rule: 'self.group0.replicas <= self.group2.replicas' },
  { rule: "self.group0.name.startsWith('g')" },
  { rule: 'self.group2.hosts.all(host, host.size() > 2)' },
  { rule: '!has(self.group1) || self.group1.replicas > 0' },
  { rule: "self.group4.labels.all(key, key != 'bad')", message: 'no bad labels' },
];

/** One widget of the namespace `default`. */
export function widgetOf(index: number): JsonObject {
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

/** The definition of widgets, complete but for what the server adds on creation. */
export function widgetDefinition(): JsonObject {
  const names = { plural: 'widgets', kind: 'Widget', singular: 'widget', listKind: 'WidgetList' };
  const schema = { openAPIV3Schema: widgetSchema(WIDGET_RULES) };
  const versions = [{ name: 'v1', served: true, storage: true, schema }];
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: { group: 'example.com', scope: 'Namespaced', names, versions },
    status: { storedVersions: ['v1'] },
  };
}
