/**
 * Who may ask a program for its pages, as k8s.io/apiserver's delegating options decide it: a
 * client certificate or a token says who asks (TokenReview), and a SubjectAccessReview on the path
 * whether they may. Nobody in particular is `system:anonymous`.
 */
import { stringAt, valueAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Client } from './client.ts';

/** Answers kept at once; the oldest goes first. */
const KEPT_MAX = 1000;
/** Members of it may do everything on every server: nobody has to be asked. */
const MASTERS = 'system:masters';

export interface AccessOptions {
  /** Asked who somebody is; null: tokens say nothing. */
  readonly authentication: Client | null;
  /** Asked who may do what; null: nobody but masters may, beyond `alwaysAllowed`. */
  readonly authorization: Client | null;
  /** Paths that all may see whose credentials are not wrong; `*` at the end stands for the rest. */
  readonly alwaysAllowed: readonly string[];
  readonly tokenMs: number;
  readonly allowedMs: number;
  readonly deniedMs: number;
  readonly nowMs: () => number;
}

/** What a connection and a request say about who asks. */
export interface PageCredentials {
  /** Subject of a certificate that a known authority has signed; null without one. */
  readonly certificate: { readonly commonName: string; readonly groups: readonly string[] } | null;
  readonly authorization: string;
}

export type PageAccess =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly status: JsonObject & { readonly code: number } };

interface Caller {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

interface Kept<Value> {
  readonly value: Value;
  readonly untilMs: number;
}

const ALLOWED: PageAccess = { kind: 'allowed' };
const AUTHENTICATED = 'system:authenticated';
const ANONYMOUS: Caller = {
  user: 'system:anonymous',
  uid: '',
  groups: ['system:unauthenticated'],
};

export class DelegatedAccess {
  readonly #options: AccessOptions;
  readonly #callers: Map<string, Kept<Caller | null>> = new Map();
  readonly #decisions: Map<string, Kept<boolean>> = new Map();

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Whether the request is let in. Never rejects: what cannot be asked is refused. */
  async decide(credentials: PageCredentials, method: string, path: string): Promise<PageAccess> {
    try {
      const caller = await this.#caller(credentials);
      if (caller === null) return refused(401, 'Unauthorized', 'Unauthorized');
      const verb = method.toLowerCase();
      if (this.#isOpen(path) || (await this.#mayDo(caller, verb, path))) return ALLOWED;
      const quoted = JSON.stringify(path);
      const text = `forbidden: User ${JSON.stringify(caller.user)} cannot ${verb} path ${quoted}`;
      return refused(403, 'Forbidden', text, {});
    } catch (error) {
      const text = `Internal Server Error: ${JSON.stringify(path)}: ${(error as Error).message}`;
      return refused(500, 'InternalError', text);
    }
  }

  #isOpen(path: string): boolean {
    return this.#options.alwaysAllowed.some((allowed) =>
      allowed.endsWith('*') ? path.startsWith(allowed.slice(0, -1)) : path === allowed,
    );
  }

  async #caller({ certificate, authorization }: PageCredentials): Promise<Caller | null> {
    if (certificate !== null) {
      const groups = [...certificate.groups, AUTHENTICATED];
      return { user: certificate.commonName, uid: '', groups };
    }
    const token = /^bearer\s+(\S+)$/i.exec(authorization)?.[1];
    const { authentication, tokenMs } = this.#options;
    if (token === undefined || authentication === null) return ANONYMOUS;
    const kept = this.#kept(this.#callers, token);
    if (kept !== undefined) return kept;
    const path = '/apis/authentication.k8s.io/v1/tokenreviews';
    const status = await review(authentication, path, 'authentication.k8s.io/v1', 'TokenReview', {
      token,
    });
    const isKnown = valueAt(status, 'authenticated') === true;
    const caller = isKnown ? callerOf(valueAt(status, 'user')) : null;
    this.#keep(this.#callers, token, caller, tokenMs);
    return caller;
  }

  async #mayDo({ user, uid, groups }: Caller, verb: string, path: string): Promise<boolean> {
    const { authorization, allowedMs, deniedMs } = this.#options;
    if (groups.includes(MASTERS)) return true;
    if (authorization === null) return false;
    const key = JSON.stringify([user, uid, groups, verb, path]);
    const kept = this.#kept(this.#decisions, key);
    if (kept !== undefined) return kept;
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const group = 'authorization.k8s.io/v1';
    const spec = { user, uid, groups: [...groups], nonResourceAttributes: { path, verb } };
    const status = await review(authorization, reviews, group, 'SubjectAccessReview', spec);
    const isAllowed = valueAt(status, 'allowed') === true;
    this.#keep(this.#decisions, key, isAllowed, isAllowed ? allowedMs : deniedMs);
    return isAllowed;
  }

  #kept<Value>(map: ReadonlyMap<string, Kept<Value>>, key: string): Value | undefined {
    const kept = map.get(key);
    return kept !== undefined && kept.untilMs > this.#options.nowMs() ? kept.value : undefined;
  }

  #keep<Value>(map: Map<string, Kept<Value>>, key: string, value: Value, forMs: number): void {
    map.delete(key);
    if (map.size >= KEPT_MAX) map.delete(map.keys().next().value ?? '');
    map.set(key, { value, untilMs: this.#options.nowMs() + forMs });
  }
}

async function review(
  client: Client,
  path: string,
  apiVersion: string,
  kind: string,
  spec: JsonObject,
): Promise<JsonValue> {
  const body = { apiVersion, kind, spec };
  const answer = await client.request({ method: 'POST', path, body });
  if (!answer.ok) throw new Error(answer.status.message ?? `${path}: ${answer.code}`);
  return answer.object['status'] ?? null;
}

function callerOf(user: JsonValue | undefined): Caller {
  const groups = isObject(user) && Array.isArray(user['groups']) ? user['groups'] : [];
  const named = groups.filter((group) => typeof group === 'string');
  const all = named.includes(AUTHENTICATED) ? named : [...named, AUTHENTICATED];
  return { user: stringAt(user, 'username'), uid: stringAt(user, 'uid'), groups: all };
}

function refused(code: number, reason: string, message: string, details?: JsonObject): PageAccess {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
  return { kind: 'refused', status };
}
