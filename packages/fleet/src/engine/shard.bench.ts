/**
 * One shard's cycle: the realistic catalogue (section 6.7), or one CPU shape that is mostly bound.
 *
 *     node_modules/.bin/node packages/fleet/src/engine/shard.bench.ts --machines 5000 --slots 3
 *     node_modules/.bin/node packages/fleet/src/engine/shard.bench.ts --shape one --machines 500000
 *
 * Processor time of this process in milliseconds. `full` is a cycle that begins from nothing in the
 * settled world, median of 6; `first` the one that acquires all of it. `steady` are cycles ten
 * seconds apart: `--churn` of all machines a minute fail and are replaced, `--churn` of the rows a
 * minute change; what is decided is carried out, a bootstrap takes one cycle. Telling the shard of
 * it all is `told`, apart. With `--expose-gc` garbage is collected before each cycle, so that a
 * cycle pays for its own alone; `--memory` needs it.
 */
import { INSTANCE_TYPE_KEY } from '../contract/api.ts';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { Random } from '@megaplane/base/random';
import { amountsOf } from './amounts.ts';
import { catalogueOf } from './catalogue.sim.ts';
import type { NeedMessage } from './need-message.ts';
import { BETTER, STRICT } from './differences.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import { Operator, profileOf } from './profile.ts';
import type { Action } from './row.ts';
import { type Cycle, SHARD_DEFAULTS, Shard } from './shard.ts';

const { values } = parseArgs({
  options: {
    machines: { type: 'string', default: '5000' },
    slots: { type: 'string', default: '0' },
    shape: { type: 'string', default: 'catalogue' },
    /** Of machines and rows, a minute. */
    churn: { type: 'string', default: '0.02' },
    cycles: { type: 'string', default: '40' },
    engine: { type: 'string', default: 'better' },
    /** Ends once all has come to rest, and tells what memory the shard takes. */
    memory: { type: 'boolean', default: false },
    /** The figures in one last line. */
    json: { type: 'boolean', default: false },
  },
});
const CYCLE_SECONDS = 10;
const FULL_RUNS = 6;
const SETTLING_CYCLES = 12;

interface World {
  readonly machines: readonly Machine[];
  readonly slots: readonly Machine[];
  readonly demand: ReadonlyMap<string, readonly NeedMessage[]>;
}

/** 50 clusters of one row each; one shape of 4 cores; nine of ten machines are wanted. */
function oneShape(machineCount: number): World {
  const requirements = [{ key: INSTANCE_TYPE_KEY, operator: Operator.IN, values: ['m4'] }];
  const rest = { spread: [], priority: 100, interruptionBucket: 3, reclamationBucket: 3 } as const;
  const profile = profileOf({ requirements, ...rest });
  const machines = Array.from({ length: machineCount }, (_, at): Machine => {
    return {
      ...{ id: `machine-${String(at).padStart(7, '0')}`, state: 'Idle', cluster: '' },
      ...{ instanceType: 'm4', zone: 'a', capacityType: 'Reserved', labels: new Map() },
      allocatable: amountsOf({ cpu: '4', memory: '16Gi' }),
      ...{ price: 0.2, interruptionProbability: 0, stamp: NO_STAMP, idleSince: 0 },
    };
  });
  const each = Math.floor((machineCount * 0.9) / 50);
  const aggregate = { cpu: `${each * 4}`, memory: `${each * 16}Gi` };
  const need = { profile, aggregate, minUnit: { cpu: '1', memory: '4Gi' }, group: '' };
  const names = Array.from({ length: 50 }, (_, at) => `cluster-${at}`);
  return { machines, slots: [], demand: new Map(names.map((name) => [name, [need]])) };
}

const random = new Random(1);
const differences = values.engine === 'better' ? BETTER : STRICT;
const shard = new Shard({ ...SHARD_DEFAULTS, differences, hintIntervalSeconds: Infinity });
const machineCount = Number(values.machines);
let nowSeconds = 0;

function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Does what was decided, at once or up to the state between. */
function carryOut(actions: readonly Action[], isAtOnce: boolean): string[] {
  const configuring: string[] = [];
  for (const { kind, machine, cluster, profile, group = '' } of actions) {
    if (kind === 'Bootstrap' || kind === 'Provision') {
      const fingerprint = profile?.fingerprint ?? '';
      const stamp = { ...NO_STAMP, fingerprint, group, priority: profile?.priority ?? 0 };
      const state = isAtOnce ? ('Configured' as const) : ('Configuring' as const);
      shard.inventory.put({ ...machine, state, cluster, stamp }, nowSeconds);
      configuring.push(machine.id);
    } else if (kind === 'Reclaim' || kind === 'Preempt') {
      shard.inventory.put({ ...machine, state: 'Idle', cluster: '', stamp: NO_STAMP }, nowSeconds);
    }
  }
  return configuring;
}

const SWEEP_MS = 200;
const nobody = new Int32Array(new SharedArrayBuffer(4));

