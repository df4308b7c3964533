/**
 * A shard's share of the cluster: its nodes with their pods, all objects of other kinds, and the
 * try that the root is at. It decides nothing: it answers rounds about its nodes, in the order in
 * which the root has them.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { Cluster } from '../framework/cluster.ts';
import { areEnough } from '../framework/plugins/default-preemption.ts';
import type { Verdict } from '../framework/plugin.ts';
import { dryRun } from '../framework/preemption.ts';
import { Cycle, type ActiveScorer } from '../framework/runtime/cycle.ts';
import type { BudgetObject, KubeObject, PodObject } from '../api/objects.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import { PodInfo } from '../framework/pod-info.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { Snapshot } from '../framework/snapshot.ts';
import { EMPTY_REPLY } from './protocol/rounds.ts';
import type {
  DryRunOutcome,
  PluginFinding,
  PluginTallies,
  Reply,
  Round,
} from './protocol/rounds.ts';
import type { StateChange } from './protocol/state.ts';

/** The try that the root is at. */
interface Try {
  readonly cycle: Cycle;
  isPrepared: boolean;
  /** Nodes that the pod may go to; null: all. */
  names: ReadonlySet<string> | null;
  passed: readonly NodeInfo[];
  /** Of those, the ones that are scored, and by whom. */
  scored: readonly NodeInfo[];
  scorers: readonly ActiveScorer[];
  readonly verdicts: Map<string, Verdict>;
}

export class Share {
  readonly #member: string;
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #cluster: Cluster;
  #order: readonly string[] = [];
  #nodes: readonly NodeInfo[] = [];
  #isFresh = false;
  #try: Try | null = null;

  constructor(member: string, profiles: ReadonlyMap<string, Profile>) {
    this.#member = member;
    this.#profiles = profiles;
    this.#cluster = new Cluster(false, true);
  }

  /** Nodes that it answers for. */
  get nodeCount(): number {
    return this.#order.length;
  }

  /** Takes in what the root says has changed. */
  apply(change: StateChange): void {
    this.#isFresh = false;
    switch (change.kind) {
      case 'apply':
        this.#cluster.apply(objectOf(change.object) as unknown as KubeObject);
        break;
      case 'delete':
        this.#cluster.delete(change.objectKind, change.key);
        break;
      case 'images':
        this.#cluster.setImages(change.node, change.images);
        break;
      case 'order':
        this.#order = change.nodes;
        break;
      case 'node':
      case 'nodeGone':
      case 'pod':
      case 'podGone':
      case 'image':
      case 'object':
      case 'epoch':
        throw new Error(`a scenario has no change of kind ${change.kind}`);
    }
  }

  /** Answers a round; what it throws is the shard's own fault. */
  answer(round: Round): Reply {
    this.#refresh();
    if (round.kind === 'prepare') return this.#begin(round);
    const present = this.#try;
    if (present === null) return { ...EMPTY_REPLY, trouble: 'the shard knows of no try' };
    switch (round.kind) {
      case 'filter':
        return this.#filter(present, round);
      case 'prescore':
        return this.#preScore(present, round);
      case 'range':
        return this.#range(present, round);
      case 'totals':
        return this.#totals(present, round);
      case 'dryRun':
        return this.#dryRun(present, round);
      case 'begin':
      case 'survey':
      case 'rank':
      case 'best':
      case 'sync':
        return { ...EMPTY_REPLY, trouble: `a scenario has no round of kind ${round.kind}` };
    }
  }

  #refresh(): void {
    if (this.#isFresh) return;
    this.#isFresh = true;
    this.#cluster.refresh();
    this.#nodes = this.#order.flatMap((name) => this.#cluster.node(name) ?? []);
  }

  #begin({ pod, profile, nowMs, nominated }: Round & { kind: 'prepare' }): Reply {
    const known = this.#profiles.get(profile);
    if (known === undefined) return { ...EMPTY_REPLY, trouble: `no profile is named ${profile}` };
    const waiting = Map.groupBy(
      nominated.map((bytes) => new PodInfo(objectOf(bytes) as unknown as PodObject)),
      (one) => one.pod.status?.nominatedNodeName ?? '',
    );
    const cycle = new Cycle(
      new PodInfo(objectOf(pod) as unknown as PodObject),
      new ShareSnapshot(this.#cluster, this.#nodes, nowMs),
      known,
      { on: (node) => waiting.get(node) ?? [] },
    );
    const nothing = { passed: [], scored: [], scorers: [], verdicts: new Map() };
    this.#try = { cycle, isPrepared: false, names: null, ...nothing };
    return { ...EMPTY_REPLY, tallies: cycle.tallies() };
  }

