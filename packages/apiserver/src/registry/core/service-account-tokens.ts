/** Service accounts and their tokens: TokenRequest, TokenReview, and reading bearer tokens. */
import { ownMember } from '@megaplane/base/members';
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { isNumber, type JsonObject } from '@megaplane/machinery/json-value';
import {
  badRequest,
  conflict,
  generic,
  invalid,
  notFound,
  type Status,
} from '@megaplane/machinery/status';
import { readStoredObject } from '../../lister/stored-object.ts';
import { checkNamespace } from '../rest/object-meta.ts';
import { sendMade } from '../../serializer/representation.ts';
import {
  defineForms,
  defineJudge,
  defineSubresource,
  type SubresourceContext,
} from '../../handlers/subresource.ts';
import { isUnknown } from '../../authentication/authentication.ts';
import { partScope } from '../../fieldmanager/field-scope.ts';
import { ownersOfPart } from '../../fieldmanager/tracking.ts';
import type { AccountToken } from '../../authentication/account-tokens.ts';
import { textsOf } from '../../authentication/jwt.ts';
import type { TokenSigner } from '../../authentication/token-signer.ts';
import type { World } from '../../lister/world.ts';
import { timestamp } from '../../timestamp.ts';

const SECONDS_MIN = 600;
const SECONDS_MAX: number = 2 ** 32;
const SECONDS_DEFAULT = 3600;
/** Tokens of exactly this many seconds are those that pods mount; upstream extends them. */
const MOUNTED_SECONDS = 3607;
const EXTENDED_SECONDS: number = 365 * 24 * 3600;

const PLURALS: Readonly<Record<string, string>> = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' };

/** Registers serviceaccounts/token and tokenreviews. */
export function defineTokens(): void {
  defineSubresource('serviceaccounts/token', 'create', (context) => {
    const { signer } = context.services;
    if (signer === null) context.call.fail(generic('NotFound'));
    else requestToken(context, signer);
  });
  defineForms('serviceaccounts/token', {
    decoded: (body) => {
      const expirationSeconds = valueAt(body, 'spec', 'expirationSeconds') ?? SECONDS_DEFAULT;
      return { ...body, spec: { ...objectAt(body, 'spec'), expirationSeconds } };
    },
    completed: (body, { call, world }) => {
      const creationTimestamp = timestamp(call.nowMs);
      const added = { name: call.info.name, uid: world.edge.uuid(), creationTimestamp };
      return { ...body, metadata: { ...objectAt(body, 'metadata'), ...added } };
    },
  });
  const reviews = 'tokenreviews.authentication.k8s.io';
  defineJudge(reviews, ({ body }) => {
    const isAsked = stringAt(body, 'spec', 'token') !== '';
    return isAsked ? null : badRequest('token is required for TokenReview in authentication');
  });
  defineSubresource(reviews, 'create', reviewToken);
}

/** Times that a token is looked at anew while others are asked about it. */
const ATTEMPTS_MAX = 3;

function reviewToken(context: SubresourceContext, attempts: number = ATTEMPTS_MAX): void {
  const { call, body, world, services } = context;
  const asked = textsOf(valueAt(body, 'spec', 'audiences'));
  const found = services.reviewToken(stringAt(body, 'spec', 'token'), asked);
  if (isUnknown(found) && attempts > 0) {
    found.pending(() => reviewToken(context, attempts - 1));
    return;
  }
  const isFound = found !== null && !isUnknown(found);
  const token = stringAt(body, 'spec', 'token');
  const status = isFound
    ? reviewStatus(found)
    : { user: {}, error: services.whyNobody(token, asked) };
  // reviews are of the whole cluster
  const { namespace: _, ...metadata } = objectAt(body, 'metadata') ?? {};
  const review: JsonObject = { ...body, metadata, status };
  const send = (): void => sendMade(call, 201, review);
  if (attempts === ATTEMPTS_MAX) send();
  // in a later turn nobody holds the answer back for the account that was seen
  else world.whenPublished(world.storage.appliedRevision, send);
}

function reviewStatus(found: AccountToken): JsonObject {
  const { user, uid, groups, extra } = found.identity;
  const keys = Object.entries(extra).toSorted(([left], [right]) => (left < right ? -1 : 1));
  const more = keys.map(([key, list]): [string, string[]] => [key, [...list]]);
  return {
    authenticated: true,
    user: {
      username: user,
      ...(uid === '' ? {} : { uid }),
      ...(groups.length === 0 ? {} : { groups: [...groups] }),
      ...(more.length === 0 ? {} : { extra: Object.fromEntries(more) }),
    },
    audiences: [...found.audiences],
  };
}

const REQUESTED = { group: 'authentication.k8s.io', name: 'TokenRequest' } as const;

/** What is wrong with the time that a token is to live. */
function lifetimeFault(seconds: number): Status | null {
  if (seconds >= SECONDS_MIN && seconds <= SECONDS_MAX) return null;
  const text =
    seconds < SECONDS_MIN
      ? 'may not specify a duration less than 10 minutes'
      : 'may not specify a duration larger than 2^32 seconds';
  return invalid(REQUESTED, '', [invalidValue('spec.expirationSeconds', seconds, text)]);
}

/** A request is for the account of its path. */
function addressFault({ call, body }: SubresourceContext): Status | null {
  const { name } = call.info;
  const own = stringAt(body, 'metadata', 'name');
  if (own !== '' && own !== name) {
    const text = 'must match the service account name if specified';
    return invalid(REQUESTED, name, [invalidValue('metadata.name', own, text)]);
  }
  return checkNamespace(body, call.info.namespace);
}

