/**
 * The oracle: decides about a pod by looking at every node. All faster ways must find a node that
 * is among its best ones, or fail with its text.
 */
import {
  Cycle,
  type Nominations,
  type NodeScore,
  type Preparation,
} from '../framework/runtime/cycle.ts';
import { NO_METER, STATUS_OF, type CycleMeter } from '../framework/cycle-meter.ts';
import { EXTENDERS, type Extender } from '../extenders/extender.ts';
import { ExtenderRounds, unasked, type Asking } from '../extenders/extender-rounds.ts';
import { fitErrorText, preFilterErrorText } from '../framework/fit-error.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { PodInfo } from '../framework/pod-info.ts';
import type { Nomination, Verdict, FailedCycle } from '../framework/plugin.ts';
import { unresolvable, unschedulable, type PostFilterOutcome } from '../framework/plugin.ts';
import { ScatteredCycle, type ShareOrder } from '../sharding/scatter/scattered-cycle.ts';
import { pickCandidate } from '../framework/preemption.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { ObjectWrite } from '../framework/reservation.ts';
import type { Snapshot } from '../framework/snapshot.ts';

export type Decision =
  | {
      readonly kind: 'placed';
      readonly feasible: readonly NodeInfo[];
      /** In the order of `feasible`; null when there was nothing to choose from. */
      readonly scores: readonly NodeScore[] | null;
      readonly best: readonly string[];
      /** By upstream's rule for ties. */
      readonly chosen: string;
      /** Knows what is to be done before the pod is bound to one of the nodes. */
      readonly cycle: Cycle;
    }
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly reasons: ReadonlyMap<string, number>;
      readonly nomination: Nomination | null;
      /** An earlier nomination of the pod is void. */
      readonly clearsNomination: boolean;
      readonly isError: boolean;
      /** Plugins that rejected; they decide which events wake the pod. */
      readonly rejecters: ReadonlySet<string>;
      readonly verdicts: ReadonlyMap<string, Verdict>;
      readonly writes: readonly ObjectWrite[];
    };

/** Fewer nodes than this are all looked at, whatever the percentage. */
const FEASIBLE_MIN = 100;
const PERCENTAGE_MIN = 5;

/** How many feasible nodes are enough; `percentage` 0 adapts to the size of the cluster. */
export function feasibleWanted(nodes: number, percentage: number): number {
  if (nodes < FEASIBLE_MIN) return nodes;
  const adaptive = Math.max(PERCENTAGE_MIN, 50 - Math.trunc(nodes / 125));
  const wanted = Math.trunc((nodes * (percentage === 0 ? adaptive : percentage)) / 100);
  return Math.max(FEASIBLE_MIN, wanted);
}

/** First of the best in pre-order of the binary tree that upstream's heap lays over the list. */
export function firstBest(scores: readonly NodeScore[]): number {
  const max = scores.reduce((most, { total }) => Math.max(most, total), -Infinity);
  const stack = [0];
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    const score = scores[index];
    if (score === undefined) continue;
    if (score.total === max) return index;
    stack.push(2 * index + 2, 2 * index + 1);
  }
  return -1;
}

export class Evaluator {
  readonly #percentage: number;
  readonly #extenders: readonly Extender[];
  readonly #shares: ShareOrder | null;
  #start = 0;
  /** Told how long the steps take. */
  meter: CycleMeter = NO_METER;

  /**
   * `percentage`: percentageOfNodesToScore; 100 is exact, 0 adaptive. `shares`: whose nodes are
   * whose, where shards look at them; null: all nodes are looked at here.
   */
  constructor(
    percentage = 100,
    extenders: readonly Extender[] = [],
    shares: ShareOrder | null = null,
  ) {
    this.#percentage = percentage;
    this.#extenders = extenders;
    this.#shares = shares;
  }

  /** Why a pod is not to be tried at all; null if it may be. */
  static gateOf(pod: PodInfo, snapshot: Snapshot, profile: Profile): string | null {
    for (const plugin of profile.preEnqueue) {
      const reason = plugin.preEnqueue?.(pod, snapshot) ?? null;
      if (reason !== null) return reason;
    }
    return null;
  }

