/**
 * A shard among a provider that is played and operators that are played, in a time of their own.
 * What goes between them is late, comes twice, comes in another order or is lost, by a seed.
 */
import { create } from '@bufbuild/protobuf';
import { assert } from '@megaplane/base/assert';
import { Random } from '@megaplane/base/random';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { CapacityNeedSchema, ClusterCapacityNeedsSchema } from '../contract/tables/capacity.ts';
import type { CapacityNeed } from '../contract/tables/capacity.ts';
import { ListFilterSchema, MachineState as State } from '../contract/tables/provider.ts';
import type { Machine, TransitionAck } from '../contract/tables/provider.ts';
import { OperatorMessageSchema } from '../contract/tables/shard.ts';
import type { OperatorMessage } from '../contract/tables/shard.ts';
import { SHARD_DEFAULTS } from '../engine/shard.ts';
import type { ShardOptions } from '../engine/shard.ts';
import { simulatedBackend } from '../provider/backends.ts';
import { offerOf, readCatalogue } from '../provider/catalogue.ts';
import { Provider } from '../provider/provider.ts';
import type { Backend } from '../provider/provider.ts';
import { textsOf } from '../engine/amounts.ts';
import { stateWord } from './machine-words.ts';
import { ShardCore } from './core.ts';
import { Domains } from './domains.ts';
import type { CallFailure, Change, Effect } from './effects.ts';

export interface Faults {
  /** Longest delay of a message. */
  readonly delayMs: number;
  /** Shares of messages, 0 to 1. */
  readonly lost: number;
  readonly twice: number;
}

interface Cluster {
  /** 0: it has none. */
  session: number;
  cpu: number;
  needs: readonly CapacityNeed[];
}

/** What a provider has, as a catalogue is written. */
export interface WorldPlan {
  readonly offers: readonly JsonObject[];
  readonly latencies: JsonObject;
  readonly engine?: ShardOptions;
}

const NANOS = 1_000_000n;
const AWAY: CallFailure = { code: GRPC_CODES.unavailable, message: 'nobody is there' };

const LATENCIES = {
  create: { minMs: 500, maxMs: 4000 },
  configure: { minMs: 500, maxMs: 4000 },
  drain: { minMs: 500, maxMs: 4000 },
  delete: { minMs: 200, maxMs: 1000 },
};

export const ENGINE: ShardOptions = {
  ...SHARD_DEFAULTS,
  reclaimCapFraction: 0,
  onDemandHoldSeconds: 30,
};

/** `machineCount` slots of one type, whose transitions take up to four seconds. */
export function planOf(machineCount: number): WorldPlan {
  const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', price: 1 };
  const offer = { ...facts, slots: machineCount, resources: { cpu: 4 } };
  return { offers: [offer], latencies: LATENCIES };
}

export class World {
  readonly random: Random;
  readonly provider: Provider;
  readonly clusters: Map<string, Cluster> = new Map();
  /** What the provider refused, by code and text. */
  readonly refusals: string[] = [];
  faults: Faults = { delayMs: 200, lost: 0, twice: 0 };
  core: ShardCore;
  /** A second shard of this name, from before the last start: it does not know that it is old. */
  #twin: ShardCore | undefined;
  /** Calls and Lists fail, and nothing is done. */
  isProviderAway = false;
  /** What a List says in place of what is so. */
  lie: (machines: Machine[]) => Machine[] = (machines) => machines;
  /** By how much the clocks of clusters are wrong. */
  clockGapMs = 0;
  /** Seconds and what happened then, since it was taken last. */
  #told: string[] = [];
  #short = '';
  readonly #failures = new Map<string, number>();
  readonly #stock: Map<string, number>;
  readonly #engine: ShardOptions;
  nowMs = 0;
  #shardId = 's1';
  #epoch = 0n;
  #sessions = 0;
  #ids = 0;
  #events: { readonly atMs: number; readonly order: number; readonly act: () => void }[] = [];
  #order = 0;
  /** Machines that a shard awaits an answer for. */
  readonly #open = new WeakMap<ShardCore, Set<string>>();

  constructor(seed: number, plan: WorldPlan) {
    this.random = new Random(seed);
    this.#engine = plan.engine ?? ENGINE;
    const catalogue = readCatalogue({ offers: [...plan.offers], latencies: plan.latencies });
    this.#stock = catalogue.stock as Map<string, number>;
    const backend = simulatedBackend(catalogue, this.random.fork('provider'));
    this.provider = new Provider({
      machines: catalogue.machines,
      ...{ backend: this.#failing(backend), timeoutMs: 60_000, instance: 1 },
    });
    this.core = this.#shard();
  }

  /** A backend whose next transitions of a kind fail as they are told to. */
  #failing(backend: Backend): Backend {
    return {
      ...backend,
      plan: (kind, machine) => {
        const plan = backend.plan(kind, machine);
        const left = this.#failures.get(kind) ?? 0;
        if (left === 0) return plan;
        this.#failures.set(kind, left - 1);
        return { ...plan, failure: `${kind} failed` };
      },
    };
  }

