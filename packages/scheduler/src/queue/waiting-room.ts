/**
 * Pods that no node would take, waiting for the cluster to change.
 *
 * Those that the index decided about wait by class, in order, and only the first of a class is
 * woken: if there is no node for it there is none for the others, and if there is one, the next
 * follows. So a change costs a look at each waiting class, not at each of a million pods. The
 * others wait one by one and are woken by changes that may help with a plugin that rejected them
 * (`hints/`).
 */
import { assert } from '@megaplane/base/assert';
import { EXTENDERS } from '../extenders/extender.ts';
import type { Failure } from '../placement/topology/failure.ts';
import { hopesFor, type ClusterEvent } from './hints/hints.ts';
import { PLACE, type PodTable } from '../cache/pod-table.ts';

interface WaitingClass {
  readonly ids: number[];
  readonly stamps: number[];
  /** Entries before this one have left. */
  head: number;
  /** One of the class is out to try. */
  isAwake: boolean;
  /** What each was told. */
  readonly messages: string[];
  /** Of the last of them that was tried. */
  rejecters: ReadonlySet<string>;
}

const EVENTS: readonly ClusterEvent[] = [
  'nodeAdded',
  'nodeChanged',
  'nodeRemoved',
  'podAdded',
  'podChanged',
  'podRemoved',
  'object',
];

/** Those that may stand in the way of room on a node, beside whoever rejected a pod. */
const ROOM: ReadonlySet<string> = new Set([
  'NodeUnschedulable',
  'TaintToleration',
  'NodeAffinity',
  'NodePorts',
  'NodeResourcesFit',
  'DynamicResources',
]);

/** Pods of one class that are tried again only because the reasons have changed. */
const RETOLD_MAX = 10_000;
/** Entries that have left before their list is made shorter. */
const HOLES_MAX = 1024;

