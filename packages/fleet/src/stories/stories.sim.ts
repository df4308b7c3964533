/**
 * Stories: scripts of what happens to a fleet, and what a shard, a provider and operators do then.
 * A story is a text. A line that begins without a space is a word of the script, the lines below it
 * that begin with two are what came of it. All of it runs in a time of its own, without chance.
 *
 *     offer m4 zone=a cpu=4 slots=6 price=1 [type=OnDemand] [stock=2] [rack=r1]
 *     takes create=2 configure=1 drain=3 delete=1            seconds
 *     fails configure 2                                      the next two of this kind
 *     stock m4 1                                             so many of the offers exist at most
 *     c1 dials | c1 hangs up
 *     c1 wants 100:cpu=16,unit=4[,group=g,same=rack] ...     rows: priority, cores
 *     provider is away | provider is back
 *     restart | twin | twin ends                             a twin is a second shard of this name
 *     wait 30                                                seconds
 *
 * The laws hold at each event: no machine is changed by two at once, none serves two clusters, and
 * machines that are bound are bound as somebody asked. See `World`.
 */
import { create } from '@bufbuild/protobuf';
import { assert } from '@megaplane/base/assert';
import {
  CapacityNeedSchema,
  NodeSelectorRequirement_Operator as Operator,
} from '../contract/tables/capacity.ts';
import type { CapacityNeed } from '../contract/tables/capacity.ts';
import { MachineState as State } from '../contract/tables/provider.ts';
import { stateWord } from '../shard/machine-words.ts';
import { BETTER } from '../engine/differences.ts';
import { ENGINE, World } from '../shard/world.sim.ts';
import type { WorldPlan } from '../shard/world.sim.ts';

const RACK = 'topology.bigfleet/rack';

type Words = ReadonlyMap<string, string>;

/** What a script says before its first event. */
interface Setting {
  readonly offers: Words[];
  readonly takes: Map<string, number>;
}

export interface Told {
  /** The script with what came of each line. */
  readonly text: string;
  /** Machines of each cluster in the end. */
  readonly bound: readonly string[];
}

/** The lines of a story that are its script. */
export function scriptOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith(' '));
}

/** Plays a script; `restartAfter`: the shard is started anew after that line as well. */
export function tell(script: readonly string[], restartAfter = -1): Told {
  const setting: Setting = { offers: [], takes: new Map() };
  const lines: string[] = [];
  let world: World | undefined;
  for (const [at, line] of script.entries()) {
    lines.push(line);
    if (line.startsWith('#') || isSetting(setting, line)) continue;
    world ??= begin(setting);
    happen(world, line);
    if (at === restartAfter) world.restart();
    world.run(world.nowMs, () => check(world));
    lines.push(...world.takeTold().map((told) => `  ${told}`));
  }
  assert(world !== undefined, 'something happens in a story');
  const bound = [...world.clusters.keys()].map((name) => `${name} ${boundOf(world, name).length}`);
  return { text: `${lines.join('\n')}\n`, bound };
}

function isSetting({ offers, takes }: Setting, line: string): boolean {
  const [verb = '', ...rest] = line.split(' ');
  if (verb === 'offer') {
    offers.push(new Map([['instanceType', rest[0] ?? ''], ...pairsOf(rest.slice(1))]));
  } else if (verb === 'takes') {
    for (const [kind, seconds] of pairsOf(rest)) takes.set(kind, Number(seconds) * 1000);
  } else return false;
  return true;
}

function pairsOf(texts: readonly string[]): [string, string][] {
  return texts.map((text) => {
    const at = text.indexOf('=');
    return [text.slice(0, at), text.slice(at + 1)];
  });
}

function begin({ offers, takes }: Setting): World {
  const plan: WorldPlan = {
    engine: { ...ENGINE, differences: BETTER, checkEachCycles: 1 },
    offers: offers.map((words) => {
      const text = (name: string, otherwise: string): string => words.get(name) ?? otherwise;
      const rack = words.get('rack');
      const stock = words.get('stock');
      return {
        ...{ instanceType: text('instanceType', ''), zones: [text('zone', 'a')] },
        ...{ capacityType: text('type', 'OnDemand'), price: Number(text('price', '1')) },
        ...{ slots: Number(text('slots', '1')), resources: { cpu: Number(text('cpu', '4')) } },
        ...(rack === undefined ? {} : { labels: { [RACK]: rack } }),
        ...(stock === undefined ? {} : { stock: Number(stock) }),
      };
    }),
    latencies: Object.fromEntries(
      ['create', 'configure', 'drain', 'delete'].map((kind) => {
        const ms = takes.get(kind) ?? 1000;
        return [kind, { minMs: ms, maxMs: ms }];
      }),
    ),
  };
  const world = new World(1, plan);
  world.faults = { delayMs: 0, lost: 0, twice: 0 };
  return world;
}

function happen(world: World, line: string): void {
  const words = line.split(' ');
  const [first = '', second = '', third = ''] = words;
  switch (first) {
    case 'fails':
      return world.failNext(second, Number(third));
    case 'stock':
      return world.setStock(second, Number(third));
    case 'provider':
      world.isProviderAway = third === 'away';
      return;
    case 'restart':
      return world.restart();
    case 'twin':
      return second === 'ends' ? world.endTwin() : world.beginTwin();
    case 'wait':
      return world.run(world.nowMs + Number(second) * 1000, () => check(world));
    default:
      break;
  }
  if (second === 'dials') return world.connect(first);
  if (second === 'hangs') return world.hangUp(first);
  assert(second === 'wants', `a story has no line "${line}"`);
  world.demand(first, words.slice(2).map(needOf));
}

function needOf(text: string): CapacityNeed {
  const [priority = '', ...rest] = text.split(':');
  const words = new Map(pairsOf(rest.join(':').split(',')));
  const same = words.get('same');
  const requirements = [];
  const types = words.get('type');
  if (types !== undefined) {
    const key = 'node.kubernetes.io/instance-type';
    requirements.push({ key, operator: Operator.IN, values: types.split('|') });
  }
  if (same !== undefined) requirements.push({ key: RACK, operator: Operator.SAME, values: [] });
  return create(CapacityNeedSchema, {
    requirements,
    aggregateResources: { cpu: words.get('cpu') ?? '0' },
    minUnit: { cpu: words.get('unit') ?? '1' },
    priority: Number(priority),
    group: words.get('group') ?? '',
  });
}

function boundOf(world: World, cluster: string): string[] {
  return world.truth
    .filter((machine) => {
      const isBound = machine.state === State.CONFIGURED || machine.state === State.CONFIGURING;
      return isBound && machine.cluster === cluster;
    })
    .map(({ id }) => id);
}

/** What must be so at each event, whatever the story. */
function check(world: World | undefined): void {
  if (world === undefined) return;
  for (const { id, state, cluster } of world.truth) {
    const isBound = state === State.CONFIGURED || state === State.CONFIGURING;
    assert(!isBound || cluster !== '', `machine ${id} is bound to nobody as ${stateWord(state)}`);
    const isLeaving = state === State.DRAINING || state === State.FAILED;
    assert(isBound || isLeaving || cluster === '', `machine ${id} is ${stateWord(state)} for one`);
  }
  assert(!world.refusals.some((text) => text.includes('is bound to')), 'nothing is bound twice');
}
