/**
 * The ways in which somebody may act as somebody else (KEP-5284), tried in this order:
 *
 *   associated-node  a service account as the node that its token is bound to
 *   arbitrary-node   as any node
 *   serviceaccount   as a service account
 *   user-info        as any other user, with groups, uid and extra
 *   legacy           as anybody, by the one verb `impersonate`
 *
 * The first four ask two things: may this be done in that mode (`impersonate-on:MODE:VERB` on what
 * the request is about), and may one be that user (`impersonate:MODE`). The last asks the second
 * alone. A mode is a generator of questions, so that whoever drives it may wait for the answers.
 */
import { dnsLabelErrors, dnsSubdomainErrors } from '@megaplane/machinery/names';
import { invalidValue } from '@megaplane/machinery/fielderrors';
import type { Status } from '@megaplane/machinery/status';
import { denial, type Attributes, type Decision } from '../../authorization/authorization.ts';
import {
  ANONYMOUS,
  AUTHENTICATED_GROUP,
  MASTERS_GROUP,
  parseServiceAccount,
  UNAUTHENTICATED_GROUP,
  type Identity,
} from '../../request/identity.ts';
import type { Wanted } from './impersonation-headers.ts';

/** What an authorizer is asked. */
export interface Question {
  readonly identity: Identity;
  readonly attributes: Attributes;
}

/** Who one may act as by a mode, why not, or null: the mode says nothing of such users. */
export type Finding =
  | { readonly kind: 'acting'; readonly identity: Identity }
  | { readonly kind: 'refused'; readonly status: Status }
  | null;

type Asking<T> = Generator<Question, T, Decision>;

/** One way to act as somebody else. */
export interface Mode {
  /** As metrics name it. */
  readonly name: string;
  /** As the audit log tells it; '' where the mode is no constraint. */
  readonly constraint: string;
  check(wanted: Wanted, identity: Identity, attributes: Attributes): Asking<Finding>;
}

const NODE_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
const NODE_NAME_KEY = 'authentication.kubernetes.io/node-name';
const NODE_KEYS_KEY = 'authentication.kubernetes.io/associated-node-keys';
/** So many questions of one kind are asked as one about all first. */
const MANY_QUESTIONS = 4;

export const MODES: readonly Mode[] = [
  associatedNode(),
  constrained('arbitrary-node', (wanted) => isAlone(wanted) && nodeIn(wanted.user) !== ''),
  constrained('serviceaccount', (wanted) => isAlone(wanted) && accountIn(wanted.user) !== null),
  constrained('user-info', ({ user }) => nodeIn(user) === '' && accountIn(user) === null),
  {
    name: 'legacy',
    constraint: '',
    *check(wanted, identity) {
      return yield* judge({ verb: 'impersonate', isLegacy: true, ask: plainly }, wanted, identity);
    },
  },
];

/** Asks; the words of a refusal, or null where it is allowed. */
function* plainly(identity: Identity, attributes: Attributes): Asking<Status | null> {
  const { allowed, reason } = yield { identity, attributes };
  return allowed ? null : denial(identity, attributes, reason);
}

interface Manner {
  readonly verb: string;
  readonly isLegacy: boolean;
  readonly ask: (identity: Identity, attributes: Attributes) => Asking<Status | null>;
}

function constrained(
  name: string,
  suits: (wanted: Wanted, identity: Identity) => boolean,
  ask: Manner['ask'] = plainly,
): Mode {
  const verb = `impersonate:${name}`;
  return {
    name,
    constraint: verb,
    *check(wanted, identity, attributes) {
      if (!suits(wanted, identity)) return null;
      const on = { ...attributes, verb: `impersonate-on:${name}:${attributes.verb}` };
      const status = yield* ask(identity, on);
      if (status !== null) return { kind: 'refused', status };
      return yield* judge({ verb, isLegacy: false, ask }, wanted, identity);
    },
  };
}

/**
 * The requester is asked about without what tells its pods apart, and about nodes of any name: what
 * is allowed to one pod of an agent is allowed to all of them, each for its own node.
 */
function associatedNode(): Mode {
  const verb = 'impersonate:associated-node';
  const suits = (wanted: Wanted, { user, extra }: Identity): boolean => {
    const node = nodeIn(wanted.user);
    const bound = extra[NODE_NAME_KEY] ?? [];
    return isAlone(wanted) && node !== '' && accountIn(user) !== null && bound.join() === node;
  };
  return constrained('associated-node', suits, (identity, attributes) => {
    const extra = { [NODE_KEYS_KEY]: Object.keys(identity.extra).toSorted() };
    const name = attributes.verb === verb ? '*' : attributes.name;
    return plainly({ ...identity, extra }, { ...attributes, name });
  });
}

/** Asks for each thing that is wanted whether one may have it. */
function* judge(manner: Manner, wanted: Wanted, identity: Identity): Asking<Finding> {
  const status =
    (yield* judgeName(manner, wanted, identity)) ??
    (yield* judgeUid(manner, wanted, identity)) ??
    (yield* judgeGroups(manner, wanted, identity)) ??
    (yield* judgeExtra(manner, wanted, identity));
  if (status !== null) return { kind: 'refused', status };
  return { kind: 'acting', identity: assume(wanted, manner) };
}

const QUESTION = {
  isResource: true,
  path: '',
  version: 'v1',
  subresource: '',
  namespace: '',
  name: '',
} as const;
const GROUP = 'authentication.k8s.io';

function groupOf({ isLegacy }: Manner): string {
  return isLegacy ? '' : GROUP;
}

