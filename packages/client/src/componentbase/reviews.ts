/**
 * Asks an API server who somebody is and what they may do, and keeps the answers for a while: what
 * programs that delegate their authentication and authorization share.
 */
import { stringAt, valueAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Client } from '../rest/client.ts';

/** Answers kept at once, of either kind; the oldest goes first. */
const KEPT_MAX = 1000;
/** Members of it may do everything on every server: nobody has to be asked. */
export const MASTERS = 'system:masters';

export interface Caller {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** For how long answers are kept. */
export interface ReviewTimes {
  readonly tokenMs: number;
  readonly allowedMs: number;
  readonly deniedMs: number;
}

interface Kept<Value> {
  readonly value: Value;
  readonly untilMs: number;
}

export class Reviews {
  readonly #times: ReviewTimes;
  readonly #nowMs: () => number;
  readonly #callers: Map<string, Kept<Caller | null>> = new Map();
  readonly #decisions: Map<string, Kept<boolean>> = new Map();

  constructor(times: ReviewTimes, nowMs: () => number) {
    this.#times = times;
    this.#nowMs = nowMs;
  }

  /** Whose token it is (TokenReview); null: nobody's. Rejects where nobody answers. */
  async callerOf(client: Client, token: string): Promise<Caller | null> {
    const kept = this.#kept(this.#callers, token);
    if (kept !== undefined) return kept;
    const path = '/apis/authentication.k8s.io/v1/tokenreviews';
    const group = 'authentication.k8s.io/v1';
    const status = await review(client, path, group, 'TokenReview', { token });
    const isKnown = valueAt(status, 'authenticated') === true;
    const caller = isKnown ? callerIn(valueAt(status, 'user')) : null;
    this.#keep(this.#callers, token, caller, this.#times.tokenMs);
    return caller;
  }

  /**
   * Whether the caller may do it (SubjectAccessReview); `attributes` are those of its spec, for
   * resources or for others. Rejects where nobody answers.
   */
  async mayDo(client: Client, caller: Caller, attributes: JsonObject): Promise<boolean> {
    const { user, uid, groups } = caller;
    const key = JSON.stringify([user, uid, groups, attributes]);
    const kept = this.#kept(this.#decisions, key);
    if (kept !== undefined) return kept;
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const spec = { user, uid, groups: [...groups], ...attributes };
    const group = 'authorization.k8s.io/v1';
    const status = await review(client, path, group, 'SubjectAccessReview', spec);
    const isAllowed = valueAt(status, 'allowed') === true;
    const { allowedMs, deniedMs } = this.#times;
    this.#keep(this.#decisions, key, isAllowed, isAllowed ? allowedMs : deniedMs);
    return isAllowed;
  }

  #kept<Value>(map: ReadonlyMap<string, Kept<Value>>, key: string): Value | undefined {
    const kept = map.get(key);
    return kept !== undefined && kept.untilMs > this.#nowMs() ? kept.value : undefined;
  }

  #keep<Value>(map: Map<string, Kept<Value>>, key: string, value: Value, forMs: number): void {
    map.delete(key);
    if (map.size >= KEPT_MAX) map.delete(map.keys().next().value ?? '');
    map.set(key, { value, untilMs: this.#nowMs() + forMs });
  }
}

/** The token of an `Authorization: Bearer` header; undefined where there is none. */
export function bearerToken(authorization: string): string | undefined {
  return /^bearer\s+(\S+)$/i.exec(authorization)?.[1];
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

function callerIn(user: JsonValue | undefined): Caller {
  const groups = isObject(user) && Array.isArray(user['groups']) ? user['groups'] : [];
  return {
    user: stringAt(user, 'username'),
    uid: stringAt(user, 'uid'),
    groups: groups.filter((group) => typeof group === 'string'),
  };
}
