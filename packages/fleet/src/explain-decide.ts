/**
 * Questions of kind `decide`: a shard without machines and demand lives through some cycles.
 * Nothing that it decides is carried out; changes of machines are part of the question.
 */
import { canonicalQuantity } from '@megaplane/machinery/quantity';
import { type Amounts, textsOf } from './engine/amounts.ts';
import type { RollupMessage, RollupOutcome } from './engine/demand.ts';
import { type MachineRecord, machineOf, stateOf } from './engine/inventory.ts';
import { CAPACITY_TYPES, NO_STAMP, type Stamp } from './engine/machine.ts';
import type { Operator, Profile, ProfileFields, WhenUnsatisfiable } from './engine/profile.ts';
import { profileOf, withoutSame } from './engine/profile.ts';
import type { Action } from './engine/row.ts';
import { BETTER, DIFFERENCE_NAMES, STRICT } from './engine/differences.ts';
import type { Differences } from './engine/differences.ts';
import { type Cycle, SHARD_DEFAULTS, Shard, type ShardOptions } from './engine/shard.ts';
import type { NeedView } from './engine/views.ts';
import { Fields, textMapOf } from './fields.ts';
import type { PenaltyBucket } from './contract/tables/capacity.ts';

/** Answers with one result for each cycle of the question. */
export function explainDecide(question: Readonly<Record<string, unknown>>): object {
  return new Scenario(new Fields('question', question)).run();
}

class Scenario {
  readonly #cycles: readonly Fields[];
  readonly #names: ProfileNames;
  readonly #shard: Shard;
  /** Records as given so far: later cycles tell only what changes. */
  readonly #records = new Map<string, Readonly<Record<string, unknown>>>();
  /** How rows spelled their amounts, where they are told in another form. */
  readonly #spelled = new Map<string, string>();
  #isListing = false;

  constructor(question: Fields) {
    this.#cycles = question.list('cycles').map((cycle) => new Fields('cycle', cycle));
    this.#names = new ProfileNames(question.fields('profiles'));
    this.#shard = new Shard(optionsOf(question.fields('config')));
  }

  run(): object {
    return { cycles: this.#cycles.map((cycle) => this.#cycle(cycle)) };
  }

  #cycle(cycle: Fields): object {
    const atSeconds = cycle.number('at', 0);
    for (const machine of cycle.list('machines')) this.#put(machine, atSeconds);
    for (const id of cycle.texts('removed')) {
      this.#records.delete(id);
      this.#shard.inventory.remove(id);
    }
    const rejected = cycle.has('list') ? this.#merge(cycle, atSeconds) : undefined;
    for (const cluster of cycle.texts('sessionEnded')) this.#shard.endSession(cluster);
    const rollups = cycle.list('rollups').map((rollup) => {
      const message = this.#messageOf(new Fields('rollup', rollup));
      return outcomeOf(message.cluster, this.#shard.rollup(message));
    });
    return {
      rollups,
      ...(rejected === undefined ? {} : { rejectedMachines: rejected }),
      ...(this.#isListing ? { inventory: this.#inventory() } : {}),
      ...this.#resultOf(this.#shard.cycle(atSeconds, { withViews: true })),
    };
  }

  #put(change: unknown, atSeconds: number): void {
    const fields = new Fields('machine', change);
    const id = fields.text('id');
    const record = { ...this.#records.get(id), ...fields.all };
    this.#records.set(id, record);
    const merged = new Fields(`machine ${id}`, record);
    const state = stateOf(merged.text('state'));
    if (state === undefined) throw new Error(`machine ${id}: no state ${merged.text('state')}`);
    const stamp = this.#stampOf(merged.fields('assigned'));
    this.#shard.inventory.put(machineOf(this.#recordOf(merged), state, stamp), atSeconds);
  }

  #merge(cycle: Fields, atSeconds: number): Readonly<Record<string, string>> {
    this.#isListing = true;
    const records = cycle.list('list').map((machine) => {
      return this.#recordOf(new Fields('machine', machine));
    });
    const busy = new Set(cycle.texts('busy'));
    const refused = this.#shard.inventory.merge(records, (id) => busy.has(id), atSeconds);
    return Object.fromEntries(refused);
  }

  #recordOf(fields: Fields): MachineRecord {
    const metadata = Object.entries(textMapOf(fields, 'shardMetadata')).map(([key, value]) => {
      const name = value.startsWith('@') ? value.slice(1) : undefined;
      return [key, name === undefined ? value : this.#names.get(name).fingerprint];
    });
    return {
      id: fields.text('id'),
      state: fields.text('state'),
      cluster: fields.text('cluster'),
      instanceType: fields.text('instanceType'),
      zone: fields.text('zone'),
      capacityType: fields.word('capacityType', CAPACITY_TYPES),
      labels: textMapOf(fields, 'labels'),
      allocatable: textMapOf(fields, 'allocatable'),
      resources: textMapOf(fields, 'resources'),
      price: fields.number('price', 0),
      interruptionProbability: fields.number('interruptionProbability', 0),
      lastError: fields.text('lastError'),
      hasHost: fields.has('host'),
      shardMetadata: Object.fromEntries(metadata),
    };
  }

  #stampOf(fields: Fields): Stamp {
    const name = fields.text('profile');
    return {
      ...NO_STAMP,
      fingerprint: name === '' ? '' : this.#names.get(name).fingerprint,
      group: fields.text('group'),
      priority: fields.number('priority', 0),
      interruptionPenalty: fields.number('interruptionPenalty', 0),
      reclamationPenalty: fields.number('reclamationPenalty', 0),
    };
  }

