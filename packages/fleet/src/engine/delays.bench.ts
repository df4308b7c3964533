/**
 * Actions under churn where providers are slow, and what is given up at constant demand.
 *
 *     node_modules/.bin/node packages/fleet/src/engine/delays.bench.ts --latency 60 --minutes 60
 *     node_modules/.bin/node packages/fleet/src/engine/delays.bench.ts --latency 60 --churn 0
 *
 * The realistic catalogue; machines are slots at first. A machine takes `--latency` seconds to be
 * made and to be deleted, and ten to be bound and to drain. When all has come to rest, `--churn`
 * of the machines fail and of the rows change each minute, and each action is counted, for so many
 * minutes. The same seed is the same churn, whatever the latency.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { Random } from '@megaplane/base/random';
import { catalogueOf } from './catalogue.sim.ts';
import { BETTER, STRICT } from './differences.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import type { NeedMessage } from './need-message.ts';
import type { Action } from './row.ts';
import { SHARD_DEFAULTS, Shard } from './shard.ts';

const { values } = parseArgs({
  options: {
    machines: { type: 'string', default: '2500' },
    latency: { type: 'string', default: '30' },
    churn: { type: 'string', default: '0.02' },
    minutes: { type: 'string', default: '60' },
    engine: { type: 'string', default: 'better' },
    json: { type: 'boolean', default: false },
  },
});
const CYCLE_SECONDS = 10;
const SETTLING_CYCLES = 60;

const random = new Random(1);
const differences = values.engine === 'better' ? BETTER : STRICT;
const shard = new Shard({ ...SHARD_DEFAULTS, differences, hintIntervalSeconds: Infinity });
const latencyCycles = Math.ceil(Number(values.latency) / CYCLE_SECONDS);
/** By cycle: what is done then. */
const due = new Map<number, (() => void)[]>();
const counts = new Map<string, number>();
let cycle = 0;
let made = 0;

function later(cycles: number, id: string, becomes: (machine: Machine) => Machine): void {
  const at = cycle + Math.max(1, cycles);
  const all = due.get(at) ?? [];
  due.set(at, all);
  all.push(() => {
    const machine = shard.inventory.get(id);
    if (machine !== undefined) shard.inventory.put(becomes(machine), cycle * CYCLE_SECONDS);
  });
}

function begin({ kind, machine, cluster, profile, group = '' }: Action): void {
  const now = (to: Partial<Machine>): void => {
    shard.inventory.put({ ...machine, ...to }, cycle * CYCLE_SECONDS);
  };
  const fingerprint = profile?.fingerprint ?? '';
  const stamp = { ...NO_STAMP, fingerprint, group };
  if (kind === 'Provision') {
    now({ state: 'Creating', stamp });
    later(latencyCycles, machine.id, (it) => ({ ...it, state: 'Idle', stamp: NO_STAMP }));
  } else if (kind === 'Bootstrap') {
    const whole = { ...stamp, priority: profile?.priority ?? 0 };
    now({ state: 'Configuring', cluster, stamp: whole });
    later(1, machine.id, (it) => ({ ...it, state: 'Configured' }));
  } else if (kind === 'Delete') {
    now({ state: 'Deleting' });
    later(latencyCycles, machine.id, (it) => ({ ...it, state: 'Speculative' }));
  } else {
    now({ state: 'Draining' });
    later(1, machine.id, (it) => ({ ...it, state: 'Idle', cluster: '', stamp: NO_STAMP }));
  }
}

function step(isCounted: boolean): void {
  cycle++;
  for (const act of due.get(cycle) ?? []) act();
  due.delete(cycle);
  const { actions } = shard.cycle(cycle * CYCLE_SECONDS);
  for (const action of actions) {
    begin(action);
    if (isCounted) counts.set(action.kind, (counts.get(action.kind) ?? 0) + 1);
  }
}

/** A machine that is bound fails; a slot of its kind takes its place. */
function fail(machine: Machine): void {
  shard.inventory.remove(machine.id);
  const id = `${machine.id.split('+')[0]}+${String(made++).padStart(6, '0')}`;
  const slot = { ...machine, id, state: 'Speculative' as const, cluster: '', stamp: NO_STAMP };
  shard.inventory.put(slot, cycle * CYCLE_SECONDS);
}

/** What fails and changes is drawn by number, so that it is alike at all latencies. */
function churn(draws: Random, demand: Map<string, NeedMessage[]>): void {
  const share = (Number(values.churn) * CYCLE_SECONDS) / 60;
  const bound = [...shard.inventory.machines].filter(({ state }) => state === 'Configured');
  for (let count = Math.round(Number(values.machines) * share); count > 0; count--) {
    const machine = bound[Math.floor(draws.next() * bound.length)];
    if (machine !== undefined && shard.inventory.get(machine.id) !== undefined) fail(machine);
  }
  const clusters = [...demand.keys()];
  const rows = [...demand.values()].reduce((sum, needs) => sum + needs.length, 0);
  for (let count = Math.round(rows * share); count > 0; count--) {
    const cluster = clusters[draws.below(clusters.length)] ?? '';
    const needs = demand.get(cluster) ?? [];
    const at = draws.below(needs.length);
    const by = draws.below(3) - 1;
    const need = needs[at];
    if (need === undefined || need.group !== '') continue;
    const cpu = `${Math.max(1, Number.parseInt(need.aggregate['cpu'] ?? '0', 10) + by)}m`;
    needs[at] = { ...need, aggregate: { ...need.aggregate, cpu } };
    shard.rollup({ cluster, time: cycle * CYCLE_SECONDS, needs });
  }
}

const world = catalogueOf(Number(values.machines), 0, random);
for (const machine of world.machines) {
  shard.inventory.put({ ...machine, state: 'Speculative', capacityType: 'OnDemand' }, 0);
}
const demand = new Map([...world.demand].map(([cluster, needs]) => [cluster, [...needs]]));
for (const [cluster, needs] of demand) shard.rollup({ cluster, time: 0, needs });
for (let count = 0; count < SETTLING_CYCLES + latencyCycles * 4; count++) step(false);
const draws = new Random(2);
for (let count = 0; count < (Number(values.minutes) * 60) / CYCLE_SECONDS; count++) {
  if (Number(values.churn) > 0) churn(draws, demand);
  step(true);
}
const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
const told = [...counts].map(([kind, count]) => `${kind} ${count}`).join(', ');
const what = `${values.engine}, latency ${values.latency} s, churn ${values.churn} a minute`;
console.log(`${cpus()[0]?.model}, Node ${process.version}; ${world.machines.length} machines`);
console.log(`${what}, ${values.minutes} minutes: ${all} actions (${told})`);
if (values.json) console.log(JSON.stringify({ actions: all, ...Object.fromEntries(counts) }));
