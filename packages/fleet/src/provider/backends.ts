/** What stands behind machines: a market that is played, or hosts that stand in a room. */
import type { Random } from '@megaplane/base/random';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import { CapacityType, MachineState } from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';
import { offerOf } from './catalogue.ts';
import type { Catalogue } from './catalogue.ts';
import type { Backend, Plan, TransitionKind } from './provider.ts';

const HOUR_MS = 3_600_000;

/**
 * Plays a cloud: transitions take as long as the catalogue says and fail as often, an offer that is
 * out of stock is refused, and spot machines are taken away by their own hourly probability.
 */
export function simulatedBackend(catalogue: Catalogue, random: Random): Backend {
  /** Machines of each offer that are there. */
  const existing = new Map<string, number>();
  const change = (machine: Machine, by: number): void => {
    const offer = offerOf(machine);
    existing.set(offer, (existing.get(offer) ?? 0) + by);
  };
  return {
    canDelete: true,
    plan: (kind: TransitionKind, machine: Machine): Plan => {
      if (kind === 'create') {
        const offer = offerOf(machine);
        const limit = catalogue.stock.get(offer) ?? Infinity;
        if ((existing.get(offer) ?? 0) >= limit) {
          throw new CallError(GRPC_CODES.resourceExhausted, `${offer} is out of stock`);
        }
        change(machine, 1);
      }
      const { minMs, maxMs, failures } = catalogue.latencies[kind];
      const durationMs = minMs + random.next() * (maxMs - minMs);
      return random.next() < failures ? { durationMs, failure: `${kind} failed` } : { durationMs };
    },
    hostOf: ({ id }) => ({ provider: 'simulated', ref: `host-${id}` }),
    restored: (machine) => {
      if (machine.state !== MachineState.SPECULATIVE) change(machine, 1);
    },
    lifetimeMs: (machine) => {
      const { state, capacityType, interruptionProbability } = machine;
      if (state === MachineState.SPECULATIVE) change(machine, -1);
      if (state !== MachineState.CONFIGURED || capacityType !== CapacityType.SPOT) return Infinity;
      if (interruptionProbability <= 0) return Infinity;
      if (interruptionProbability >= 1) return 0;
      return (Math.log(1 - random.next()) / Math.log(1 - interruptionProbability)) * HOUR_MS;
    },
  };
}

/** Hosts of a list: they are idle or bound, at once, and cannot be given back. */
export function staticBackend(): Backend {
  return {
    canDelete: false,
    plan: () => ({ durationMs: 0 }),
    hostOf: ({ id }) => ({ provider: 'static', ref: id }),
    lifetimeMs: () => Infinity,
  };
}

/** A cloud as it is played, whose machines join clusters and leave them for real. */
export function nodesBackend(cloud: Backend, started: NonNullable<Backend['started']>): Backend {
  return {
    ...cloud,
    started,
    hostOf: ({ id }) => ({ provider: 'megaplane', ref: id }),
    plan: (kind, machine) => {
      const plan = cloud.plan(kind, machine);
      const isReal = kind === 'configure' || kind === 'drain';
      // what the catalogue lets fail fails by it; all else ends as the cluster says
      return isReal && plan.failure === undefined ? { durationMs: Infinity } : plan;
    },
  };
}
