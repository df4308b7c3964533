// data plane: what a simulator remembers of a node, about 50 bytes
/** Columns of the simulated kubelets; rows are those of the informer over Nodes. */
import { Float64Column, Uint16Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import type { NodeNetwork } from './pod-addresses.ts';
import { Rows } from './rows.ts';
import { UidColumn } from './uid-column.ts';

/** Flags of a row. */
export const READY = 2;
/** The lease has to be looked at before it is renewed. */
export const LOOK = 4;

/** The Node says nothing of what it can hold. */
export const NO_CAPACITY = 8;
/** The Node tells another port of its kubelet than ours. */
export const NO_PORT = 16;

export class KubeletColumns extends Rows {
  /** The lease's resourceVersion; 0: not known to exist. */
  readonly leaseVersion: Float64Column = new Float64Column();
  readonly plannedMs: Float64Column = new Float64Column();
  /** How often the lease has gone from one holder to another; counted with a common holder. */
  readonly transitions: Uint16Column = new Uint16Column();
  readonly failures: Uint8Column = new Uint8Column();
  /** InternalIP as a number; 0: none. */
  readonly address: Uint32Column = new Uint32Column();
  /** Network of its pods; a length of 0: none. Nodes without one take no room. */
  readonly network: Uint32Column = new Uint32Column();
  readonly networkLength: Uint8Column = new Uint8Column();
  readonly uid: UidColumn = new UidColumn();

  override reset(id: number): void {
    super.reset(id);
    this.leaseVersion.set(id, 0);
    this.plannedMs.set(id, 0);
    this.failures.set(id, 0);
    if (this.transitions.get(id) > 0) this.transitions.set(id, 0);
    this.address.set(id, 0);
    if (this.networkLength.get(id) > 0) this.networkLength.set(id, 0);
  }

  setNetwork(id: number, { base, length }: NodeNetwork): void {
    this.network.set(id, base);
    this.networkLength.set(id, length);
  }
}
