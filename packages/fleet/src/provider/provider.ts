/**
 * A provider without a world: machines, the six calls of `CapacityProvider`, and what a transition
 * takes and how it ends, which a `Backend` says. Time is an argument: `tick` ends what is due.
 *
 *     Speculative ──Create──► Creating ──► Idle ──Configure──► Configuring ──► Configured
 *          ▲                                │ ▲                                    │
 *          └──────── Deleting ◄──Delete─────┘ └──────────── Draining ◄──Drain──────┘
 *
 * A call is answered as soon as it is accepted. Its arguments are judged first, then its fencing
 * token, then whether the machine is there, then whether it is asked for what is done already. A
 * token that passes counts, whatever becomes of the call.
 */
import { clone, create } from '@bufbuild/protobuf';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import {
  HostRefSchema,
  MachineListSchema,
  MachineSchema,
  MachineState as State,
  TransitionAckSchema,
} from '../contract/tables/provider.ts';
import type {
  ConfigureRequest,
  CreateRequest,
  DeleteRequest,
  DrainRequest,
  ListFilter,
  Machine,
  MachineList,
  TransitionAck,
} from '../contract/tables/provider.ts';
import { Fences } from './fences.ts';
import type { Token } from './fences.ts';
import { readCursor, writeCursor } from './cursor.ts';

export const BLOB_BYTES_MAX: number = 1024 * 1024;
export const METADATA_BYTES_MAX: number = 64 * 1024;

export type TransitionKind = 'create' | 'configure' | 'drain' | 'delete';

/** How long a transition takes, and why it fails if it does. */
export interface Plan {
  /** Infinity: until `settle` tells how it ended, or it has taken too long. */
  readonly durationMs: number;
  readonly failure?: string;
}

/** What a transition was asked for with. */
export interface Asked {
  readonly bootstrapBlob?: Uint8Array;
  readonly graceSeconds?: number;
}

/** A transition that began: a backend that does something does it now. */
export interface Started extends Asked {
  readonly kind: TransitionKind;
  readonly machine: Machine;
  readonly operationId: string;
}

/** What stands behind the machines. It may throw a `CallError`: nothing has happened then. */
export interface Backend {
  plan(kind: TransitionKind, machine: Machine): Plan;
  /** Identity of the host that a machine gets. */
  hostOf(machine: Machine): { readonly provider: string; readonly ref: string };
  /** False where machines cannot be given back: Delete is then unimplemented. */
  readonly canDelete: boolean;
  /** A machine came to rest in a state. Returns when it goes by itself; Infinity: never. */
  lifetimeMs(machine: Machine): number;
  /** A machine that was there in an earlier life is there again. */
  restored?(machine: Machine): void;
  /** Told of each transition once it has begun, and again after a restart. */
  started?(started: Started): void;
}

/** What of a machine must be known after a restart. */
export interface Kept {
  machine: Machine;
  /** The revision of its last change. */
  changed: number;
  operation: { readonly kind: TransitionKind; readonly id: string } | null;
  /** When it ends what it is at, or goes by itself. */
  dueMs: number;
  failure: string;
  /** It is taken away: it drains and is deleted by itself. */
  isGoing: boolean;
  /** With what the transition under way was asked for. */
  asked: Asked;
  /** The blob that it was bound with, while it is. */
  blob: Uint8Array;
}

/** Is told of all that a later life must know, before anybody is answered. */
export interface Keeper {
  kept(record: Kept): void;
  admitted(machineId: string, token: Token): void;
}

/** What an earlier life left. */
export interface Left {
  readonly records: readonly Kept[];
  readonly tokens: readonly (Token & { readonly machineId: string })[];
}

interface Rule {
  readonly from: State;
  readonly through: State;
  readonly to: State;
}

const RULES: Readonly<Record<TransitionKind, Rule>> = {
  create: { from: State.SPECULATIVE, through: State.CREATING, to: State.IDLE },
  configure: { from: State.IDLE, through: State.CONFIGURING, to: State.CONFIGURED },
  drain: { from: State.CONFIGURED, through: State.DRAINING, to: State.IDLE },
  delete: { from: State.IDLE, through: State.DELETING, to: State.SPECULATIVE },
};

export interface ProviderOptions {
  readonly machines: readonly Machine[];
  readonly backend: Backend;
  /** A longer transition has failed. */
  readonly timeoutMs: number;
  /** Tells this provider from others: cursors of others mean nothing. */
  readonly instance: number;
  /** Tells this life from earlier ones with the same `instance`. */
  readonly life?: number;
  readonly keeper?: Keeper;
  readonly left?: Left;
}

