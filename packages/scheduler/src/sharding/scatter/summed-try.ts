/**
 * A try of which the shards look at all nodes and answer together: sums, extremes and the best
 * node. The root prepares the plugins as they do, and looks at the one node that it is told of
 * once more: what a shard has got wrong shows there.
 */
import { Cycle } from '../../framework/runtime/cycle.ts';
import type { Asking } from '../../extenders/extender-rounds.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import type { Verdict } from '../../framework/plugin.ts';
import { areEmpty, type Reply, type Round } from '../protocol/rounds.ts';
import { STAGE, type Summary } from '../protocol/summary.ts';

/** The shards, as decisions see them. */
export interface ShardPort {
  /** Whether there are any. */
  readonly isThere: boolean;
  /** Whether they know all that has happened, so that a round can begin at once. */
  readonly isReady: boolean;
  readonly epoch: number;
  /** Shards that must answer. */
  readonly size: number;
  /** A decision was made by shards, or in the end without them. */
  decided(how: Outcome): void;
}

/** How a try ended that began with shards; all but the first are evaluated by the root. */
export type Outcome =
  | 'found'
  /** No node passed, or the preparation says no: texts and evictions are the root's. */
  | 'failed'
  /** Some shard is gone, late, or at another epoch. */
  | 'unavailable'
  /** The node that shards found is not fit by the root's look. */
  | 'refused';

export type Tried =
  | { readonly how: 'found'; readonly name: string; readonly cycle: Cycle }
  | { readonly how: Exclude<Outcome, 'found'> };

/** Beside what a cycle is of: how many nodes there are, and what ties are drawn by. */
export interface Scale {
  readonly nodes: number;
  readonly seed: number;
}

/** `waiting`: all pods that are nominated to a node. */
export function* summedTry(
  port: ShardPort,
  { nodes, seed }: Scale,
  waiting: readonly PodInfo[],
  ...asked: ConstructorParameters<typeof Cycle>
): Asking<Tried> {
  const cycle = new Cycle(...asked);
  const { pod, profile, snapshot } = cycle;
  const { epoch } = port;
  const all = allOf(port);
  const begin = {
    ...{ kind: 'begin' as const, pod: bytesOf(pod), profile: profile.schedulerName },
    ...{ nowMs: snapshot.nowMs, nominated: waiting.map((one) => bytesOf(one)) },
    ...{ epoch, seed, nodes },
  };
  let reply = yield* ask(all, begin);
  const tallies = reply?.tallies ?? new Map();
  const since = cycle.meter.now();
  if (cycle.prepare(tallies).kind === 'rejected') return { how: 'failed' };
  if (reply !== null && !areEmpty(tallies)) reply = yield* ask(all, { kind: 'survey', tallies });
  if (reply === null) return { how: 'unavailable' };
  if (reply.fault !== null) return { how: 'failed' };
  // who waits for a node takes that one, however good others are
  const own = snapshot.node(pod.pod.status?.nominatedNodeName ?? '');
  if (own !== undefined && cycle.filterNode(own) === null) {
    return { how: 'found', name: own.name, cycle };
  }
  const { passed, first } = summaryOf(reply);
  if (passed === 0) return { how: 'failed' };
  const name = passed === 1 ? first : yield* best(all, reply);
  if (name === null) return { how: 'unavailable' };
  const node = snapshot.node(name);
  const verdict: Verdict | null | undefined = node && cycle.filterNode(node);
  cycle.filtered('Success', since);
  return verdict === null ? { how: 'found', name, cycle } : { how: 'refused' };
}

/** The best of the nodes that passed; null where that cannot be known. */
function* best(all: All, surveyed: Reply): Asking<string | null> {
  let reply: Reply | null = surveyed;
  if (!areEmpty(reply.scoreTallies)) {
    reply = yield* ask(all, { kind: 'rank', tallies: reply.scoreTallies });
  }
  if (reply === null || reply.fault !== null) return null;
  if (!summaryOf(reply).isAgreed) {
    reply = yield* ask(all, { kind: 'best', ranges: reply.ranges });
  }
  const summary = reply === null ? null : summaryOf(reply);
  return summary?.stage === STAGE.scored ? (summary.best?.name ?? null) : null;
}

/** Whether a summary is of all shards of the epoch in which the try began. */
type All = (summary: Summary | null) => boolean;

function allOf(port: ShardPort): All {
  const { epoch, size } = port;
  // nodes go to others with a new epoch: those of one that left would be missed, others counted
  return (summary) => summary?.shards === size && port.epoch === epoch;
}

/** Null: not all shards have answered. */
function* ask(all: All, round: Round): Asking<Reply | null> {
  const [answer] = yield { kind: 'shards', round };
  const reply = answer?.ok === true ? answer.reply : undefined;
  if (reply === undefined || reply.trouble !== '') return null;
  return all(reply.summary) ? reply : null;
}

function summaryOf({ summary }: Reply): Summary {
  if (summary === null) throw new Error('a summed round was answered without a summary');
  return summary;
}

function bytesOf({ pod }: PodInfo): Buffer {
  return Buffer.from(JSON.stringify(pod));
}
