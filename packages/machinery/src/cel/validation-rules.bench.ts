/** Rules of a schema: `node packages/machinery/src/cel/validation-rules.bench.ts`. */
import { SchemaGraph } from '../structural/schema/schema-graph.ts';
import { declaredType } from './declarations.ts';
import { compileRules, evaluateRules, ruleBudget } from './validation-rules.ts';

const OBJECTS = 20_000;
const RUNS = 5;

const text = { type: 'string', maxLength: 63 };
const schema = {
  type: 'object',
  properties: {
    replicas: { type: 'integer' },
    limit: { type: 'integer' },
    name: text,
    hosts: { type: 'array', maxItems: 20, items: text },
    labels: { type: 'object', additionalProperties: text, maxProperties: 20 },
  },
};
const type = declaredType(new SchemaGraph().add(schema), 'self');
if (type === null) throw new Error('the schema has no type');
const compiled = compileRules(type, [
  { rule: 'self.replicas <= self.limit' },
  { rule: "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')" },
  { rule: "self.hosts.all(h, h.endsWith('.example.com'))" },
  { rule: "!has(self.labels) || self.labels.all(k, k.startsWith('app'))" },
  { rule: 'self.replicas >= oldSelf.replicas' },
]);
const object = {
  replicas: 3,
  limit: 10,
  name: 'frontend-7',
  hosts: ['a.example.com', 'b.example.com', 'c.example.com'],
  labels: { app: 'x', 'app.kubernetes.io/name': 'y' },
};
let failed = compiled.faults.length;
const runs: number[] = [];
for (let run = 0; run < RUNS; run++) {
  const before = process.cpuUsage();
  for (let i = 0; i < OBJECTS; i++) {
    failed += evaluateRules(compiled, object, object, ruleBudget()).length;
  }
  const used = process.cpuUsage(before);
  runs.push((used.user + used.system) / OBJECTS);
}
const median = runs.sort((a, b) => a - b)[RUNS >> 1] ?? 0;
process.stdout.write(`5 rules on one object: ${median.toFixed(2)} us of CPU (${failed} failed)\n`);