  /** The next transitions of a kind fail. */
  failNext(kind: string, count: number): void {
    this.#failures.set(kind, count);
  }

  /** So many machines of all offers of a type exist at once, at most. */
  setStock(instanceType: string, count: number): void {
    for (const machine of this.truth) {
      if (machine.instanceType === instanceType) this.#stock.set(offerOf(machine), count);
    }
  }

  #shard(): ShardCore {
    return new ShardCore({
      ...{
        shardId: this.#shardId,
        epoch: ++this.#epoch,
        concurrency: 8,
        newId: () => `id${++this.#ids}`,
      },
      ...{ providers: ['p'], isIncremental: false, engine: this.#engine },
      domains: new Domains(),
      ...{ cycleMs: 1000, listWaitMs: 1000, joinMs: 60_000 },
    });
  }

  /**
   * Ends the shard at once; another one of its name begins. What is on its way stays so, and
   * clusters that had a stream dial again.
   */
  restart(): void {
    this.core = this.#shard();
    for (const [name, { session }] of this.clusters) if (session !== 0) this.connect(name);
  }

  /** Starts a second shard; the first goes on with its streams and its epoch. */
  beginTwin(shardId: string = 's1'): void {
    this.#twin = this.core;
    this.#shardId = shardId;
    if (shardId === 's1') return this.restart();
    // clusters stay with the one that they have dialled
    this.core = this.#shard();
  }

  endTwin(): void {
    this.#twin = undefined;
  }

  /** The stream of a cluster breaks, and nobody dials. */
  hangUp(name: string): void {
    const cluster = this.clusters.get(name);
    assert(cluster !== undefined, 'who hangs up has dialled');
    this.core.closed(cluster.session);
    cluster.session = 0;
  }

  /** What happened since this was asked for last. */
  takeTold(): string[] {
    const told = this.#told;
    this.#told = [];
    return told;
  }

