/**
 * A shard's side of the talk with its coordinator, without a world: what it reports, and what it
 * does about instructions. A shard needs no coordinator: while none answers, all goes on.
 *
 * Instructions of an older term, or of the same one with a number that is not newer, are stale: two
 * coordinators that both take themselves for the leader are told apart so.
 */
import { create } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  InstructAck_Outcome as Outcome,
  InstructAckSchema,
  ShardReportSchema,
} from '../contract/tables/coordinator.ts';
import type {
  CoordinatorInstruction,
  InstructAck,
  ReportAck,
  ShardReport,
} from '../contract/tables/coordinator.ts';
import { textsOf } from '../engine/amounts.ts';
import type { Shortfall } from '../engine/carried.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { Domains } from './domains.ts';

/** Names of types and of zones in a report; further ones count in the totals only. */
export const SUMMARY_NAMES_MAX = 1000;
/** Acknowledgements that wait for the next report; older ones are dropped: it is told anew. */
const ACKS_MAX = 10_000;

export interface Reported {
  readonly cycle: number;
  readonly shortfalls: readonly Shortfall[];
  readonly inventory: Inventory;
}

export interface CoordinationOptions {
  readonly shardId: string;
  readonly epoch: bigint;
  /** Where operators reach this shard. */
  readonly address: string;
  readonly domains: Domains;
  /** The highest term that was heard in an earlier life. */
  readonly term: bigint;
}

export class Coordination {
  readonly #options: CoordinationOptions;
  #acks: InstructAck[] = [];
  #sequence = 0n;
  /** The highest term heard. */
  term: bigint;

  constructor(options: CoordinationOptions) {
    this.#options = options;
    this.term = options.term;
  }

  /** What to send now. Acknowledgements stay until `acknowledged`. */
  report({ cycle, shortfalls, inventory }: Reported, wallMs: number): ShardReport {
    const { shardId, epoch, address } = this.#options;
    return create(ShardReportSchema, {
      ...{ shardId, shardEpoch: epoch, shardAddress: address, cycle: BigInt(cycle) },
      timestampUnixNanos: BigInt(Math.floor(wallMs)) * 1_000_000n,
      summary: summaryOf(inventory),
      shortfalls: shortfalls.map(({ profile, deficit, age }) => ({
        requirements: profile.requirements.map((one) => ({ ...one, values: [...one.values] })),
        deficit: { resources: textsOf(deficit) },
        priority: profile.priority,
        ageCycles: age,
        interruptionPenaltyBucket: profile.interruptionBucket,
      })),
      instructionAcks: this.#acks,
    });
  }

  /** Takes the answer to a report. True if something about domains or the term changed. */
  acknowledged(sent: ShardReport, { coordinatorTerm, instructions }: ReportAck): boolean {
    const heard = new Set(sent.instructionAcks);
    this.#acks = this.#acks.filter((ack) => !heard.has(ack));
    const { domains } = this.#options;
    const before = domains.version;
    const isNewTerm = coordinatorTerm > this.term;
    if (isNewTerm) {
      this.term = coordinatorTerm;
      this.#sequence = 0n;
    }
    for (const instruction of instructions) this.#acks.push(this.#carryOut(instruction));
    if (this.#acks.length > ACKS_MAX) this.#acks = this.#acks.slice(-ACKS_MAX);
    return isNewTerm || domains.version !== before;
  }

  /** Acknowledgements that no coordinator has heard yet. */
  get waiting(): number {
    return this.#acks.length;
  }

  #carryOut(instruction: CoordinatorInstruction): InstructAck {
    const { coordinatorTerm, sequenceNumber, instructionId, payload } = instruction;
    const answer = (outcome: Outcome, reason = ''): InstructAck =>
      create(InstructAckSchema, { instructionId, outcome, reason });
    if (coordinatorTerm < this.term) {
      return answer(Outcome.REJECTED_STALE, `term ${coordinatorTerm}, after ${this.term}`);
    }
    if (coordinatorTerm === this.term && sequenceNumber <= this.#sequence) {
      return answer(Outcome.REJECTED_STALE, `number ${sequenceNumber}, after ${this.#sequence}`);
    }
    this.#sequence = sequenceNumber;
    switch (payload.case) {
      case 'assignDomain':
      case 'unassignDomain': {
        const { topologyKey: key, topologyValue: value } = payload.value;
        if (key === '' || value === '') {
          return answer(Outcome.REJECTED_INVALID, 'a domain has a key and a value');
        }
        const { domains } = this.#options;
        if (payload.case === 'unassignDomain') domains.remove(key, value);
        else if (!domains.add(key, value)) {
          return answer(Outcome.FAILED, 'there are too many domains');
        }
        return answer(Outcome.ACCEPTED);
      }
      case 'reassignSpeculative':
      case 'crossShardDrain':
      case 'transferOwnership':
      case undefined:
        // to say that it is accepted and to do nothing would be a lie
        return answer(Outcome.REJECTED_INVALID, `${payload.case ?? 'it'} is not carried out here`);
    }
  }
}

type Summary = NonNullable<MessageInitShape<typeof ShardReportSchema>['summary']>;

function summaryOf(inventory: Inventory): Summary {
  let total = 0;
  let free = 0;
  const types = new Map<string, number>();
  const zones = new Map<string, number>();
  for (const { state, instanceType, zone, count } of inventory.places()) {
    total += count;
    if (state === 'Idle' || state === 'Speculative') free += count;
    addTo(types, instanceType, count);
    addTo(zones, zone, count);
  }
  return {
    ...{ totalMachines: total, freeMachines: free },
    perInstanceTypeCounts: Object.fromEntries(types),
    perZoneCounts: Object.fromEntries(zones),
  };
}

function addTo(counts: Map<string, number>, name: string, by: number): void {
  if (name === '' || (!counts.has(name) && counts.size >= SUMMARY_NAMES_MAX)) return;
  counts.set(name, (counts.get(name) ?? 0) + by);
}
