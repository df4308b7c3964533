/** The parts of a decision that extenders take: filters, scores and victims, one after another. */
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { Cycle, NodeScore } from '../framework/runtime/cycle.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { Candidate, Verdict } from '../framework/plugin.ts';
import { EXTENDERS, type Extender, type Question } from './extender.ts';
import type { Answer } from './extender-answer.ts';

/** Part of a decision that may have to ask. */
export type Asking<Value> = Generator<Question, Value, readonly Answer[]>;

const NO_ANSWER: Answer = { ok: false, text: 'no answer' };

/** The extenders that one pod concerns; the pod is fetched when the first of them is asked. */
export class ExtenderRounds {
  readonly #cycle: Cycle;
  readonly #extenders: readonly Extender[];
  #pod: JsonValue = null;
  /** Why the pod could not be fetched. */
  #trouble = '';

  constructor(cycle: Cycle, extenders: readonly Extender[]) {
    this.#cycle = cycle;
    this.#extenders = extenders.filter((extender) => extender.isInterested(cycle.pod.pod));
  }

  get isEmpty(): boolean {
    return this.#extenders.length === 0;
  }

  /** What is left of feasible nodes; a text if an extender that matters failed. */
  *filter(found: readonly NodeInfo[], verdicts: Map<string, Verdict>): Asking<NodeInfo[] | string> {
    let nodes = found;
    for (const extender of this.#extenders) {
      if (nodes.length === 0) break;
      if (!extender.filters) continue;
      yield* this.#fetch();
      if (this.#trouble !== '') return this.#trouble;
      const call = extender.filterCall(this.#pod, nodes, this.#cycle.snapshot);
      const [answer = NO_ANSWER] = yield { kind: 'calls', calls: [call] };
      const filtered = answer.ok ? extender.readFilter(answer.value, nodes) : answer.text;
      if (typeof filtered === 'string') {
        if (extender.isIgnorable) continue;
        return filtered;
      }
      const note = (code: 'unschedulable' | 'unresolvable', node: string, text: string): void =>
        void verdicts.set(node, { code, reasons: [text], plugin: EXTENDERS });
      for (const [node, text] of filtered.failed) note('unschedulable', node, text);
      for (const [node, text] of filtered.unresolvable) note('unresolvable', node, text);
      nodes = filtered.nodes;
    }
    return [...nodes];
  }

  /** Adds the scores of extenders; one that fails has no say. */
  *score(nodes: readonly NodeInfo[], scores: NodeScore[]): Asking<NodeScore[]> {
    const asked = this.#extenders.filter(({ prioritizes }) => prioritizes);
    if (asked.length === 0) return scores;
    yield* this.#fetch();
    const { snapshot } = this.#cycle;
    const calls = asked.map((extender) => extender.prioritizeCall(this.#pod, nodes, snapshot));
    const answers = yield { kind: 'calls', calls };
    const given = asked.map((extender, index) => {
      const answer = answers[index];
      return answer?.ok === true
        ? extender.readPrioritize(answer.value)
        : new Map<string, number>();
    });
    return nodes.map(({ name }, index) => {
      const { total, plugins } = scores[index] ?? { total: 0, plugins: new Map<string, number>() };
      const all = new Map(plugins);
      let sum = total;
      for (const [number, byNode] of given.entries()) {
        const score = byNode.get(name) ?? 0;
        if (score === 0) continue;
        all.set(asked[number]?.url ?? '', score);
        sum += score;
      }
      return { total: sum, plugins: all };
    });
  }

  /** The candidates for eviction that extenders leave; a text if one that matters failed. */
  *preempt(found: readonly Candidate[]): Asking<Candidate[] | string> {
    let candidates = found;
    for (const extender of this.#extenders) {
      if (candidates.length === 0) break;
      if (!extender.preempts) continue;
      yield* this.#fetch();
      const call = extender.preemptCall(this.#pod, candidates);
      const [answer = NO_ANSWER] = yield { kind: 'calls', calls: [call] };
      const left = answer.ok
        ? extender.readPreempt(answer.value, this.#cycle.snapshot)
        : answer.text;
      if (typeof left !== 'string') candidates = left;
      else if (!extender.isIgnorable) return left;
    }
    return [...candidates];
  }

  *#fetch(): Asking<void> {
    if (this.#pod !== null) return;
    const [answer = NO_ANSWER] = yield { kind: 'pod', key: this.#cycle.pod.key };
    if (answer.ok) this.#pod = answer.value;
    else this.#trouble = answer.text;
  }
}

/** The end of a part that has nobody to ask. */
export function unasked<Value>(asking: Asking<Value>): Value {
  const step = asking.next();
  if (step.done !== true) throw new Error('an extender would have to be asked, but there is none');
  return step.value;
}
