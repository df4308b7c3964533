/** Who a request comes from. */

/** A user as the authenticator established it; `system:authenticated` is among the groups. */
export interface Identity {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
  /** In the group that may do everything. */
  readonly isMaster: boolean;
  /** What is to be told of the credential each time that it is used; absent: nothing. */
  readonly notes?: CredentialNotes;
}

/** For the audit log and for whoever uses the credential. */
export interface CredentialNotes {
  /** Names and values of annotations. */
  readonly annotations: Readonly<Record<string, string>>;
  /** A Warning header; '': none. */
  readonly warning: string;
  /** From then on it should have been renewed; 0: never. */
  readonly staleFromMs: number;
}

export const MASTERS_GROUP = 'system:masters';
const ANONYMOUS_USER = 'system:anonymous';
export const AUTHENTICATED_GROUP = 'system:authenticated';
export const UNAUTHENTICATED_GROUP = 'system:unauthenticated';
/** Of what is told beside a user: the credential that proved who it is. */
export const CREDENTIAL_ID_KEY = 'authentication.kubernetes.io/credential-id';
const SERVICE_ACCOUNT_PREFIX = 'system:serviceaccount:';

/** An authenticated user; the group of all of them is added, but to who says to be none. */
export function identityOf(
  user: string,
  groups: readonly string[],
  uid = '',
  extra: Readonly<Record<string, readonly string[]>> = {},
): Identity {
  const isSaid = groups.some(
    (group) => group === AUTHENTICATED_GROUP || group === UNAUTHENTICATED_GROUP,
  );
  const all = isSaid || user === ANONYMOUS_USER ? groups : [...groups, AUTHENTICATED_GROUP];
  return { user, uid, groups: all, extra, isMaster: groups.includes(MASTERS_GROUP) };
}

export const ANONYMOUS: Identity = {
  user: ANONYMOUS_USER,
  uid: '',
  groups: [UNAUTHENTICATED_GROUP],
  extra: {},
  isMaster: false,
};

/** The owner of the Unix socket's file. */
export const LOCAL_ADMIN: Identity = identityOf('kubernetes-admin', [MASTERS_GROUP]);

/** A service account, with the groups that all of its kind have. */
export function serviceAccountIdentity(
  namespace: string,
  name: string,
  uid: string,
  extra: Readonly<Record<string, readonly string[]>> = {},
): Identity {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return identityOf(`${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`, groups, uid, extra);
}

/** Namespace and name where the user is a service account, else null. */
export function parseServiceAccount(
  user: string,
): { readonly namespace: string; readonly name: string } | null {
  if (!user.startsWith(SERVICE_ACCOUNT_PREFIX)) return null;
  const [namespace = '', name = '', ...rest] = user.slice(SERVICE_ACCOUNT_PREFIX.length).split(':');
  return namespace === '' || name === '' || rest.length > 0 ? null : { namespace, name };
}
