/**
 * A shard among a provider that is played and operators that are played, in a time of their own.
 * What goes between them is late, comes twice, comes in another order or is lost, by a seed.
 */
import { create } from '@bufbuild/protobuf';
import { assert } from '@megaplane/base/assert';
import { Random } from '@megaplane/base/random';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import { ClusterCapacityNeedsSchema } from '../contract/tables/capacity.ts';
import { ListFilterSchema, MachineState as State } from '../contract/tables/provider.ts';
import type { Machine, TransitionAck } from '../contract/tables/provider.ts';
import { OperatorMessageSchema } from '../contract/tables/shard.ts';
import type { OperatorMessage } from '../contract/tables/shard.ts';
import { SHARD_DEFAULTS } from '../engine/shard.ts';
import type { ShardOptions } from '../engine/shard.ts';
import { simulatedBackend } from '../provider/backends.ts';
import { readCatalogue } from '../provider/catalogue.ts';
import { Provider } from '../provider/provider.ts';
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
  session: number;
  cpu: number;
}

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

export class World {
  readonly random: Random;
  readonly provider: Provider;
  readonly clusters: Map<string, Cluster> = new Map();
  /** What the provider refused, by code and text. */
  readonly refusals: string[] = [];
  faults: Faults = { delayMs: 200, lost: 0, twice: 0 };
  core: ShardCore;
  nowMs = 0;
  #epoch = 0n;
  #sessions = 0;
  #ids = 0;
  #events: { readonly atMs: number; readonly order: number; readonly act: () => void }[] = [];
  #order = 0;
  /** Machines that a shard awaits an answer for. */
  readonly #open = new WeakMap<ShardCore, Set<string>>();

  constructor(seed: number, machines: number) {
    this.random = new Random(seed);
    const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', price: 1 };
    const offer = { ...facts, slots: machines, resources: { cpu: 4 } };
    const catalogue = readCatalogue({ offers: [offer], latencies: LATENCIES });
    const backend = simulatedBackend(catalogue, this.random.fork('provider'));
    this.provider = new Provider({
      machines: catalogue.machines,
      ...{ backend, timeoutMs: 60_000, instance: 1 },
    });
    this.core = this.#shard();
  }

  #shard(): ShardCore {
    return new ShardCore({
      ...{ shardId: 's1', epoch: ++this.#epoch, concurrency: 8, newId: () => `id${++this.#ids}` },
      ...{ providers: ['p'], isIncremental: false, engine: ENGINE },
      domains: new Domains(),
      ...{ cycleMs: 1000, listWaitMs: 1000, joinMs: 60_000 },
    });
  }

  /** Ends the shard at once; another one of its name begins. What is on its way stays so. */
  restart(): void {
    this.core = this.#shard();
    for (const cluster of this.clusters.values()) cluster.session = 0;
    for (const name of this.clusters.keys()) this.connect(name);
  }

  /** A cluster dials (anew), says Hello and how much it wants. */
  connect(name: string): void {
    const cluster = this.clusters.get(name) ?? { session: 0, cpu: 0 };
    this.clusters.set(name, cluster);
    const session = ++this.#sessions;
    cluster.session = session;
    const { core } = this;
    core.opened(session, undefined, this.nowMs);
    const value = { clusterId: name, protocolVersion: 'v1alpha1' };
    this.#say(core, session, create(OperatorMessageSchema, { payload: { case: 'hello', value } }));
    this.ask(name, cluster.cpu);
  }

  /** Sends a roll-up. */
  ask(name: string, cpu: number): void {
    const cluster = this.clusters.get(name);
    assert(cluster !== undefined, 'a cluster asks once it is there');
    cluster.cpu = cpu;
    const need = { aggregateResources: { cpu: String(cpu) }, minUnit: { cpu: '1' }, priority: 5 };
    const value = create(ClusterCapacityNeedsSchema, {
      ...{ clusterId: name, timestampUnixNanos: BigInt(Math.floor(this.nowMs)) },
      needs: cpu === 0 ? [] : [need],
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
      this.#carryOut();
      this.#events.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
      const next = this.#events[0];
      const dueMs = Math.min(next?.atMs ?? Infinity, this.core.wakeMs);
      if (dueMs > untilMs) break;
      this.nowMs = Math.max(this.nowMs, dueMs);
      if (next !== undefined && next.atMs <= this.nowMs) {
        this.#events.shift();
        next.act();
      } else this.core.tick(this.nowMs);
      check();
    }
    this.nowMs = untilMs;
  }

  #later(act: () => void): void {
    const atMs = this.nowMs + this.random.next() * this.faults.delayMs;
    this.#events.push({ atMs, order: ++this.#order, act });
  }

  #carryOut(): void {
    const { core } = this;
    for (const effect of core.takeEffects()) {
      if (effect.kind === 'call') this.#call(core, effect);
      else if (effect.kind === 'list') this.#list(core, effect);
      else if (effect.kind === 'send') this.#heard(core, effect);
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
      for (let time = 0; time < times; time++) {
        this.#later(() => {
          if (time === 0) open.delete(machineId);
          core.called(call, told, this.nowMs);
        });
      }
    });
  }

  #change({ method, request }: Change): TransitionAck | CallFailure {
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
      const isLost = this.random.next() < this.faults.lost;
      const failure = { code: GRPC_CODES.unavailable, message: 'nobody is there' };
      const times = this.random.next() < this.faults.twice ? 2 : 1;
      for (let time = 0; time < times; time++) {
        this.#later(() => core.listed(provider, list, isLost ? failure : answer, this.nowMs));
      }
    });
  }

  #heard(core: ShardCore, { session, payload }: Extract<Effect, { kind: 'send' }>): void {
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