export class WaitingRoom {
  readonly #pods: PodTable;
  readonly #classes = new Map<number, WaitingClass>();
  readonly #others = new Map<number, ReadonlySet<string>>();
  readonly #ofNodes = new Set<number>();
  /** Others that more may help than those who rejected them look at. */
  readonly #widened = new Map<number, ReadonlySet<string>>();
  /** How many of the others each event may help: mostly none, and then nobody is looked at. */
  readonly #hopeful: Record<ClusterEvent, number> = {
    nodeAdded: 0,
    nodeChanged: 0,
    nodeRemoved: 0,
    podAdded: 0,
    podChanged: 0,
    podRemoved: 0,
    object: 0,
  };

  constructor(pods: PodTable) {
    this.#pods = pods;
  }

  /** Classes of which pods wait, with the plugins that rejected the last of them. */
  *classes(): Iterable<readonly [podClass: number, rejecters: ReadonlySet<string>]> {
    for (const [podClass, { rejecters }] of this.#classes) yield [podClass, rejecters];
  }

  get classCount(): number {
    return this.#classes.size;
  }

  isAwake(podClass: number): boolean {
    return this.#classes.get(podClass)?.isAwake ?? false;
  }

  /** A pod that the index found no node for; its class is asleep now. */
  addIndexed(
    podClass: number,
    id: number,
    stamp: number,
    { message, rejecters }: Pick<Failure, 'message' | 'rejecters'>,
  ): void {
    let waiting = this.#classes.get(podClass);
    if (waiting === undefined) {
      waiting = { ids: [], stamps: [], messages: [], head: 0, isAwake: false, rejecters };
      this.#classes.set(podClass, waiting);
    }
    waiting.rejecters = rejecters;
    waiting.ids.push(id);
    waiting.stamps.push(stamp);
    waiting.isAwake = false;
    waiting.messages.push(message);
    const { length } = waiting.ids;
    const isWhole = waiting.stamps.length === length && waiting.messages.length === length;
    assert(isWhole, 'each pod that waits has a stamp and a message');
  }

  /**
   * Whether the next of a class was told something else than this, and they are so few that each
   * may be tried again to be told it.
   */
  isNews(podClass: number, message: string): boolean {
    const waiting = this.#classes.get(podClass);
    if (waiting === undefined || waiting.ids.length - waiting.head > RETOLD_MAX) return false;
    for (; waiting.head < waiting.ids.length; waiting.head++) {
      const { head } = waiting;
      if (this.#stillWaits(waiting.ids[head] ?? -1, waiting.stamps[head] ?? -1)) break;
    }
    return waiting.messages[waiting.head] !== message && waiting.head < waiting.ids.length;
  }

  /** All that wait, each with the plugins that rejected it: for a count once in a while. */
  *rejections(): Iterable<readonly [id: number, rejecters: ReadonlySet<string>]> {
    yield* this.#others;
    for (const { ids, stamps, head, rejecters } of this.#classes.values()) {
      for (let at = head; at < ids.length; at++) {
        const id = ids[at] ?? -1;
        if (this.#stillWaits(id, stamps[at] ?? -1)) yield [id, rejecters];
      }
    }
  }

  /** A pod that full evaluation found no node for. */
  addOther(id: number, rejecters: ReadonlySet<string>, isOfNodes: boolean): void {
    this.removeOther(id);
    this.#others.set(id, rejecters);
    if (isOfNodes) this.#ofNodes.add(id);
    this.#hope(rejecters, 1);
  }

  removeOther(id: number): void {
    const rejecters = this.#others.get(id);
    if (rejecters === undefined) return;
    this.#others.delete(id);
    assert(this.#widened.size <= this.#others.size + 1, 'only who waits is widened');
    this.#ofNodes.delete(id);
    this.#hope(this.#widened.get(id) ?? rejecters, -1);
    this.#widened.delete(id);
  }

  /** Whether `widen` was called for one of the others. */
  isWide(id: number): boolean {
    return this.#widened.has(id);
  }

  /**
   * What one of the others was rejected for has ended on a node, but something else is in the way
   * there: a try would tell what, and is spared; whatever may take up room may help from now on.
   */
  widen(id: number): void {
    const rejecters = this.#others.get(id);
    if (rejecters === undefined || this.isWide(id)) return;
    const all = rejecters.union(ROOM);
    this.#widened.set(id, all);
    this.#hope(rejecters, -1);
    this.#hope(all, 1);
  }

  /** Whether it was room on nodes alone that one of the others lacked. */
  lacksRoom(id: number): boolean {
    return this.#ofNodes.has(id);
  }

  /** Whether a plugin that rejected the pod looks at labels of pods: its own have changed. */
  mindsLabels(id: number): boolean {
    const rejecters = this.#widened.get(id) ?? this.#others.get(id);
    return rejecters !== undefined && hopes('podChanged', rejecters);
  }

  /** The first pod of a class that still waits, which is then out to try; -1 if none does. */
  wakeNext(podClass: number): number {
    const waiting = this.#classes.get(podClass);
    if (waiting === undefined) return -1;
    for (; waiting.head < waiting.ids.length; waiting.head++) {
      const id = waiting.ids[waiting.head] ?? -1;
      if (!this.#stillWaits(id, waiting.stamps[waiting.head] ?? -1)) continue;
      waiting.head++;
      waiting.isAwake = true;
      this.#shorten(waiting);
      return id;
    }
    this.#classes.delete(podClass);
    return -1;
  }

  /** Whether anybody out of the order of classes waits for an event of that sort. */
  hopesFor(event: ClusterEvent): boolean {
    return this.#hopeful[event] > 0;
  }

  /**
   * Pods out of the order of classes that an event may help; they wait no longer. `helps` is asked
   * with a plugin that rejected the pod.
   */
  wakeOthers(event: ClusterEvent, helps: (id: number, plugin: string) => boolean): number[] {
    if (!this.hopesFor(event)) return [];
    const woken: number[] = [];
    for (const [id, own] of this.#others) {
      const rejecters = this.#widened.get(id) ?? own;
      if (hopesForAll(rejecters) || rejecters.values().some((plugin) => helps(id, plugin))) {
        woken.push(id);
      }
    }
    for (const id of woken) this.removeOther(id);
    return woken;
  }

  /** Pods that have waited since `beforeMs` or longer; they wait no longer. */
  takeOlder(beforeMs: number): number[] {
    const found: number[] = [];
    const { sinceMs } = this.#pods;
    for (const [podClass, waiting] of this.#classes) {
      for (; waiting.head < waiting.ids.length; waiting.head++) {
        const id = waiting.ids[waiting.head] ?? -1;
        if (!this.#stillWaits(id, waiting.stamps[waiting.head] ?? -1)) continue;
        if (sinceMs.get(id) > beforeMs) break;
        found.push(id);
      }
      if (waiting.head === waiting.ids.length) this.#classes.delete(podClass);
    }
    for (const id of this.#others.keys()) {
      if (sinceMs.get(id) > beforeMs) continue;
      found.push(id);
      this.removeOther(id);
    }
    return found;
  }

  #hope(rejecters: ReadonlySet<string>, delta: 1 | -1): void {
    for (const event of EVENTS) {
      if (hopes(event, rejecters)) this.#hopeful[event] += delta;
      assert(this.#hopeful[event] >= 0, 'no more pods stop hoping than hoped');
    }
  }

  #stillWaits(id: number, stamp: number): boolean {
    const pods = this.#pods;
    return pods.place.get(id) === PLACE.unschedulable && pods.stamp.get(id) === stamp;
  }

  #shorten(waiting: WaitingClass): void {
    if (waiting.head < HOLES_MAX || waiting.head * 2 < waiting.ids.length) return;
    assert(waiting.head <= waiting.ids.length, 'who has left had waited');
    waiting.ids.splice(0, waiting.head);
    waiting.stamps.splice(0, waiting.head);
    waiting.messages.splice(0, waiting.head);
    waiting.head = 0;
  }
}

/** Where it is not known what stopped a pod, anything may help it. */
function hopesForAll(rejecters: ReadonlySet<string>): boolean {
  return rejecters.size === 0 || rejecters.has(EXTENDERS);
}

function hopes(event: ClusterEvent, rejecters: ReadonlySet<string>): boolean {
  return hopesForAll(rejecters) || rejecters.values().some((plugin) => hopesFor(event, plugin));
}
