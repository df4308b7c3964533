/**
 * What a leader has to tell a shard, in the answers to its reports: domains that it has, and those
 * that it has to give up. Nothing is pushed. What a shard has confirmed is known for one life of
 * the shard and one of the leader; after that it is told anew, and takes it as it is. A domain that
 * another shard has still to give up is told to nobody: two shards never have it at once.
 */
import { create } from '@bufbuild/protobuf';
import {
  CoordinatorInstructionSchema,
  InstructAck_Outcome as Outcome,
} from '../contract/tables/coordinator.ts';
import type {
  CoordinatorInstruction,
  DomainAssignment,
  InstructAck,
} from '../contract/tables/coordinator.ts';
import type { Registry } from './registry.ts';

/** Instructions in one answer; the rest goes with the next ones. */
export const INSTRUCTIONS_MAX = 1000;

interface Told {
  epoch: bigint;
  /** Domains that this life of the shard has said it has. */
  readonly held: Set<string>;
  /** By id of an instruction that waits for its acknowledgement. */
  readonly open: Map<string, { readonly domain: DomainAssignment; readonly isAssigned: boolean }>;
  /** What the registry was like when nothing was left to tell; -1: something is. */
  settled: number;
}

export class Instructions {
  readonly #registry: Registry;
  readonly #told = new Map<string, Told>();
  #sequence = 0n;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  clear(): void {
    this.#told.clear();
  }

  forget(shardId: string): void {
    this.#told.delete(shardId);
  }

  /** Instructions that wait for a shard's word. */
  openFor(shardId: string): number {
    return this.#told.get(shardId)?.open.size ?? 0;
  }

  /** Takes acknowledgements. Answers domains that were given up, as names in `withdrawn`. */
  heard(shardId: string, epoch: bigint, acks: readonly InstructAck[]): string[][] {
    let told = this.#told.get(shardId);
    if (told === undefined || told.epoch !== epoch) {
      told = { epoch, held: new Set(), open: new Map(), settled: -1 };
      this.#told.set(shardId, told);
    }
    const given: string[][] = [];
    for (const { instructionId, outcome } of acks) {
      const one = told.open.get(instructionId);
      told.open.delete(instructionId);
      if (one === undefined || outcome !== Outcome.ACCEPTED) continue;
      const { topologyKey, topologyValue } = one.domain;
      if (one.isAssigned) told.held.add(keyOf(one.domain));
      else {
        told.held.delete(keyOf(one.domain));
        given.push([shardId, topologyKey, topologyValue]);
      }
    }
    return given;
  }

  /** What is to be told now. What was told and not acknowledged is told again. */
  for(shardId: string, term: number): CoordinatorInstruction[] {
    const told = this.#told.get(shardId);
    const { domains, withdrawn, shards } = this.#registry;
    const version = domains.version + withdrawn.version + shards.version;
    if (told === undefined || told.settled === version) return [];
    told.open.clear();
    const own = domains.values().filter((one) => one.shardId === shardId);
    const owned = new Map(own.map((domain) => [keyOf(domain), domain]));
    const due: { readonly domain: DomainAssignment; readonly isAssigned: boolean }[] = [];
    const elsewhere = new Set<string>();
    for (const domain of withdrawn.values()) {
      const key = keyOf(domain);
      if (domain.shardId !== shardId) {
        // who is removed is taken for dead: nobody waits for its word
        if (shards.get(domain.shardId) !== undefined) elsewhere.add(key);
      } else if (!owned.has(key)) due.push({ domain, isAssigned: false });
    }
    for (const [key, domain] of owned) {
      if (!told.held.has(key) && !elsewhere.has(key)) due.push({ domain, isAssigned: true });
    }
    told.settled = due.length === 0 && elsewhere.size === 0 ? version : -1;
    return due.slice(0, INSTRUCTIONS_MAX).map((one) => this.#instruction(told, one, term));
  }

  #instruction(
    told: Told,
    one: { readonly domain: DomainAssignment; readonly isAssigned: boolean },
    term: number,
  ): CoordinatorInstruction {
    const sequenceNumber = ++this.#sequence;
    const instructionId = `${term}-${sequenceNumber}`;
    told.open.set(instructionId, one);
    const { topologyKey, topologyValue } = one.domain;
    const value = { topologyKey, topologyValue };
    return create(CoordinatorInstructionSchema, {
      ...{ coordinatorTerm: BigInt(term), sequenceNumber, instructionId },
      payload: one.isAssigned ? { case: 'assignDomain', value } : { case: 'unassignDomain', value },
    });
  }
}

function keyOf({ topologyKey, topologyValue }: DomainAssignment): string {
  return `${topologyKey}\0${topologyValue}`;
}
