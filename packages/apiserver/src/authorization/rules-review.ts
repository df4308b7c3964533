/** What somebody may do, listed: the answer of a SelfSubjectRulesReview. */
import type { Identity } from '../request/identity.ts';
import type { PolicyRule, Rbac } from './rbac.ts';
import { unnamed, type ChainLink } from './authorizer-chain.ts';
import { isNode } from './node-identity.ts';

export interface Listed {
  readonly rules: readonly PolicyRule[];
  /** Some authorizer may allow more than it can list. */
  readonly isIncomplete: boolean;
  /** What kept authorizers from listing all they allow; '' is nothing. */
  readonly fault: string;
}

const RESOURCES: PolicyRule = {
  verbs: ['*'],
  groups: ['*'],
  resources: ['*'],
  names: [],
  paths: [],
};
const PATHS: PolicyRule = { ...RESOURCES, groups: [], resources: [], paths: ['*'] };

/**
 * The rules of all authorizers in their order, as upstream's union of resolvers has them. What
 * masters may do rests on no rule, and is not listed.
 */
export function rulesOf(
  links: readonly ChainLink[],
  rbac: Rbac,
  identity: Identity,
  namespace: string,
): Listed {
  const rules: PolicyRule[] = [];
  const faults = new Set<string>();
  let isIncomplete = false;
  const cannotList = (who: string): void => {
    isIncomplete = true;
    faults.add(`${who} authorizer does not support user rule resolution`);
  };
  for (const one of links) {
    const link = unnamed(one);
    if (typeof link === 'function') cannotList('webhook');
    else if (link === 'AlwaysAllow') rules.push(RESOURCES, PATHS);
    else if (link === 'Node' && isNode(identity)) cannotList('node');
    else if (link === 'RBAC') {
      rules.push(...rbac.rulesOf(identity, namespace));
      for (const role of rbac.missingOf(identity, namespace)) faults.add(`${role} not found`);
    }
  }
  const texts = [...faults];
  const fault = texts.length > 1 ? `[${texts.join(', ')}]` : texts.join('');
  return { rules, isIncomplete, fault };
}
