/**
 * A shard without a world: streams of operators, answers of providers and time in, effects out. One
 * writer: nothing happens between two calls. It ties together who is heard (`Sessions`), what is
 * decided (`engine/shard.ts`), what is done about it (`Actuator`) and what providers tell
 * (`Reconciler`).
 *
 * A round asks all providers for their machines; when they have answered, or have taken too long,
 * one cycle decides. No cycle is decided before each provider has told its machines once: capacity
 * that is there and not known yet would be bought a second time.
 */
import { create } from '@bufbuild/protobuf';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { Identity } from '../contract/identity.ts';
import type { ClusterCapacityNeeds } from '../contract/tables/capacity.ts';
import type { MachineList, TransitionAck } from '../contract/tables/provider.ts';
import {
  AcknowledgementSchema,
  AvailableCapacityUpdate_Confidence as Confidence,
  AvailableCapacityUpdateSchema,
} from '../contract/tables/shard.ts';
import type { OperatorMessage } from '../contract/tables/shard.ts';
import type { RollupMessage, RollupOutcome } from '../engine/demand.ts';
import type { Hint } from '../engine/hints.ts';
import { Shard } from '../engine/shard.ts';
import type { Cycle, ShardOptions } from '../engine/shard.ts';
import { Actuator } from './actuator.ts';
import type { ActuatorOptions } from './actuator.ts';
import { Counts } from './counts.ts';
import { Effects } from './effects.ts';
import type { CallFailure, Effect } from './effects.ts';
import { FleetMachines } from './fleet-machines.ts';
import type { Inspection } from './inspection.ts';
import { rollupOf } from './needs.ts';
import { Reconciler } from './reconciler.ts';
import type { ReconcilerOptions } from './reconciler.ts';
import { Sessions } from './sessions.ts';

/** Rows are worked out for who looks, for so long after the last look. */
const INSPECTED_MS = 60_000;
/** Two cycles that roll-ups ask for are so far apart. */
const CYCLE_PAUSE_MS = 100;

export interface ShardCoreOptions extends ActuatorOptions, Omit<ReconcilerOptions, 'serves'> {
  readonly engine: ShardOptions;
  readonly cycleMs: number;
  /** A round waits so long for Lists, and then decides with what it knows. */
  readonly listWaitMs: number;
  /** A machine that joins for longer counts for nothing until it has joined. */
  readonly joinMs: number;
}

type Round =
  | { readonly kind: 'resting'; readonly nextMs: number }
  | { readonly kind: 'listing'; readonly deadlineMs: number };

/** What the last cycle was like, for metrics. */
export interface LastCycle extends Pick<Cycle, 'shortfalls'> {
  readonly number: number;
}

export class ShardCore {
  readonly counts: Counts = new Counts();
  readonly sessions: Sessions;
  readonly actuator: Actuator;
  readonly machines: FleetMachines;
  readonly #engine: Shard;
  readonly #reconciler: Reconciler;
  readonly #effects = new Effects();
  readonly #options: ShardCoreOptions;
  #round: Round = { kind: 'resting', nextMs: -Infinity };
  /** Clusters that have told what they want. */
  readonly #heard = new Set<string>();
  #cycles = 0;
  #cycledMs = -Infinity;
  #inspectedMs = -Infinity;
  #isStopped = false;
  inspection: Inspection | null = null;
  last: LastCycle = { number: 0, shortfalls: [] };

  constructor(options: ShardCoreOptions) {
    this.#options = options;
    this.#engine = new Shard(options.engine);
    const { counts } = this;
    const effects = this.#effects;
    this.sessions = new Sessions(effects, counts);
    const { sessions } = this;
    this.machines = new FleetMachines({
      inventory: this.#engine.inventory,
      tell: (cluster, payload) => sessions.send(cluster, payload),
      counts,
    });
    const { machines } = this;
    this.actuator = new Actuator(options, { machines, sessions, effects, counts });
    const { actuator } = this;
    const serves = (cluster: string): boolean => this.#heard.has(cluster);
    const parts = { machines, actuator, effects, counts };
    this.#reconciler = new Reconciler({ ...options, serves }, parts);
  }

  /** True from the first time on that all providers have told their machines. */
  get isReady(): boolean {
    return this.#reconciler.isReady;
  }

