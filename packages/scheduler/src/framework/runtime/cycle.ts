/**
 * One try to place one pod, by full evaluation: filters over nodes, scores over what is left. The
 * order of plugins and nodes, the texts and the rounding are those of kube-scheduler.
 */
import { NO_METER, STATUS_OF, type CycleMeter, type StepStatus } from '../cycle-meter.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import type { ActiveFilter, Filter, Plugin, PreScoreOutcome, Range } from '../plugin.ts';
import type { Rejection, Scorer, Tally, Verdict } from '../plugin.ts';
import { rangeOf, unresolvable } from '../plugin.ts';
import type { Profile } from './profile.ts';
import type { Reservation } from '../reservation.ts';
import type { Snapshot } from '../snapshot.ts';
import { unpreparedFilter, unpreparedScoreError } from './unprepared.ts';
import { cloneFilters, addPod } from '../active-filters.ts';

/** Pods that wait for a node to be freed. */
export interface Nominations {
  on(node: string): readonly PodInfo[];
}

/** Scores of one node, weighted, by plugin; plugins that add nothing are left out. */
export interface NodeScore {
  readonly total: number;
  readonly plugins: ReadonlyMap<string, number>;
}

/** By plugin: what was counted over all nodes, of which the snapshot may hold a share. */
export type Tallies = ReadonlyMap<string, Tally>;

const NO_TALLY: Tally = new Map();

/** A plugin that scores, for one pod. */
export interface ActiveScorer {
  readonly name: string;
  readonly weight: number;
  readonly scorer: Scorer;
}

/** How the preparation ended; `by`: who left out nodes, or all. */
export type Preparation =
  | { readonly kind: 'ready'; readonly names: ReadonlySet<string> | null; readonly by: string[] }
  | {
      readonly kind: 'rejected';
      readonly verdict: Verdict;
      readonly isCutShort: boolean;
      readonly by: readonly string[];
    };

export class Cycle {
  readonly pod: PodInfo;
  readonly snapshot: Snapshot;
  readonly profile: Profile;
  readonly #nominations: Nominations;
  #filters: readonly ActiveFilter[] = [];
  #prepared: ReadonlyMap<string, Filter> = new Map();
  readonly #meter: CycleMeter;
  readonly #isSampled: boolean;
  /** Nodes that each filter was asked about, by its place. */
  #asked: Float64Array = new Float64Array(0);

  constructor(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    nominations: Nominations,
    meter: CycleMeter = NO_METER,
  ) {
    this.#meter = meter;
    this.#isSampled = meter.samples();
    this.pod = pod;
    this.snapshot = snapshot;
    this.profile = profile;
    this.#nominations = nominations;
  }

  get filters(): readonly ActiveFilter[] {
    return this.#filters;
  }

  /** What a plugin found out about the pod; null if it had nothing to do. */
  filterOf(plugin: string): Filter | null {
    return this.#prepared.get(plugin) ?? null;
  }

  /** What is to be done before the pod may be bound to a node, in the order of the filters. */
  reserve(node: NodeInfo): Reservation[] | Verdict {
    const since = this.#meter.now();
    const outcome = this.#reserve(node);
    const status = 'plugin' in outcome ? STATUS_OF[outcome.code] : 'Success';
    this.#meter.pointEnded('Reserve', status, this.profile.schedulerName, since);
    return outcome;
  }

