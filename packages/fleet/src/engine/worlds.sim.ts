/** Random worlds of a few clusters, and what happens to them: for tests that compare engines. */
import type { Random } from '@megaplane/base/random';
import { amountsOf } from './amounts.ts';
import type { RollupMessage } from './demand.ts';
import { CAPACITY_TYPES, type Machine, NO_STAMP, STATES, type State } from './machine.ts';
import {
  Operator,
  type Profile,
  type Requirement,
  WhenUnsatisfiable,
  profileOf,
} from './profile.ts';
import type { Action } from './row.ts';
import type { Shard } from './shard.ts';
import type { NeedMessage } from './need-message.ts';

const TYPES = ['m4', 'm8', 'x16', ''];
const ZONES = ['a', 'b'];
const RACKS = ['r1', 'r2', 'r3', ''];
const SIZES = [1, 2, 4, 8];
const RACK = 'topology.bigfleet/rack';
const ZONE = 'topology.kubernetes.io/zone';
const TYPE = 'node.kubernetes.io/instance-type';
const CLUSTERS = ['c1', 'c2', 'c3'];

export class RandomWorld {
  readonly #random: Random;
  readonly #profiles: readonly Profile[];
  readonly #machines = new Map<string, Machine>();
  readonly #needs = new Map<string, readonly NeedMessage[]>();
  /** Machine and when it was put, or gone. */
  #changed: string[] = [];
  nowSeconds = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#profiles = Array.from({ length: 2 + this.#below(5) }, () => this.#profile());
    for (const id of Array.from({ length: 2 + this.#below(18) }, (_, at) => `m${at}`)) {
      this.#put(this.#machine(id));
    }
  }

  /** Something happens; what, is told to each shard alike. */
  step(shards: readonly Shard[]): void {
    this.nowSeconds += this.#below(3) * 10;
    for (let count = this.#below(3); count > 0; count--) this.#disturb();
    for (const id of this.#changed) {
      const machine = this.#machines.get(id);
      for (const { inventory } of shards) {
        if (machine === undefined) inventory.remove(id);
        else inventory.put(machine, this.nowSeconds);
      }
    }
    this.#changed = [];
    for (const cluster of CLUSTERS) {
      if (this.#below(2) === 0) continue;
      const message = this.#rollup(cluster);
      for (const shard of shards) shard.rollup(message);
    }
  }

  /** Some of what was decided is carried out, at once or with the states between. */
  carryOut(actions: readonly Action[]): void {
    for (const { kind, machine, cluster, profile, group = '' } of actions) {
      const known = this.#machines.get(machine.id);
      if (known === undefined || known.state !== machine.state || this.#below(4) === 0) continue;
      const fingerprint = profile?.fingerprint ?? '';
      const priority = profile?.priority ?? 0;
      const penalties = { interruptionPenalty: this.#below(3), reclamationPenalty: this.#below(3) };
      const stamp = { fingerprint, group, priority, ...penalties };
      if (kind === 'Bootstrap') {
        const state: State = this.#below(2) === 0 ? 'Configuring' : 'Configured';
        this.#put({ ...known, state, cluster, stamp });
      } else if (kind === 'Provision') {
        const made = { ...NO_STAMP, fingerprint, group };
        this.#put({ ...known, state: 'Creating', stamp: made });
      } else if (kind === 'Delete') {
        this.#put({ ...known, state: 'Speculative' });
      } else this.#put({ ...known, state: 'Draining' });
    }
  }

  #below(limit: number): number {
    return this.#random.below(limit);
  }

  #pick<Item>(items: readonly Item[]): Item {
    const item = items[this.#below(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  #put(machine: Machine): void {
    this.#machines.set(machine.id, machine);
    this.#changed.push(machine.id);
  }

  #machine(id: string): Machine {
    const state = this.#pick([...STATES, 'Idle', 'Idle', 'Speculative', 'Configured'] as const);
    const isBound = state === 'Configured' || state === 'Configuring' || state === 'Draining';
    const isStamped = isBound || state === 'Creating';
    const profile = this.#pick(this.#profiles);
    const rack = this.#pick(RACKS);
    const size = this.#pick(SIZES);
    const group = this.#pick(['', 'g1', 'g2']);
    return {
      ...{ id, state },
      cluster: isBound ? this.#pick(CLUSTERS) : '',
      instanceType: this.#pick(TYPES),
      zone: this.#pick(ZONES),
      capacityType: this.#pick(CAPACITY_TYPES),
      labels: new Map(rack === '' && this.#below(2) === 0 ? [] : [[RACK, rack]]),
      allocatable: amountsOf({ cpu: `${size}`, memory: `${size * this.#pick([2, 4])}Gi` }),
      price: this.#pick([0.1, 0.2, 0.2, 0.4]),
      interruptionProbability: this.#pick([0, 0, 0.1]),
      stamp: isStamped
        ? {
            ...{ fingerprint: profile.fingerprint, group, priority: profile.priority },
            interruptionPenalty: this.#pick([0, 1, 64]),
            reclamationPenalty: this.#pick([0, 1, 64]),
          }
        : NO_STAMP,
      idleSince: 0,
    };
  }

  #disturb(): void {
    const id = `m${this.#below(22)}`;
    const known = this.#machines.get(id);
    switch (this.#below(5)) {
      case 0:
        this.#machines.delete(id);
        this.#changed.push(id);
        return;
      case 1:
        if (known?.state === 'Draining') {
          this.#put({ ...known, state: 'Idle', cluster: '', stamp: NO_STAMP });
        }
        return;
      case 2:
        if (known?.state === 'Creating') this.#put({ ...known, state: 'Idle', stamp: NO_STAMP });
        if (known?.state === 'Configuring') this.#put({ ...known, state: 'Configured' });
        return;
      default:
        this.#put(this.#machine(id));
    }
  }

  #profile(): Profile {
    const requirements: Requirement[] = [];
    const { IN, NOT_IN, EXISTS, SAME } = Operator;
    if (this.#below(2) === 0) {
      const values = [...new Set([this.#pick(TYPES), this.#pick(TYPES)])];
      requirements.push({ key: TYPE, operator: IN, values });
    }
    if (this.#below(4) === 0) {
      const operator = this.#pick([IN, NOT_IN, EXISTS]);
      requirements.push({ key: ZONE, operator, values: operator === EXISTS ? [] : ['a'] });
    }
    if (this.#below(3) === 0) {
      const values = this.#below(5) === 0 ? ['r1', 'r2'] : [];
      requirements.push({ key: this.#pick([RACK, ZONE]), operator: SAME, values });
    }
    const isSpread = this.#below(4) === 0;
    const { DO_NOT_SCHEDULE: whenUnsatisfiable } = WhenUnsatisfiable;
    return profileOf({
      requirements,
      spread: isSpread ? [{ topologyKey: ZONE, maxSkew: 1, whenUnsatisfiable }] : [],
      priority: this.#pick([-5, 0, 100, 100, 1000, 1_000_000]),
      interruptionBucket: this.#pick([0, 1, 5, 9, 27] as const),
      reclamationBucket: this.#pick([0, 1, 7] as const),
    });
  }

  /** Mostly what the cluster asked for before, with a change now and then. */
  #rollup(cluster: string): RollupMessage {
    const before = this.#needs.get(cluster) ?? [];
    const kept = before.filter(() => this.#below(8) > 0);
    const added = Array.from({ length: this.#below(3) }, () => this.#need());
    const needs = [...kept, ...added].slice(-8);
    this.#needs.set(cluster, needs);
    return { cluster, time: this.nowSeconds - this.#below(5), needs };
  }

  #need(): NeedMessage {
    const size = this.#pick(SIZES);
    const unit = this.#pick([1, 1, 2, 4]);
    return {
      profile: this.#pick(this.#profiles),
      aggregate: { cpu: `${size * unit}`, memory: `${size * unit * 2}Gi` },
      minUnit: this.#below(3) === 0 ? {} : { cpu: `${unit}`, memory: `${unit * 2}Gi` },
      group: this.#pick(['', 'g1', 'g2']),
    };
  }
}
