/**
 * Carries actions out, section 4.11: one at a time for a machine, at most `concurrency` at once,
 * the rest in a queue; what finds no room is decided anew in the next cycle.
 *
 *     Provision   Speculative ─Create─► Creating; at once Idle: goes on as Bootstrap
 *     Bootstrap   Idle ─► Configuring ─blob from the operator─► Configure
 *     Reclaim     Configured ─instruction to the operator─► Draining ─► Drain   (and Preempt)
 *     Delete      Idle ─► Deleting ─► Delete
 *
 * An answer shows a machine that is mostly still on its way; Lists tell how that ends.
 */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { create } from '@bufbuild/protobuf';
import { BootstrapRequestSchema, ReclaimInstructionSchema } from '../contract/tables/shard.ts';
import type { BootstrapBlobResponse } from '../contract/tables/shard.ts';
import type { TransitionAck } from '../contract/tables/provider.ts';
import { machineOf, stateOf } from '../engine/inventory.ts';
import { NO_STAMP } from '../engine/machine.ts';
import type { Machine, Stamp, State } from '../engine/machine.ts';
import type { Action } from '../engine/row.ts';
import type { Counts } from './counts.ts';
import type { CallFailure, Change, Effects } from './effects.ts';
import type { FleetMachines } from './fleet-machines.ts';
import { stampFor } from './machine-words.ts';
import {
  acknowledgedBy,
  configureCall,
  createCall,
  deleteCall,
  drainCall,
} from './provider-change.ts';
import type { Token } from './provider-change.ts';
import type { Sessions } from './sessions.ts';

/** For a blob. */
export const BOOTSTRAP_MS_MAX = 30_000;
/** A machine that its provider refused to change is not asked for again for so long. */
export const REFUSED_HOLD_MS = 60_000;

/** Failures after which nobody knows whether the call was carried out: the next List tells. */
const UNSURE: ReadonlySet<number> = new Set([
  ...[GRPC_CODES.unavailable, GRPC_CODES.deadlineExceeded, GRPC_CODES.cancelled],
  ...[GRPC_CODES.unknown, GRPC_CODES.aborted],
]);

/** The state that an action begins in. */
const FROM: Readonly<Record<Action['kind'], State>> = {
  Bootstrap: 'Idle',
  Provision: 'Speculative',
  Preempt: 'Configured',
  Reclaim: 'Configured',
  Delete: 'Idle',
};

type Stage =
  | { readonly kind: 'queued' }
  | { readonly kind: 'blob'; readonly requestId: string; readonly deadlineMs: number }
  | { readonly kind: 'calling'; readonly call: number; readonly change: Change };

interface Flight {
  readonly action: Action;
  stage: Stage;
}

export interface ActuatorOptions {
  readonly shardId: string;
  /** Rises with each start of the shard. */
  readonly epoch: bigint;
  readonly concurrency: number;
  /** Text that nobody can guess. */
  readonly newId: () => string;
}

export class Actuator {
  readonly #options: ActuatorOptions;
  readonly #machines: FleetMachines;
  readonly #sessions: Sessions;
  readonly #effects: Effects;
  readonly #counts: Counts;
  readonly #flights = new Map<string, Flight>();
  readonly #byCall = new Map<number, Flight>();
  readonly #byRequest = new Map<string, Flight>();
  readonly #queue: Flight[] = [];
  #running = 0;
  #sequence = 0n;
  #calls = 0;

  constructor(
    options: ActuatorOptions,
    parts: {
      readonly machines: FleetMachines;
      readonly sessions: Sessions;
      readonly effects: Effects;
      readonly counts: Counts;
    },
  ) {
    this.#options = options;
    this.#machines = parts.machines;
    this.#sessions = parts.sessions;
    this.#effects = parts.effects;
    this.#counts = parts.counts;
  }

  get inFlight(): number {
    return this.#running;
  }

  get queued(): number {
    return this.#queue.length;
  }

  isBusy(id: string): boolean {
    const flight = this.#flights.get(id);
    return flight !== undefined && flight.stage.kind !== 'queued';
  }

  /** True while the operator is asked: the provider has not been touched. */
  isAwaitingBlob(id: string): boolean {
    return this.#flights.get(id)?.stage.kind === 'blob';
  }

  /** When `tick` has something to do; Infinity for never. */
  get wakeMs(): number {
    let wakeMs = Infinity;
    for (const { stage } of this.#byRequest.values()) {
      if (stage.kind === 'blob') wakeMs = Math.min(wakeMs, stage.deadlineMs);
    }
    return wakeMs;
  }

