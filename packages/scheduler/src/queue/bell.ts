/** Wakes those who wait when the cluster has changed in a way that may help them. */
import { hasSameFeatures } from './hints/node-hints.ts';
import { isDeepStrictEqual } from 'node:util';
import { NO_METER, type CycleMeter } from '../framework/cycle-meter.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import type { Identities } from '../cache/identities.ts';
import { mayHelp, type ClusterChange, type ClusterEvent } from './hints/hints.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Nominator } from '../placement/topology/nominator.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { Placement } from '../placement/placement.ts';
import type { PodInfo } from '../framework/pod-info.ts';
import type { PodTable } from '../cache/pod-table.ts';
import type { SchedulingQueue } from './scheduling-queue.ts';
import type { ObjectChange } from './hints/hint.ts';

export interface BellOptions {
  readonly queue: SchedulingQueue;
  readonly placement: Placement;
  readonly view: ClusterView;
  readonly objects: ObjectStore;
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly nominator: Nominator;
}

/** What of a node changed, as upstream's metrics call it; the first of several. */
function aspectOf(before: NodeInfo, after: NodeInfo): string {
  const [had, has] = [before.node, after.node];
  if (had.spec?.unschedulable === true && has.spec?.unschedulable !== true) return 'NodeTaint';
  if (!isDeepStrictEqual(had.status?.allocatable, has.status?.allocatable)) {
    return 'NodeAllocatable';
  }
  if (!isDeepStrictEqual(before.labels, after.labels)) return 'NodeLabel';
  if (!isDeepStrictEqual(had.spec?.taints, has.spec?.taints)) return 'NodeTaint';
  return hasSameFeatures(before, after) ? '' : 'NodeDeclaredFeature';
}

export class Bell {
  readonly #options: BellOptions;
  meter: CycleMeter = NO_METER;

  constructor(options: BellOptions) {
    this.#options = options;
  }

  /** Whether anybody would ask what an event of that sort was about. */
  isHeard(event: ClusterEvent): boolean {
    const { waiting } = this.#options.queue;
    const isOfNodes = event === 'nodeAdded' || event === 'nodeChanged';
    return waiting.hopesFor(event) || (isOfNodes && waiting.classCount > 0);
  }