function judgeName(manner: Manner, { user }: Wanted, identity: Identity): Asking<Status | null> {
  const base = { ...QUESTION, verb: manner.verb, group: groupOf(manner) };
  const account = accountIn(user);
  if (account !== null)
    return manner.ask(identity, { ...base, resource: 'serviceaccounts', ...account });
  const node = manner.isLegacy ? '' : nodeIn(user);
  if (node !== '') return manner.ask(identity, { ...base, resource: 'nodes', name: node });
  return manner.ask(identity, { ...base, resource: 'users', name: user });
}

function* judgeUid(
  { verb, ask }: Manner,
  { uid }: Wanted,
  identity: Identity,
): Asking<Status | null> {
  if (uid === '') return null;
  return yield* ask(identity, { ...QUESTION, verb, group: GROUP, resource: 'uids', name: uid });
}

function* judgeGroups(
  manner: Manner,
  { groups }: Wanted,
  identity: Identity,
): Asking<Status | null> {
  const { verb, isLegacy, ask } = manner;
  const base = { ...QUESTION, verb, group: groupOf(manner), resource: 'groups' };
  if (!isLegacy && groups.includes('')) {
    return denial(identity, base, 'impersonating the empty string group is not allowed');
  }
  if (!isLegacy && groups.includes(MASTERS_GROUP)) {
    const why = 'impersonating the system:masters group is not allowed';
    return denial(identity, { ...base, name: MASTERS_GROUP }, why);
  }
  if (!isLegacy && groups.length >= MANY_QUESTIONS) {
    if ((yield* ask(identity, { ...base, name: '*' })) === null) return null;
  }
  for (const name of groups) {
    const status = yield* ask(identity, { ...base, name });
    if (status !== null) return status;
  }
  return null;
}

function* judgeExtra(
  { verb, isLegacy, ask }: Manner,
  { extra }: Wanted,
  identity: Identity,
): Asking<Status | null> {
  const base = { ...QUESTION, verb, group: GROUP, resource: 'userextras' };
  const fault = isLegacy ? '' : faultOf(extra);
  if (fault !== '') return denial(identity, base, `impersonating ${fault}`);
  const values = Object.entries(extra).flatMap(([subresource, names]) =>
    names.map((name) => ({ ...base, subresource, name })),
  );
  if (!isLegacy && values.length >= MANY_QUESTIONS) {
    if ((yield* ask(identity, { ...base, subresource: '*', name: '*' })) === null) return null;
  }
  for (const attributes of values) {
    const status = yield* ask(identity, attributes);
    if (status !== null) return status;
  }
  return null;
}

/** What constrained impersonation takes no extra values for; legacy takes them all. */
function faultOf(extra: Wanted['extra']): string {
  for (const [key, values] of Object.entries(extra)) {
    if (key === '') return 'the empty string key in extra is not allowed';
    const faults = keyFaults(key);
    if (faults !== '') return `an invalid key in extra is not allowed: ${faults}`;
    if (key !== key.toLowerCase()) {
      return `a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`;
    }
    if (values.includes('')) return 'the empty string value in extra is not allowed';
  }
  return '';
}

const KEY_FIELD = 'extra.key';
const PATH_FORM = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const PATH = new RegExp(`^${PATH_FORM}$`);

/** Upstream's IsDomainPrefixedPath, its findings joined as an aggregate of Go. */
function keyFaults(key: string): string {
  const at = key.indexOf('/');
  const [host, path] = [key.slice(0, Math.max(at, 0)), key.slice(at + 1)];
  const found =
    host === '' || path === ''
      ? [invalidValue(KEY_FIELD, key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
      : dnsSubdomainErrors(host).map((text) => invalidValue(KEY_FIELD, host, text));
  if (host !== '' && path !== '' && !PATH.test(path)) {
    const text = `Invalid path (regex used for validation is '${PATH_FORM}')`;
    found.push(invalidValue(KEY_FIELD, path, text));
  }
  const texts = found.map(({ field, body }) => `${field}: ${body}`);
  return texts.length > 1 ? `[${texts.join(', ')}]` : texts.join('');
}

/** The user that a request comes to have; groups that are fixed or go without saying are added. */
function assume({ user, uid, groups, extra }: Wanted, { isLegacy }: Manner): Identity {
  const account = accountIn(user);
  let all = [...groups];
  if (!isLegacy && nodeIn(user) !== '') all = [NODES_GROUP];
  if (account !== null && groups.length === 0) {
    all = ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`];
  }
  const last = user === ANONYMOUS.user ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP;
  if (!all.includes(UNAUTHENTICATED_GROUP) && !all.includes(last)) all.push(last);
  return { user, uid, groups: all, extra, isMaster: all.includes(MASTERS_GROUP) };
}

/** Nothing but a name is wanted. */
function isAlone({ uid, groups, extra }: Wanted): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0;
}

/** Name of the node that a user is; '' where it is none. */
function nodeIn(user: string): string {
  if (!user.startsWith(NODE_PREFIX)) return '';
  const name = user.slice(NODE_PREFIX.length);
  return dnsSubdomainErrors(name).length === 0 ? name : '';
}

/** The service account that a user is, if both of its names could be of one. */
function accountIn(user: string): ReturnType<typeof parseServiceAccount> {
  const account = parseServiceAccount(user);
  if (account === null || dnsLabelErrors(account.namespace).length > 0) return null;
  return dnsSubdomainErrors(account.name).length > 0 ? null : account;
}