const NOTHING_ASKED: Asked = {};
const NO_BLOB: Uint8Array = new Uint8Array();

export class Provider {
  /** How often each call was answered how: `create/accepted`. */
  readonly calls: Map<string, number> = new Map();
  /** How often each kind of transition ended how. */
  readonly transitions: Map<string, number> = new Map();
  readonly #records = new Map<string, Kept>();
  readonly #backend: Backend;
  readonly #timeoutMs: number;
  readonly #instance: number;
  readonly #fences: Fences = new Fences((id) => this.#records.has(id));
  readonly #keeper: Keeper | undefined;
  readonly #life: number;
  /** Records that something is due for. */
  readonly #due = new Set<Kept>();
  #revision = 0;
  /** Machines that nothing has happened to have changes up to this one, each its own. */
  #restingMax = 0;
  #operations = 0;

  constructor(options: ProviderOptions) {
    this.#backend = options.backend;
    this.#timeoutMs = options.timeoutMs;
    // cursors of an earlier life mean nothing
    this.#instance = options.instance + (options.life ?? 0);
    this.#keeper = options.keeper;
    this.#life = options.life ?? 1;
    for (const machine of options.machines) {
      if (this.#records.has(machine.id)) throw new Error(`two machines are called ${machine.id}`);
      this.#records.set(machine.id, restingRecord(machine, ++this.#revision));
    }
    this.#restingMax = this.#revision;
    if (options.left !== undefined) this.#goOn(options.left);
  }

  /** Takes up what an earlier life left; transitions that were under way go on. */
  #goOn({ records, tokens }: Left): void {
    for (const record of records) {
      const { machine } = record;
      const model = this.#records.get(machine.id)?.machine;
      // prices are those of today's list
      if (model !== undefined) {
        machine.pricePerHour = model.pricePerHour;
        machine.interruptionProbability = model.interruptionProbability;
      }
      record.changed = ++this.#revision;
      this.#records.set(machine.id, record);
      this.#backend.restored?.(machine);
      if (record.dueMs < Infinity) this.#due.add(record);
      this.#began(record);
    }
    for (const { machineId, ...token } of tokens) {
      this.#fences.admit(machineId, token);
    }
  }

  create(request: CreateRequest, nowMs: number): TransitionAck {
    const record = this.#admit(request, nowMs);
    return this.#begin('create', record, nowMs, () => {});
  }

  configure(request: ConfigureRequest, nowMs: number): TransitionAck {
    if (request.clusterId === '') throw invalid('cluster_id is empty');
    if (request.bootstrapBlob.length > BLOB_BYTES_MAX) {
      throw invalid(`bootstrap_blob is longer than ${BLOB_BYTES_MAX} bytes`);
    }
    let metadataBytes = 0;
    for (const [key, value] of Object.entries(request.shardMetadata)) {
      metadataBytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    }
    if (metadataBytes > METADATA_BYTES_MAX) {
      throw invalid(`shard_metadata is longer than ${METADATA_BYTES_MAX} bytes`);
    }
    const record = this.#admit(request, nowMs);
    const { machine } = record;
    const isBound = machine.state === State.CONFIGURING || machine.state === State.CONFIGURED;
    if (isBound && machine.cluster !== request.clusterId) {
      throw illegal(`machine ${machine.id} is bound to ${machine.cluster}`);
    }
    const bootstrapBlob = Uint8Array.from(request.bootstrapBlob);
    const bind = (): void => {
      machine.cluster = request.clusterId;
      machine.shardMetadata = { ...request.shardMetadata };
      record.blob = bootstrapBlob;
    };
    return this.#begin('configure', record, nowMs, bind, { bootstrapBlob });
  }

  drain(request: DrainRequest, nowMs: number): TransitionAck {
    if (request.gracePeriodSeconds < 0n) throw invalid('grace_period_seconds is negative');
    const graceSeconds = Number(request.gracePeriodSeconds);
    const record = this.#admit(request, nowMs);
    const bootstrapBlob = record.blob;
    return this.#begin('drain', record, nowMs, () => {}, { graceSeconds, bootstrapBlob });
  }

  delete(request: DeleteRequest, nowMs: number): TransitionAck {
    const record = this.#admit(request, nowMs);
    if (!this.#backend.canDelete) {
      throw new CallError(GRPC_CODES.unimplemented, 'machines of this provider stay');
    }
    return this.#begin('delete', record, nowMs, () => {});
  }

