/** The flags by which an API server finds the group that it follows. */
import type { JournalAccessFlags } from '@megaplane/etcd/journal';

const LEASE_MS = 3000;

export interface JournalFlags extends JournalAccessFlags {
  /** That of the members, milliseconds. */
  readonly leaderLease?: number;
}

export function leaseOf({ leaderLease }: JournalFlags): number {
  return leaderLease ?? LEASE_MS;
}