  /** What is to be done now, in this order. */
  takeEffects(): Effect[] {
    return this.#effects.take();
  }

  /** When to call `tick` next. */
  get wakeMs(): number {
    const { kind } = this.#round;
    const roundMs = this.#round.kind === 'listing' ? this.#round.deadlineMs : this.#round.nextMs;
    const dueMs = this.#isStopped && kind === 'resting' ? Infinity : roundMs;
    return Math.min(dueMs, this.sessions.wakeMs, this.actuator.wakeMs);
  }

  /** A stream of an operator is open. */
  opened(session: number, identity: Identity, nowMs: number): void {
    this.sessions.opened(session, identity, nowMs);
  }

  /** The stream is no more, by the peer's doing. */
  closed(session: number): void {
    const cluster = this.sessions.closed(session);
    if (cluster !== undefined && !this.sessions.has(cluster)) this.#engine.endSession(cluster);
  }

  received(session: number, { payload }: OperatorMessage, nowMs: number): void {
    if (!this.sessions.isThere(session)) return;
    if (payload.case === 'hello') {
      const heard = this.sessions.hello(session, payload.value);
      if (heard !== 'refused') this.#greet(payload.value.clusterId, heard === 'begun');
      return;
    }
    const cluster = this.sessions.clusterOf(session);
    if (cluster === undefined) {
      this.sessions.close(session, GRPC_CODES.invalidArgument, 'the first message is no Hello');
      return;
    }
    switch (payload.case) {
      case 'rollup':
        return this.#rolledUp(cluster, payload.value, nowMs);
      case 'bootstrapResponse':
        return this.actuator.blob(cluster, payload.value, nowMs);
      case 'reclaimAck':
      // for people, who see the cordon
      case undefined:
        // a payload of a later version
        return;
      default:
        payload satisfies never;
    }
  }

  /** A frame that is none: the stream is ended, all others go on. */
  malformed(session: number, why: string): void {
    const cluster = this.sessions.clusterOf(session);
    if (cluster !== undefined) this.#engine.endSession(cluster);
    this.sessions.close(session, GRPC_CODES.invalidArgument, why);
  }

