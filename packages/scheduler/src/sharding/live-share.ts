/**
 * A shard of a live scheduler: looks at its nodes for the try that the root is at, and says what
 * they come to. It decides nothing and keeps nothing that the root could not tell anew.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { Cycle, type ActiveScorer } from '../framework/runtime/cycle.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { Range, Verdict } from '../framework/plugin.ts';
import { markOf } from './protocol/rendezvous.ts';
import { areEmpty, EMPTY_REPLY } from './protocol/rounds.ts';
import type { PluginTallies, Reply, Round } from './protocol/rounds.ts';
import type { StateChange } from './protocol/state.ts';
import { OBJECTIONS_MAX, STAGE, verdictKey } from './protocol/summary.ts';
import type { Best, Objection, Summary } from './protocol/summary.ts';
import { ShareTables } from './share-tables.ts';

interface Try {
  readonly cycle: Cycle;
  readonly seed: number;
  passed: readonly NodeInfo[];
  scorers: readonly ActiveScorer[];
  raws: readonly number[][];
}

export interface ShareCounts {
  rounds: number;
  /** That they took. */
  seconds: number;
  /** Pods that were asked about. */
  tries: number;
  changes: number;
  /** Nodes that were looked at. */
  looks: number;
}

export class LiveShare {
  readonly tables: ShareTables = new ShareTables();
  readonly counts: ShareCounts = { rounds: 0, seconds: 0, tries: 0, changes: 0, looks: 0 };
  readonly #profiles: ReadonlyMap<string, Profile>;
  #try: Try | null = null;

  constructor(profiles: ReadonlyMap<string, Profile>) {
    this.#profiles = profiles;
  }

  /** Takes in what the root says has changed. Throws where a live root says no such thing. */
  apply(change: StateChange): void {
    this.counts.changes++;
    if (this.tables.take(change)) return;
    throw new Error(`a live scheduler has no change of kind ${change.kind}`);
  }

  /** Answers a round; what it throws is a plugin's fault. */
  answer(round: Round): Reply {
    this.counts.rounds++;
    if (round.kind === 'sync' || this.tables.epoch === 0) return EMPTY_REPLY;
    if (round.kind === 'begin') return this.#begin(round);
    const present = this.#try;
    if (present === null) return { ...EMPTY_REPLY, trouble: 'the shard knows of no try' };
    switch (round.kind) {
      case 'survey':
        return this.#survey(present, round.tallies);
      case 'rank':
        return this.#rank(present, round.tallies);
      case 'best':
        return this.#best(present, round.ranges);
      case 'prepare':
      case 'filter':
      case 'prescore':
      case 'range':
      case 'totals':
      case 'dryRun':
        return { ...EMPTY_REPLY, trouble: `a live scheduler has no round of kind ${round.kind}` };
    }
  }

  took(seconds: number): void {
    this.counts.seconds += seconds;
  }

