/** The authorizers of a server in the order in which they are asked. */
import {
  authorizeMasters,
  DENIED,
  firstThatAllows,
  type Attributes,
  type Authorizer,
} from '../authorization.ts';
import { authorizeComponents } from '../component-grants.ts';
import type { Mode } from './authorization-configuration.ts';

/** One authorizer of the chain: a mode, or a webhook that is connected. */
export type ChainLink = Exclude<Mode, 'Webhook'> | Authorizer;

/** What kube-apiserver is started with by every installer. */
export const DEFAULT_CHAIN: readonly ChainLink[] = ['Node', 'RBAC'];

const ALLOWED = { allowed: true, reason: '' } as const;
const NEVER = { ...DENIED, reason: 'Everything is forbidden.' } as const;

/** The links that count now; another list takes the place of the one before. */
export type ChainLinks = () => readonly ChainLink[];

/** A chain that follows its links. */
export function authorizerChain(links: ChainLinks, rbac: Authorizer, node: Authorizer): Authorizer {
  let known = links();
  let chain = chainOf(known, rbac, node);
  return (identity, attributes) => {
    const now = links();
    if (now !== known) {
      known = now;
      chain = chainOf(now, rbac, node);
    }
    return chain(identity, attributes);
  };
}

/**
 * Masters come first, whatever the modes. What this product's own programs may do goes with RBAC:
 * they are known before there is any role.
 */
function chainOf(links: readonly ChainLink[], rbac: Authorizer, node: Authorizer): Authorizer {
  return firstThatAllows([
    authorizeMasters,
    ...links.flatMap((link): Authorizer[] => {
      switch (link) {
        case 'AlwaysAllow':
          return [(): typeof ALLOWED => ALLOWED];
        case 'AlwaysDeny':
          return [(): typeof NEVER => NEVER];
        case 'Node':
          return [node];
        case 'RBAC':
          return [authorizeComponents, rbac];
        default:
          return [link];
      }
    }),
  ]);
}

/** Asks in passing: what cannot be decided at once counts as denied, and is known the next time. */
export function impatient(authorize: Authorizer): Authorizer {
  return (identity, attributes: Attributes) => {
    const decision = authorize(identity, attributes);
    decision.pending?.(() => {});
    return decision;
  };
}
