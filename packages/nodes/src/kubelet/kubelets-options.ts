/** What the simulated kubelets of a process are made from. */
import type { Client } from '@megaplane/client/client';
import type { Fault } from '../chaos/fault.ts';
import type { KubeletEndpoint } from './node-status.ts';
import type { KubeletClock } from '../lease/renew-times.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

export interface KubeletsOptions {
  readonly client: Client;
  readonly clock: KubeletClock;
  readonly leaseDurationSeconds: number;
  readonly metrics: SimulatorMetrics;
  /** False: the status of nodes is left to stages; only leases are kept. */
  readonly keepsStatus: () => boolean;
  readonly endpoint: KubeletEndpoint;
  /** More nodes are to be made. */
  isRegistering(): boolean;
  /** What is wrong with the node at a row; null: nothing. */
  faultOf(id: number): Fault | null;
  /** Holder of all leases; '': each node its own, as real kubelets. */
  readonly holder: string;
  /** A node's status is told at this period although nothing changed. */
  readonly statusPeriodMs: number;
  /** The Node is read before its status is written, as kubelets do. */
  readonly readsStatus: boolean;
  /** Name of the Node at a row. */
  nameOf(id: number): string;
  /** A row is new and filled. */
  onNode(id: number): void;
  /** With a common holder: the lease of a row is ours from now on, see `isHeld`. */
  onHeld?(id: number): void;
  /** Somebody else renews the lease of a row: the node is left alone until that lease runs out. */
  onLeft?(id: number): void;
  onTrouble?(message: string): void;
}