  #reserve(node: NodeInfo): Reservation[] | Verdict {
    const reservations: Reservation[] = [];
    for (const { plugin, filter } of this.#filters) {
      const outcome = filter.reserve?.(node) ?? null;
      if (outcome === null) continue;
      if ('plugin' in outcome) {
        reservations.push(outcome);
        continue;
      }
      const prefix = outcome.code === 'error' ? `running Reserve plugin "${plugin}": ` : '';
      const reasons = outcome.reasons.map((reason) => `${prefix}${reason}`);
      return { code: outcome.code, reasons, plugin };
    }
    return reservations;
  }

  /** What the plugins of PreFilter count over the nodes of the snapshot. */
  tallies(): Map<string, Tally> {
    const { prepares, preFilter } = this.profile;
    return talliesOf(preFilter, (plugin) =>
      prepares.has(plugin.name) ? plugin.tally?.(this.pod, this.snapshot) : undefined,
    );
  }

  /** The same of those of PreScore, where these nodes of the snapshot passed. */
  scoreTallies(feasible: readonly NodeInfo[]): Map<string, Tally> {
    return talliesOf(this.profile.preScore, (plugin) =>
      plugin.scoreTally?.(this.pod, this.snapshot, feasible),
    );
  }

  /** PreFilter of all plugins; `tallies`: those of all nodes, by default of the snapshot's. */
  prepare(tallies: Tallies | null = null): Preparation {
    const since = this.#meter.now();
    const preparation = this.#prepare(tallies);
    const { kind } = preparation;
    const status = kind === 'ready' ? 'Success' : STATUS_OF[preparation.verdict.code];
    this.#meter.pointEnded('PreFilter', status, this.profile.schedulerName, since);
    this.#asked = new Float64Array(this.#filters.length);
    return preparation;
  }

  #prepare(tallies: Tallies | null): Preparation {
    const filters = new Map<string, Filter>();
    this.#prepared = filters;
    const by: string[] = [];
    let names: ReadonlySet<string> | null = null;
    let first: Verdict | null = null;
    const { prepares } = this.profile;
    for (const plugin of this.profile.preFilter) {
      if (!prepares.has(plugin.name)) {
        const filter = unpreparedFilter(plugin, this.pod, this.snapshot);
        if (filter !== null) filters.set(plugin.name, filter);
        continue;
      }
      const since = this.#meter.now();
      const tally = tallyFor(plugin.name, plugin.tally !== undefined, tallies);
      const outcome = plugin.preFilter?.(this.pod, this.snapshot, tally) ?? { kind: 'skip' };
      this.#ran(plugin.name, 'PreFilter', outcome, since);
      if (outcome.kind === 'skip') continue;
      if (outcome.kind === 'rejected') {
        const verdict = {
          ...worded(outcome.rejection, `running PreFilter plugin "${plugin.name}": `),
          plugin: plugin.name,
        };
        if (verdict.code !== 'unschedulable') {
          return { kind: 'rejected', verdict, isCutShort: true, by: [plugin.name] };
        }
        first ??= verdict;
        continue;
      }
      filters.set(plugin.name, outcome.filter);
      if (outcome.nodeNames === undefined) continue;
      by.push(plugin.name);
      names = names === null ? outcome.nodeNames : intersection(names, outcome.nodeNames);
      if (names.size === 0) {
        const text =
          by.length === 1
            ? `node(s) didn't satisfy plugin ${by[0]}`
            : `node(s) didn't satisfy plugin(s) [${by.toSorted().join(' ')}] simultaneously`;
        const verdict = { ...unresolvable(text), plugin: plugin.name };
        return { kind: 'rejected', verdict, isCutShort: true, by };
      }
    }
    this.#filters = this.profile.filter.flatMap(({ name }) => {
      const filter = filters.get(name);
      return filter === undefined ? [] : [{ plugin: name, filter }];
    });
    if (first !== null) {
      const all = [...by, first.plugin];
      return { kind: 'rejected', verdict: first, isCutShort: false, by: all };
    }
    return { kind: 'ready', names, by };
  }

  #ran(
    plugin: string,
    point: string,
    outcome:
      | { readonly kind: 'skip' | 'run' }
      | { readonly kind: 'rejected'; readonly rejection: Rejection },
    since: number,
  ): void {
    const { kind } = outcome;
    if (kind !== 'skip') this.#meter.evaluated(plugin, point, this.profile.schedulerName, 1);
    if (!this.#isSampled) return;
    const status: StepStatus =
      kind === 'rejected'
        ? STATUS_OF[outcome.rejection.code]
        : kind === 'skip'
          ? 'Skip'
          : 'Success';
    this.#meter.pluginEnded(plugin, point, status, since);
  }

  /** Filtering, which began at `since`, is over. */
  filtered(status: StepStatus, since: number): void {
    const { schedulerName } = this.profile;
    this.#meter.pointEnded('Filter', status, schedulerName, since);
    for (const [index, { plugin }] of this.#filters.entries()) {
      const nodes = this.#asked[index] ?? 0;
      if (nodes > 0) this.#meter.evaluated(plugin, 'Filter', schedulerName, nodes);
    }
    this.#asked.fill(0);
  }

  get meter(): CycleMeter {
    return this.#meter;
  }

  /**
   * Null if the pod may go there: with the pods that are nominated to the node and not less
   * important counted in, and without them too.
   */
  filterNode(node: NodeInfo, filters: readonly ActiveFilter[] = this.#filters): Verdict | null {
    const nominated = this.#nominations
      .on(node.name)
      .filter(({ key, priority }) => priority >= this.pod.priority && key !== this.pod.key);
    if (nominated.length > 0) {
      const crowded = node.clone();
      const copies = cloneFilters(filters);
      for (const pod of nominated) addPod(copies, pod, crowded);
      const verdict = this.#runFilters(copies, crowded);
      if (verdict !== null) return verdict;
    }
    return this.#runFilters(filters, node);
  }

  /** The first plugin that says no speaks for the node. */
  #runFilters(filters: readonly ActiveFilter[], node: NodeInfo): Verdict | null {
    const asked = this.#asked;
    for (let index = 0; index < filters.length; index++) {
      const { plugin, filter } = filters[index] as ActiveFilter;
      asked[index] = (asked[index] ?? 0) + 1;
      const since = this.#isSampled ? this.#meter.now() : 0;
      const rejection = filter.filter(node);
      if (this.#isSampled) {
        const status = rejection === null ? 'Success' : STATUS_OF[rejection.code];
        this.#meter.pluginEnded(plugin, 'Filter', status, since);
      }
      if (rejection === null) continue;
      return { ...worded(rejection, `running "${plugin}" filter plugin: `), plugin };
    }
    return null;
  }

  #preScore(
    plugin: Plugin,
    feasible: readonly NodeInfo[],
    tallies: Tallies | null,
  ): PreScoreOutcome {
    const { pod, snapshot, profile } = this;
    const isPrepared = profile.preparesScore.has(plugin.name);
    if (!isPrepared && plugin.scoreAnyway !== undefined) return plugin.scoreAnyway(pod, snapshot);
    const filter = this.filterOf(plugin.name);
    const tally = tallyFor(plugin.name, plugin.scoreTally !== undefined, tallies);
    return plugin.preScore?.(pod, snapshot, feasible, filter, tally) ?? { kind: 'skip' };
  }

  /** Weighted scores of the feasible nodes, or the rejection of a plugin that cannot score. */
  score(feasible: readonly NodeInfo[]): NodeScore[] | Verdict {
    const scorers = this.scorers(feasible);
    return 'plugin' in scorers ? scorers : this.totals(feasible, scorers);
  }

  /** PreScore of all plugins; `tallies`: those of all nodes, by default of the snapshot's. */
  scorers(
    feasible: readonly NodeInfo[],
    tallies: Tallies | null = null,
  ): readonly ActiveScorer[] | Verdict {
    const scorers: ActiveScorer[] = [];
    const { schedulerName, preparesScore } = this.profile;
    const preScoreSince = this.#meter.now();
    for (const plugin of this.profile.preScore) {
      const { name } = plugin;
      const error = preparesScore.has(name) ? '' : unpreparedScoreError(name);
      if (error !== '') return { code: 'error', reasons: [error], plugin: name };
      const since = this.#meter.now();
      const outcome = this.#preScore(plugin, feasible, tallies);
      if (preparesScore.has(name)) this.#ran(name, 'PreScore', outcome, since);
      if (outcome.kind === 'rejected') {
        this.#meter.pointEnded('PreScore', 'Error', schedulerName, preScoreSince);
        const reasons = outcome.rejection.reasons.map(
          (reason) => `running PreScore plugin "${name}": ${reason}`,
        );
        return { code: 'error', reasons, plugin: name };
      }
      const weight = this.profile.weights.get(name);
      if (outcome.kind === 'skip' || weight === undefined) continue;
      scorers.push({ name, weight, scorer: outcome.scorer });
    }
    this.#meter.pointEnded('PreScore', 'Success', schedulerName, preScoreSince);
    return scorers;
  }

  /** Least and greatest raw score of each plugin, over these nodes. */
  ranges(feasible: readonly NodeInfo[], scorers: readonly ActiveScorer[]): Map<string, Range> {
    return new Map(
      scorers.map(({ name, scorer }) => {
        const raw = feasible.map((node) => scorer.score(node));
        return [name, scorer.range?.(raw) ?? rangeOf(raw)];
      }),
    );
  }

  /** Raw scores by scorer, in the order of these nodes. */
  raws(feasible: readonly NodeInfo[], scorers: readonly ActiveScorer[]): number[][] {
    return scorers.map(({ scorer }) => feasible.map((node) => scorer.score(node)));
  }

  /** Least and greatest of raw scores, of those scorers that look at them. */
  rangesOf(raws: readonly number[][], scorers: readonly ActiveScorer[]): Map<string, Range> {
    const ranges = new Map<string, Range>();
    for (const [index, { name, scorer }] of scorers.entries()) {
      const raw = raws[index] ?? [];
      if (scorer.normalize !== undefined) ranges.set(name, scorer.range?.(raw) ?? rangeOf(raw));
    }
    return ranges;
  }

  /** Weighted totals of `count` nodes, without a word about who gave what. */
  sums(
    count: number,
    raws: readonly number[][],
    scorers: readonly ActiveScorer[],
    ranges: ReadonlyMap<string, Range>,
  ): Float64Array {
    const sums = new Float64Array(count);
    if (this.profile.weights.size === 0) return sums.fill(1);
    for (const [index, { name, weight, scorer }] of scorers.entries()) {
      const raw = raws[index] ?? [];
      const scores = scorer.normalize?.(raw, ranges.get(name)) ?? raw;
      for (let i = 0; i < count; i++) sums[i] = (sums[i] ?? 0) + (scores[i] ?? 0) * weight;
    }
    return sums;
  }

  /** Weighted scores; `ranges`: of the raw scores of all nodes, where these are some of them. */
  totals(
    feasible: readonly NodeInfo[],
    scorers: readonly ActiveScorer[],
    ranges?: ReadonlyMap<string, Range>,
  ): NodeScore[] {
    const { schedulerName } = this.profile;
    // Without any plugin that scores, every feasible node gets 1.
    if (this.profile.weights.size === 0) {
      return feasible.map(() => ({ total: 1, plugins: new Map() }));
    }
    const scoreSince = this.#meter.now();
    const columns = scorers.map(({ name, weight, scorer }) => {
      this.#meter.evaluated(name, 'Score', schedulerName, feasible.length);
      const since = this.#meter.now();
      const raw = feasible.map((node) => scorer.score(node));
      const scores = scorer.normalize?.(raw, ranges?.get(name)) ?? raw;
      if (this.#isSampled) this.#meter.pluginEnded(name, 'Score', 'Success', since);
      return { name, scores: scores.map((score) => score * weight) };
    });
    this.#meter.pointEnded('Score', 'Success', schedulerName, scoreSince);
    return feasible.map((_, index) => {
      const plugins = new Map<string, number>();
      let total = 0;
      for (const { name, scores } of columns) {
        const score = scores[index] ?? 0;
        total += score;
        if (score !== 0) plugins.set(name, score);
      }
      return { total, plugins };
    });
  }
}

function talliesOf(
  plugins: readonly Plugin[],
  tallyOf: (plugin: Plugin) => Tally | null | undefined,
): Map<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const plugin of plugins) {
    const tally = tallyOf(plugin) ?? null;
    if (tally !== null) tallies.set(plugin.name, tally);
  }
  return tallies;
}

/** What a plugin is handed: nothing where it is to count by itself, or counts nothing. */
function tallyFor(name: string, counts: boolean, tallies: Tallies | null): Tally | undefined {
  if (tallies === null || !counts) return undefined;
  return tallies.get(name) ?? NO_TALLY;
}

/** Errors say where they happened. */
function worded(rejection: Rejection, prefix: string): Rejection {
  if (rejection.code !== 'error') return rejection;
  return { ...rejection, reasons: rejection.reasons.map((reason) => `${prefix}${reason}`) };
}

function intersection(left: ReadonlySet<string>, right: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...left].filter((name) => right.has(name)));
}
