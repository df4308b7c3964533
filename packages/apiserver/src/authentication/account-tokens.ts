/**
 * Whom tokens of service accounts stand for: the account and what the token is bound to have to be
 * there still. What is said of those that stand for nobody is upstream's (pkg/serviceaccount).
 */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { quoted } from '@megaplane/machinery/quoting';
import { readStoredObject, type Seen } from '../lister/stored-object.ts';
import {
  CREDENTIAL_ID_KEY,
  serviceAccountIdentity,
  type CredentialNotes,
  type Identity,
} from '../request/identity.ts';
import type { TokenSigner } from './token-signer.ts';
import type { World } from '../lister/world.ts';
import { LEEWAY_MS, timeFault } from './account-claims.ts';
import { LEGACY_ISSUER } from './account-issuer.ts';
import { textsOf } from './jwt.ts';
import { useSecretToken } from './secret-tokens.ts';

const INVALIDATED = 'service account token has been invalidated';
const INVALID = 'invalid bearer token';
const NODE = 'authentication.kubernetes.io/node';
const POD = 'authentication.kubernetes.io/pod';
const LEGACY = 'authentication.k8s.io/legacy-token';
const ABOUT = 'kubernetes.io/serviceaccount/';

/** An account, and the audiences of its token. */
export interface AccountToken {
  readonly identity: Identity;
  readonly audiences: readonly string[];
}

/** What was found out about a token. */
export interface ReadToken {
  readonly account: AccountToken;
  readonly claims: JsonObject;
  /** What it rests on besides its time; null: reading it does something, each time. */
  readonly seen: readonly Seen[] | null;
  /** From then on something of that counts as gone; Infinity where nothing is about to go. */
  readonly untilMs: number;
}

/** Whom a token stands for; refused are those of nobody (any more), foreign any other text. */
export function readAccountToken(
  world: World,
  signer: TokenSigner,
  token: string,
): ReadToken | 'refused' | 'foreign' {
  const examined = signer.examine(token);
  if (examined.kind !== 'ours') return examined.kind;
  const found = judge(world, signer, examined.claims, token);
  return typeof found === 'string' ? 'refused' : found;
}