  /** Name of the plugin that keeps a pod from being tried, or empty. */
  static gatekeeperOf(pod: PodInfo, snapshot: Snapshot, { preEnqueue }: Profile): string {
    const holds = preEnqueue.find((one) => (one.preEnqueue?.(pod, snapshot) ?? null) !== null);
    return holds?.name ?? '';
  }

  /** A decision about a pod that no extender is interested in. */
  decide(pod: PodInfo, snapshot: Snapshot, profile: Profile, nominations: Nominations): Decision {
    return unasked(this.decideAsking(pod, snapshot, profile, nominations));
  }

  /** A decision that asks extenders; `snapshot` must stay as it is until the end. */
  *decideAsking(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    nominations: Nominations,
  ): Asking<Decision> {
    if (snapshot.nodes.length === 0) return noNodes();
    const cycle = this.#cycleFor(pod, snapshot, profile, nominations);
    if (cycle instanceof ScatteredCycle) yield* cycle.begin();
    const rounds = new ExtenderRounds(cycle, this.#extenders);
    const preparation = cycle.prepare();
    if (preparation.kind === 'rejected') {
      return yield* failBeforeNodes(cycle, preparation, rounds);
    }
    const { names, by } = preparation;
    const verdicts = new Map<string, Verdict>();
    const since = this.meter.now();
    const found = yield* this.#find(cycle, names, verdicts, rounds);
    cycle.filtered(Array.isArray(found) ? 'Success' : 'Error', since);
    if (!Array.isArray(found)) return failed(errorOf(found), cycle, verdicts, null);
    if (found.length === 0) {
      const text = `node(s) didn't satisfy plugin(s) [${by.toSorted().join(' ')}]`;
      const absent = names === null ? null : { ...unresolvable(text), plugin: by[0] ?? '' };
      const failure = { cycle, verdicts, absent, isCutShort: false };
      return failed(yield* postFilter(failure, rounds), cycle, verdicts, absent, by);
    }
    return yield* place(cycle, found, verdicts, rounds);
  }

  #cycleFor(pod: PodInfo, snapshot: Snapshot, profile: Profile, nominations: Nominations): Cycle {
    const asked = [pod, snapshot, profile, nominations, this.meter] as const;
    if (this.#shares === null) return new Cycle(...asked);
    const waiting = new Map<string, PodInfo>();
    for (const { name } of snapshot.nodes) {
      for (const one of nominations.on(name)) waiting.set(one.key, one);
    }
    return new ScatteredCycle(this.#shares, [...waiting.values()], ...asked);
  }

  /** Feasible nodes in the order in which they were met; a verdict if the pod is at fault. */
  *#find(
    cycle: Cycle,
    names: ReadonlySet<string> | null,
    verdicts: Map<string, Verdict>,
    rounds: ExtenderRounds,
  ): Asking<NodeInfo[] | Verdict> {
    const { snapshot, pod } = cycle;
    const nominated = snapshot.node(pod.pod.status?.nominatedNodeName ?? '');
    if (nominated !== undefined) {
      if (cycle instanceof ScatteredCycle) yield* cycle.filterAll(nominated.name);
      const verdict = cycle.filterNode(nominated);
      if (verdict === null) {
        const left = yield* rounds.filter([nominated], verdicts);
        if (typeof left !== 'string' && left.length > 0) return left;
      } else if (verdict.code !== 'error') verdicts.set(nominated.name, verdict);
    }
    if (cycle instanceof ScatteredCycle) yield* cycle.filterAll(null);
    const feasible = this.#scan(cycle, names, verdicts);
    if (!Array.isArray(feasible)) return feasible;
    const left = yield* rounds.filter(feasible, verdicts);
    if (typeof left === 'string') return { code: 'error', reasons: [left], plugin: EXTENDERS };
    return left;
  }

  /** Nodes that pass all filters, as many as are wanted. */
  #scan(
    cycle: Cycle,
    names: ReadonlySet<string> | null,
    verdicts: Map<string, Verdict>,
  ): NodeInfo[] | Verdict {
    const { snapshot, profile } = cycle;
    const nodes =
      names === null ? snapshot.nodes : snapshot.nodes.filter(({ name }) => names.has(name));
    const percentage = profile.percentageOfNodesToScore ?? this.#percentage;
    const hasChoice =
      profile.weights.size > 0 ||
      this.#extenders.some(({ filters, prioritizes }) => filters || prioritizes);
    const wanted = hasChoice ? feasibleWanted(nodes.length, percentage) : 1;
    const feasible: NodeInfo[] = [];
    let error: Verdict | null = null;
    let processed = 0;
    for (; processed < nodes.length; processed++) {
      const node = nodes[(this.#start + processed) % nodes.length];
      if (node === undefined) break;
      const verdict = cycle.filterNode(node);
      if (verdict === null && feasible.length === wanted) break;
      if (verdict === null) feasible.push(node);
      else if (verdict.code !== 'error') verdicts.set(node.name, verdict);
      else {
        error = verdict;
        break;
      }
    }
    // The next try begins with the node that ended this one.
    this.#start = (this.#start + processed) % snapshot.nodes.length;
    return error ?? feasible;
  }
}

/** A plugin knew without a look at the nodes. */
function* failBeforeNodes(
  cycle: Cycle,
  { verdict, isCutShort, by }: Preparation & { kind: 'rejected' },
  rounds: ExtenderRounds,
): Asking<Decision> {
  const verdicts = new Map<string, Verdict>();
  if (verdict.code === 'error') return failed(errorOf(verdict), cycle, verdicts, null);
  const message = verdict.reasons.join(', ');
  const after = yield* postFilter({ cycle, verdicts, absent: verdict, isCutShort }, rounds);
  return {
    kind: 'failed',
    message: preFilterErrorText(cycle.snapshot.nodes.length, message, after.text),
    reasons: new Map([[message, -1]]),
    nomination: after.nomination,
    clearsNomination: after.clearsNomination,
    isError: false,
    rejecters: new Set(by),
    verdicts,
    writes: after.writes,
  };
}

/** The same failure, with what evictions would give where shards have to try them. */
function* tried(failure: FailedTry): Asking<FailedTry> {
  const { cycle } = failure;
  if (!(cycle instanceof ScatteredCycle)) return failure;
  yield* cycle.tryEvictions(failure);
  return { ...failure, dryRun: (node) => cycle.dryRun(node) };
}

interface Aftermath {
  readonly text: string;
  readonly nomination: Nomination | null;
  readonly clearsNomination: boolean;
  readonly isError?: boolean;
  readonly writes: readonly ObjectWrite[];
}

function errorOf(verdict: Verdict): Aftermath {
  const text = verdict.reasons.join(', ');
  return { text, nomination: null, clearsNomination: true, isError: true, writes: [] };
}

/** What the plugins see, with the cycle as its owner has it. */
type FailedTry = FailedCycle & { readonly cycle: Cycle };

/** Plugins of PostFilter in turn, until one finds a way or gives up for all. */
function* postFilter(failure: FailedTry, rounds: ExtenderRounds): Asking<Aftermath> {
  const { meter, profile } = failure.cycle;
  const since = meter.now();
  const after = yield* runPostFilters(failure, rounds);
  const status = after.nomination === null ? STATUS_OF.unschedulable : 'Success';
  meter.pointEnded('PostFilter', status, profile.schedulerName, since);
  return after;
}

function* runPostFilters(given: FailedTry, rounds: ExtenderRounds): Asking<Aftermath> {
  const texts: string[] = [];
  const writes: ObjectWrite[] = [];
  const failure = yield* tried(given);
  const { postFilter: plugins } = failure.cycle.profile;
  // Nobody to say whether the pod may go on waiting for its node.
  let clearsNomination = plugins.length === 0;
  for (const plugin of plugins) {
    const answer = plugin.postFilter?.(failure);
    if (answer === undefined) continue;
    const outcome = answer.kind === 'candidates' ? yield* nominate(answer, rounds) : answer;
    if (outcome.kind === 'nominated') {
      return { text: '', nomination: outcome.nomination, clearsNomination: false, writes };
    }
    const { code, reasons } = outcome.rejection;
    if (code !== 'unschedulable') {
      return { text: reasons.join(', '), nomination: null, clearsNomination: false, writes };
    }
    texts.push(...reasons);
    writes.push(...(outcome.writes ?? []));
    clearsNomination ||= outcome.clearsNomination ?? false;
  }
  return { text: texts.join(', '), nomination: null, clearsNomination, writes };
}

/** The best of the nodes that could be freed, of those that extenders leave. */
function* nominate(
  { candidates }: PostFilterOutcome & { kind: 'candidates' },
  rounds: ExtenderRounds,
): Asking<Exclude<PostFilterOutcome, { kind: 'candidates' }>> {
  const left = yield* rounds.preempt(candidates);
  if (typeof left === 'string') {
    return { kind: 'rejected', rejection: { code: 'error', reasons: [`preemption: ${left}`] } };
  }
  if (left.length === 0) {
    const text = 'preemption: no candidate node for preemption';
    return { kind: 'rejected', rejection: unschedulable(text) };
  }
  return { kind: 'nominated', nomination: pickCandidate(left) };
}

function noNodes(): Decision {
  const message = 'no nodes available to schedule pods';
  return {
    kind: 'failed',
    message,
    reasons: new Map([[message, -1]]),
    nomination: null,
    clearsNomination: true,
    isError: false,
    rejecters: new Set(),
    verdicts: new Map(),
    writes: [],
  };
}

function failed(
  after: Aftermath,
  { snapshot }: Cycle,
  verdicts: ReadonlyMap<string, Verdict>,
  absent: Verdict | null,
  narrowedBy: readonly string[] = [],
): Decision {
  const reasons = new Map<string, number>();
  // Who left nodes out has a part in the failure, whether or not there are others.
  const rejecters = new Set(narrowedBy);
  // Nodes that lack the same share their list, which may be long.
  const nodesBy = new Map<readonly string[], number>();
  const count = ({ reasons: texts, plugin }: Verdict, nodes: number): void => {
    rejecters.add(plugin);
    nodesBy.set(texts, (nodesBy.get(texts) ?? 0) + nodes);
  };
  for (const verdict of verdicts.values()) count(verdict, 1);
  const unseen = snapshot.nodes.length - verdicts.size;
  if (absent !== null && unseen > 0) count(absent, unseen);
  for (const [texts, nodes] of nodesBy) {
    for (const text of texts) reasons.set(text, (reasons.get(text) ?? 0) + nodes);
  }
  const isError = after.isError === true;
  return {
    kind: 'failed',
    message: isError ? after.text : fitErrorText(snapshot.nodes.length, reasons, after.text),
    reasons: isError ? new Map([[after.text, -1]]) : reasons,
    nomination: after.nomination,
    clearsNomination: after.clearsNomination,
    isError,
    rejecters: isError ? new Set() : rejecters,
    verdicts,
    writes: after.writes,
  };
}

function* place(
  cycle: Cycle,
  feasible: readonly NodeInfo[],
  verdicts: ReadonlyMap<string, Verdict>,
  rounds: ExtenderRounds,
): Asking<Decision> {
  const [only] = feasible;
  if (only !== undefined && feasible.length === 1) {
    const { name } = only;
    return { kind: 'placed', feasible, scores: null, best: [name], chosen: name, cycle };
  }
  if (cycle instanceof ScatteredCycle) yield* cycle.scoreAll(feasible);
  const byPlugins = cycle.score(feasible);
  if (!Array.isArray(byPlugins)) return failed(errorOf(byPlugins), cycle, verdicts, null);
  const scores = yield* rounds.score(feasible, byPlugins);
  const max = scores.reduce((most, { total }) => Math.max(most, total), -Infinity);
  const best = feasible.filter((_, index) => scores[index]?.total === max).map(({ name }) => name);
  const chosen = feasible[firstBest(scores)]?.name ?? '';
  return { kind: 'placed', feasible, scores, best, chosen, cycle };
}
