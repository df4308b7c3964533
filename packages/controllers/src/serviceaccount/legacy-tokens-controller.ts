/**
 * Takes away tokens that Kubernetes before 1.24 made by itself for service accounts, once they
 * have not been used for a year: first a label tells the day from which they are refused, a year
 * later the Secret goes (upstream's legacy-serviceaccount-token-cleaner).
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import { ObjectCache } from '../framework/object-cache.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 1;
const DAY_MS = 86_400_000;
const TYPE = 'kubernetes.io/service-account-token';
const MARK = Buffer.from(`"${TYPE}"`);
const ACCOUNT = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';
const LAST_USED = 'kubernetes.io/legacy-token-last-used';
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
/** Since when the API servers write down which tokens are used. */
const TRACKING =
  '/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking';
/** Fields of a pod's spec whose `name` is that of a Secret. */
const REFERENCES: ReadonlySet<string> = new Set([
  'secretRef',
  'secretKeyRef',
  'nodePublishSecretRef',
  'secret',
]);

export interface LegacyTokensOptions extends ControllerContext {
  /** Without use for so long a token is marked, and so long after that deleted. */
  readonly cleanUpPeriodMs: number;
}

/** What is done with a token today. */
export type LegacyDeed = 'keep' | 'mark' | 'delete';

export class LegacyTokensController {
  readonly #client: Client;
  readonly #periodMs: number;
  readonly #workers: Workers<string>;
  readonly #secrets: ObjectCache;

  constructor({ client, informers, cleanUpPeriodMs, onError }: LegacyTokensOptions) {
    this.#client = client;
    this.#periodMs = cleanUpPeriodMs;
    const queue = informers.queues.queue('legacy_service_account_token_cleaner');
    this.#workers = new Workers(client.timers, WORKERS, () => this.#lookAtAll(), onError, queue);
    this.#secrets = new ObjectCache(
      informers,
      '/api/v1/secrets',
      () => {},
      () => {},
      (bytes) => bytes.includes(MARK),
    );
  }

  start(): void {
    this.#workers.add('all');
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #lookAtAll(): Promise<WorkResult> {
    const nowMs = this.#client.timers.wallMs();
    if (!(await this.#isTrackedFor(this.#periodMs, nowMs))) return { againMs: DAY_MS };
    const mounted = new Map<string, Promise<ReadonlySet<string> | undefined>>();
    for (const key of this.#secrets.keys()) {
      const secret = this.#secrets.get(key);
      if (secret === undefined) continue;
      const deed = legacyDeed(secret, nowMs, this.#periodMs);
      if (deed === 'keep' || !(await this.#isMadeByItself(secret))) continue;
      const namespace = stringAt(secret, 'metadata', 'namespace');
      const names = mounted.get(namespace) ?? this.#secretsOfPods(namespace);
      mounted.set(namespace, names);
      const isMounted = (await names)?.has(stringAt(secret, 'metadata', 'name')) ?? true;
      if (!isMounted) await this.#do(deed, secret, nowMs);
    }
    return { againMs: DAY_MS };
  }

  /** Uses before the day after tracking began may not have been written down. */
  async #isTrackedFor(periodMs: number, nowMs: number): Promise<boolean> {
    const answer = await this.#client.request({ method: 'GET', path: TRACKING });
    if (!answer.ok) return false;
    const sinceMs = dayMs(stringAt(answer.object, 'data', 'since'));
    return sinceMs !== undefined && nowMs >= sinceMs + DAY_MS + periodMs;
  }

  /** Those that users made are not named by their account. */
  async #isMadeByItself(secret: JsonObject): Promise<boolean> {
    const annotations = ['metadata', 'annotations'] as const;
    const account = stringAt(secret, ...annotations, ACCOUNT);
    if (account === '') return false;
    const namespace = stringAt(secret, 'metadata', 'namespace');
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}`;
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) return false;
    const uid = stringAt(secret, ...annotations, ACCOUNT_UID);
    if (uid !== '' && uid !== stringAt(answer.object, 'metadata', 'uid')) return false;
    const name = stringAt(secret, 'metadata', 'name');
    return listAt(answer.object, 'secrets').some((one) => stringAt(one, 'name') === name);
  }

  /** Undefined where they cannot be read: then all are taken for mounted. */
  async #secretsOfPods(namespace: string): Promise<ReadonlySet<string> | undefined> {
    const names = new Set<string>();
    const result = await readPages({
      client: this.#client,
      path: `/api/v1/namespaces/${namespace}/pods`,
      mustBeConsistent: true,
      onItem: (bytes, start, end) => {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        const pod = parseJson(text.toString('utf8')) as JsonObject;
        collectSecrets(pod['spec'], names);
      },
    });
    return result.ok ? names : undefined;
  }

  async #do(deed: 'mark' | 'delete', secret: JsonObject, nowMs: number): Promise<void> {
    const { namespace, name, uid, resourceVersion } = metadataOf(secret);
    const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
    if (deed === 'delete') {
      const body = { preconditions: { resourceVersion } };
      await this.#client.request({ method: 'DELETE', path, body });
      return;
    }
    const labels = { [INVALID_SINCE]: dayOf(nowMs) };
    const contentType = CONTENT.mergePatch;
    const body = { metadata: { uid, labels } };
    await this.#client.request({ method: 'PATCH', path, contentType, body });
  }
}

/** By its age and labels alone; a day that cannot be read keeps a token, or marks it anew. */
export function legacyDeed(secret: JsonObject, nowMs: number, periodMs: number): LegacyDeed {
  if (stringAt(secret, 'type') !== TYPE) return 'keep';
  if (stringAt(secret, 'metadata', 'deletionTimestamp') !== '') return 'keep';
  const madeMs = (parseTime(stringAt(secret, 'metadata', 'creationTimestamp'))?.seconds ?? 0) * 1e3;
  if (madeMs >= nowMs - periodMs) return 'keep';
  const sinceDay = dayOf(nowMs - periodMs);
  const used = stringAt(secret, 'metadata', 'labels', LAST_USED);
  if (used !== '' && (dayMs(used) === undefined || used >= sinceDay)) return 'keep';
  const invalid = stringAt(secret, 'metadata', 'labels', INVALID_SINCE);
  if (dayMs(invalid) === undefined) return 'mark';
  return invalid >= sinceDay ? 'keep' : 'delete';
}

function metadataOf(object: JsonObject): Record<string, string> {
  const fields = ['namespace', 'name', 'uid', 'resourceVersion'];
  return Object.fromEntries(fields.map((field) => [field, stringAt(object, 'metadata', field)]));
}

function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, '2026-01-31'.length);
}

/** The beginning of a day written `2026-01-31`. */
function dayMs(day: string): number | undefined {
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? parseTime(`${day}T00:00:00Z`) : undefined;
  return time === undefined ? undefined : time.seconds * 1000;
}

/** Names of the Secrets that a pod's spec needs, wherever they are named. */
function collectSecrets(value: JsonValue | undefined, names: Set<string>): void {
  if (Array.isArray(value)) for (const one of value) collectSecrets(one, names);
  if (!isObject(value)) return;
  for (const [field, inner] of Object.entries(value)) {
    if (field === 'secretName' && typeof inner === 'string') names.add(inner);
    if (REFERENCES.has(field)) names.add(stringAt(inner, 'name'));
    if (field === 'imagePullSecrets') {
      for (const one of listAt(value, field)) names.add(stringAt(one, 'name'));
    }
    collectSecrets(inner, names);
  }
}
