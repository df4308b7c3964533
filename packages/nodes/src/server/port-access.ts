/**
 * Who may use the kubelets' port, by the rules of a real kubelet: a client certificate of the
 * cluster's authority or a bearer token says who asks (TokenReview), and a SubjectAccessReview on
 * `nodes/<subresource>` says whether they may.
 */
import { ownMember } from '@megaplane/base/members';
import type { Client } from '@megaplane/client/client';
import { bearerToken, MASTERS, Reviews, type Caller } from '@megaplane/client/reviews';
import { metricsRequest } from './metrics-api.ts';

/** Answers are kept so long, as kubelets do (authentication and authorization webhook TTLs). */
export const TOKEN_MS = 120_000;
export const ALLOWED_MS = 300_000;
export const DENIED_MS = 30_000;
/** What the connection and the request say about who asks. */
export interface Credentials {
  /** Subject of a certificate that the authority has signed; null without one. */
  readonly certificate: { readonly commonName: string; readonly groups: readonly string[] } | null;
  readonly authorization: string;
  /** For whom a front proxy asks; null where none does. */
  readonly proxied?: Caller | null;
}

export interface Attributes {
  /** `get`, `create`, ... */
  readonly verb: string;
  /** What is asked for, where it is no part of a node; null for discovery, which all may see. */
  readonly object?: {
    readonly group: string;
    readonly resource: string;
    readonly namespace: string;
    readonly name: string;
  } | null;
  /** `proxy`, `metrics`, `stats`, `log`, ...: to be allowed one of them is enough. */
  readonly subresources: readonly string[];
  /** The node; '' for requests that name none: then all nodes are meant. */
  readonly node: string;
}

export type Access =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly code: number; readonly text: string };

export class PortAccess {
  readonly #client: Client;
  readonly #reviews: Reviews;

  constructor(client: Client) {
    this.#client = client;
    const times = { tokenMs: TOKEN_MS, allowedMs: ALLOWED_MS, deniedMs: DENIED_MS };
    this.#reviews = new Reviews(times, () => client.timers.nowMs());
  }

  /** Whether the request is let in. Never rejects: what cannot be asked is refused. */
  async decide(credentials: Credentials, attributes: Attributes): Promise<Access> {
    try {
      const caller = await this.#caller(credentials);
      if (caller === null) return { kind: 'refused', code: 401, text: 'Unauthorized' };
      if (await this.#mayDo(caller, attributes)) return { kind: 'allowed' };
      const { verb, subresources } = attributes;
      const parts = `nodes, subresource(s)=[${subresources.join(' ')}]`;
      const what = `verb=${verb}, resource=${attributes.object?.resource ?? parts}`;
      const text = `Forbidden (user=${caller.user}, ${what})\n`;
      return { kind: 'refused', code: 403, text };
    } catch (error) {
      const text = `Authorization error: ${(error as Error).message}`;
      return { kind: 'refused', code: 500, text };
    }
  }

  async #caller({ certificate, authorization, proxied }: Credentials): Promise<Caller | null> {
    if (proxied !== undefined && proxied !== null) return proxied;
    if (certificate !== null) {
      return { user: certificate.commonName, uid: '', groups: certificate.groups };
    }
    const token = bearerToken(authorization);
    return token === undefined ? null : this.#reviews.callerOf(this.#client, token);
  }

  async #mayDo(caller: Caller, attributes: Attributes): Promise<boolean> {
    if (caller.groups.includes(MASTERS)) return true;
    const { verb, subresources, node, object } = attributes;
    if (object === null) return true;
    if (object !== undefined) {
      return this.#reviews.mayDo(this.#client, caller, { resourceAttributes: { verb, ...object } });
    }
    for (const subresource of subresources) {
      const nodes = { verb, resource: 'nodes', version: 'v1', subresource, name: node };
      if (await this.#reviews.mayDo(this.#client, caller, { resourceAttributes: nodes }))
        return true;
    }
    return false;
  }
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Which parts of a node paths belong to, as kubelets of 1.33 and later have it. */
const SUBRESOURCES: readonly (readonly [string, readonly string[]])[] = [
  ['/pods', ['pods', 'proxy']],
  ['/runningpods', ['pods', 'proxy']],
  ['/healthz', ['healthz', 'proxy']],
  ['/configz', ['configz', 'proxy']],
  ['/stats', ['stats']],
  ['/metrics', ['metrics']],
  ['/logs', ['log']],
  ['/checkpoint', ['checkpoint']],
  ['/statusz', ['statusz']],
  ['/flagz', ['configz']],
];

/** What a kubelet asks about for a request, by its method and path. */
export function attributesOf(method: string, path: string, node: string): Attributes {
  const verb = ownMember(VERBS, method) ?? '';
  const metrics = metricsRequest(path);
  if (metrics !== null) {
    const { resource, namespace, name } = metrics;
    if (resource === '') return { verb, subresources: [], node, object: null };
    const isList = verb === 'get' && name === '';
    const object = { group: 'metrics.k8s.io', resource, namespace, name };
    return { verb: isList ? 'list' : verb, subresources: [], node, object };
  }
  const found = SUBRESOURCES.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
  return { verb, subresources: found?.[1] ?? ['proxy'], node };
}