/** Collects garbage, and waits until threads beside this one have swept. */
function collect(): void {
  if (globalThis.gc === undefined) return;
  globalThis.gc();
  Atomics.wait(nobody, 0, 0, SWEEP_MS);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function shown(numbers: readonly number[]): string {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = (part: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  return `p50 ${at(0.5)}  p99 ${at(0.99)} ms`;
}

/** Some machines fail, each replaced by an idle one of its kind; some rows change a little. */
function churn(world: Map<string, NeedMessage[]>, ids: string[]): void {
  const share = (Number(values.churn) * CYCLE_SECONDS) / 60;
  for (let count = Math.round(ids.length * share); count > 0; count--) {
    const at = random.below(ids.length);
    const machine = shard.inventory.get(ids[at] ?? '');
    if (machine === undefined) continue;
    shard.inventory.remove(machine.id);
    const id = `${machine.id.split('+')[0]}+${nowSeconds}-${count}`;
    ids[at] = id;
    shard.inventory.put(
      { ...machine, id, state: 'Idle', cluster: '', stamp: NO_STAMP },
      nowSeconds,
    );
  }
  const clusters = [...world.keys()];
  const rows = [...world.values()].reduce((sum, needs) => sum + needs.length, 0);
  const changed = new Set<string>();
  for (let count = Math.round(rows * share); count > 0; count--) {
    const cluster = clusters[random.below(clusters.length)] ?? '';
    const needs = world.get(cluster) ?? [];
    const at = random.below(needs.length);
    const need = needs[at];
    if (need === undefined || need.group !== '') continue;
    const cores = Number.parseInt(need.aggregate['cpu'] ?? '0', 10);
    const isMilli = need.aggregate['cpu']?.endsWith('m') === true;
    const cpu = `${Math.max(1, cores + random.below(3) - 1)}${isMilli ? 'm' : ''}`;
    needs[at] = { ...need, aggregate: { ...need.aggregate, cpu } };
    changed.add(cluster);
  }
  for (const cluster of changed) {
    shard.rollup({ cluster, time: nowSeconds, needs: world.get(cluster) ?? [] });
  }
}

let world: World =
  values.shape === 'one'
    ? oneShape(machineCount)
    : catalogueOf(machineCount, Number(values.slots), random);
const rowCount = [...world.demand.values()].reduce((sum, needs) => sum + needs.length, 0);
const size = `${world.machines.length} machines, ${world.slots.length} slots`;
console.log(
  `${cpus()[0]?.model}, Node ${process.version}; ${values.shape}, ${values.engine}, ${size}`,
);
console.log(`${world.demand.size} clusters, ${rowCount} rows, churn ${values.churn} a minute`);
const loaded = processorMs(() => {
  for (const machine of [...world.machines, ...world.slots]) shard.inventory.put(machine, 0);
  for (const [cluster, needs] of world.demand) shard.rollup({ cluster, time: 0, needs });
});
let cycle: Cycle | undefined;
let firstMs = 0;
for (let count = 0; count < SETTLING_CYCLES; count++) {
  const took = processorMs(() => {
    cycle = shard.cycle((nowSeconds += CYCLE_SECONDS));
  });
  if (count === 0) firstMs = took;
  const { actions = [], shortfalls = [] } = cycle ?? {};
  console.log(
    `settling: ${actions.length} actions, ${shortfalls.length} shortfalls, ${took.toFixed(0)} ms`,
  );
  carryOut(actions, true);
  if (actions.length === 0) break;
}
cycle = undefined;
if (values.memory) {
  world = { machines: [], slots: [], demand: new Map() };
  tellMemory();
  process.exit(0);
}
const demand = new Map([...world.demand].map(([cluster, needs]) => [cluster, [...needs]]));
const ids = world.machines.map(({ id }) => id);
// the shard has its own; what is measured must not carry the benchmark's
world = { machines: [], slots: [], demand: new Map() };
collect();
const full = Array.from({ length: FULL_RUNS }, () => {
  return processorMs(() => shard.cycle((nowSeconds += CYCLE_SECONDS), { isFull: true }));
});
const quiet = Array.from({ length: FULL_RUNS }, () => {
  return processorMs(() => shard.cycle((nowSeconds += CYCLE_SECONDS)));
});
console.log(`told ${loaded.toFixed(0)} ms; full ${median(full).toFixed(1)} ms`);
console.log(`nothing changed ${median(quiet).toFixed(1)} ms`);
const steady: number[] = [];
const told: number[] = [];
let visited = 0;
let actions = 0;
let configuring: string[] = [];
for (let count = 0; count < Number(values.cycles); count++) {
  nowSeconds += CYCLE_SECONDS;
  told.push(
    processorMs(() => {
      for (const id of configuring) {
        const machine = shard.inventory.get(id);
        if (machine !== undefined)
          shard.inventory.put({ ...machine, state: 'Configured' }, nowSeconds);
      }
      churn(demand, ids);
    }),
  );
  // what the benchmark threw away is not the cycle's to collect
  collect();
  let decided: Cycle | undefined;
  steady.push(processorMs(() => (decided = shard.cycle(nowSeconds))));
  visited += decided?.clustersVisited ?? 0;
  actions += decided?.actions.length ?? 0;
  configuring = carryOut(decided?.actions ?? [], false);
}
const mean = (sum: number): string => (sum / steady.length).toFixed(0);
console.log(`steady ${shown(steady)}; told ${shown(told)}`);
console.log(`a cycle: clusters visited ${mean(visited)}, actions ${mean(actions)}`);
if (values.json) {
  const sorted = steady.toSorted((a, b) => a - b);
  const p99 = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? 0;
  const rounds = { firstMs, fullMs: median(full), quietMs: median(quiet) };
  console.log(JSON.stringify({ ...rounds, steadyMs: median(steady), p99Ms: p99, rowCount }));
}

/** Memory that is in use once nothing waits to be collected: the shard's, as the world is gone. */
function tellMemory(): void {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);
  const [heapMib, arraysMib] = [mib(heapUsed), mib(arrayBuffers)];
  console.log(`heap ${heapMib} MiB, arrays ${arraysMib} MiB, resident ${mib(rss)} MiB`);
  if (values.json)
    console.log(JSON.stringify({ heapMib, arraysMib, usedMib: heapMib + arraysMib }));
}
