/**
 * A shard in a closed loop, for tests of laws: machines that take a random time for each step and
 * fail now and then, clusters whose demand stands still or changes, roll-ups whose rows come in any
 * order. All of it follows from one seed.
 */
import { INSTANCE_TYPE_KEY } from '../contract/api.ts';
import type { Random } from '@megaplane/base/random';
import { amountsOf } from './amounts.ts';
import type { NeedMessage } from './need-message.ts';
import type { Differences } from './differences.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import { Operator, type Profile, profileOf } from './profile.ts';
import type { Action } from './row.ts';
import { type Cycle, SHARD_DEFAULTS, Shard } from './shard.ts';

const RACK = 'topology.bigfleet/rack';
const ZONE = 'topology.kubernetes.io/zone';
const CYCLE_SECONDS = 10;

interface TypeFacts {
  readonly name: string;
  readonly cores: number;
  readonly price: number;
}

const TYPES: readonly TypeFacts[] = [
  { name: 'm2', cores: 2, price: 0.1 },
  { name: 'm4', cores: 4, price: 0.19 },
  { name: 'm8', cores: 8, price: 0.36 },
  { name: 'g8', cores: 8, price: 2 },
];

/** A machine that is on its way, and where to. */
interface Pending {
  readonly id: string;
  readonly dueCycle: number;
  readonly becomes: (machine: Machine) => Machine;
}

export interface LoopOptions {
  readonly differences: Differences;
  /** Cycles that a step takes at most. */
  readonly delayMax: number;
  /** Share of steps that fail; what fails is gone, and a new slot takes its place. */
  readonly failures: number;
}

export class ClosedLoop {
  readonly shard: Shard;
  readonly #random: Random;
  readonly #options: LoopOptions;
  readonly #needs = new Map<string, readonly NeedMessage[]>();
  readonly #profiles: readonly Profile[];
  #pending: Pending[] = [];
  #cycle = 0;
  #made = 0;

  constructor(random: Random, options: LoopOptions) {
    this.#random = random;
    this.#options = options;
    const { differences } = options;
    const holds = { onDemandHoldSeconds: 60, spotHoldSeconds: 60, hintIntervalSeconds: Infinity };
    this.shard = new Shard({ ...SHARD_DEFAULTS, ...holds, differences });
    this.#profiles = Array.from({ length: 3 + this.#below(5) }, (_, at) => this.#profile(at));
    for (let count = 10 + this.#below(40); count > 0; count--) this.#slot();
    for (const cluster of ['c1', 'c2', 'c3']) this.demand(cluster);
  }

  get nowSeconds(): number {
    return this.#cycle * CYCLE_SECONDS;
  }

  #below(limit: number): number {
    return this.#random.below(limit);
  }

