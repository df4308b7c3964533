/** What programs of ours may do that upstream has no roles for, one row per rule, beside RBAC. */
import { DENIED, type Attributes, type Authorizer, type Decision } from './authorization.ts';
import type { Identity } from './identity.ts';

interface Grant {
  /** A user, or a group where it starts with `group:`. */
  readonly subject: string;
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

const READ = ['get', 'list', 'watch'] as const;
const ALL = ['*'] as const;
const ACCESS_REVIEWS = [
  'tokenreviews.authentication.k8s.io',
  'subjectaccessreviews.authorization.k8s.io',
] as const;

const GRANTS: readonly Grant[] = [
  { subject: `group:${CONTROLLERS_GROUP}`, verbs: ALL, resources: ALL },
  { subject: 'megaplane-nodes', verbs: READ, resources: ALL },
  {
    subject: 'megaplane-nodes',
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
    subject: 'megaplane-nodes',
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
    if (isSubject(grant.subject, identity) && covers(grant, attributes)) {
      return { allowed: true, reason: '' };
    }
  }
  return DENIED;
};

function isSubject(subject: string, identity: Identity): boolean {
  if (subject.startsWith('group:')) return identity.groups.includes(subject.slice(6));
  return identity.user === subject;
}

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
