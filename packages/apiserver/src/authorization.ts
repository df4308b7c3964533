/** Whether an identity may do what a request asks. */
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Identity } from './identity.ts';
import type { RequestInfo } from './request-info.ts';

/** What is asked, as authorizers see it. */
export interface Attributes {
  readonly verb: string;
  readonly isResource: boolean;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
}

/** One way to decide; the first that allows wins. */
export type Authorizer = (identity: Identity, attributes: Attributes) => Decision;

export const DENIED: Decision = { allowed: false, reason: '' };

/** Everything is allowed to the group of masters, whatever else there is. */
export function authorizeMasters(identity: Identity): Decision {
  return identity.isMaster ? { allowed: true, reason: '' } : DENIED;
}

/** Several authorizers as one; reasons of those that said no are joined. */
export function firstThatAllows(authorizers: readonly Authorizer[]): Authorizer {
  return (identity, attributes) => {
    const reasons: string[] = [];
    for (const authorize of authorizers) {
      const decision = authorize(identity, attributes);
      if (decision.allowed) return decision;
      if (decision.reason !== '') reasons.push(decision.reason);
    }
    return { allowed: false, reason: reasons.join(', ') };
  };
}

/** The 403 that says who may not do what. */
export function denial(identity: Identity, what: Attributes, reason: string): Status {
  const user = `User ${JSON.stringify(identity.user)}`;
  const why = reason === '' ? '' : `: ${reason}`;
  if (!what.isResource) {
    const text = `${user} cannot ${what.verb} path ${JSON.stringify(what.path)}${why}`;
    return forbidden({ group: '', name: '' }, '', text);
  }
  const full = what.subresource === '' ? what.resource : `${what.resource}/${what.subresource}`;
  const scope =
    what.namespace === '' ? 'at the cluster scope' : `in the namespace "${what.namespace}"`;
  const text =
    `${user} cannot ${what.verb} resource ${JSON.stringify(full)} ` +
    `in API group ${JSON.stringify(what.group)} ${scope}${why}`;
  return forbidden({ group: what.group, name: what.resource }, what.name, text);
}

/** The attributes of a request; `verb` may be narrower than that of the path (watch). */
export function attributesOf(info: RequestInfo, verb: string, name: string): Attributes {
  return { ...info, verb, name };
}
