/** One holder at a time, over a Lease of coordination.k8s.io/v1, as client-go does it. */
import type { Client } from './client.ts';

export interface LeaderElectionOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
  /** Unique among the candidates, such as `<host>_<uuid>`. */
  readonly identity: string;
  /** How long others wait after the last renewal that they saw; default 15 s. */
  readonly leaseDurationMs?: number;
  /** How long the holder tries to renew before it gives up; default 10 s. */
  readonly renewDeadlineMs?: number;
  /** Pause between tries; default 2 s. */
  readonly retryPeriodMs?: number;
  onStartedLeading(): void;
  /** Called once when leadership is lost or given back: stop all work of a leader at once. */
  onStoppedLeading(): void;
  onNewLeader?(identity: string): void;
}

export interface LeaderElection {
  start(): void;
  /** Gives the lease back (so that the next one need not wait) and ends. */
  stop(): Promise<void>;
  readonly isLeader: boolean;
  /** Identity of the holder last seen, or empty. */
  readonly leader: string;
}