  /** Takes the actions of a cycle; those that find no room are dropped. */
  take(actions: readonly Action[], nowMs: number): void {
    for (const action of actions) {
      const { id } = action.machine;
      const isFit = this.#machines.inventory.stateOf(id) === FROM[action.kind];
      if (this.#flights.has(id) || !isFit) {
        this.#counts.deduped++;
        continue;
      }
      const { concurrency } = this.#options;
      if (this.#running >= concurrency && this.#queue.length >= 2 * concurrency) {
        this.#counts.dropped++;
        continue;
      }
      this.#counts.actions.add(1, action.kind);
      const flight: Flight = { action, stage: { kind: 'queued' } };
      this.#flights.set(id, flight);
      this.#queue.push(flight);
      this.#startNext(nowMs);
    }
  }

  /** Begins nothing that waits: what is under way ends as it will. */
  clearQueue(): void {
    for (const { action } of this.#queue) this.#flights.delete(action.machine.id);
    this.#queue.length = 0;
  }

  #startNext(nowMs: number): void {
    while (this.#running < this.#options.concurrency) {
      const flight = this.#queue.shift();
      if (flight === undefined) return;
      const { id } = flight.action.machine;
      // what was decided a while ago may not be so any more
      const machine = this.#machines.inventory.get(id);
      if (machine?.state !== FROM[flight.action.kind]) {
        this.#flights.delete(id);
        this.#counts.deduped++;
        continue;
      }
      this.#running++;
      this.#start(flight, machine, nowMs);
    }
  }