  #greet(cluster: string, isNew: boolean): void {
    this.#acknowledge(cluster);
    if (!isNew) return;
    this.#engine.endSession(cluster);
    this.machines.replay(cluster, (id) => this.actuator.isAwaitingBlob(id));
    this.actuator.askAgain(cluster);
  }

  #acknowledge(cluster: string): void {
    const value = create(AcknowledgementSchema, { echo: cluster, shardEpoch: this.#options.epoch });
    this.sessions.send(cluster, { case: 'ack', value });
  }

  #rolledUp(cluster: string, message: ClusterCapacityNeeds, nowMs: number): void {
    const taken = message.clusterId === cluster ? rollupOf(message) : 'it is of another cluster';
    const outcome = this.#take(cluster, taken, nowMs);
    if (outcome.kind !== 'rejected') this.#acknowledge(cluster);
  }

  /** Demand from who has no session. */
  rolledUpOnce(rollup: RollupMessage, nowMs: number): RollupOutcome {
    return this.#take(rollup.cluster, rollup, nowMs);
  }

  #take(cluster: string, taken: RollupMessage | string, nowMs: number): RollupOutcome {
    const outcome =
      typeof taken === 'string'
        ? ({ kind: 'rejected', reason: taken } as const)
        : this.#engine.rollup(taken);
    if (outcome.kind === 'rejected') {
      this.counts.rollupsRejected.add(1, cluster);
      this.#effects.log('warn', `roll-up of cluster ${cluster} refused: ${outcome.reason}`);
      return outcome;
    }
    if (!this.#heard.has(cluster)) {
      this.#heard.add(cluster);
      // its machines elsewhere were none of ours so far
      if (this.#options.domains.size > 0) this.#reconciler.listAnew();
    }
    if (outcome.kind === 'held') {
      this.counts.quarantined.set(cluster, outcome.reports);
      const why = 'nearly all of its demand is gone';
      this.#effects.log('warn', `roll-up of cluster ${cluster} held: ${why}`);
    } else {
      this.counts.quarantined.delete(cluster);
      this.#wantCycle(nowMs);
    }
    return outcome;
  }

  /** One cycle on a copy, with another roll-up of one cluster; or why there is none. */
  whatIf(rollup: RollupMessage, machinesMax: number, nowMs: number): Cycle | string {
    return this.#engine.whatIf(rollup, machinesMax, nowMs / 1000);
  }

  #wantCycle(nowMs: number): void {
    if (this.#round.kind !== 'resting') return;
    const soonestMs = Math.max(nowMs, this.#cycledMs + CYCLE_PAUSE_MS);
    this.#round = { kind: 'resting', nextMs: Math.min(this.#round.nextMs, soonestMs) };
  }

  /** An answer to a `list`. */
  listed(provider: number, list: number, answer: MachineList | CallFailure, nowMs: number): void {
    this.#reconciler.listed(provider, list, answer, nowMs);
    if (this.#round.kind === 'listing' && !this.#reconciler.isListing) this.#decide(nowMs);
  }

  /** An answer to a `call`. */
  called(call: number, answer: TransitionAck | CallFailure, nowMs: number): void {
    this.actuator.called(call, answer, nowMs);
  }

  /** The shard has other domains now. */
  reassigned(nowMs: number): void {
    this.#reconciler.reassigned();
    this.#wantCycle(nowMs);
  }

  /** Somebody looks at rows: the next cycles work out all of them. */
  inspected(nowMs: number): void {
    this.#inspectedMs = nowMs;
    if (this.inspection === null) this.#wantCycle(nowMs);
  }

  /** Decides no more. What is under way ends. */
  stop(): void {
    this.#isStopped = true;
    this.actuator.clearQueue();
  }

  /** Does what is due by `nowMs`, which never goes back. */
  tick(nowMs: number): void {
    this.sessions.tick(nowMs);
    this.actuator.tick(nowMs);
    if (this.#isStopped) {
      this.#round = { kind: 'resting', nextMs: Infinity };
    } else if (this.#round.kind === 'listing') {
      if (nowMs >= this.#round.deadlineMs) this.#decide(nowMs);
    } else if (nowMs >= this.#round.nextMs) {
      this.#round = { kind: 'listing', deadlineMs: nowMs + this.#options.listWaitMs };
      this.#reconciler.begin();
    }
  }

  #decide(nowMs: number): void {
    const { cycleMs, joinMs } = this.#options;
    this.#cycledMs = nowMs;
    this.#round = { kind: 'resting', nextMs: nowMs + cycleMs };
    if (!this.#reconciler.isReady || this.#isStopped) return;
    for (const id of this.machines.joiningSince(nowMs - joinMs)) {
      const hold = { untilMs: nowMs, past: 'Configuring' } as const;
      this.machines.fail(id, 'it has not joined in time', hold, nowMs);
      this.#effects.log('warn', `machine ${id} has not joined in time and counts no more`);
    }
    const withViews = nowMs - this.#inspectedMs < INSPECTED_MS;
    const cycle = this.#engine.cycle(nowMs / 1000, { withViews });
    this.#cycles++;
    this.last = { number: this.#cycles, shortfalls: cycle.shortfalls };
    const seen = { cycle: this.#cycles, atMs: nowMs, views: cycle.views };
    this.inspection = withViews ? seen : null;
    for (const hint of cycle.hints) this.#hint(hint);
    this.#carryOut(cycle, nowMs);
  }

  #carryOut({ actions, withheld, deferred, suppressed }: Cycle, nowMs: number): void {
    this.counts.capped += withheld.length;
    this.counts.deferred += deferred;
    if (suppressed !== undefined) {
      const count = suppressed === 'paused' ? this.counts.suppressed : this.counts.dryRun;
      for (const { kind } of actions) count.add(1, kind);
      return;
    }
    this.actuator.take(actions, nowMs);
    if (deferred > 0) this.#wantCycle(nowMs);
  }

  #hint({ cluster, profile, count, confidence, costPerHour }: Hint): void {
    const value = create(AvailableCapacityUpdateSchema, {
      supersedesKey: `available:${profile.fingerprint}`,
      requirements: profile.requirements.map((one) => ({ ...one, values: [...one.values] })),
      ...{ availableCount: count, confidence: Confidence[confidence], costPerHour },
    });
    this.sessions.send(cluster, { case: 'availableCapacity', value });
  }
}
