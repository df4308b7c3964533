/**
 * Writes of custom resources:
 * `node packages/machinery/src/structural/compiled-schema.bench.ts`.
 */
import { compileSchema } from './compiled-schema.ts';
import { validateDefinition } from '../apiextensions/definition.ts';
import { WIDGET_RULES, widgetDefinition, widgetOf, widgetSchema } from './widgets.sim.ts';

const OBJECTS = 5_000;
const RUNS = 5;
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

const schema = compileSchema(widgetSchema(WIDGET_RULES));
console.log(`${JSON.stringify(widgetOf(0)).length} bytes an object`);

let faults = 0;
timed('prune, default, validate', OBJECTS, () => {
  for (let i = 0; i < OBJECTS; i++) {
    const object = widgetOf(i);
    schema.decode(object, { isTracked: false, isStored: false });
    schema.applyDefaults(object);
    faults += schema.validate(object, null, SCOPE).length;
  }
});
timed('of which making the object', OBJECTS, () => {
  for (let i = 0; i < OBJECTS; i++) faults += widgetOf(i) === null ? 1 : 0;
});
const plain = compileSchema(widgetSchema([]));
timed('without rules', OBJECTS, () => {
  for (let i = 0; i < OBJECTS; i++) {
    const object = widgetOf(i);
    plain.decode(object, { isTracked: false, isStored: false });
    plain.applyDefaults(object);
    faults += plain.validate(object, null, SCOPE).length;
  }
});
if (faults > 0) throw new Error(`${faults} faults`);

const definition = widgetDefinition();
console.log(`${JSON.stringify(definition).length} bytes a definition`);
const DEFINITIONS = 200;
timed('a definition, with its rules', DEFINITIONS, () => {
  for (let i = 0; i < DEFINITIONS; i++) faults += validateDefinition(definition, null).length;
});
timed('a schema compiled', DEFINITIONS, () => {
  for (let i = 0; i < DEFINITIONS; i++)
    faults += compileSchema(widgetSchema(WIDGET_RULES)).root.depth > 1 ? 0 : 1;
});
if (faults > 0) throw new Error(`${faults} faults`);
