/** The authorizers of a server in the order in which they are asked. */
import {
  authorizeMasters,
  DENIED,
  firstThatAllows,
  type Attributes,
  type Authorizer,
} from './authorization.ts';
import { authorizeComponents } from './component-grants.ts';
import type { Mode } from './authorization-configuration.ts';
import type { DecisionCounts } from './decision-counts.ts';

/** One authorizer of the chain: a mode, or a webhook that is connected. */
export type ChainLink = Exclude<Mode, 'Webhook'> | NamedLink | Authorizer;

/** One that a configuration names; without, a mode has its own name in small letters. */
export interface NamedLink {
  readonly name: string;
  readonly link: Exclude<Mode, 'Webhook'> | Authorizer;
}

/** The link itself. */
export function unnamed(link: ChainLink): NamedLink['link'] {
  return typeof link === 'object' ? link.link : link;
}

/** What kube-apiserver is started with by every installer. */
export const DEFAULT_CHAIN: readonly ChainLink[] = ['Node', 'RBAC'];

const ALLOWED = { allowed: true, reason: '' } as const;
const NEVER = { ...DENIED, reason: 'Everything is forbidden.' } as const;

/** The links that count now; another list takes the place of the one before. */
export type ChainLinks = () => readonly ChainLink[];

/** Those that go by what is stored. */
interface Authorizers {
  readonly rbac: Authorizer;
  readonly node: Authorizer;
}

/** A chain that follows its links. */
export function authorizerChain(
  links: ChainLinks,
  own: Authorizers,
  counts: DecisionCounts,
): Authorizer {
  let known = links();
  let chain = chainOf(known, own, counts);
  return (identity, attributes) => {
    const now = links();
    if (now !== known) {
      known = now;
      chain = chainOf(now, own, counts);
    }
    return chain(identity, attributes);
  };
}

/**
 * Masters come first, whatever the modes. What this product's own programs may do goes with RBAC:
 * they are known before there is any role.
 */
function chainOf(
  links: readonly ChainLink[],
  own: Authorizers,
  counts: DecisionCounts,
): Authorizer {
  return firstThatAllows([
    authorizeMasters,
    ...links.flatMap((link): Authorizer[] => {
      const found = unnamed(link);
      const type = typeof found === 'string' ? found : 'Webhook';
      const name = typeof link === 'object' ? link.name : type.toLowerCase();
      const counted = counts.of(type, name, authorizerOf(found, own));
      return found === 'RBAC' ? [authorizeComponents, counted] : [counted];
    }),
  ]);
}

function authorizerOf(link: NamedLink['link'], { rbac, node }: Authorizers): Authorizer {
  switch (link) {
    case 'AlwaysAllow':
      return () => ALLOWED;
    case 'AlwaysDeny':
      return () => NEVER;
    case 'Node':
      return node;
    case 'RBAC':
      return rbac;
    default:
      return link;
  }
}

/** Asks in passing: what cannot be decided at once counts as denied, and is known the next time. */
export function impatient(authorize: Authorizer): Authorizer {
  return (identity, attributes: Attributes) => {
    const decision = authorize(identity, attributes);
    decision.pending?.(() => {});
    return decision;
  };
}
