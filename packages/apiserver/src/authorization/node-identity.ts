/** Which users are nodes. */
import type { Identity } from '../request/identity.ts';

const USER_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
/** Where the leases of nodes are. */
export const LEASE_NAMESPACE = 'kube-node-lease';

/** Name of the node that an identity is, or ''. */
export function nodeNameOfUser(identity: Identity): string {
  return isNode(identity) ? identity.user.slice(USER_PREFIX.length) : '';
}

/** A node, though perhaps one without a name. */
export function isNode({ user, groups }: Identity): boolean {
  return groups.includes(NODES_GROUP) && user.startsWith(USER_PREFIX);
}
