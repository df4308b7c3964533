// data plane: what a simulator remembers of a pod, 8 bytes
/** Columns of the simulated pods; rows are those of the informer over bound pods. */
import { Uint32Column, Uint8Column } from '@megaplane/base/column';
import { Rows } from './rows.ts';

/** Flag of a row: the pod's phase is Running. */
export const RUNNING = 2;

export class PodColumns extends Rows {
  /** The pod's address as a number; 0: none yet. */
  readonly address: Uint32Column = new Uint32Column();
  readonly failures: Uint8Column = new Uint8Column();

  override reset(id: number): void {
    super.reset(id);
    this.address.set(id, 0);
    this.failures.set(id, 0);
  }
}
