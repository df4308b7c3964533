/** What checks of the certification work with, and what a check is. */
import { create } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Random } from '@megaplane/base/random';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import {
  CapacityType,
  ConfigureRequestSchema,
  CreateRequestSchema,
  DeleteRequestSchema,
  DrainRequestSchema,
  ListFilterSchema,
  MachineRefSchema,
  MachineState as State,
} from '../contract/tables/provider.ts';
import type {
  ConfigureRequest,
  CreateRequest,
  DeleteRequest,
  DrainRequest,
  ListFilter,
  Machine,
  MachineList,
  MachineRef,
  TransitionAck,
} from '../contract/tables/provider.ts';
import { Incomplete, isStable } from './certify-words.ts';
import type { Token } from './fences.ts';
import { stateName } from './provider.ts';

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
export type CertifyProfile = 'core' | 'cloud' | 'bare-metal' | 'fault' | 'durable' | 'scale';

export interface CertifyOptions {
  readonly profile: CertifyProfile;
  readonly sleep: (ms: number) => Promise<void>;
  /** A shard that the provider does not know yet. */
  readonly shard: string;
  /** Of what checks make by chance. */
  readonly seed: number;
  /** Ends the provider as a power cut would, and starts it anew; checks of `durable` need it. */
  readonly restart?: () => Promise<void>;
}

export interface Check {
  readonly id: string;
  readonly area: string;
  readonly name: string;
  /** Profiles that need it; those that need no other lane, if absent. */
  readonly profiles?: readonly CertifyProfile[];
  run(bench: Bench): Promise<void>;
}

const POLL_MS = 20;
const POLLS_MAX = 3000;

/** What checks work with. */
export class Bench {
  readonly calls: ProviderCalls;
  readonly options: CertifyOptions;
  epoch = 1n;
  #sequence = 0n;
  #shards = 0;
  readonly #random: Random;

  constructor(calls: ProviderCalls, options: CertifyOptions) {
    this.calls = calls;
    this.options = options;
    this.#random = new Random(options.seed);
  }

  /** For messages: what is by chance follows from it. */
  get seed(): number {
    return this.options.seed;
  }

  /** A whole number from 0 on, by chance. */
  below(limit: number): number {
    return Math.floor(this.#random.next() * limit);
  }

  /** A shard that has not been heard of. */
  anotherShard(): string {
    return `${this.options.shard}-${++this.#shards}`;
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

  drain(
    machineId: string,
    gracePeriodSeconds = 1n,
    token: Token = this.token(),
  ): Promise<TransitionAck> {
    const request = { machineId, gracePeriodSeconds, ...token };
    return this.calls.drain(create(DrainRequestSchema, request));
  }

  delete(machineId: string, token: Token = this.token()): Promise<TransitionAck> {
    return this.calls.delete(create(DeleteRequestSchema, { machineId, ...token }));
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

  /** The states that are seen until a machine is in `state`, without repetitions. */
  async trace(id: string, state: State): Promise<State[]> {
    const seen: State[] = [];
    for (let polls = 0; polls < POLLS_MAX; polls++) {
      const machine = await this.get(id);
      if (seen.at(-1) !== machine.state) seen.push(machine.state);
      if (machine.state === state) return seen;
      this.holds(machine.state !== State.FAILED, `${id} failed: ${machine.lastError}`);
      await this.options.sleep(POLL_MS);
    }
    throw new Error(`${id} is never ${stateName(state)}`);
  }

  /** Waits until a machine is at rest, or has failed. */
  async settled(id: string): Promise<Machine> {
    for (let polls = 0; polls < POLLS_MAX; polls++) {
      const machine = await this.get(id);
      if (isStable(machine.state) || machine.state === State.FAILED) return machine;
      await this.options.sleep(POLL_MS);
    }
    throw new Error(`${id} never comes to rest`);
  }

  /** So many machines that are idle. */
  async several(count: number): Promise<Machine[]> {
    const { machines } = await this.list({ states: [State.IDLE], maxResults: count });
    const found = machines.slice(0, count);
    if (found.length < count) {
      const slots = (await this.list({ states: [State.SPECULATIVE] })).machines
        .filter(({ capacityType }) => capacityType !== CapacityType.SPOT)
        .slice(0, count - found.length);
      for (const { id } of slots) await this.create(id);
      for (const { id } of slots) found.push(await this.reaches(id, State.IDLE));
    }
    if (found.length < count) throw new Incomplete(`there are no ${count} machines to try it on`);
    return found;
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

  /** The code that a call ends with; 0: it was accepted. */
  async outcome(call: Promise<unknown>): Promise<number> {
    try {
      await call;
      return 0;
    } catch (error) {
      if (error instanceof CallError) return error.code;
      throw error;
    }
  }

  async refusedAs(call: Promise<unknown>, expected: number): Promise<void> {
    const code = await this.refused(call);
    this.holds(code === expected, `code ${code}, not ${expected}`);
  }

  /** Accepted or refused, and not by the code that means that the call was fenced. */
  async unfenced(call: Promise<unknown>): Promise<void> {
    const code = await this.outcome(call);
    this.holds(code !== GRPC_CODES.failedPrecondition, 'the code says that it was fenced');
  }

  /** Refused, and not by the code that means that the call was fenced. */
  async refusedUnfenced(call: Promise<unknown>): Promise<void> {
    const code = await this.refused(call);
    this.holds(code !== GRPC_CODES.failedPrecondition, 'the code says that it was fenced');
  }
}
