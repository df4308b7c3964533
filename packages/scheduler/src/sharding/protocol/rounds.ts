/**
 * What the root asks of the shards about one try to place one pod, round by round, and what they
 * answer. A round goes to all shards; relays add their answers up on the way back.
 *
 *     prepare   the pod                     what plugins count over nodes (tallies)
 *     filter    the tallies of all          a verdict on each node of the share
 *     prescore  which nodes are scored      what plugins count for their scores
 *     range     the tallies of all          least and greatest raw score of each plugin
 *     totals    the ranges of all           the weighted scores of each node
 *     dryRun    where evictions may help    who would have to go
 *
 * A live scheduler asks in fewer words, about all nodes at once:
 *
 *     begin     the pod                     what plugins count over nodes
 *     survey    the tallies of all          how many nodes pass, or why none does
 *     rank      the score tallies of all    least and greatest raw score of each plugin
 *     best      the ranges of all           the best node
 *     sync      nothing                     all that was told before has been taken in
 *
 * A shard that knows what it will be asked next says that, too: whoever counts nothing needs no
 * tallies of others, and where all shards have the same ranges each has used those of all. A pod
 * that is nothing but a question of room and score is decided about in one round.
 *
 * Raw scores never leave a shard: their ranges do, so that each shard brings them to 0..100 as if
 * it saw all nodes.
 */
import type { Range, Tally, Verdict } from '../../framework/plugin.ts';
import { mergedSummaries, type Summary } from './summary.ts';

/** By plugin. */
export type PluginTallies = ReadonlyMap<string, Tally>;

export type Round =
  | {
      readonly kind: 'prepare';
      /** As the API server has it; relays pass the bytes on. */
      readonly pod: Uint8Array;
      readonly profile: string;
      readonly nowMs: number;
      /** Pods that wait for nodes to be freed. */
      readonly nominated: readonly Uint8Array[];
    }
  /** `only`: this node alone; null: all that the pod may go to. */
  | { readonly kind: 'filter'; readonly tallies: PluginTallies; readonly only: string | null }
  /** `among`: of the nodes that passed these alone; null: all. */
  | { readonly kind: 'prescore'; readonly among: readonly string[] | null }
  | { readonly kind: 'range'; readonly tallies: PluginTallies }
  | { readonly kind: 'totals'; readonly ranges: ReadonlyMap<string, Range> }
  | {
      readonly kind: 'dryRun';
      readonly tallies: PluginTallies;
      /** Of all nodes, whatever their verdicts. */
      readonly isForAll: boolean;
      /** Candidates that suffice. */
      readonly wanted: number;
    }
  | {
      readonly kind: 'begin';
      readonly pod: Uint8Array;
      readonly profile: string;
      readonly nowMs: number;
      readonly nominated: readonly Uint8Array[];
      /** Of the members that the nodes are shared out over, from 1 on. */
      readonly epoch: number;
      /** What ties are drawn by, 32 bits. */
      readonly seed: number;
      /** Of the whole cluster. */
      readonly nodes: number;
    }
  | { readonly kind: 'survey'; readonly tallies: PluginTallies }
  | { readonly kind: 'rank'; readonly tallies: PluginTallies }
  | { readonly kind: 'best'; readonly ranges: ReadonlyMap<string, Range> }
  | { readonly kind: 'sync' };

/** Verdicts of a share, in the order of its nodes: 0 passed, else the place in `table` plus 1. */
export interface ShareVerdicts {
  readonly member: string;
  readonly table: readonly Verdict[];
  readonly codes: readonly number[];
  readonly findings: readonly PluginFinding[];
}

export interface PluginFinding {
  readonly plugin: string;
  readonly node: string;
  readonly text: string;
}

/** Weighted scores of one node, by plugin; plugins that add nothing are left out. */
export interface NodeTotals {
  readonly node: string;
  readonly total: number;
  readonly plugins: ReadonlyMap<string, number>;
}

/** What evictions on a node would give. */
export interface DryRunOutcome {
  readonly node: string;
  /** Who would have to go, by key; null: it does not help, or cannot be told. */
  readonly victims: readonly string[] | null;
  readonly violations: number;
  readonly refusal: Verdict | null;
}

export interface Reply {
  /** Why a shard could not answer; empty: all did. */
  readonly trouble: string;
  readonly tallies: PluginTallies;
  readonly verdicts: readonly ShareVerdicts[];
  readonly ranges: ReadonlyMap<string, Range>;
  /** A plugin cannot score. */
  readonly fault: Verdict | null;
  readonly totals: readonly NodeTotals[];
  readonly dryRuns: readonly DryRunOutcome[];
  /** Of the rounds of a live scheduler; null: none. */
  readonly summary: Summary | null;
  /** What plugins count for their scores, beside what they count for their filters. */
  readonly scoreTallies: PluginTallies;
}

export const EMPTY_REPLY: Reply = {
  trouble: '',
  tallies: new Map(),
  verdicts: [],
  ranges: new Map(),
  fault: null,
  totals: [],
  dryRuns: [],
  summary: null,
  scoreTallies: new Map(),
};

/** Nobody counted anything, so that there is nothing that others would have to know. */
export function areEmpty(tallies: PluginTallies): boolean {
  for (const tally of tallies.values()) if (tally.size > 0) return false;
  return true;
}

/** Two answers as one: what a relay passes on. */
export function merged(one: Reply, other: Reply): Reply {
  return {
    trouble: one.trouble || other.trouble,
    tallies: mergedTallies(one.tallies, other.tallies),
    verdicts: [...one.verdicts, ...other.verdicts],
    ranges: mergedRanges(one.ranges, other.ranges),
    fault: one.fault ?? other.fault,
    totals: [...one.totals, ...other.totals],
    dryRuns: [...one.dryRuns, ...other.dryRuns],
    summary: mergedSummaries(one.summary, other.summary, haveSameRanges(one, other)),
    scoreTallies: mergedTallies(one.scoreTallies, other.scoreTallies),
  };
}

/** Who has no node that passed has no ranges either, and agrees with all. */
function haveSameRanges(one: Reply, other: Reply): boolean {
  if ((one.summary?.passed ?? 0) === 0 || (other.summary?.passed ?? 0) === 0) return true;
  if (one.ranges.size !== other.ranges.size) return false;
  for (const [plugin, { min, max }] of one.ranges) {
    const range = other.ranges.get(plugin);
    if (range === undefined || range.min !== min || range.max !== max) return false;
  }
  return true;
}

function mergedTallies(one: PluginTallies, other: PluginTallies): PluginTallies {
  if (one.size === 0 || other.size === 0) return one.size === 0 ? other : one;
  const sums = new Map<string, Tally>(one);
  for (const [plugin, tally] of other) {
    const present = sums.get(plugin);
    if (present === undefined) {
      sums.set(plugin, tally);
      continue;
    }
    const sum = new Map(present);
    for (const [text, amount] of tally) sum.set(text, (sum.get(text) ?? 0) + amount);
    sums.set(plugin, sum);
  }
  return sums;
}

function mergedRanges(
  one: ReadonlyMap<string, Range>,
  other: ReadonlyMap<string, Range>,
): ReadonlyMap<string, Range> {
  if (one.size === 0 || other.size === 0) return one.size === 0 ? other : one;
  const all = new Map(one);
  for (const [plugin, { min, max }] of other) {
    const present = all.get(plugin);
    const range = {
      min: Math.min(min, present?.min ?? Infinity),
      max: Math.max(max, present?.max ?? -Infinity),
    };
    all.set(plugin, range);
  }
  return all;
}
