/**
 * Who may use the kubelets' port, by the rules of a real kubelet: a client certificate of the
 * cluster's authority or a bearer token says who asks (TokenReview), and a SubjectAccessReview on
 * `nodes/<subresource>` says whether they may.
 */
import type { Client } from '@megaplane/client/client';
import { stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { metricsRequest } from './metrics-api.ts';

/** Answers are kept so long, as kubelets do (authentication and authorization webhook TTLs). */
export const TOKEN_MS = 120_000;
export const ALLOWED_MS = 300_000;
export const DENIED_MS = 30_000;
/** Answers kept at once; the oldest goes first. */
const KEPT_MAX = 1000;

/** Members of it may do everything on every server: nobody has to be asked. */
const MASTERS = 'system:masters';

export interface Caller {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

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
  /** `proxy`, `metrics`, `stats`, `log`, ... */
  readonly subresource: string;
  /** The node; '' for requests that name none: then all nodes are meant. */
  readonly node: string;
}

interface Kept<Value> {
  readonly value: Value;
  readonly untilMs: number;
}

export type Access =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly code: number; readonly text: string };

export class PortAccess {
  readonly #client: Client;
  readonly #callers: Map<string, Kept<Caller | null>> = new Map();
  readonly #decisions: Map<string, Kept<boolean>> = new Map();

  constructor(client: Client) {
    this.#client = client;
  }

  /** Whether the request is let in. Never rejects: what cannot be asked is refused. */
  async decide(credentials: Credentials, attributes: Attributes): Promise<Access> {
    try {
      const caller = await this.#caller(credentials);
      if (caller === null) return { kind: 'refused', code: 401, text: 'Unauthorized' };
      if (await this.#mayDo(caller, attributes)) return { kind: 'allowed' };
      const { verb, subresource } = attributes;
      const of = attributes.object?.resource ?? `nodes, subresource=${subresource}`;
      const what = `verb=${verb}, resource=${of}`;
      const text = `Forbidden (user=${caller.user}, ${what})`;
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
    const token = /^bearer\s+(\S+)$/i.exec(authorization)?.[1];
    if (token === undefined) return null;
    const kept = this.#kept(this.#callers, token);
    if (kept !== undefined) return kept;
    const status = await this.#review('/apis/authentication.k8s.io/v1/tokenreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token },
    });
    const isKnown = valueAt(status, 'authenticated') === true;
    const caller = isKnown ? callerOf(valueAt(status, 'user')) : null;
    this.#keep(this.#callers, token, caller, TOKEN_MS);
    return caller;
  }

  async #mayDo({ user, uid, groups }: Caller, attributes: Attributes): Promise<boolean> {
    if (groups.includes(MASTERS)) return true;
    const { verb, subresource, node, object } = attributes;
    if (object === null) return true;
    const key = JSON.stringify([user, uid, groups, verb, subresource, node, object]);
    const kept = this.#kept(this.#decisions, key);
    if (kept !== undefined) return kept;
    const resourceAttributes =
      object === undefined
        ? { verb, resource: 'nodes', version: 'v1', subresource, name: node }
        : { verb, ...object };
    const status = await this.#review('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, uid, groups: [...groups], resourceAttributes },
    });
    const isAllowed = valueAt(status, 'allowed') === true;
    this.#keep(this.#decisions, key, isAllowed, isAllowed ? ALLOWED_MS : DENIED_MS);
    return isAllowed;
  }

  async #review(path: string, body: JsonObject): Promise<JsonValue> {
    const answer = await this.#client.request({ method: 'POST', path, body });
    if (!answer.ok) throw new Error(answer.status.message ?? `${path}: ${answer.code}`);
    return answer.object['status'] ?? null;
  }

  #kept<Value>(map: ReadonlyMap<string, Kept<Value>>, key: string): Value | undefined {
    const kept = map.get(key);
    return kept !== undefined && kept.untilMs > this.#client.timers.nowMs()
      ? kept.value
      : undefined;
  }

  #keep<Value>(map: Map<string, Kept<Value>>, key: string, value: Value, forMs: number): void {
    map.delete(key);
    if (map.size >= KEPT_MAX) map.delete(map.keys().next().value ?? '');
    map.set(key, { value, untilMs: this.#client.timers.nowMs() + forMs });
  }
}

function callerOf(user: JsonValue | undefined): Caller {
  const groups = isObject(user) && Array.isArray(user['groups']) ? user['groups'] : [];
  return {
    user: stringAt(user, 'username'),
    uid: stringAt(user, 'uid'),
    groups: groups.filter((group) => typeof group === 'string'),
  };
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** What a kubelet asks about for a request, by its method and path. */
export function attributesOf(method: string, path: string, node: string): Attributes {
  const verb = VERBS[method] ?? '';
  const metrics = metricsRequest(path);
  if (metrics !== null) {
    const { resource, namespace, name } = metrics;
    if (resource === '') return { verb, subresource: '', node, object: null };
    const isList = verb === 'get' && name === '';
    const object = { group: 'metrics.k8s.io', resource, namespace, name };
    return { verb: isList ? 'list' : verb, subresource: '', node, object };
  }
  const known = [
    ['/stats', 'stats'],
    ['/metrics', 'metrics'],
    ['/logs', 'log'],
    ['/spec', 'spec'],
  ] as const;
  const found = known.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
  return { verb, subresource: found?.[1] ?? 'proxy', node };
}
