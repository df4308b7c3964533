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
  readonly durationMs: number;
  readonly failure?: string;
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

interface Kept {
  machine: Machine;
  /** The revision of its last change. */
  changed: number;
  operation: { readonly kind: TransitionKind; readonly id: string } | null;
  /** When it ends what it is at, or goes by itself. */
  dueMs: number;
  failure: string;
  /** It is taken away: it drains and is deleted by itself. */
  isGoing: boolean;
}

export interface ProviderOptions {
  readonly machines: readonly Machine[];
  readonly backend: Backend;
  /** A longer transition has failed. */
  readonly timeoutMs: number;
  /** Tells this life of the provider from others: cursors of other lives mean nothing. */
  readonly instance: number;
}

export class Provider {
  readonly #records = new Map<string, Kept>();
  readonly #backend: Backend;
  readonly #timeoutMs: number;
  readonly #instance: number;
  readonly #fences = new Fences();
  /** Records that something is due for. */
  readonly #due = new Set<Kept>();
  #revision = 1;
  #operations = 0;

  constructor(options: ProviderOptions) {
    this.#backend = options.backend;
    this.#timeoutMs = options.timeoutMs;
    this.#instance = options.instance;
    for (const machine of options.machines) {
      if (this.#records.has(machine.id)) throw new Error(`two machines are called ${machine.id}`);
      const rest = { changed: this.#revision, operation: null, dueMs: Infinity, failure: '' };
      const isGoing = false;
      this.#records.set(machine.id, { machine, ...rest, isGoing });
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
    return this.#begin('configure', record, nowMs, () => {
      machine.cluster = request.clusterId;
      machine.shardMetadata = { ...request.shardMetadata };
    });
  }

  drain(request: DrainRequest, nowMs: number): TransitionAck {
    if (request.gracePeriodSeconds < 0n) throw invalid('grace_period_seconds is negative');
    return this.#begin('drain', this.#admit(request, nowMs), nowMs, () => {});
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

  /** Machines by id; after a cursor of this life, by their last change. */
  list(filter: ListFilter, nowMs: number): MachineList {
    if (filter.maxResults < 0) throw invalid('max_results is negative');
    this.tick(nowMs);
    const since = readCursor(filter.sinceRevision, this.#instance, this.#revision);
    const wanted = new Set<number>(filter.states);
    const found = [...this.#records.values()].filter(
      ({ machine, changed }) => changed > since && (wanted.size === 0 || wanted.has(machine.state)),
    );
    if (since > 0) found.sort((a, b) => a.changed - b.changed);
    else found.sort((a, b) => (a.machine.id < b.machine.id ? -1 : 1));
    const limit = filter.maxResults === 0 ? found.length : filter.maxResults;
    const shown = found.slice(0, limit);
    // a part of a whole list is no place to go on from; a part of the changes is
    let cursor = this.#revision;
    if (shown.length < found.length) cursor = since > 0 ? (shown.at(-1)?.changed ?? since) : 0;
    return create(MachineListSchema, {
      machines: shown.map(({ machine }) => ({ ...machine })),
      revision: cursor === 0 ? new Uint8Array() : writeCursor(this.#instance, cursor),
    });
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
    const verdict = this.#fences.admit(request.machineId, request, this.#records);
    if (verdict === 'malformed') throw invalid('a fencing token has no negative parts');
    if (verdict === 'stale') {
      const { shardId, shardEpoch, sequenceNumber } = request;
      const token = `${shardId}/${shardEpoch}/${sequenceNumber}`;
      throw new CallError(GRPC_CODES.failedPrecondition, `fenced: ${token} is not the newest`);
    }
    this.tick(nowMs);
    return this.#found(request.machineId);
  }

  #begin(kind: TransitionKind, record: Kept, nowMs: number, bind: () => void): TransitionAck {
    const { machine } = record;
    const { from, through, to } = RULES[kind];
    const isUnderWay = machine.state === through && record.operation?.kind === kind;
    if (isUnderWay || machine.state === to) {
      record.operation ??= { kind, id: this.#operationId() };
      return acknowledged(record.operation.id, machine);
    }
    if (machine.state !== from) {
      throw illegal(`machine ${machine.id} is ${stateName(machine.state)}: no ${kind}`);
    }
    const plan = this.#backend.plan(kind, machine);
    bind();
    this.#start(kind, record, plan, nowMs);
    return acknowledged(record.operation?.id ?? '', machine);
  }

  #start(kind: TransitionKind, record: Kept, plan: Plan, nowMs: number): void {
    const isTooLong = plan.durationMs > this.#timeoutMs;
    record.machine.state = RULES[kind].through;
    record.operation = { kind, id: this.#operationId() };
    this.#await(record, nowMs + Math.min(plan.durationMs, this.#timeoutMs));
    record.failure = isTooLong ? `${kind} timed out` : (plan.failure ?? '');
    this.#changed(record);
  }

  #step(record: Kept): void {
    const { machine, operation, dueMs } = record;
    const rule = operation === null ? undefined : RULES[operation.kind];
    if (operation === null || rule === undefined || machine.state !== rule.through) {
      return this.#goByItself(record, dueMs);
    }
    this.#await(record, Infinity);
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
    }
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
      this.#start('drain', record, this.#backend.plan('drain', record.machine), nowMs);
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
  }

  #operationId(): string {
    return `op-${this.#instance}-${++this.#operations}`;
  }
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
