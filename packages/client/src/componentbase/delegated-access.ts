/**
 * Who may ask a program for its pages, as k8s.io/apiserver's delegating options decide it: a
 * client certificate or a token says who asks (TokenReview), and a SubjectAccessReview on the path
 * whether they may. Nobody in particular is `system:anonymous`.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Client } from '../rest/client.ts';
import { bearerToken, MASTERS, Reviews, type Caller, type ReviewTimes } from './reviews.ts';

export interface AccessOptions extends ReviewTimes {
  /** Asked who somebody is; null: tokens say nothing. */
  readonly authentication: Client | null;
  /** Asked who may do what; null: nobody but masters may, beyond `alwaysAllowed`. */
  readonly authorization: Client | null;
  /** Paths that all may see whose credentials are not wrong; `*` at the end stands for the rest. */
  readonly alwaysAllowed: readonly string[];
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

const ALLOWED: PageAccess = { kind: 'allowed' };
const AUTHENTICATED = 'system:authenticated';
const ANONYMOUS: Caller = {
  user: 'system:anonymous',
  uid: '',
  groups: ['system:unauthenticated'],
};

export class DelegatedAccess {
  readonly #options: AccessOptions;
  readonly #reviews: Reviews;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#reviews = new Reviews(options, options.nowMs);
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
    const token = bearerToken(authorization);
    const { authentication } = this.#options;
    if (token === undefined || authentication === null) return ANONYMOUS;
    const caller = await this.#reviews.callerOf(authentication, token);
    if (caller === null || caller.groups.includes(AUTHENTICATED)) return caller;
    return { ...caller, groups: [...caller.groups, AUTHENTICATED] };
  }

  async #mayDo(caller: Caller, verb: string, path: string): Promise<boolean> {
    const { authorization } = this.#options;
    if (caller.groups.includes(MASTERS)) return true;
    if (authorization === null) return false;
    return this.#reviews.mayDo(authorization, caller, { nonResourceAttributes: { path, verb } });
  }
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
