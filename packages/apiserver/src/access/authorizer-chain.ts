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

/**
 * Masters come first, whatever the modes. What this product's own programs may do goes with RBAC:
 * they are known before there is any role.
 */
export function authorizerChain(
  links: readonly ChainLink[],
  rbac: Authorizer,
  node: Authorizer,
): Authorizer {
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