  #messageOf(rollup: Fields): RollupMessage {
    const needs = rollup.list('needs').map((item) => {
      const need = new Fields('need', item);
      const [aggregate, minUnit] = [textMapOf(need, 'aggregate'), textMapOf(need, 'minUnit')];
      for (const text of [...Object.values(aggregate), ...Object.values(minUnit)]) {
        this.#spelled.set(canonicalQuantity(text) ?? text, text);
      }
      const profile = this.#names.get(need.text('profile'));
      return { profile, aggregate, minUnit, group: need.text('group') };
    });
    return { cluster: rollup.text('cluster'), time: rollup.number('time', 0), needs };
  }

  #inventory(): object {
    const entries = [...this.#shard.inventory.machines].map(({ id, state, cluster, stamp }) => {
      const { fingerprint, ...rest } = stamp;
      const assigned = { profile: this.#names.nameOf(fingerprint), ...rest };
      return [id, { state, cluster, assigned: texted(assigned) }];
    });
    return Object.fromEntries(entries) as object;
  }

  #resultOf(cycle: Cycle): object {
    return {
      needs: cycle.views.map((view) => this.#needOf(view)),
      actions: cycle.actions.map((action) => this.#actionOf(action)),
      withheldReclaims: cycle.withheld.map(({ machine }) => machine.id),
      deferred: cycle.deferred,
      ...(cycle.suppressed === undefined ? {} : { suppressed: cycle.suppressed }),
      shortfalls: cycle.shortfalls.map(({ profile, deficit, age }) => {
        return { profile: this.#names.nameOf(profile.fingerprint), deficit: textsOf(deficit), age };
      }),
      hints: cycle.hints.map(({ profile, ...hint }) => {
        return { ...hint, profile: this.#names.nameOf(profile.fingerprint) };
      }),
    };
  }

  #needOf({ verdict, parkedAge, unmet }: NeedView): object {
    const { row, claimed, deficit, domain, satisfiable, candidates, parked } = verdict;
    return {
      cluster: row.cluster,
      profile: this.#names.nameOf(row.profile.fingerprint),
      group: row.group,
      aggregate: this.#textsOf(row.aggregate),
      minUnit: this.#textsOf(row.minUnit),
      satisfied: unmet === undefined,
      claimed: claimed.map(({ id }) => id),
      deficit: textsOf(deficit),
      ...{ domain, satisfiable, candidates, parked, parkedAge },
      ...(unmet === undefined
        ? {}
        : { reason: unmet.reason, age: unmet.age, matchingSupply: unmet.supply }),
      ...(unmet?.preemption === undefined
        ? {}
        : {
            preemption: {
              victims: unmet.preemption.victims,
              freed: textsOf(unmet.preemption.freed),
            },
          }),
    };
  }

  /** Also the dimensions that are zero: a row is known by what it was asked with. */
  #textsOf(amounts: Amounts): Record<string, string> {
    const entries = [...amounts].map(([name, quantity]) => {
      const text = quantity.toString();
      return [name, this.#spelled.get(text) ?? text];
    });
    return Object.fromEntries(entries) as Record<string, string>;
  }

  #actionOf({ machine, profile, ...action }: Action): object {
    const name = profile === undefined ? {} : { profile: this.#names.nameOf(profile.fingerprint) };
    return { ...action, machine: machine.id, ...name };
  }
}

/** By their numbers on the wire. */
const OPERATORS = ['Unspecified', 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Same'] as const;
const SPREAD_MODES = ['Unspecified', 'DoNotSchedule', 'ScheduleAnyway'] as const;

const FOLDED = '/folded';

/** Names of a question's profiles; `x/folded` is x without its Same requirements. */
class ProfileNames {
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #byFingerprint = new Map<string, string>();

  constructor(profiles: Fields) {
    const entries = Object.entries(profiles.all).map(([name, value]): [string, Profile] => {
      return [name, profileOf(profileFieldsOf(new Fields(`profile ${name}`, value)))];
    });
    this.#profiles = new Map(entries);
    for (const [name, profile] of entries) {
      this.#byFingerprint.set(withoutSame(profile).fingerprint, `${name}${FOLDED}`);
    }
    for (const [name, { fingerprint }] of entries) this.#byFingerprint.set(fingerprint, name);
  }

  get(name: string): Profile {
    const folded = name.endsWith(FOLDED)
      ? this.#profiles.get(name.slice(0, -FOLDED.length))
      : undefined;
    const profile = this.#profiles.get(name) ?? (folded && withoutSame(folded));
    if (profile === undefined) throw new Error(`there is no profile ${JSON.stringify(name)}`);
    return profile;
  }

  /** What a fingerprint is called; itself if it is of no profile of the question. */
  nameOf(fingerprint: string): string {
    return this.#byFingerprint.get(fingerprint) ?? fingerprint;
  }
}

function profileFieldsOf(fields: Fields): ProfileFields {
  return {
    requirements: fields.list('requirements').map((item) => {
      const requirement = new Fields('requirement', item);
      return {
        key: requirement.text('key'),
        operator: OPERATORS.indexOf(requirement.word('operator', OPERATORS)) as Operator,
        values: requirement.texts('values'),
      };
    }),
    spread: fields.list('spread').map((item) => {
      const spread = new Fields('spread', item);
      return {
        topologyKey: spread.text('topologyKey'),
        maxSkew: spread.number('maxSkew', 0),
        whenUnsatisfiable: SPREAD_MODES.indexOf(
          spread.word('whenUnsatisfiable', SPREAD_MODES),
        ) as WhenUnsatisfiable,
      };
    }),
    priority: fields.number('priority', 0),
    interruptionBucket: fields.number('interruptionPenaltyBucket', 0) as PenaltyBucket,
    reclamationBucket: fields.number('reclamationPenaltyBucket', 0) as PenaltyBucket,
  };
}

function optionsOf(config: Fields): ShardOptions {
  const defaults = SHARD_DEFAULTS;
  const number = (name: keyof ShardOptions): number => config.number(name, Number(defaults[name]));
  const flag = (name: keyof ShardOptions): boolean => config.flag(name, defaults[name] === true);
  return {
    ...defaults,
    differences: differencesOf(config),
    reclaimCapFraction: number('reclaimCapFraction'),
    emptyRollupGuard: flag('emptyRollupGuard'),
    paused: flag('paused'),
    dryRun: flag('dryRun'),
    maxActionsPerCycle: number('maxActionsPerCycle'),
    onDemandHoldSeconds: number('onDemandHoldSeconds'),
    spotHoldSeconds: number('spotHoldSeconds'),
    hintIntervalSeconds: number('hintIntervalSeconds'),
  };
}

/** `engine`, and single differences on top of it: `{"engine": "better", "ownFirst": false}`. */
function differencesOf(config: Fields): Differences {
  const base = config.word('engine', ['strict', 'better']) === 'better' ? BETTER : STRICT;
  const entries = DIFFERENCE_NAMES.map((name) => [name, config.flag(name, base[name])]);
  return Object.fromEntries(entries) as Differences;
}

function outcomeOf(cluster: string, outcome: RollupOutcome): object {
  switch (outcome.kind) {
    case 'accepted':
      return { cluster, accepted: true, confirmed: outcome.isConfirmed };
    case 'held':
      return { cluster, accepted: false, held: outcome.reports };
    case 'rejected':
      return { cluster, accepted: false, rejected: true };
  }
}

/** JSON has no infinity. */
function texted(fields: object): object {
  const entries = Object.entries(fields).map(([name, value]: [string, unknown]) => {
    return [name, value === Infinity ? 'Infinity' : value];
  });
  return Object.fromEntries(entries) as object;
}