  get(id: string, nowMs: number): Machine {
    if (id === '') throw invalid('id is empty');
    this.tick(nowMs);
    return clone(MachineSchema, this.#found(id).machine);
  }

  /** Machines by id; in parts, and after a cursor of this life, by their last change. */
  list(filter: ListFilter, nowMs: number): MachineList {
    if (filter.maxResults < 0) throw invalid('max_results is negative');
    this.tick(nowMs);
    const since = readCursor(filter.sinceRevision, this.#instance, this.#revision);
    const wanted = new Set<number>(filter.states);
    const found = [...this.#records.values()].filter(
      ({ machine, changed }) => changed > since && (wanted.size === 0 || wanted.has(machine.state)),
    );
    const limit = filter.maxResults === 0 ? found.length : filter.maxResults;
    const isPart = limit < found.length;
    // pages go by changes, so that the next one begins where this one ended
    if (since > 0 || isPart) found.sort((a, b) => a.changed - b.changed);
    else found.sort((a, b) => (a.machine.id < b.machine.id ? -1 : 1));
    const shown = isPart ? found.slice(0, limit) : found;
    const cursor = isPart ? (shown.at(-1)?.changed ?? since) : this.#revision;
    return create(MachineListSchema, {
      machines: shown.map(({ machine }) => ({ ...machine })),
      revision: cursor === 0 ? new Uint8Array() : writeCursor(this.#instance, cursor),
    });
  }

  /**
   * A transition ended, by the word of who carries it out; '' where all went well. What comes of an
   * operation that is over counts for nothing.
   */
  settle(id: string, operationId: string, failure: string, nowMs: number): void {
    const record = this.#records.get(id);
    const kind = record?.operation?.kind;
    if (record === undefined || kind === undefined || record.operation?.id !== operationId) return;
    if (record.machine.state !== RULES[kind].through) return;
    record.failure = failure;
    this.#await(record, nowMs);
    this.tick(nowMs);
  }

  /** In no order. */
  *machines(): Generator<Machine> {
    for (const { machine } of this.#records.values()) yield machine;
  }

  /** All that a later life must know. */
  get left(): Left {
    const records = [...this.#records.values()].filter(({ changed }) => changed > this.#restingMax);
    return { records, tokens: [...this.#fences.tokens()] };
  }

  /** When something is due next; Infinity for nothing. */
  get wakeMs(): number {
    let wakeMs = Infinity;
    for (const { dueMs } of this.#due) wakeMs = Math.min(wakeMs, dueMs);
    return wakeMs;
  }

  /** Ends what is due. Without anything due nothing changes, the revision neither. */
  tick(nowMs: number): void {
    for (const record of this.#due) {
      // a machine that goes by itself passes through several states
      for (let steps = 0; record.dueMs <= nowMs && steps < 8; steps++) this.#step(record);
    }
  }

  #admit(request: Token & { readonly machineId: string }, nowMs: number): Kept {
    if (request.machineId === '') throw invalid('machine_id is empty');
    const verdict = this.#fences.admit(request.machineId, request);
    if (verdict === 'stale') count(this.calls, 'change/fenced');
    if (verdict === 'malformed') throw invalid('a fencing token has no negative parts');
    if (verdict === 'stale') {
      const { shardId, shardEpoch, sequenceNumber } = request;
      const token = `${shardId}/${shardEpoch}/${sequenceNumber}`;
      throw new CallError(GRPC_CODES.failedPrecondition, `fenced: ${token} is not the newest`);
    }
    if (request.shardId !== '') this.#keeper?.admitted(request.machineId, request);
    this.tick(nowMs);
    return this.#found(request.machineId);
  }

  #begin(
    kind: TransitionKind,
    record: Kept,
    nowMs: number,
    bind: () => void,
    asked: Asked = NOTHING_ASKED,
  ): TransitionAck {
    const { machine } = record;
    const { from, through, to } = RULES[kind];
    const isUnderWay = machine.state === through && record.operation?.kind === kind;
    if (isUnderWay || machine.state === to) {
      if (record.operation === null) {
        record.operation = { kind, id: this.#operationId() };
        this.#keeper?.kept(record);
      }
      return acknowledged(record.operation.id, machine);
    }
    if (machine.state !== from) {
      count(this.calls, `${kind}/refused`);
      throw illegal(`machine ${machine.id} is ${stateName(machine.state)}: no ${kind}`);
    }
    const plan = this.#backend.plan(kind, machine);
    bind();
    this.#start(kind, record, plan, nowMs, asked);
    return acknowledged(record.operation?.id ?? '', machine);
  }

  #start(
    kind: TransitionKind,
    record: Kept,
    plan: Plan,
    nowMs: number,
    asked: Asked = NOTHING_ASKED,
  ): void {
    const isTooLong = plan.durationMs > this.#timeoutMs;
    record.machine.state = RULES[kind].through;
    record.operation = { kind, id: this.#operationId() };
    this.#await(record, nowMs + Math.min(plan.durationMs, this.#timeoutMs));
    record.failure = isTooLong ? `${kind} timed out` : (plan.failure ?? '');
    record.asked = asked;
    count(this.calls, `${kind}/accepted`);
    this.#changed(record);
    this.#began(record);
  }

  #began({ machine, operation, asked }: Kept): void {
    if (operation === null || machine.state !== RULES[operation.kind].through) return;
    const { kind, id: operationId } = operation;
    this.#backend.started?.({
      kind,
      machine: clone(MachineSchema, machine),
      operationId,
      ...asked,
    });
  }

  #step(record: Kept): void {
    const { machine, operation, dueMs } = record;
    const rule = operation === null ? undefined : RULES[operation.kind];
    if (operation === null || rule === undefined || machine.state !== rule.through) {
      return this.#goByItself(record, dueMs);
    }
    this.#await(record, Infinity);
    count(this.transitions, `${operation.kind}/${record.failure === '' ? 'done' : 'failed'}`);
    if (record.failure !== '') {
      machine.state = State.FAILED;
      machine.lastError = record.failure;
      return this.#changed(record);
    }
    machine.state = rule.to;
    if (operation.kind === 'create') {
      machine.host = create(HostRefSchema, this.#backend.hostOf(machine));
    } else if (operation.kind === 'delete') {
      delete machine.host;
    } else if (operation.kind === 'drain') {
      machine.cluster = '';
      machine.shardMetadata = {};
      record.blob = NO_BLOB;
    }
    record.asked = NOTHING_ASKED;
    if (operation.kind === 'delete') record.isGoing = false;
    const restMs = record.isGoing ? 0 : this.#backend.lifetimeMs(machine);
    this.#await(record, dueMs + restMs);
    this.#changed(record);
  }

  /** A machine that is taken away drains and is deleted, by the edges that are legal. */
  #goByItself(record: Kept, nowMs: number): void {
    this.#await(record, Infinity);
    record.isGoing = true;
    const { state } = record.machine;
    if (state === State.CONFIGURED) {
      const asked = { graceSeconds: 0, bootstrapBlob: record.blob };
      this.#start('drain', record, this.#backend.plan('drain', record.machine), nowMs, asked);
    } else if (state === State.IDLE && this.#backend.canDelete) {
      this.#start('delete', record, this.#backend.plan('delete', record.machine), nowMs);
    }
  }

  #await(record: Kept, dueMs: number): void {
    record.dueMs = dueMs;
    if (dueMs === Infinity) this.#due.delete(record);
    else this.#due.add(record);
  }

  #found(id: string): Kept {
    const record = this.#records.get(id);
    if (record === undefined)
      throw new CallError(GRPC_CODES.notFound, `no machine is called ${id}`);
    return record;
  }

  #changed(record: Kept): void {
    record.changed = ++this.#revision;
    this.#keeper?.kept(record);
  }

  #operationId(): string {
    return `op-${this.#instance}-${this.#life}-${++this.#operations}`;
  }
}

/** A machine that nothing has happened to yet. */
export function restingRecord(machine: Machine, changed: number): Kept {
  const rest = { operation: null, dueMs: Infinity, failure: '', isGoing: false };
  return { machine, changed, ...rest, asked: NOTHING_ASKED, blob: NO_BLOB };
}

function acknowledged(operationId: string, machine: Machine): TransitionAck {
  return create(TransitionAckSchema, { operationId, machine: clone(MachineSchema, machine) });
}

function invalid(message: string): CallError {
  return new CallError(GRPC_CODES.invalidArgument, message);
}

/** Not FAILED_PRECONDITION, which means that a call was fenced and nothing else. */
function illegal(message: string): CallError {
  return new CallError(GRPC_CODES.internal, message);
}

export function stateName(state: number): string {
  const found = Object.entries(State).find(([, number]) => number === state);
  return found?.[0] ?? String(state);
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
