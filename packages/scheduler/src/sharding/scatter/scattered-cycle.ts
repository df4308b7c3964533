/**
 * A try to place a pod of which the shards look at the nodes. What they answer is gathered before
 * the evaluator asks for it, so that the evaluator, its texts and its order are the same with
 * shards and without; the node that is chosen is looked at once more here.
 */
import { Cycle, type NodeScore, type Preparation } from '../../framework/runtime/cycle.ts';
import type { Asking } from '../../extenders/extender-rounds.ts';
import type { NodeInfo } from '../../framework/node-info.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import type { ActiveFilter, Candidate, FailedCycle } from '../../framework/plugin.ts';
import type { Rejection, Tally, Verdict } from '../../framework/plugin.ts';
import type { Reservation } from '../../framework/reservation.ts';
import type { NodeTotals, Reply, Round } from '../protocol/rounds.ts';

const TROUBLE = 'Shards';
const UNTRIED: Rejection = { code: 'error', reasons: ['no shard tried the node'] };

/** Nodes of each shard, in the order in which it answers about them. */
export interface ShareOrder {
  nodesOf(member: string): readonly NodeInfo[];
}

export class ScatteredCycle extends Cycle {
  readonly #order: ShareOrder;
  readonly #waiting: readonly PodInfo[];
  #tallies: ReadonlyMap<string, Tally> = new Map();
  #preparation: Preparation | null = null;
  readonly #verdicts = new Map<string, Verdict | null>();
  #scores: ReadonlyMap<string, NodeTotals> = new Map();
  #scoreFault: Verdict | null = null;
  readonly #dryRuns = new Map<string, Candidate | Rejection>();

  /** `waiting`: all pods that are nominated to a node. */
  constructor(
    order: ShareOrder,
    waiting: readonly PodInfo[],
    ...cycle: ConstructorParameters<typeof Cycle>
  ) {
    super(...cycle);
    this.#order = order;
    this.#waiting = waiting;
  }

  /** Tells the shards of the pod; they count what plugins want counted. */
  *begin(): Asking<void> {
    const { pod, profile, snapshot } = this;
    const reply = yield* this.#ask({
      kind: 'prepare',
      pod: Buffer.from(JSON.stringify(pod.pod)),
      profile: profile.schedulerName,
      nowMs: snapshot.nowMs,
      nominated: this.#waiting.map((waiting) => Buffer.from(JSON.stringify(waiting.pod))),
    });
    this.#tallies = reply.tallies;
  }

  override prepare(): Preparation {
    this.#preparation ??= super.prepare(this.#tallies);
    return this.#preparation;
  }

  /** Has the nodes looked at that the pod may go to, or one of them. */
  *filterAll(only: string | null): Asking<void> {
    const reply = yield* this.#ask({ kind: 'filter', tallies: this.#tallies, only });
    const names = this.#preparation?.kind === 'ready' ? this.#preparation.names : null;
    for (const { member, table, codes } of reply.verdicts) {
      const nodes = this.#order
        .nodesOf(member)
        .filter(({ name }) => (only === null ? (names?.has(name) ?? true) : name === only));
      for (const [index, { name }] of nodes.entries()) {
        const code = codes[index] ?? -1;
        this.#verdicts.set(name, code === 0 ? null : (table[code - 1] ?? unanswered(name)));
      }
    }
    this.#learn(reply);
  }

  #learn({ verdicts }: Reply): void {
    const places = new Map(this.snapshot.nodes.map(({ name }, index) => [name, index]));
    const placeOf = ({ node }: { node: string }): number => places.get(node) ?? Infinity;
    const all = verdicts.flatMap(({ findings }) => findings);
    const found = all.toSorted((one, other) => placeOf(one) - placeOf(other));
    for (const { plugin, filter } of this.filters) {
      filter.learn?.(found.filter((finding) => finding.plugin === plugin));
    }
  }

  /** What a shard said of the node. */
  override filterNode(node: NodeInfo, filters?: readonly ActiveFilter[]): Verdict | null {
    if (filters !== undefined) return super.filterNode(node, filters);
    const verdict = this.#verdicts.get(node.name);
    return verdict === undefined ? unanswered(node.name) : verdict;
  }

  /** Has the nodes scored that passed and are left. */
  *scoreAll(feasible: readonly NodeInfo[]): Asking<void> {
    const passed = this.#verdicts.values().filter((verdict) => verdict === null);
    const areAll = feasible.length === [...passed].length;
    const among = areAll ? null : feasible.map(({ name }) => name);
    const { tallies } = yield* this.#ask({ kind: 'prescore', among });
    const { ranges, fault } = yield* this.#ask({ kind: 'range', tallies });
    this.#scoreFault = fault;
    if (fault !== null) return;
    const { totals } = yield* this.#ask({ kind: 'totals', ranges });
    this.#scores = new Map(totals.map((one) => [one.node, one]));
  }

  override score(feasible: readonly NodeInfo[]): NodeScore[] | Verdict {
    if (this.#scoreFault !== null) return this.#scoreFault;
    const scores: NodeScore[] = [];
    for (const { name } of feasible) {
      const score = this.#scores.get(name);
      if (score === undefined) return unanswered(name);
      scores.push(score);
    }
    return scores;
  }

  /** Has evictions tried, if a plugin will ask what they would give. */
  *tryEvictions(failure: FailedCycle): Asking<void> {
    let wanted = 0;
    for (const plugin of this.profile.postFilter) {
      wanted = Math.max(wanted, plugin.candidatesWanted?.(failure) ?? 0);
    }
    if (wanted === 0) return;
    const isForAll = failure.absent?.code === 'unschedulable';
    const round = { kind: 'dryRun', tallies: this.#tallies, isForAll, wanted } as const;
    const { dryRuns } = yield* this.#ask(round);
    for (const { node, victims, violations, refusal } of dryRuns) {
      const pods = this.snapshot.node(node)?.pods ?? [];
      const known = victims?.flatMap((key) => pods.find((pod) => pod.key === key) ?? []) ?? null;
      const outcome = known === null ? (refusal ?? UNTRIED) : { node, victims: known, violations };
      this.#dryRuns.set(node, outcome);
    }
  }

  dryRun(node: NodeInfo): Candidate | Rejection {
    return this.#dryRuns.get(node.name) ?? UNTRIED;
  }

  /** The one node that was chosen is looked at here: what is promised there, filters know then. */
  override reserve(node: NodeInfo): Reservation[] | Verdict {
    return super.filterNode(node) ?? super.reserve(node);
  }

  *#ask(round: Round): Asking<Reply> {
    const [answer] = yield { kind: 'shards', round };
    if (answer?.ok === true && answer.reply !== undefined) {
      if (answer.reply.trouble === '') return answer.reply;
      throw new ShardTrouble(answer.reply.trouble);
    }
    throw new ShardTrouble(answer?.ok === false ? answer.text : 'no answer');
  }
}

/** The shards cannot tell; the pod is as it was. */
class ShardTrouble extends Error {}

function unanswered(node: string): Verdict {
  return { plugin: TROUBLE, code: 'error', reasons: [`no shard answered about node ${node}`] };
}