/** What upstream tells in reviews of a token that stands for nobody. */
export function whyNoAccount(
  world: World,
  signer: TokenSigner,
  token: string,
  audiences: readonly string[],
): string {
  const told = (why: string): string => `[${INVALID}, ${why}]`;
  const examined = signer.examine(token);
  if (examined.kind === 'foreign') return INVALID;
  if (examined.kind === 'refused') return told(examined.why);
  const { claims } = examined;
  const own = audiencesOf(claims, signer);
  if (!own.some((one) => audiences.includes(one))) {
    const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(' ')}]`;
    const target = `is invalid for the target audiences ${list(audiences)}`;
    return told(`token audiences ${list(own)} ${target}`);
  }
  const found = judge(world, signer, claims, token);
  return typeof found === 'string' ? told(found) : INVALID;
}

/** A token for nobody in particular is for this server. */
function audiencesOf(claims: JsonObject, signer: TokenSigner): readonly string[] {
  const own = textsOf(claims['aud']);
  return own.length === 0 ? signer.audiences : own;
}

/** The account, or why there is none. */
function judge(
  world: World,
  signer: TokenSigner,
  claims: JsonObject,
  token: string,
): ReadToken | string {
  const audiences = audiencesOf(claims, signer);
  if (claims['iss'] === LEGACY_ISSUER) {
    const found = readLegacy(world, claims, token);
    if (typeof found === 'string') return found;
    return { account: { identity: found, audiences }, claims, seen: null, untilMs: Infinity };
  }
  const fault = timeFault(claims, world.edge.nowMs());
  if (fault !== '') return fault;
  const ground = new Ground(world);
  const identity = ground.identify(claims);
  if (typeof identity === 'string') return identity;
  const { seen, untilMs } = ground;
  return { account: { identity, audiences }, claims, seen, untilMs };
}

/** What a token rests on: looked at, and remembered. */
class Ground {
  readonly #world: World;
  readonly seen: Seen[] = [];
  untilMs = Infinity;

  constructor(world: World) {
    this.#world = world;
  }

  /** The account with what its token is bound to, or why there is none. */
  identify(claims: JsonObject): Identity | string {
    const own = objectAt(claims, 'kubernetes.io') ?? {};
    const namespace = stringAt(own, 'namespace');
    const account = objectAt(own, 'serviceaccount') ?? {};
    const fault = this.#accountFault(namespace, account) || this.#boundFault(namespace, own);
    if (fault !== '') return fault;
    const [jti, pod, node] = [stringAt(claims, 'jti'), objectAt(own, 'pod'), objectAt(own, 'node')];
    const extra: Record<string, string[]> = {};
    if (jti !== '') extra[CREDENTIAL_ID_KEY] = [`JTI=${jti}`];
    for (const [prefix, bound] of [
      [NODE, node],
      [POD, pod],
    ] as const) {
      const { name, uid } = refOf(bound);
      if (name !== '') extra[`${prefix}-name`] = [name];
      if (uid !== '') extra[`${prefix}-uid`] = [uid];
    }
    const { name, uid } = refOf(account);
    return noteStale(serviceAccountIdentity(namespace, name, uid, extra), own);
  }

  #accountFault(namespace: string, account: JsonObject): string {
    const { name, uid } = refOf(account);
    if (name === '') return 'resource name may not be empty';
    if (namespace === '') return 'the server could not find the requested resource';
    const found = this.#find('serviceaccounts', namespace, name);
    if (found === null) return `serviceaccounts ${quoted(name)} not found`;
    const stored = stringAt(found, 'metadata', 'uid');
    if (stored !== uid) return `service account UID (${stored}) does not match claim (${uid})`;
    return this.#isGone(found) ? `service account ${namespace}/${name} has been deleted` : '';
  }

  #boundFault(namespace: string, own: JsonObject): string {
    const [secret, pod] = [objectAt(own, 'secret'), objectAt(own, 'pod')];
    // a pod's node is told, not looked for
    const node = pod === undefined ? objectAt(own, 'node') : undefined;
    return (
      this.#refFault('secret', namespace, secret) ||
      this.#refFault('pod', namespace, pod) ||
      this.#refFault('node', '', node)
    );
  }

  #refFault(kind: string, namespace: string, bound: JsonObject | undefined): string {
    if (bound === undefined) return '';
    const { name, uid } = refOf(bound);
    const found = this.#find(`${kind}s`, namespace, name);
    if (found === null) return INVALIDATED;
    const stored = stringAt(found, 'metadata', 'uid');
    if (stored !== uid) {
      return `${kind} UID (${stored}) does not match service account ${kind} ref claim (${uid})`;
    }
    return this.#isGone(found) ? INVALIDATED : '';
  }

  #find(plural: string, namespace: string, name: string): JsonObject | null {
    if (name === '') return null;
    return readStoredObject(this.#world, '', plural, namespace, name, this.seen);
  }

  /** On its way out for longer than clocks differ. */
  #isGone(object: JsonObject): boolean {
    const deleted = stringAt(object, 'metadata', 'deletionTimestamp');
    if (deleted === '') return false;
    this.untilMs = Math.min(this.untilMs, Date.parse(deleted) + LEEWAY_MS);
    return this.#world.edge.nowMs() > this.untilMs;
  }
}

function refOf(reference: JsonObject | undefined): { readonly name: string; readonly uid: string } {
  return { name: stringAt(reference, 'name'), uid: stringAt(reference, 'uid') };
}

/** Tokens that pods mount say from when on they should have been renewed. */
function noteStale(identity: Identity, own: JsonObject): Identity {
  const staleFromMs = Math.trunc(numberAt(own, 'warnafter')) * 1000;
  if (staleFromMs === 0) return identity;
  return { ...identity, notes: { annotations: {}, warning: '', staleFromMs } };
}

let looksUp = true;

/** `--service-account-lookup`, for the process: whether such tokens end with their Secret. */
export function applyAccountLookup(isOn: boolean): void {
  looksUp = isOn;
}

/** Tokens that kube-controller-manager put into Secrets: they hold as long as the Secret does. */
function readLegacy(world: World, claims: JsonObject, token: string): Identity | string {
  const claim = (name: string): string => stringAt(claims, `${ABOUT}${name}`);
  const namespace = claim('namespace');
  const [name, uid] = [claim('service-account.name'), claim('service-account.uid')];
  const fault = legacyFault(claims);
  if (fault !== '') return fault;
  if (!looksUp) return serviceAccountIdentity(namespace, name, uid);
  const secret = readStoredObject(world, '', 'secrets', namespace, claim('secret.name'));
  if (secret === null || isMarked(secret)) return 'Token has been invalidated';
  const kept = Buffer.from(stringAt(secret, 'data', 'token'), 'base64').toString('latin1');
  if (kept !== token) return "Token does not match server's copy";
  const owner = readStoredObject(world, '', 'serviceaccounts', namespace, name);
  if (owner === null) return `serviceaccounts ${quoted(name)} not found`;
  if (isMarked(owner)) return `ServiceAccount ${namespace}/${name} has been deleted`;
  const stored = stringAt(owner, 'metadata', 'uid');
  if (stored !== uid) return `ServiceAccount UID (${stored}) does not match claim (${uid})`;
  const secretName = stringAt(secret, 'metadata', 'name');
  if (!useSecretToken(world, secret)) {
    return (
      `the token in secret ${namespace}/${secretName} for service account ${namespace}/${name} ` +
      'has been marked invalid. Use tokens from the TokenRequest API or manually created ' +
      "secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from " +
      'the secret to temporarily allow use of this token'
    );
  }
  const notes = secretNotes(owner, secretName, claims);
  return { ...serviceAccountIdentity(namespace, name, uid), notes };
}

/** Somebody has deleted it; perhaps it waits for something. */
function isMarked(object: JsonObject): boolean {
  return stringAt(object, 'metadata', 'deletionTimestamp') !== '';
}

function legacyFault(claims: JsonObject): string {
  const sub = stringAt(claims, 'sub');
  if (sub === '') return 'sub claim is missing';
  for (const [name, shown] of [
    ['namespace', 'namespace'],
    ['secret.name', 'secretName'],
    ['service-account.name', 'serviceAccountName'],
    ['service-account.uid', 'serviceAccountUID'],
  ] as const) {
    if (stringAt(claims, `${ABOUT}${name}`) === '') return `${shown} claim is missing`;
  }
  const namespace = stringAt(claims, `${ABOUT}namespace`);
  const name = stringAt(claims, `${ABOUT}service-account.name`);
  const isOwn = sub === `system:serviceaccount:${namespace}:${name}`;
  return isOwn ? '' : 'sub claim is invalid';
}

/** Of a token in a Secret: whether a controller made it, or somebody who wanted it. */
function secretNotes(owner: JsonObject, secret: string, claims: JsonObject): CredentialNotes {
  const isMade = listAt(owner, 'secrets').some((one) => stringAt(one, 'name') === secret);
  const way = isMade ? 'autogenerated' : 'manual';
  const annotations = {
    [LEGACY]: stringAt(claims, 'sub'),
    [`${LEGACY}-${way}-secret`]: secret,
  };
  return { annotations, warning: isMade ? AUTOGENERATED : '', staleFromMs: 0 };
}

/** Who made the Secret that such notes are of. */
export function secretKindOf({ annotations }: CredentialNotes): 'auto' | 'manual' {
  return `${LEGACY}-autogenerated-secret` in annotations ? 'auto' : 'manual';
}

const AUTOGENERATED =
  'Use tokens from the TokenRequest API or manually created secret-based tokens instead of ' +
  'auto-generated secret-based tokens.';
