/**
 * How many pods of some sort run on each node, for those sorts that somebody's placement depends
 * on: siblings that are to be spread, pods that a term selects. Kept up as pods come and go.
 */
import { Uint32Column } from '@megaplane/base/column';
import type { Identities } from '../../cache/identities.ts';
import type { BareLabels } from '../../api/objects.ts';
import type { NodeTable } from '../../cache/node-table.ts';
import type { HostPort } from '../../framework/pod-info.ts';
import type { PodTable } from '../../cache/pod-table.ts';
import { DomainSums, type KindTest } from './domain-sums.ts';
import { NodeCounts } from './node-counts.ts';

/** What of a pod a counter may look at. */
export interface CountedPod {
  readonly namespace: string;
  readonly labels: BareLabels;
  readonly ports: readonly HostPort[];
}

/** Which pods a counter counts. */
export interface CounterRule {
  /** The same text for the same rule. */
  readonly key: string;
  /** Pods that are leaving do not count. */
  readonly isWithoutLeaving: boolean;
  matches(pod: CountedPod): boolean;
  /** Whether pods with these labels match, in any namespace and with any ports. */
  mayMatch(labels: BareLabels): boolean;
}

export class PodCounter {
  readonly id: number;
  readonly byNode: NodeCounts = new NodeCounts();
  /** False once it was given up: it is not kept up any more. */
  isLive = true;
  usedAt = 0;
  readonly #nodes: NodeTable;
  readonly #sums = new Map<string, DomainSums>();

  constructor(id: number, nodes: NodeTable) {
    this.id = id;
    this.#nodes = nodes;
  }