  #pick<Item>(items: readonly Item[]): Item {
    const item = items[this.#below(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  /** A cluster wants something else from now on. */
  demand(cluster: string): void {
    const rows = new Map<string, NeedMessage>();
    for (let count = this.#below(6); count > 0; count--) {
      const need = this.#need();
      // a roll-up has one row for each profile and group
      rows.set(`${need.group}/${(need.profile as Profile).fingerprint}`, need);
    }
    this.#needs.set(cluster, [...rows.values()]);
  }

  /** One cycle: what is due happens, clusters report, the shard decides, actions begin. */
  step(): Cycle {
    this.#cycle++;
    const { inventory } = this.shard;
    const due = this.#pending.filter(({ dueCycle }) => dueCycle <= this.#cycle);
    this.#pending = this.#pending.filter(({ dueCycle }) => dueCycle > this.#cycle);
    for (const { id, becomes } of due) {
      const machine = inventory.get(id);
      if (machine === undefined) continue;
      if (this.#random.next() < this.#options.failures) {
        inventory.remove(id);
        this.#slot(machine.instanceType);
      } else inventory.put(becomes(machine), this.nowSeconds);
    }
    for (const [cluster, needs] of this.#needs) {
      const time = this.nowSeconds - this.#below(CYCLE_SECONDS);
      this.shard.rollup({ cluster, time, needs: this.#shuffled(needs) });
    }
    const cycle = this.shard.cycle(this.nowSeconds, { withViews: true });
    for (const action of cycle.actions) this.#begin(action);
    return cycle;
  }

  get busy(): number {
    return this.#pending.length;
  }

  #begin({ kind, machine, cluster, profile, group = '' }: Action): void {
    const { inventory } = this.shard;
    const known = inventory.get(machine.id);
    if (known === undefined || known.state !== machine.state) return;
    const fingerprint = profile?.fingerprint ?? '';
    const stamp = { ...NO_STAMP, fingerprint, group };
    const whole = { ...stamp, priority: profile?.priority ?? 0 };
    const now = (to: Partial<Machine>): void => inventory.put({ ...known, ...to }, this.nowSeconds);
    switch (kind) {
      case 'Provision':
        now({ state: 'Creating', stamp });
        return this.#later(machine.id, (it) => ({ ...it, state: 'Idle', stamp: NO_STAMP }));
      case 'Bootstrap':
        now({ state: 'Configuring', cluster, stamp: whole });
        return this.#later(machine.id, (it) => ({ ...it, state: 'Configured' }));
      case 'Reclaim':
      case 'Preempt':
        now({ state: 'Draining' });
        return this.#later(machine.id, (it) => ({
          ...it,
          ...{ state: 'Idle', cluster: '', stamp: NO_STAMP },
        }));
      case 'Delete':
        now({ state: 'Deleting' });
        return this.#later(machine.id, (it) => ({ ...it, state: 'Speculative' }));
    }
  }

  #later(id: string, becomes: Pending['becomes']): void {
    const dueCycle = this.#cycle + 1 + this.#below(this.#options.delayMax + 1);
    this.#pending.push({ id, dueCycle, becomes });
  }

  #slot(type?: string): void {
    const facts = TYPES.find(({ name }) => name === type) ?? this.#pick(TYPES);
    const rack = this.#pick(['r1', 'r2', 'r3']);
    const id = `${facts.name}-${String(this.#made++).padStart(4, '0')}`;
    this.shard.inventory.put(
      {
        ...{ id, state: 'Speculative', cluster: '', instanceType: facts.name },
        zone: rack === 'r3' ? 'b' : 'a',
        ...{ capacityType: 'OnDemand', labels: new Map([[RACK, rack]]), stamp: NO_STAMP },
        allocatable: amountsOf({ cpu: `${facts.cores}`, memory: `${facts.cores * 4}Gi` }),
        ...{ price: facts.price, interruptionProbability: 0 },
      },
      this.nowSeconds,
    );
  }

  #profile(at: number): Profile {
    const names = TYPES.slice(0, 3).map(({ name }) => name);
    const values = at % 3 === 0 ? ['g8'] : names.slice(this.#below(2), 2 + this.#below(2));
    const requirements = [{ key: INSTANCE_TYPE_KEY, operator: Operator.IN, values }];
    if (this.#below(4) === 0) {
      const same = { key: this.#pick([RACK, ZONE]), operator: Operator.SAME, values: [] };
      return this.#profileOf([...requirements, same], at);
    }
    return this.#profileOf(this.#below(3) === 0 ? [] : requirements, at);
  }

  #profileOf(requirements: Parameters<typeof profileOf>[0]['requirements'], at: number): Profile {
    const priority = this.#pick([0, 100, 100, 1000, 1_000_000]) + at;
    const buckets = { interruptionBucket: 0, reclamationBucket: 0 } as const;
    return profileOf({ requirements, spread: [], priority, ...buckets });
  }

  #need(): NeedMessage {
    const profile = this.#pick(this.#profiles);
    const isGang = profile.requirements.some(({ operator }) => operator === Operator.SAME);
    const unit = this.#pick([1, 2]);
    const count = 1 + this.#below(12);
    return {
      profile,
      aggregate: { cpu: `${unit * count}`, memory: `${unit * count * 4}Gi` },
      minUnit: { cpu: `${unit}`, memory: `${unit * 4}Gi` },
      group: isGang ? this.#pick(['g1', 'g2']) : '',
    };
  }

  #shuffled(needs: readonly NeedMessage[]): readonly NeedMessage[] {
    const all = [...needs];
    for (let at = all.length - 1; at > 0; at--) {
      const other = this.#below(at + 1);
      [all[at], all[other]] = [all[other] as NeedMessage, all[at] as NeedMessage];
    }
    return all;
  }
}
