/** Keeps who waits for which node, and tells those who counted on it when one stops waiting. */
import type { Attempt } from './attempt.ts';
import type { Bell } from './bell.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import type { Failure } from '../placement/topology/failure.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Nominator } from '../placement/topology/nominator.ts';
import type { SchedulingQueue } from './scheduling-queue.ts';

export interface NominationKeeperOptions {
  readonly nominator: Nominator;
  readonly queue: SchedulingQueue;
  readonly nodes: NodeTable;
  readonly view: ClusterView;
  readonly bell: Bell;
}

export class NominationKeeper {
  readonly #options: NominationKeeperOptions;

  constructor(options: NominationKeeperOptions) {
    this.#options = options;
  }

  /** A pod waits no more for the node that was to be freed for it. */
  end(id: number, nowMs: number): void {
    const { nominator, view, bell } = this.#options;
    const node = nominator.nodeOf(id);
    if (node === '') return;
    const pod = view.podAt(id);
    nominator.delete(id);
    bell.nominationEnded(pod, node, nowMs);
  }

  /** A pod's object says that it waits for `node`, or nothing; who is held back takes no room. */
  seen(id: number, node: string, isHeldBack: boolean, nowMs: number): void {
    const { nominator } = this.#options;
    const home = isHeldBack ? '' : nominator.expected(id, node);
    if (home !== nominator.nodeOf(id)) this.end(id, nowMs);
    if (home !== '' && node !== '') nominator.tell(id, node);
  }

  /** A try found no node, but perhaps one to wait for; answers whom that displaces. */
  failed(
    id: number,
    priority: number,
    { nomination, clearsNomination }: Failure,
    nowMs: number,
  ): readonly number[] {
    const { nominator, queue, nodes } = this.#options;
    if (nomination === null) {
      if (clearsNomination) this.end(id, nowMs);
      return [];
    }
    const node = nodes.nameOf(nomination.node);
    const displaced = nominator.below(node, priority);
    for (const other of displaced) nominator.delete(other);
    // There may be others whom these can evict.
    for (const other of displaced) queue.wake(other, 'UnschedulablePodUpdate', nowMs);
    if (nominator.nodeOf(id) !== node) this.end(id, nowMs);
    nominator.set(id, node);
    return displaced;
  }

  /** Pods of a gang may wait for other nodes than before they were tried. */
  moved(attempts: readonly Attempt[], before: ReadonlyMap<number, string>, nowMs: number): void {
    const { nominator, view, bell } = this.#options;
    for (const { id, kind } of attempts) {
      const node = before.get(id) ?? '';
      const isLeft = kind === 'failed' && node !== '' && nominator.nodeOf(id) !== node;
      if (isLeft) bell.nominationEnded(view.podAt(id), node, nowMs);
    }
  }
}