  add(node: number, delta: number): void {
    const before = this.byNode.add(node, delta);
    for (const sums of this.#sums.values()) sums.change(node, before, before + delta);
  }

  /** Sums by a topology key; `testKey` is the same for the same test. */
  sumsBy(key: string, testKey: string, test: KindTest): DomainSums {
    const name = `${key} ${testKey}`;
    let sums = this.#sums.get(name);
    if (sums === undefined) {
      sums = new DomainSums(this.#nodes, this.byNode, key, test);
      this.#sums.set(name, sums);
    }
    return sums;
  }
}

interface RuledCounter extends PodCounter {
  readonly rule: CounterRule;
}

/** Who counts pods of a sort, among the first `asked` counters. */
interface Matching {
  counters: readonly RuledCounter[];
  asked: number;
}

/** Placed pods that hold a port that one of these pods wants; 0.0.0.0 stands for all addresses. */
export function portsRule(wanted: readonly HostPort[]): CounterRule {
  const text = wanted.map(({ ip, protocol, port }) => `${ip} ${protocol} ${port}`);
  return {
    key: `ports ${text.join()}`,
    isWithoutLeaving: false,
    mayMatch: () => true,
    matches: ({ ports }) =>
      ports.some(({ ip, protocol, port }) =>
        wanted.some((other) => {
          if (protocol !== other.protocol || port !== other.port) return false;
          return ip === other.ip || ip === '0.0.0.0' || other.ip === '0.0.0.0';
        }),
      ),
  };
}

/** Rules that are counted at a time; the one not asked for longest goes first. */
const COUNTERS_MAX = 1024;
/** Sorts of pods of which it is remembered who counts them. */
const MEMO_MAX = 100_000;
const NONE: readonly RuledCounter[] = [];

export class PodCounters {
  readonly #identities: Identities;
  readonly #pods: PodTable;
  readonly #nodes: NodeTable;
  readonly #counters = new Map<string, RuledCounter>();
  /** The same, as they came: those that are new have not been asked about all sorts of pods. */
  #inOrder: RuledCounter[] = [];
  /** By namespace and labels: the counters that count such pods. */
  readonly #matching = new Map<number, Matching>();
  /** By number of a label set: placed pods that have it. */
  readonly #placed = new Uint32Column();
  #epochs = 0;
  #ids = 0;
  #uses = 0;
  /** Counts counters that were given up. */
  version = 0;

  constructor(identities: Identities, pods: PodTable, nodes: NodeTable) {
    this.#identities = identities;
    this.#pods = pods;
    this.#nodes = nodes;
  }

  /** A counter that nobody but its owner keeps up. */
  createPlain(): PodCounter {
    return new PodCounter(this.#ids++, this.#nodes);
  }

  /** The counter of a rule; pods that run already are counted when it is new. */
  counterOf(rule: CounterRule): PodCounter {
    const known = this.#counters.get(rule.key);
    if (known !== undefined) return this.use(known);
    if (this.#counters.size >= COUNTERS_MAX) this.#giveUpOldest();
    const made: RuledCounter = Object.assign(this.createPlain(), { rule });
    this.#counters.set(rule.key, made);
    this.#inOrder.push(made);
    if (this.#isAnyPlaced(rule)) this.#countPlaced(made);
    return this.use(made);
  }

  /** Somebody asked for a counter: it is kept. */
  use<T extends PodCounter>(counter: T): T {
    counter.usedAt = ++this.#uses;
    return counter;
  }

  /** A pod took a node (1) or is about to leave it (-1). */
  placed(id: number, delta: 1 | -1): void {
    const labels = this.#pods.labels.get(id);
    this.#placed.set(labels, this.#placed.get(labels) + delta);
    this.#count(id, delta, false);
  }

  /** A placed pod that is not leaving is there (1), or is not any more (-1). */
  staying(id: number, delta: 1 | -1): void {
    this.#count(id, delta, true);
  }

  /** A placed pod gets other labels, and nothing else: mostly who counts it stays the same. */
  relabel(id: number, setLabels: () => void): void {
    const placed = this.#placed;
    const { labels, node, counted } = this.#pods;
    const before = this.#countersOf(id);
    placed.set(labels.get(id), placed.get(labels.get(id)) - 1);
    setLabels();
    placed.set(labels.get(id), placed.get(labels.get(id)) + 1);
    const after = this.#countersOf(id);
    if (before === after) return;
    const isLeaving = counted.get(id) === 0;
    const change = (
      counter: RuledCounter,
      others: readonly RuledCounter[],
      delta: number,
    ): void => {
      if (others.includes(counter) || (isLeaving && counter.rule.isWithoutLeaving)) return;
      counter.add(node.get(id), delta);
    };
    for (const counter of before) change(counter, after, -1);
    for (const counter of after) change(counter, before, 1);
  }

  #countersOf(id: number): readonly RuledCounter[] {
    return this.#counters.size === 0 ? NONE : this.#matchingOf(id);
  }

  #count(id: number, delta: 1 | -1, isStaying: boolean): void {
    if (this.#counters.size === 0) return;
    const matching = this.#matchingOf(id);
    for (let i = 0; i < matching.length; i++) {
      const counter = matching[i];
      if (counter?.rule.isWithoutLeaving !== isStaying) continue;
      counter.add(this.#pods.node.get(id), delta);
    }
  }

  #matchingOf(id: number): readonly RuledCounter[] {
    const { classes, labels, namespaces } = this.#identities;
    const epochs = classes.epoch + labels.epoch + namespaces.epoch;
    if (epochs !== this.#epochs || this.#matching.size > MEMO_MAX) this.#matching.clear();
    this.#epochs = epochs;
    const hasPorts = classes.get(this.#pods.podClass.get(id)).ports.length > 0;
    // Of the class nothing else is looked at: pods of many classes share what they are to others.
    const podClass = hasPorts ? this.#pods.podClass.get(id) + 1 : 0;
    const key =
      (this.#pods.namespace.get(id) * 2 ** 17 + podClass) * 2 ** 20 + this.#pods.labels.get(id);
    let matching = this.#matching.get(key);
    if (matching === undefined) this.#matching.set(key, (matching = { counters: NONE, asked: 0 }));
    if (matching.asked < this.#inOrder.length) this.#askMore(matching, this.#podAt(id));
    return matching.counters;
  }

  #askMore(matching: Matching, pod: CountedPod): void {
    const more: RuledCounter[] = [];
    for (; matching.asked < this.#inOrder.length; matching.asked++) {
      const counter = this.#inOrder[matching.asked];
      if (counter?.rule.matches(pod) === true) more.push(counter);
    }
    if (more.length > 0) matching.counters = [...matching.counters, ...more];
  }

  #podAt(id: number): CountedPod {
    const { classes, labels, namespaces } = this.#identities;
    return {
      ports: classes.get(this.#pods.podClass.get(id)).ports,
      namespace: namespaces.get(this.#pods.namespace.get(id)),
      labels: labels.get(this.#pods.labels.get(id)),
    };
  }

  /** Most rules are new because their pods are: then there is nothing to count. */
  #isAnyPlaced(rule: CounterRule): boolean {
    const { labels } = this.#identities;
    for (let number = 0; number < labels.idEnd; number++) {
      if (this.#placed.get(number) > 0 && rule.mayMatch(labels.get(number))) return true;
    }
    return false;
  }

  #countPlaced(counter: RuledCounter): void {
    const pods = this.#pods;
    const { isWithoutLeaving } = counter.rule;
    for (let id = 0; id < pods.rowEnd; id++) {
      const node = pods.node.get(id);
      if (node < 0 || (isWithoutLeaving && pods.counted.get(id) === 0)) continue;
      if (this.#matchingOf(id).includes(counter)) counter.add(node, 1);
    }
  }

  #giveUpOldest(): void {
    let oldest: RuledCounter | undefined;
    for (const counter of this.#counters.values()) {
      if (oldest === undefined || counter.usedAt < oldest.usedAt) oldest = counter;
    }
    if (oldest === undefined) return;
    this.#counters.delete(oldest.rule.key);
    this.#inOrder = [...this.#counters.values()];
    this.#matching.clear();
    oldest.isLive = false;
    this.version++;
  }
}