  #hints(change: ClusterChange, plugin: string, pod: PodInfo, label: string): boolean {
    const { objects } = this.#options;
    const since = this.meter.now();
    const helps = mayHelp(change, plugin, pod, objects);
    this.meter.hinted(plugin, label, helps, since);
    return helps;
  }

  /** Something happened; upstream's metrics call it `label`. */
  ring(change: ClusterChange, label: string, nowMs: number): void {
    this.#ring(change, label, nowMs, Infinity);
  }

  /** An object of a small kind is new, has changed or is gone. */
  objectSeen(change: ObjectChange, label: string, nowMs: number): void {
    const { queue, view } = this.#options;
    // Of the plugins that classes wait for, one knows objects: resources that devices stand for.
    if (change.kind === 'DeviceClass') {
      const helps = (podClass: number, rejecters: ReadonlySet<string>): boolean =>
        rejecters
          .values()
          .some((plugin) => this.#hints(change, plugin, view.anyOf(podClass), label));
      queue.wakeClasses(helps, label, nowMs);
    }
    this.ring(change, label, nowMs);
  }

  /** A node is new. */
  nodeAdded(id: number, nowMs: number): void {
    if (!this.isHeard('nodeAdded')) return void this.#options.queue.changes++;
    const change = { event: 'nodeAdded', node: this.#options.view.bareNodeAt(id) } as const;
    this.#nodeHelps(id, change, 'NodeAdd', nowMs);
  }

  /** A node has changed; what upstream's metrics call that, empty where they do not. */
  nodeChanged(id: number, before: NodeInfo, nowMs: number): string {
    const after = this.#options.view.bareNodeAt(id);
    const aspect = aspectOf(before, after);
    const label = `NodeUpdate${aspect}`;
    const change = { event: 'nodeChanged', before, after } as const;
    if (this.isHeard('nodeChanged')) this.#nodeHelps(id, change, label, nowMs);
    else this.#options.queue.changes++;
    return aspect === '' ? '' : label;
  }

  /** A node that will do, or that may do as far as those who rejected a pod can tell. */
  #nodeHelps(id: number, change: ClusterChange, label: string, nowMs: number): void {
    const { queue, placement, view } = this.#options;
    const helps = (podClass: number, rejecters: ReadonlySet<string>): boolean => {
      // There were no nodes at all.
      if (rejecters.size === 0) return true;
      if (!placement.isNamed(podClass, id)) return false;
      if (placement.isFeasible(podClass, id)) return true;
      const pod = view.anyOf(podClass);
      return rejecters.values().some((plugin) => this.#hints(change, plugin, pod, label));
    };
    queue.wakeClasses(helps, label, nowMs);
    this.ring(change, label, nowMs);
  }

  /** A pod has a node, by our decision or by the API server's word. */
  podAdded(id: number, nowMs: number): void {
    const { queue, view } = this.#options;
    if (!this.isHeard('podAdded')) return void queue.changes++;
    this.ring({ event: 'podAdded', pod: view.podAt(id) }, 'AssignedPodAdd', nowMs);
  }

  /** A pod with a node has other labels; `before` is null where nobody would have asked. */
  podChanged(id: number, before: PodInfo | null, nowMs: number): void {
    if (before === null) return void this.#options.queue.changes++;
    const after = this.#options.view.podAt(id);
    this.ring({ event: 'podChanged', before, after }, 'AssignedPodUpdatePodLabel', nowMs);
  }

  /** A pod, as it was, has left a node; it is null where nobody would ask. */
  podRemoved(pod: PodInfo | null, node: number, nowMs: number): void {
    this.#roomOn(node, pod, nowMs, Infinity);
  }

  /** A pod waits for a node no more: those who counted it in, at most as important, may do. */
  nominationEnded(pod: PodInfo, node: string, nowMs: number): void {
    const id = this.#options.nodes.find(node);
    if (id >= 0) this.#roomOn(id, pod, nowMs, pod.priority);
  }

  #roomOn(node: number, pod: PodInfo | null, nowMs: number, priorityMax: number): void {
    const { queue, placement, nodes } = this.#options;
    if (!nodes.isPresent(node)) return;
    const label = 'AssignedPodDelete';
    // Those who had nobody to evict may have by now: lesser pods came later.
    const helps = (podClass: number): boolean =>
      placement.isFeasible(podClass, node) || placement.hasRoom(podClass, node);
    queue.wakeClasses(helps, label, nowMs);
    if (pod === null) return void queue.changes++;
    this.#ring({ event: 'podRemoved', pod }, label, nowMs, priorityMax, this.#roomFor(node));
  }

  /**
   * Whether a node may do for a pod that waits for room: those that wait for their victims on other
   * nodes would be tried for each pod that goes anywhere.
   */
  #roomFor(node: number): (id: number) => boolean {
    const { queue, placement, pods, nominator, nodes } = this.#options;
    const name = nodes.nameOf(node);
    const known = new Map<number, boolean>();
    return (id) => {
      if (!queue.waiting.lacksRoom(id) || nominator.nodeOf(id) === name) return true;
      const podClass = pods.podClass.get(id);
      let hasRoom = known.get(podClass);
      if (hasRoom === undefined)
        known.set(podClass, (hasRoom = placement.hasRoom(podClass, node, id)));
      return hasRoom;
    };
  }

  #ring(
    change: ClusterChange,
    label: string,
    nowMs: number,
    priorityMax: number,
    isConcerned: (id: number) => boolean = () => true,
  ): void {
    const { queue, view, identities, pods } = this.#options;
    if (!queue.waiting.hopesFor(change.event)) return void queue.changes++;
    const known = new Map<number, PodInfo>();
    const podAt = (id: number): PodInfo => {
      const pod = known.get(id) ?? view.podAt(id);
      known.set(id, pod);
      return pod;
    };
    const helps = (id: number, plugin: string): boolean => {
      const { priority } = identities.classes.get(pods.podClass.get(id));
      if (priority > priorityMax) return false;
      const isOfUse = isConcerned(id);
      if (!isOfUse && queue.waiting.isWide(id)) return false;
      const helps = this.#hints(change, plugin, podAt(id), label);
      if (helps && !isOfUse) queue.waiting.widen(id);
      return helps && isOfUse;
    };
    queue.wakeOthers(change.event, helps, label, nowMs);
  }
}
