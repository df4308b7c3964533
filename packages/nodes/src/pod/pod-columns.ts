// data plane: what a simulator remembers of a pod, some bytes
/** Columns of the simulated pods; rows are those of the informer over bound pods. */
import { Uint32Column, Uint8Column } from '@megaplane/base/column';
import { hashOf } from '../chaos/fault.ts';
import { Rows } from '../columns/rows.ts';

/** Flag of a row: the pod's phase is Running. */
export const RUNNING = 2;
/** A kubelet has told that it runs: events from before say nothing new. */
export const STARTED = 4;

export class PodColumns extends Rows {
  readonly failures: Uint8Column = new Uint8Column();
  /** One more than the row of its node; 0: it is counted on none. */
  readonly node: Uint32Column = new Uint32Column();

  /** What the uid hashes to. */
  readonly #uid: Uint32Column = new Uint32Column();

  override reset(id: number, uid: string = ''): void {
    super.reset(id);
    this.failures.set(id, 0);
    this.node.set(id, 0);
    this.#uid.set(id, hashOf(uid));
  }

  /** The row was filled for a pod of another uid. */
  isOther(id: number, uid: string): boolean {
    return this.#uid.get(id) !== hashOf(uid);
  }
}
