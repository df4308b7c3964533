/** Impersonation: acting as somebody else, if one may. */
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import {
  denial,
  whenDecided,
  type Attributes,
  type Authorizer,
  type Decision,
} from './authorization.ts';
import type { Call } from './call.ts';
import {
  ANONYMOUS,
  AUTHENTICATED_GROUP,
  identityOf,
  MASTERS_GROUP,
  parseServiceAccount,
  serviceAccountIdentity,
  UNAUTHENTICATED_GROUP,
  type Identity,
} from './identity.ts';

const EXTRA_PREFIX = 'impersonate-extra-';

/** Whom the headers of a request name. */
interface Wanted {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/**
 * Finds the identity that a request acts as: its own without the headers, or the one that they
 * name. `attributes` is what the request itself does, for the words of a refusal. `then` is called
 * in this turn unless somebody else has to be asked.
 */
export function impersonate(
  call: Call,
  authorize: Authorizer,
  attributes: Attributes,
  then: (acting: Result<Identity>) => void,
): void {
  const { exchange } = call;
  const user = exchange.header('impersonate-user') || undefined;
  const group = exchange.header('impersonate-group');
  const uid = exchange.header('impersonate-uid') ?? '';
  const groups = group === undefined ? [] : group.split(/, ?/);
  const extra = readExtra(call);
  if (user === undefined) {
    const isPlain = group === undefined && uid === '' && Object.keys(extra).length === 0;
    if (isPlain) then(success(call.identity));
    else then(failed(badRequest(`requested ${goUser(uid, groups, extra)} ${NAMELESS}`)));
    return;
  }
  const wanted: Wanted = { user, uid, groups, extra };
  const questions = questionsOf(wanted);
  const askFrom = (index: number): void => {
    const question = questions[index];
    if (question === undefined) {
      then(success(assume(wanted)));
      return;
    }
    const hear = ({ allowed }: Decision): void => {
      if (allowed) {
        askFrom(index + 1);
        return;
      }
      // upstream asks for the constrained form first and refuses in its words
      const verb = `impersonate-on:${modeOf(user)}:${attributes.verb}`;
      then(failed(denial(call.identity, { ...attributes, verb }, '')));
    };
    const decision = authorize(call.identity, question);
    if (decision.pending === undefined) {
      hear(decision);
      return;
    }
    call.keepBody();
    whenDecided(authorize, call.identity, question, hear);
  };
  askFrom(0);
}

const NAMELESS = 'without impersonating a user name';

/** A user without a name, as Go prints its struct. */
function goUser(uid: string, groups: readonly string[], extra: Wanted['extra']): string {
  const list = (values: readonly string[]): string =>
    `[]string{${values.map((one) => JSON.stringify(one)).join(', ')}}`;
  const pairs = Object.entries(extra)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, values]) => `${JSON.stringify(key)}:${list(values)}`);
  const names = groups.length === 0 ? '[]string(nil)' : list(groups);
  const more =
    pairs.length === 0 ? 'map[string][]string(nil)' : `map[string][]string{${pairs.join(', ')}}`;
  return (
    `&user.DefaultInfo{Name:"", UID:${JSON.stringify(uid)}, ` + `Groups:${names}, Extra:${more}}`
  );
}

/** The mode of constrained impersonation (KEP-5284) that a user falls under. */
function modeOf(user: string): string {
  if (parseServiceAccount(user) !== null) return 'serviceaccount';
  return user.startsWith('system:node:') ? 'arbitrary-node' : 'user-info';
}

function readExtra(call: Call): Record<string, string[]> {
  const extra: Record<string, string[]> = {};
  const fields = call.exchange.fields();
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (!name.startsWith(EXTRA_PREFIX)) continue;
    const key = decodeURIComponent(name.slice(EXTRA_PREFIX.length));
    (extra[key] ??= []).push(fields[at + 1] ?? '');
  }
  return extra;
}

function questionsOf({ user, uid, groups, extra }: Wanted): Attributes[] {
  const base = {
    verb: 'impersonate',
    isResource: true,
    path: '',
    group: '',
    version: 'v1',
    subresource: '',
    namespace: '',
  };
  const account = parseServiceAccount(user);
  const questions: Attributes[] =
    account === null
      ? [{ ...base, resource: 'users', name: user }]
      : [
          {
            ...base,
            resource: 'serviceaccounts',
            namespace: account.namespace,
            name: account.name,
          },
        ];
  for (const name of groups) questions.push({ ...base, resource: 'groups', name });
  const auth = { ...base, group: 'authentication.k8s.io' };
  if (uid !== '') questions.push({ ...auth, resource: 'uids', name: uid });
  for (const [key, values] of Object.entries(extra)) {
    for (const name of values) {
      questions.push({ ...auth, resource: 'userextras', subresource: key, name });
    }
  }
  return questions;
}

function assume({ user, uid, groups, extra }: Wanted): Identity {
  const account = parseServiceAccount(user);
  if (account !== null && groups.length === 0) {
    return serviceAccountIdentity(account.namespace, account.name, uid, extra);
  }
  if (user === ANONYMOUS.user) return { ...ANONYMOUS, uid, extra };
  if (groups.includes(UNAUTHENTICATED_GROUP)) {
    return { user, uid, groups, extra, isMaster: groups.includes(MASTERS_GROUP) };
  }
  const others = groups.filter((name) => name !== AUTHENTICATED_GROUP);
  return identityOf(user, others, uid, extra);
}
