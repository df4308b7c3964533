/**
 * Decides about the waiting pods of a gang in one go. Each is given its node while the others hold
 * theirs; when enough have one, all of them are bound, and when not, all give them back. So a gang
 * is placed whole or not at all, and two gangs never wait for each other half placed.
 */
import type { Asking } from '../extenders/extender-rounds.ts';
import type { Failure } from '../placement/topology/failure.ts';
import type { Reservation } from '../framework/reservation.ts';
import type { GroupResult } from '../metrics/work-metrics.ts';

/** What the cycle does with pods. */
export interface GangHost {
  schedulerOf(id: number): string;
  /** The node for a pod, or -1. */
  decide(id: number): Asking<number>;
  /** Why the last decision found none. */
  failure(): Failure;
  /** What the last decision found to be done before the pod is bound. */
  reservations(): readonly Reservation[];
  assume(id: number, node: number, reservations: readonly Reservation[]): void;
  /** Takes back an assumption. */
  release(id: number): void;
  /** Room that is to be freed on a node is kept for a pod; -1: not any more. */
  nominate(id: number, node: number): void;
}

/** A pod of the gang, and what became of it. */
export type GangOutcome =
  | {
      readonly kind: 'placed';
      readonly id: number;
      readonly node: number;
      readonly reservations: readonly Reservation[];
    }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure };

export interface GangResult {
  readonly outcomes: readonly GangOutcome[];
  /** Nodes were looked for: the group's condition tells what came of it. */
  readonly isJudged: boolean;
  /** For the group's condition; empty if it is placed. */
  readonly message: string;
  readonly result: GroupResult;
}

export const UNSCHEDULABLE = 'pod group is unschedulable';
const WAITING: string = `${UNSCHEDULABLE}, pod group is waiting for preemption to complete`;
/** As Permit has it: of pods that found nodes, but too few. */
const TOO_FEW: string =
  `${UNSCHEDULABLE}, waiting for minCount pods from a gang to be scheduled, ` +
  'one or more plugins asked to wait and no plugin rejected pod';
/** Who rejects pods that have a node but not enough company. */
export const GANG_SCHEDULING = 'GangScheduling';

function refusal(node: number | null): Failure {
  return {
    message: node === null ? TOO_FEW : WAITING,
    rejecters: new Set([GANG_SCHEDULING]),
    isError: false,
    clearsNomination: node === null,
    isIndexed: false,
    nomination: node === null ? null : { node, victims: [] },
  };
}

/**
 * `ids` in order; `missing`: how many of them must find a node. Once that many have one, each more
 * for which others have to go makes all of them wait for it.
 */
export function* gangCycle(
  host: GangHost,
  ids: readonly number[],
  missing: number,
): Asking<GangResult> {
  const mixed = mixedSchedulers(ids.map((id) => host.schedulerOf(id)));
  if (mixed !== '') return failedGang(ids, mixed);
  const outcomes: GangOutcome[] = [];
  let found = 0;
  let frees = false;
  let verdict: 'refused' | 'waiting' | 'placed' = 'refused';
  for (const id of ids) {
    const node = yield* host.decide(id);
    if (node >= 0) {
      const reservations = host.reservations();
      host.assume(id, node, reservations);
      outcomes.push({ kind: 'placed', id, node, reservations });
    } else {
      // Each waits for whatever may help it, not for the first of its kind.
      const failure: Failure = { ...host.failure(), isIndexed: false };
      if (failure.isError) return brokenGang(host, ids, outcomes, { id, failure });
      outcomes.push({ kind: 'failed', id, failure });
      if (failure.nomination === null) continue;
      host.nominate(id, failure.nomination.node);
      frees = true;
    }
    if (++found >= missing) verdict = frees ? 'waiting' : 'placed';
  }
  if (verdict === 'placed') return { outcomes, isJudged: true, message: '', result: 'scheduled' };
  takeBack(host, outcomes);
  const evicts = verdict === 'waiting';
  const told = outcomes.map((outcome): GangOutcome => {
    const { id } = outcome;
    if (outcome.kind === 'placed') {
      return { kind: 'failed', id, failure: refusal(evicts ? outcome.node : null) };
    }
    // Nobody is evicted for a gang that would not fit anyhow.
    const isVain = outcome.failure.nomination !== null && !evicts;
    return isVain ? { kind: 'failed', id, failure: refusal(null) } : outcome;
  });
  const message = evicts ? WAITING : UNSCHEDULABLE;
  const result = evicts ? 'waiting_on_preemption' : 'unschedulable';
  return { outcomes: told, isJudged: true, message, result };
}

/** Nodes that were found and room that was to be freed are kept no more. */
function takeBack(host: GangHost, outcomes: readonly GangOutcome[]): void {
  for (const outcome of outcomes) {
    if (outcome.kind === 'placed') host.release(outcome.id);
    else if (outcome.failure.nomination !== null) host.nominate(outcome.id, -1);
  }
}

/** One of the pods ended in an error: no more are looked at, and all fail with it. */
function brokenGang(
  host: GangHost,
  ids: readonly number[],
  outcomes: readonly GangOutcome[],
  broken: { readonly id: number; readonly failure: Failure },
): GangResult {
  takeBack(host, outcomes);
  const message = `failed to schedule other pod from a pod group: ${broken.failure.message}`;
  const rest = failedGang(ids, message).outcomes;
  const told = rest.map((one): GangOutcome => {
    return one.id === broken.id ? { kind: 'failed', ...broken } : one;
  });
  return { outcomes: told, isJudged: true, message, result: 'error' };
}

/** Why pods cannot be decided about together; empty where one profile is asked for by all. */
function mixedSchedulers(names: readonly string[]): string {
  const [first = ''] = names;
  const other = names.find((name) => name !== first);
  if (other === undefined) return '';
  const rule = 'all pods in a single pod group should have the same .spec.schedulerName set';
  return `${rule}, got: ${JSON.stringify(first)} and ${JSON.stringify(other)}`;
}

/** All of a gang fail for one reason, which is an error. */
function failedGang(ids: readonly number[], message: string): GangResult {
  const failure: Failure = {
    message,
    rejecters: new Set(),
    isError: true,
    clearsNomination: true,
    isIndexed: false,
    nomination: null,
  };
  const outcomes = ids.map((id): GangOutcome => ({ kind: 'failed', id, failure }));
  return { outcomes, isJudged: false, message, result: 'error' };
}