  #begin({ pod, profile, nowMs, nominated, epoch, seed, nodes }: Round & { kind: 'begin' }): Reply {
    this.#try = null;
    this.counts.tries++;
    const { tables } = this;
    if (epoch !== tables.epoch) {
      const trouble = `the root is at epoch ${epoch}, the shard at ${tables.epoch}`;
      return { ...EMPTY_REPLY, trouble };
    }
    const known = this.#profiles.get(profile);
    if (known === undefined) return { ...EMPTY_REPLY, trouble: `no profile is named ${profile}` };
    const waiting = Map.groupBy(
      nominated.map((bytes) => podOf(bytes)),
      (one) => one.pod.status?.nominatedNodeName ?? '',
    );
    tables.nowMs = nowMs;
    tables.nodeCount = nodes;
    const nominations = { on: (node: string) => waiting.get(node) ?? [] };
    const cycle = new Cycle(podOf(pod), tables, known, nominations);
    const nothing = { passed: [], scorers: [], raws: [] };
    const present = { cycle, seed, ...nothing };
    this.#try = present;
    const tallies = cycle.tallies();
    if (areEmpty(tallies)) return this.#survey(present, tallies);
    return { ...EMPTY_REPLY, tallies, summary: summaryOf({ stage: STAGE.counted }) };
  }

  #survey(present: Try, tallies: PluginTallies): Reply {
    const { cycle } = present;
    // anew where it was prepared before with this shard's own tallies, which were not all
    const preparation = cycle.prepare(tallies);
    // as the root finds out by itself
    if (preparation.kind === 'rejected') {
      return { ...EMPTY_REPLY, summary: summaryOf({ stage: STAGE.scored }) };
    }
    const { names } = preparation;
    const { nodes: all } = this.tables;
    const nodes = names === null ? all : all.filter(({ name }) => names.has(name));
    const objections = new Objections();
    present.passed = nodes.filter((node) => objections.take(cycle.filterNode(node)));
    this.counts.looks += nodes.length;
    const { fault } = objections;
    const { passed } = present;
    const found = {
      nodes: nodes.length,
      passed: passed.length,
      first: passed.reduce((least, { name }) => (least === '' || name < least ? name : least), ''),
      objections: passed.length > 0 ? [] : objections.all,
    };
    if (fault !== null) return { ...EMPTY_REPLY, fault, summary: summaryOf(found) };
    const scoreTallies = cycle.scoreTallies(passed);
    if (areEmpty(scoreTallies)) return this.#rank(present, scoreTallies, found);
    const summary = summaryOf({ ...found, stage: STAGE.surveyed });
    return { ...EMPTY_REPLY, scoreTallies, summary };
  }

  #rank(present: Try, tallies: PluginTallies, found: Partial<Summary> = {}): Reply {
    const { cycle, passed } = present;
    const known = { passed: passed.length, ...found };
    if (passed.length === 0) {
      return { ...EMPTY_REPLY, summary: summaryOf({ ...known, stage: STAGE.scored }) };
    }
    const scorers = cycle.scorers(passed, tallies);
    if ('plugin' in scorers) {
      return { ...EMPTY_REPLY, fault: scorers, summary: summaryOf(known) };
    }
    present.scorers = scorers;
    present.raws = cycle.raws(passed, scorers);
    const ranges = cycle.rangesOf(present.raws, scorers);
    const best = bestOf(present, ranges);
    return { ...EMPTY_REPLY, ranges, summary: summaryOf({ ...known, stage: STAGE.scored, best }) };
  }

  #best(present: Try, ranges: ReadonlyMap<string, Range>): Reply {
    const known = { passed: present.passed.length, stage: STAGE.scored };
    const best = present.passed.length === 0 ? null : bestOf(present, ranges);
    return { ...EMPTY_REPLY, summary: summaryOf({ ...known, best }) };
  }
}

/** Verdicts by what they say. */
class Objections {
  /** The first that is the pod's own fault, or the configuration's. */
  fault: Verdict | null = null;
  /** Nodes that lack the same mostly share their list of reasons. */
  readonly #counts = new Map<readonly string[], Objection[]>();

  /** True where there is nothing to say. */
  take(verdict: Verdict | null): boolean {
    if (verdict === null) return true;
    if (verdict.code === 'error') this.fault ??= verdict;
    const alike = this.#counts.get(verdict.reasons) ?? [];
    const { plugin, code } = verdict;
    const at = alike.findIndex(({ verdict: one }) => one.plugin === plugin && one.code === code);
    alike[at < 0 ? alike.length : at] = { verdict, nodes: 1 + (alike[at]?.nodes ?? 0) };
    this.#counts.set(verdict.reasons, alike);
    return false;
  }

  get all(): readonly Objection[] {
    const all = new Map<string, Objection>();
    for (const { verdict, nodes } of [...this.#counts.values()].flat()) {
      const key = verdictKey(verdict);
      all.set(key, { verdict, nodes: nodes + (all.get(key)?.nodes ?? 0) });
    }
    return [...all.values()].slice(0, OBJECTIONS_MAX);
  }
}

function summaryOf(known: Partial<Summary>): Summary {
  const nothing = { shards: 1, nodes: 0, passed: 0, first: '', objections: [] };
  return { ...nothing, stage: STAGE.counted, isAgreed: true, best: null, ...known };
}

function bestOf(
  { cycle, passed, raws, scorers, seed }: Try,
  ranges: ReadonlyMap<string, Range>,
): Best | null {
  const sums = cycle.sums(passed.length, raws, scorers, ranges);
  let [place, mark, nodes, total] = [-1, 0, 0, -Infinity];
  for (let index = 0; index < passed.length; index++) {
    const sum = sums[index] ?? 0;
    if (place >= 0 && sum < total) continue;
    const name = passed[index]?.name ?? '';
    const own = markOf(name, seed);
    if (place >= 0 && sum === total) {
      nodes++;
      if (own > mark || (own === mark && name > (passed[place]?.name ?? ''))) continue;
    } else [nodes, total] = [1, sum];
    [place, mark] = [index, own];
  }
  return place < 0 ? null : { total, nodes, name: passed[place]?.name ?? '', mark };
}

function podOf(bytes: Uint8Array): PodInfo {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  return new PodInfo(parseJson(text) as unknown as PodObject);
}