  #tell(text: string): void {
    this.#told.push(`${(this.nowMs / 1000).toFixed(1)} ${text}`);
  }

  /** A cluster dials (anew), says Hello and how much it wants. */
  connect(name: string): void {
    const cluster = this.clusters.get(name) ?? { session: 0, cpu: 0, needs: [] };
    this.clusters.set(name, cluster);
    const session = ++this.#sessions;
    cluster.session = session;
    const { core } = this;
    core.opened(session, undefined, this.nowMs);
    const value = { clusterId: name, protocolVersion: 'v1alpha1' };
    this.#say(core, session, create(OperatorMessageSchema, { payload: { case: 'hello', value } }));
    this.demand(name, cluster.needs);
  }

  /** Sends a roll-up of one row. */
  ask(name: string, cpu: number): void {
    const cluster = this.clusters.get(name);
    assert(cluster !== undefined, 'a cluster asks once it is there');
    cluster.cpu = cpu;
    const need = create(CapacityNeedSchema, {
      ...{ aggregateResources: { cpu: String(cpu) }, minUnit: { cpu: '1' }, priority: 5 },
    });
    this.demand(name, cpu === 0 ? [] : [need]);
  }

  /** Sends a roll-up, if the cluster has a stream. */
  demand(name: string, needs: readonly CapacityNeed[]): void {
    const cluster = this.clusters.get(name);
    assert(cluster !== undefined, 'a cluster asks once it is there');
    cluster.needs = needs;
    if (cluster.session === 0) return;
    const value = create(ClusterCapacityNeedsSchema, {
      ...{
        clusterId: name,
        timestampUnixNanos: BigInt(Math.floor(this.nowMs + this.clockGapMs)) * NANOS,
      },
      needs: [...needs],
    });
    const payload = { case: 'rollup' as const, value };
    this.#say(this.core, cluster.session, create(OperatorMessageSchema, { payload }));
  }

  /** One stream keeps its order, so that what is said is said at once. */
  #say(core: ShardCore, session: number, message: OperatorMessage): void {
    core.received(session, message, this.nowMs);
  }

  /** Lets time pass until `untilMs`, from event to event. */
  run(untilMs: number, check: () => void): void {
    for (let steps = 0; ; steps++) {
      assert(steps < 1_000_000, 'a world comes to rest');
      for (const core of this.#cores()) this.#carryOut(core);
      this.#events.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
      const next = this.#events[0];
      const wakeMs = Math.min(...this.#cores().map((core) => core.wakeMs));
      const dueMs = Math.min(next?.atMs ?? Infinity, wakeMs);
      if (dueMs > untilMs) break;
      this.nowMs = Math.max(this.nowMs, dueMs);
      if (next !== undefined && next.atMs <= this.nowMs) {
        this.#events.shift();
        next.act();
      } else for (const core of this.#cores()) core.tick(this.nowMs);
      this.#noteShort();
      check();
    }
    this.nowMs = untilMs;
  }

  #cores(): readonly ShardCore[] {
    return this.#twin === undefined ? [this.core] : [this.#twin, this.core];
  }

  /** Tells of what is lacking where that changes. */
  #noteShort(): void {
    const all = this.core.last.shortfalls.map(({ profile, deficit }) => {
      const amounts = Object.entries(textsOf(deficit)).map(([name, text]) => `${name} ${text}`);
      return `priority ${profile.priority} lacks ${amounts.join(', ')}`;
    });
    const short = all.length === 0 ? 'nothing is lacking' : all.join('; ');
    if (short !== this.#short && this.core.last.number > 0) this.#tell(short);
    this.#short = short;
  }

  #later(act: () => void): void {
    const atMs = this.nowMs + this.random.next() * this.faults.delayMs;
    this.#events.push({ atMs, order: ++this.#order, act });
  }

  #carryOut(core: ShardCore): void {
    for (const effect of core.takeEffects()) {
      if (effect.kind === 'call') this.#call(core, effect);
      else if (effect.kind === 'list') this.#list(core, effect);
      else if (effect.kind === 'send') this.#heard(core, effect);
      else if (effect.kind === 'log') this.#tell(`${effect.level}: ${effect.message}`);
      else this.#tell(`stream ${effect.session} ends: ${effect.message}`);
    }
  }

  #call(core: ShardCore, { call, change }: Extract<Effect, { kind: 'call' }>): void {
    const open = this.#open.get(core) ?? new Set();
    this.#open.set(core, open);
    const { machineId } = change.request;
    assert(!open.has(machineId), `machine ${machineId} is changed twice at once`);
    open.add(machineId);
    this.#later(() => {
      const answer = this.#change(change);
      const isLost = this.random.next() < this.faults.lost;
      const code = GRPC_CODES.deadlineExceeded;
      const told = isLost ? { code, message: 'no answer came' } : answer;
      const times = this.random.next() < this.faults.twice ? 2 : 1;
      let isAnswered = false;
      for (let time = 0; time < times; time++) {
        this.#later(() => {
          // the first of two answers counts
          if (!isAnswered) open.delete(machineId);
          isAnswered = true;
          core.called(call, told, this.nowMs);
        });
      }
    });
  }

  #change(change: Change): TransitionAck | CallFailure {
    const answer = this.#changed(change);
    const { machineId, shardEpoch } = change.request;
    const to = change.method === 'configure' ? ` for ${change.request.clusterId}` : '';
    const failed = 'code' in answer ? `: ${answer.message}` : '';
    this.#tell(`shard of epoch ${shardEpoch}: ${change.method} ${machineId}${to}${failed}`);
    return answer;
  }

  #changed({ method, request }: Change): TransitionAck | CallFailure {
    if (this.isProviderAway) return AWAY;
    try {
      switch (method) {
        case 'create':
          return this.provider.create(request, this.nowMs);
        case 'configure':
          return this.provider.configure(request, this.nowMs);
        case 'drain':
          return this.provider.drain(request, this.nowMs);
        case 'delete':
          return this.provider.delete(request, this.nowMs);
      }
    } catch (error) {
      assert(error instanceof CallError, String(error));
      this.refusals.push(`${error.code} ${error.message}`);
      return { code: error.code, message: error.message };
    }
  }

  #list(core: ShardCore, { provider, list }: Extract<Effect, { kind: 'list' }>): void {
    this.#later(() => {
      const answer = this.provider.list(create(ListFilterSchema), this.nowMs);
      answer.machines = this.lie(answer.machines);
      const isLost = this.random.next() < this.faults.lost;
      const isNone = isLost || this.isProviderAway;
      const times = this.random.next() < this.faults.twice ? 2 : 1;
      for (let time = 0; time < times; time++) {
        this.#later(() => core.listed(provider, list, isNone ? AWAY : answer, this.nowMs));
      }
    });
  }

  #heard(core: ShardCore, { session, payload }: Extract<Effect, { kind: 'send' }>): void {
    if (payload.case === 'nodeStateUpdate') {
      const { machineId, state, lastError } = payload.value;
      const why = lastError === '' ? '' : `: ${lastError}`;
      this.#tell(`stream ${session} hears that ${machineId} is ${stateWord(state)}${why}`);
    }
    if (payload.case !== 'bootstrapRequest') return;
    const { requestId } = payload.value;
    if (this.random.next() < this.faults.lost) return;
    const value = { requestId, userData: new Uint8Array([1]), ttlSeconds: 60n };
    const answer = { payload: { case: 'bootstrapResponse' as const, value } };
    const times = this.random.next() < this.faults.twice ? 2 : 1;
    for (let time = 0; time < times; time++) {
      this.#later(() => this.#say(core, session, create(OperatorMessageSchema, answer)));
    }
  }

  /** As the provider has them. */
  get truth(): readonly Machine[] {
    return this.provider.list(create(ListFilterSchema), this.nowMs).machines;
  }

  /** Machines that are a cluster's, by the provider's own word. */
  boundTo(name: string): number {
    return this.truth.filter(({ cluster, state }) => {
      return cluster === name && (state === State.CONFIGURING || state === State.CONFIGURED);
    }).length;
  }
}