  #prepare(present: Try, tallies: PluginTallies): void {
    if (present.isPrepared) return;
    present.isPrepared = true;
    const preparation = present.cycle.prepare(tallies);
    present.names = preparation.kind === 'ready' ? preparation.names : null;
  }

  #filter(present: Try, { tallies, only }: Round & { kind: 'filter' }): Reply {
    this.#prepare(present, tallies);
    const { cycle, names } = present;
    const nodes = this.#nodes.filter(({ name }) =>
      only === null ? (names?.has(name) ?? true) : name === only,
    );
    const table = new VerdictTable();
    present.passed = nodes.filter((node) => {
      const verdict = cycle.filterNode(node);
      if (verdict !== null) present.verdicts.set(node.name, verdict);
      table.note(verdict);
      return verdict === null;
    });
    const { verdicts, codes } = table;
    const findings = findingsOf(cycle);
    const share = { member: this.#member, table: verdicts, codes, findings };
    return { ...EMPTY_REPLY, verdicts: [share] };
  }

  #preScore(present: Try, { among }: Round & { kind: 'prescore' }): Reply {
    const wanted = among === null ? null : new Set(among);
    present.scored = present.passed.filter(({ name }) => wanted?.has(name) ?? true);
    return { ...EMPTY_REPLY, tallies: present.cycle.scoreTallies(present.scored) };
  }

  #range(present: Try, { tallies }: Round & { kind: 'range' }): Reply {
    const { cycle, scored } = present;
    const scorers = cycle.scorers(scored, tallies);
    if ('plugin' in scorers) return { ...EMPTY_REPLY, fault: scorers };
    present.scorers = scorers;
    return { ...EMPTY_REPLY, ranges: cycle.ranges(scored, scorers) };
  }

  #totals(present: Try, { ranges }: Round & { kind: 'totals' }): Reply {
    const { cycle, scored, scorers } = present;
    const scores = cycle.totals(scored, scorers, ranges);
    const totals = scored.map(({ name }, index) => {
      const { total, plugins } = scores[index] ?? { total: 0, plugins: new Map() };
      return { node: name, total, plugins };
    });
    return { ...EMPTY_REPLY, totals };
  }

  #dryRun(present: Try, { tallies, isForAll, wanted }: Round & { kind: 'dryRun' }): Reply {
    this.#prepare(present, tallies);
    const { cycle, verdicts } = present;
    const budgets = [...this.#cluster.objects('PodDisruptionBudget')] as BudgetObject[];
    const dryRuns: DryRunOutcome[] = [];
    let candidates = 0;
    let violating = 0;
    for (const node of this.#nodes) {
      if (!isForAll && verdicts.get(node.name)?.code !== 'unschedulable') continue;
      const outcome = dryRun(cycle, node, budgets);
      const { name } = node;
      if (!('victims' in outcome)) {
        const refusal = { plugin: '', ...outcome };
        dryRuns.push({ node: name, victims: null, violations: 0, refusal });
        continue;
      }
      const victims = outcome.victims.map(({ key }) => key);
      dryRuns.push({ node: name, victims, violations: outcome.violations, refusal: null });
      if (victims.length === 0) continue;
      candidates++;
      if (outcome.violations > 0) violating++;
      // of all nodes so many suffice, so of these, too
      if (areEnough(candidates, violating, wanted)) break;
    }
    return { ...EMPTY_REPLY, dryRuns };
  }
}

/** The cluster with the nodes in the root's order, as of a moment of the root. */
class ShareSnapshot implements Snapshot {
  readonly nodes: readonly NodeInfo[];
  readonly nowMs: number;
  readonly #cluster: Cluster;

  constructor(cluster: Cluster, nodes: readonly NodeInfo[], nowMs: number) {
    this.#cluster = cluster;
    this.nodes = nodes;
    this.nowMs = nowMs;
  }

  node(name: string): NodeInfo | undefined {
    return this.#cluster.node(name);
  }

  namespaceLabels(name: string): ReturnType<Snapshot['namespaceLabels']> {
    return this.#cluster.namespaceLabels(name);
  }

  get namespaces(): Iterable<string> {
    return this.#cluster.namespaces;
  }

  object(kind: string, key: string): KubeObject | undefined {
    return this.#cluster.object(kind, key);
  }

  objects(kind: string): Iterable<KubeObject> {
    return this.#cluster.objects(kind);
  }
}

/** Verdicts of nodes in a row; those that say the same are one. */
class VerdictTable {
  readonly verdicts: Verdict[] = [];
  readonly codes: number[] = [];
  readonly #places = new Map<string, number>();

  note(verdict: Verdict | null): void {
    if (verdict === null) {
      this.codes.push(0);
      return;
    }
    const text = JSON.stringify([verdict.plugin, verdict.code, verdict.reasons]);
    let place = this.#places.get(text);
    if (place === undefined) {
      this.#places.set(text, (place = this.verdicts.length));
      this.verdicts.push(verdict);
    }
    this.codes.push(place + 1);
  }
}

function findingsOf({ filters }: Cycle): PluginFinding[] {
  return filters.flatMap(({ plugin, filter }) =>
    (filter.findings?.() ?? []).map(({ node, text }) => ({ plugin, node, text })),
  );
}

function objectOf(bytes: Uint8Array): ReturnType<typeof parseJson> {
  return parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'));
}