function requestToken(context: SubresourceContext, signer: TokenSigner): void {
  const { call, world, body } = context;
  const { namespace, name } = call.info;
  const wished = valueAt(body, 'spec', 'expirationSeconds');
  const asked = isNumber(wished) ? Number(wished) : SECONDS_DEFAULT;
  const fault = addressFault(context);
  if (fault !== null) {
    call.fail(fault);
    return;
  }
  const account = readStoredObject(world, '', 'serviceaccounts', namespace, name);
  if (account === null) {
    call.fail(notFound({ group: '', name: 'serviceaccounts' }, name));
    return;
  }
  const uid = stringAt(account, 'metadata', 'uid');
  const expected = stringAt(body, 'metadata', 'uid');
  if (expected !== '' && expected !== uid) {
    const why =
      `the UID in the token request (${expected}) does not match the UID of the service account ` +
      `(${uid})`;
    call.fail(conflict(REQUESTED, name, why));
    return;
  }
  const unfit = lifetimeFault(asked);
  if (unfit !== null) {
    call.fail(unfit);
    return;
  }
  const bound = boundClaims(context, namespace, name);
  if (bound === null) return;
  const seconds = shortened(context, asked, signer.lifeSecondsMax);
  const nowS = Math.floor(call.nowMs / 1000);
  const audiences = listAt(body, 'spec', 'audiences');
  // only what a pod mounts lives longer than it says
  const isPods = bound['pod'] !== undefined;
  const isMounted =
    signer.extendsLife && seconds === MOUNTED_SECONDS && audiences.length === 0 && isPods;
  const life = isMounted ? EXTENDED_SECONDS : seconds;
  const jti = world.edge.uuid();
  call.annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${jti}`);
  const token = signer.sign({
    aud: audiences.length > 0 ? [...audiences] : [...signer.audiences],
    exp: nowS + life,
    iat: nowS,
    nbf: nowS,
    jti,
    sub: `system:serviceaccount:${namespace}:${name}`,
    'kubernetes.io': {
      namespace,
      serviceaccount: { name, uid },
      ...bound,
      ...(isMounted ? { warnafter: nowS + seconds } : {}),
    },
  });
  const spec: JsonObject = { ...objectAt(body, 'spec'), expirationSeconds: seconds };
  const creationTimestamp = timestamp(call.nowMs);
  sendMade(call, 201, {
    ...HEAD,
    metadata: { ...ownMetadata(context, spec), name, namespace, uid, creationTimestamp },
    spec: {
      ...spec,
      audiences: audiences.length > 0 ? [...audiences] : [...signer.audiences],
      boundObjectRef: spec['boundObjectRef'] ?? null,
    },
    status: { token, expirationTimestamp: timestamp(call.nowMs + seconds * 1000) },
  });
}

/** Who asks for more than tokens may live is told, and gets that. */
function shortened({ call }: SubresourceContext, seconds: number, most: number): number {
  if (most === 0 || seconds <= most) return seconds;
  call.warn(`requested expiration of ${seconds} seconds shortened to ${most} seconds`);
  return most;
}

const HEAD = { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1' };

/** What was sent of it, and whose the fields of the request are. */
function ownMetadata({ call, body }: SubresourceContext, spec: JsonObject): JsonObject {
  const { managedFields: _, ...sent } = objectAt(body, 'metadata') ?? {};
  const scope = partScope(call, HEAD.apiVersion, HEAD.kind, 'token', 'Update');
  return { ...sent, ...ownersOfPart(scope, { ...HEAD, metadata: sent, spec }) };
}

/** Claims of the object that the token is bound to; null where the request was refused. */
function boundClaims(
  { call, body, world }: SubresourceContext,
  namespace: string,
  account: string,
): JsonObject | null {
  const reference = objectAt(body, 'spec', 'boundObjectRef');
  if (reference === undefined) return {};
  const kind = stringAt(reference, 'kind');
  const plural = ownMember(PLURALS, kind);
  const version = stringAt(reference, 'apiVersion');
  // of the core group, whatever the version; what is no version at all counts as none
  const slashes = version.split('/').length - 1;
  if (plural === undefined || slashes === 1) {
    const gvk = slashes === 1 ? version : slashes > 1 ? '/' : `/${version}`;
    call.fail(badRequest(`cannot bind token to object of type ${gvk}, Kind=${kind}`));
    return null;
  }
  const name = stringAt(reference, 'name');
  if (name === '') {
    call.fail(badRequest('Name parameter required.'));
    return null;
  }
  const found = readStoredObject(world, '', plural, kind === 'Node' ? '' : namespace, name);
  if (found === null) {
    call.fail(notFound({ group: '', name: plural }, name));
    return null;
  }
  const uid = stringAt(found, 'metadata', 'uid');
  const wanted = stringAt(reference, 'uid');
  if (wanted !== '' && wanted !== uid) {
    const why =
      `the UID in the bound object reference (${wanted}) does not match the UID in record. ` +
      'The object might have been deleted and then recreated';
    call.fail(conflict({ group: '', name: kind }, name, why));
    return null;
  }
  if (kind !== 'Pod') return { [kind.toLowerCase()]: { name, uid } };
  if (stringAt(found, 'spec', 'serviceAccountName') !== account) {
    const text =
      `cannot bind token for serviceaccount ${JSON.stringify(account)} to pod running with ` +
      'different serviceaccount name.';
    call.fail(badRequest(text));
    return null;
  }
  return { pod: { name, uid }, ...nodeOf(world, stringAt(found, 'spec', 'nodeName')) };
}

/** A pod's token names its node too; one that is not there has no uid. */
function nodeOf(world: World, name: string): JsonObject {
  if (name === '') return {};
  const node = readStoredObject(world, '', 'nodes', '', name);
  const uid = stringAt(node ?? {}, 'metadata', 'uid');
  return { node: uid === '' ? { name } : { name, uid } };
}
