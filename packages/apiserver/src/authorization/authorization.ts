/** Whether an identity may do what a request asks. */
import { ownMember } from '@megaplane/base/members';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Identity } from '../request/identity.ts';
import type { Query } from '../request/query.ts';
import type { RequestInfo } from '../request/request-info.ts';

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
  /** As the query has them, for verbs that look at many objects; absent: none. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
  /** Holds for exactly this question, and says nothing of others that are like it. */
  readonly isNarrow?: boolean;
  /** What kept an authorizer from deciding; a request that nobody allows fails with it (500). */
  readonly error?: string;
  /** Denied for good: nobody after this one is asked. */
  readonly isFinal?: boolean;
  /**
   * Nothing is decided yet, somebody else has to be asked: calls back once when it is worth asking
   * this authorizer again. Who cannot wait takes the decision for a denial.
   */
  readonly pending?: (then: () => void) => void;
}

/** One way to decide; the first that allows wins. */
export type Authorizer = (identity: Identity, attributes: Attributes) => Decision;

export const DENIED: Decision = { allowed: false, reason: '' };

/** Everything is allowed to the group of masters, whatever else there is. */
export function authorizeMasters(identity: Identity): Decision {
  return identity.isMaster ? { allowed: true, reason: '' } : DENIED;
}

/**
 * Several authorizers as one, asked in their order: the first that allows or denies for good
 * decides. Reasons of those that had no opinion are joined.
 */
export function firstThatAllows(authorizers: readonly Authorizer[]): Authorizer {
  return (identity, attributes) => {
    const reasons: string[] = [];
    let errors: string[] | null = null;
    for (const authorize of authorizers) {
      const decision = authorize(identity, attributes);
      if (decision.allowed || decision.pending !== undefined) return decision;
      if (decision.reason !== '') reasons.push(decision.reason);
      if (decision.error !== undefined) (errors ??= []).push(decision.error);
      if (decision.isFinal !== true) continue;
      const { error } = decision;
      const denied = { allowed: false, reason: reasons.join('\n'), isFinal: true };
      return error === undefined ? denied : { ...denied, error };
    }
    const denied = { allowed: false, reason: reasons.join('\n') };
    return errors === null ? denied : { ...denied, error: aggregate(errors) };
  };
}

/** How upstream's metrics call a decision. */
export function outcomeOf({
  allowed,
  error,
  isFinal,
}: Decision): 'allowed' | 'denied' | 'no-opinion' | 'error' {
  if (allowed) return 'allowed';
  if (error !== undefined) return 'error';
  return isFinal === true ? 'denied' : 'no-opinion';
}

/** The text of the 500 that a decision ends with which could not be made. */
export function failureText(path: string, error: string): string {
  const text = `Internal Server Error: ${JSON.stringify(path)}: ${error}`;
  return `${text.replaceAll(/[&<>]/g, (one) => ownMember(MARKUP, one) ?? one)}\n`;
}

const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Times that one question is asked anew before it counts as denied. */
const ATTEMPTS_MAX = 3;

/** Calls `then` with the decision, in this turn where nobody else has to be asked. */
export function whenDecided(
  authorize: Authorizer,
  identity: Identity,
  attributes: Attributes,
  then: (decision: Decision) => void,
  attempts: number = ATTEMPTS_MAX,
): void {
  const decision = authorize(identity, attributes);
  const { pending } = decision;
  if (pending === undefined || attempts === 0) then(decision);
  else pending(() => whenDecided(authorize, identity, attributes, then, attempts - 1));
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
export function attributesOf(
  info: RequestInfo,
  verb: string,
  name: string,
  query: Query | null = null,
): Attributes {
  if (query === null || !SELECTING.has(verb)) return { ...info, verb, name };
  const fieldSelector = query.text('fieldSelector');
  const labelSelector = query.text('labelSelector');
  return { ...info, verb, name, fieldSelector, labelSelector };
}

/** Verbs whose selectors narrow what is asked for (KEP-4601). */
const SELECTING: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection']);
