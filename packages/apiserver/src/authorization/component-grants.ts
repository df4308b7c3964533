/** What programs of ours may do that upstream has no roles for, one row per rule, beside RBAC. */
import { DENIED, type Attributes, type Authorizer, type Decision } from './authorization.ts';

interface Grant {
  /** Below `system:`, where no issuer gives names away. A user's name alone grants nothing. */
  readonly group: `system:megaplane:${string}`;
  readonly verbs: readonly string[];
  /** `resource`, `resource/subresource` or `resource.group`; `*` is everything. */
  readonly resources: readonly string[];
  /** Paths outside of resources; a trailing `*` is a prefix. */
  readonly paths?: readonly string[];
}

/**
 * Of the certificate of our controllers, which is made at each start. Nobody else comes into it:
 * requests for such a certificate are refused as those for `system:masters` are, and names that
 * begin with `system:` are given by no issuer that minds them.
 */
export const CONTROLLERS_GROUP = 'system:megaplane:controllers';

/** Likewise of the certificate of our simulated nodes. */
export const NODES_GROUP = 'system:megaplane:nodes';

const READ = ['get', 'list', 'watch'] as const;
const ALL = ['*'] as const;
const ACCESS_REVIEWS = [
  'tokenreviews.authentication.k8s.io',
  'subjectaccessreviews.authorization.k8s.io',
] as const;

const GRANTS: readonly Grant[] = [
  { group: CONTROLLERS_GROUP, verbs: ALL, resources: ALL },
  { group: NODES_GROUP, verbs: READ, resources: ALL },
  {
    group: NODES_GROUP,
    verbs: ['create', 'update', 'patch', 'delete'],
    resources: [
      'nodes',
      'nodes/status',
      'pods',
      'pods/status',
      'events',
      'events.events.k8s.io',
      'leases.coordination.k8s.io',
      'csinodes.storage.k8s.io',
      'services',
      'apiservices.apiregistration.k8s.io',
      'resourceslices.resource.k8s.io',
    ],
  },
  {
    group: NODES_GROUP,
    verbs: ['create'],
    resources: [
      'pods/eviction',
      'serviceaccounts/token',
      'certificatesigningrequests.certificates.k8s.io',
      ...ACCESS_REVIEWS,
    ],
  },
];

/** Decides by the table above. */
export const authorizeComponents: Authorizer = (identity, attributes): Decision => {
  for (const grant of GRANTS) {
    if (identity.groups.includes(grant.group) && covers(grant, attributes)) {
      return { allowed: true, reason: '' };
    }
  }
  return DENIED;
};

function covers(grant: Grant, what: Attributes): boolean {
  if (!grant.verbs.includes('*') && !grant.verbs.includes(what.verb)) return false;
  if (!what.isResource) return (grant.paths ?? []).some((path) => matchesPath(path, what.path));
  const full = what.subresource === '' ? what.resource : `${what.resource}/${what.subresource}`;
  const name = what.group === '' ? full : `${full}.${what.group}`;
  return grant.resources.includes('*') || grant.resources.includes(name);
}

/** A path of a rule: equal, or a prefix where it ends in `*`. */
export function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : pattern === path;
}
