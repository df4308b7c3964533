/**
 * Who may ask a component's own port for a path, as k8s.io/apiserver's delegated authentication and
 * authorization have it: the API server says whose token it is (TokenReview) and whether they may
 * (SubjectAccessReview). Without a token it is `system:anonymous` who asks.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Client, ClientResponse } from './client.ts';

/** Answers are kept so long, the default of both of upstream's caches. */
const KEPT_MS = 10_000;
const KEPT_MAX = 1_000;

export type Verdict =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly code: 401 | 403 | 500; readonly text: string };

interface Caller {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

const ANONYMOUS: Caller = { user: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] };
const ALLOWED: Verdict = { kind: 'allowed' };

export class DelegatedAccess {
  readonly #client: Client;
  readonly #openPaths: readonly string[];
  readonly #kept: Map<string, { readonly verdict: Verdict; readonly untilMs: number }> = new Map();

  /** `openPaths` are for all; one that ends with `*` stands for those that begin so. */
  constructor(client: Client, openPaths: readonly string[]) {
    this.#client = client;
    this.#openPaths = openPaths;
  }

  /** Never rejects: what cannot be asked is refused. */
  async decide(path: string, verb: string, authorization: string): Promise<Verdict> {
    if (this.#openPaths.some((one) => isOf(path, one))) return ALLOWED;
    const key = JSON.stringify([path, verb, authorization]);
    const nowMs = this.#client.timers.nowMs();
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.untilMs > nowMs) return kept.verdict;
    const verdict = await this.#ask(path, verb, authorization);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
    if (verdict.kind === 'allowed' || verdict.code !== 500) {
      this.#kept.set(key, { verdict, untilMs: nowMs + KEPT_MS });
    }
    return verdict;
  }

  async #ask(path: string, verb: string, authorization: string): Promise<Verdict> {
    const token = /^bearer\s+(\S+)$/i.exec(authorization)?.[1];
    let caller = ANONYMOUS;
    if (token !== undefined) {
      const found = await this.#callerOf(token);
      if (found === undefined) return { kind: 'refused', code: 401, text: 'Unauthorized' };
      caller = found;
    }
    const { user, uid, groups } = caller;
    const nonResourceAttributes = { path, verb };
    const answer = await this.#review('authorization.k8s.io', 'SubjectAccessReview', {
      user,
      uid,
      groups: [...groups],
      nonResourceAttributes,
    });
    if (!answer.ok) {
      const text = `Internal Server Error: ${JSON.stringify(path)}: ${answer.status.message ?? ''}`;
      return { kind: 'refused', code: 500, text };
    }
    if (objectAt(answer.object, 'status')?.['allowed'] === true) return ALLOWED;
    const what = `${verb} path ${JSON.stringify(path)}`;
    const text = `forbidden: User ${JSON.stringify(user)} cannot ${what}`;
    return { kind: 'refused', code: 403, text };
  }

  async #callerOf(token: string): Promise<Caller | undefined> {
    const answer = await this.#review('authentication.k8s.io', 'TokenReview', { token });
    const status = answer.ok ? objectAt(answer.object, 'status') : undefined;
    if (status?.['authenticated'] !== true) return undefined;
    const groups = listAt(status, 'user', 'groups').filter((one) => typeof one === 'string');
    return {
      user: stringAt(status, 'user', 'username'),
      uid: stringAt(status, 'user', 'uid'),
      groups,
    };
  }

  #review(group: string, kind: string, spec: JsonObject): Promise<ClientResponse> {
    const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
    const body = { apiVersion: `${group}/v1`, kind, spec };
    return this.#client.request({ method: 'POST', path, body });
  }
}

function isOf(path: string, open: string): boolean {
  return open.endsWith('*') ? path.startsWith(open.slice(0, -1)) : path === open;
}
