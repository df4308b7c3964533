/** What a check of a provider works with: its calls, the machines that it made, patience. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import {
  CapacityType,
  MachineState as State,
  ConfigureRequestSchema,
  CreateRequestSchema,
  DeleteRequestSchema,
  DrainRequestSchema,
  ListFilterSchema,
  MachineRefSchema,
  type MachineList,
  type TransitionAck,
  type Machine,
  type ConfigureRequest,
  type CreateRequest,
  type DeleteRequest,
  type DrainRequest,
  type ListFilter,
  type MachineRef,
} from '../contract/tables/provider.ts';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { CallError } from '../contract/calls.ts';
import type { Token } from './fences.ts';
import { stateName } from './provider.ts';

/** What checks work with. */
export class Bench {
  readonly calls: ProviderCalls;
  readonly options: CertifyOptions;
  epoch = 1n;
  #sequence = 0n;

  constructor(calls: ProviderCalls, options: CertifyOptions) {
    this.calls = calls;
    this.options = options;
  }

  /** The next token of the shard. */
  token(): Token {
    const sequenceNumber = ++this.#sequence;
    return { shardId: this.options.shard, shardEpoch: this.epoch, sequenceNumber };
  }

  create(machineId: string, token: Token = this.token()): Promise<TransitionAck> {
    return this.calls.create(create(CreateRequestSchema, { machineId, ...token }));
  }

  configure(
    machineId: string,
    more: MessageInitShape<typeof ConfigureRequestSchema> = {},
  ): Promise<TransitionAck> {
    const request = { machineId, clusterId: 'certify', ...this.token(), ...more };
    return this.calls.configure(create(ConfigureRequestSchema, request as { machineId: string }));
  }

  drain(machineId: string, gracePeriodSeconds = 1n): Promise<TransitionAck> {
    const request = { machineId, gracePeriodSeconds, ...this.token() };
    return this.calls.drain(create(DrainRequestSchema, request));
  }

  delete(machineId: string): Promise<TransitionAck> {
    return this.calls.delete(create(DeleteRequestSchema, { machineId, ...this.token() }));
  }

  get(id: string): Promise<Machine> {
    return this.calls.get(create(MachineRefSchema, { id }));
  }

  list(filter: MessageInitShape<typeof ListFilterSchema> = {}): Promise<MachineList> {
    return this.calls.list(create(ListFilterSchema, filter as { maxResults?: number }));
  }

  /** Waits until a machine is in `state`. */
  async reaches(id: string, state: State): Promise<Machine> {
    let machine = await this.get(id);
    for (let polls = 0; machine.state !== state && polls < POLLS_MAX; polls++) {
      if (machine.state === State.FAILED) throw new Error(`${id} failed: ${machine.lastError}`);
      await this.options.sleep(POLL_MS);
      machine = await this.get(id);
    }
    const found = stateName(machine.state);
    this.holds(machine.state === state, `${id} is ${found}, and never ${stateName(state)}`);
    return machine;
  }

  /** A machine that is idle: one that is there, or one that is made. */
  async idle(): Promise<Machine> {
    const { machines } = await this.list({ states: [State.IDLE], maxResults: 1 });
    const [found] = machines;
    if (found !== undefined) return found;
    const slot = await this.speculative();
    await this.create(slot.id);
    return this.reaches(slot.id, State.IDLE);
  }

  async speculative(): Promise<Machine> {
    const { machines } = await this.list({ states: [State.SPECULATIVE] });
    const slot = machines.find(({ capacityType }) => capacityType !== CapacityType.SPOT);
    if (slot === undefined) throw new Incomplete('there is no speculative machine to try it on');
    return slot;
  }

  async configured(): Promise<Machine> {
    const { id } = await this.idle();
    await this.configure(id);
    return this.reaches(id, State.CONFIGURED);
  }

  async released(id: string): Promise<Machine> {
    await this.drain(id);
    return this.reaches(id, State.IDLE);
  }

  holds(isSo: boolean, otherwise: string): void {
    if (!isSo) throw new Error(otherwise);
  }

  /** The code with which a call is refused. Throws if it is not. */
  async refused(call: Promise<unknown>): Promise<number> {
    try {
      await call;
    } catch (error) {
      if (error instanceof CallError) return error.code;
      throw error;
    }
    throw new Error('it was accepted');
  }

  /** Refused, and not by the code that means that the call was fenced. */
  async refusedUnfenced(call: Promise<unknown>): Promise<void> {
    const code = await this.refused(call);
    this.holds(code !== GRPC_CODES.failedPrecondition, 'the code says that it was fenced');
  }
}

export interface Check {
  readonly area: string;
  readonly name: string;
  /** Profiles that need it; all, if absent. */
  readonly profiles?: readonly CertifyProfile[];
  run(bench: Bench): Promise<void>;
}

/** The six calls; they reject with a `CallError`. */
export interface ProviderCalls {
  readonly create: (request: CreateRequest) => Promise<TransitionAck>;
  readonly configure: (request: ConfigureRequest) => Promise<TransitionAck>;
  readonly drain: (request: DrainRequest) => Promise<TransitionAck>;
  readonly delete: (request: DeleteRequest) => Promise<TransitionAck>;
  readonly get: (request: MachineRef) => Promise<Machine>;
  readonly list: (request: ListFilter) => Promise<MachineList>;
}

/** `core`: what all have. `cloud` gives machines back; `bare-metal` says that it does not. */
export type CertifyProfile = 'core' | 'cloud' | 'bare-metal';

export interface CertifyOptions {
  readonly profile: CertifyProfile;
  readonly sleep: (ms: number) => Promise<void>;
  /** A shard that the provider does not know yet. */
  readonly shard: string;
}

/** There is no machine for a check: nothing was learnt. */
export class Incomplete extends Error {}

const POLL_MS = 20;

const POLLS_MAX = 3000;