  #start(flight: Flight, machine: Machine, nowMs: number): void {
    const { action } = flight;
    switch (action.kind) {
      case 'Provision': {
        const { fingerprint, group } = this.#stampOf(action);
        this.#machines.move(
          machine,
          { state: 'Creating', stamp: { ...NO_STAMP, fingerprint, group } },
          nowMs,
        );
        return this.#call(flight, createCall(machine.id, this.#token()));
      }
      case 'Bootstrap':
        return this.#bootstrap(flight, machine, nowMs);
      case 'Reclaim':
      case 'Preempt':
        this.#instruct(action);
        this.#machines.move(machine, { state: 'Draining' }, nowMs);
        return this.#call(flight, drainCall(machine.id, graceOf(action), this.#token()));
      case 'Delete':
        this.#counts.idleReleases++;
        this.#machines.move(machine, { state: 'Deleting' }, nowMs);
        return this.#call(flight, deleteCall(machine.id, this.#token()));
    }
  }

  #stampOf({ profile, group = '' }: Action): Stamp {
    return profile === undefined ? NO_STAMP : stampFor(profile, group);
  }

  #bootstrap(flight: Flight, machine: Machine, nowMs: number): void {
    const { action } = flight;
    const { cluster } = action;
    if (!this.#sessions.has(cluster)) return this.#finish(flight, 'no_session', nowMs);
    const { fingerprint, group } = this.#stampOf(action);
    const stamp = { ...NO_STAMP, fingerprint, group };
    // its cluster hears of it once the provider has taken it on
    this.#machines.move(machine, { state: 'Configuring', cluster, stamp }, nowMs, false);
    const requestId = this.#options.newId();
    flight.stage = { kind: 'blob', requestId, deadlineMs: nowMs + BOOTSTRAP_MS_MAX };
    this.#byRequest.set(requestId, flight);
    this.#ask(flight, requestId);
  }

  #ask({ action }: Flight, requestId: string): void {
    const requirements = (action.profile?.requirements ?? []).map((requirement) => {
      return { ...requirement, values: [...requirement.values] };
    });
    const value = { requestId, requirements, clusterId: action.cluster };
    this.#sessions.send(action.cluster, {
      case: 'bootstrapRequest',
      value: create(BootstrapRequestSchema, value),
    });
  }

  /** A cluster has a new session: what its former one was asked for is asked for again. */
  askAgain(cluster: string): void {
    for (const [requestId, flight] of this.#byRequest) {
      if (flight.action.cluster === cluster) this.#ask(flight, requestId);
    }
  }

  #instruct(action: Action): void {
    const { machine, cluster } = action;
    const value = create(ReclaimInstructionSchema, {
      ...{ instructionId: this.#options.newId(), nodes: [machine.id] },
      gracePeriodSeconds: BigInt(graceOf(action)),
      preemptorPriority: action.preemptorPriority ?? 0,
    });
    if (this.#sessions.send(cluster, { case: 'reclaimInstruction', value })) return;
    this.#effects.log(
      'warn',
      `machine ${machine.id} drains without its cluster ${cluster}, which has no session`,
    );
  }

  /** A blob of a cluster came. What nobody waits for is passed over. */
  blob(cluster: string, response: BootstrapBlobResponse, nowMs: number): void {
    const flight = this.#byRequest.get(response.requestId);
    if (flight?.stage.kind !== 'blob' || flight.action.cluster !== cluster) return;
    this.#byRequest.delete(response.requestId);
    const waitedMs = nowMs - flight.stage.deadlineMs + BOOTSTRAP_MS_MAX;
    this.#counts.bootstrapSeconds.record(waitedMs / 1000);
    if (response.error !== '') {
      this.#effects.log('warn', `cluster ${cluster} has no bootstrap blob: ${response.error}`);
      return this.#rollBack(flight, 'blob_error', nowMs);
    }
    const { id } = flight.action.machine;
    if (this.#machines.inventory.stateOf(id) !== 'Configuring') {
      return this.#finish(flight, 'transition_raced_to_idle', nowMs);
    }
    const to = { clusterId: cluster, bootstrapBlob: response.userData };
    const stamp = this.#stampOf(flight.action);
    this.#call(flight, configureCall(id, { ...to, stamp }, this.#token()));
  }

  tick(nowMs: number): void {
    for (const [requestId, flight] of this.#byRequest) {
      if (flight.stage.kind !== 'blob' || flight.stage.deadlineMs > nowMs) continue;
      this.#byRequest.delete(requestId);
      this.#rollBack(flight, 'blob_timeout', nowMs);
    }
  }

  /** The provider has not been touched: the machine is what it was. */
  #rollBack(flight: Flight, outcome: string, nowMs: number): void {
    const machine = this.#machines.inventory.get(flight.action.machine.id);
    if (machine?.state === 'Configuring') {
      const idle = { state: 'Idle', cluster: '', stamp: NO_STAMP } as const;
      this.#machines.move(machine, idle, nowMs, false);
    }
    this.#finish(flight, outcome, nowMs);
  }

  #token(): Token {
    const { shardId, epoch } = this.#options;
    return { shardId, shardEpoch: epoch, sequenceNumber: ++this.#sequence };
  }

  #call(flight: Flight, change: Change): void {
    const call = ++this.#calls;
    flight.stage = { kind: 'calling', call, change };
    this.#byCall.set(call, flight);
    const provider = this.#machines.providerOf(flight.action.machine.id) ?? 0;
    this.#effects.push({ kind: 'call', provider, call, change });
  }

  /** What came of a call. */
  called(call: number, answer: TransitionAck | CallFailure, nowMs: number): void {
    const flight = this.#byCall.get(call);
    if (flight === undefined || flight.stage.kind !== 'calling') return;
    this.#byCall.delete(call);
    const { change } = flight.stage;
    if ('code' in answer) return this.#failed(flight, answer, nowMs);
    const record = acknowledgedBy(change, answer);
    if (typeof record === 'string') {
      const { unknown } = GRPC_CODES;
      return this.#failed(flight, { code: unknown, message: record }, nowMs);
    }
    const { id } = record;
    const before = this.#machines.inventory.get(id);
    const state = stateOf(record.state);
    if (before === undefined || state === undefined) {
      return this.#finish(flight, 'transition_error', nowMs);
    }
    this.#machines.hosted(id, answer.machine?.host);
    const stamp = change.method === 'configure' ? this.#stampOf(flight.action) : before.stamp;
    this.#machines.acknowledged(machineOf(record, state, stamp), before, nowMs);
    const machine = this.#machines.inventory.get(id);
    if (change.method === 'create' && machine?.state === 'Idle') {
      return this.#bootstrap(flight, machine, nowMs);
    }
    this.#finish(flight, 'success', nowMs);
  }

  #failed(flight: Flight, { code, message }: CallFailure, nowMs: number): void {
    const { machine, kind } = flight.action;
    const isFenced = code === GRPC_CODES.failedPrecondition;
    const why = `${kind} of machine ${machine.id}: ${message} (code ${code})`;
    if (isFenced) {
      this.#effects.log('error', `${why}: fenced, is there another shard of this name?`);
    } else {
      this.#effects.log('warn', why);
    }
    const untilMs = isFenced ? Infinity : UNSURE.has(code) ? nowMs : nowMs + REFUSED_HOLD_MS;
    this.#machines.fail(machine.id, message, { untilMs }, nowMs);
    const isConfigure =
      flight.stage.kind === 'calling' && flight.stage.change.method === 'configure';
    const outcome = isConfigure ? 'configure_error' : 'provider_error';
    this.#finish(flight, isFenced ? 'fenced' : outcome, nowMs);
  }

  #finish(flight: Flight, outcome: string, nowMs: number): void {
    this.#counts.outcomes.add(1, flight.action.kind, outcome);
    this.#flights.delete(flight.action.machine.id);
    this.#running--;
    this.#startNext(nowMs);
  }
}

function graceOf({ graceSeconds = 0 }: Action): number {
  return Math.max(0, Math.floor(graceSeconds));
}
