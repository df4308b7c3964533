/**
 * EventRateLimit: so many events a second, for the server, each namespace, each user, or each
 * source and object. What is beyond is told to come later. Off unless enabled.
 */
import {
  aggregate,
  fieldErrorText,
  invalidValue,
  notSupported,
  printed,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { tooManyRequests } from '@megaplane/machinery/status';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const VERSION = 'eventratelimit.admission.k8s.io/v1alpha1';
/** Buckets of one limit; the least recently used one is forgotten, and starts anew full. */
const BUCKETS_MAX = 4096;

/** Whose bucket an event takes from, by the type of the limit. */
const KEYS = {
  Namespace: ({ call }: Admitted) => call.info.namespace,
  Server: () => '',
  SourceAndObject: sourceAndObject,
  User: ({ call }: Admitted) => call.identity.user,
} as const satisfies Record<string, (write: Admitted) => string>;
type LimitType = keyof typeof KEYS;

function sourceAndObject({ object }: Admitted): string {
  const source = objectAt(object, 'source') ?? {};
  const about = objectAt(object, 'involvedObject') ?? {};
  return [
    ...['component', 'host'].map((field) => stringAt(source, field)),
    ...['kind', 'namespace', 'name', 'uid', 'apiVersion'].map((field) => stringAt(about, field)),
  ].join('');
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** Token buckets of one limit, the least recently used first. */
class Limit {
  readonly type: LimitType;
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #bucketsMax: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: JsonValue) {
    this.type = stringAt(limit, 'type') as LimitType;
    this.#perSecond = numberAt(limit, 'qps');
    this.#burst = numberAt(limit, 'burst');
    this.#bucketsMax = numberAt(limit, 'cacheSize') || BUCKETS_MAX;
  }

  takes(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? { tokens: this.#burst, atMs: nowMs };
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#bucketsMax) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const gained = (Math.max(0, nowMs - bucket.atMs) / 1000) * this.#perSecond;
    bucket.tokens = Math.min(this.#burst, bucket.tokens + gained);
    bucket.atMs = nowMs;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}

/** Throws an Error with all findings; no configuration at all is one without limits. */
function readLimits(configuration: JsonValue): Limit[] {
  if (configuration !== null && stringAt(configuration, 'apiVersion') !== VERSION) {
    throw new Error(`no kind is registered for ${stringAt(configuration, 'apiVersion')}`);
  }
  const limits = listAt(configuration, 'limits');
  const found: FieldError[] = [];
  if (limits.length === 0) {
    found.push(invalidValue('limits', printed('null'), 'must not be empty'));
  }
  for (const [index, limit] of limits.entries()) {
    const at = `limits[${index}]`;
    const type = stringAt(limit, 'type');
    if (!Object.hasOwn(KEYS, type)) found.push(notSupported(`${at}.type`, type, Object.keys(KEYS)));
    for (const field of ['burst', 'qps']) {
      const value = numberAt(limit, field);
      if (value <= 0) found.push(invalidValue(`${at}.${field}`, value, 'must be positive'));
    }
    const size = numberAt(limit, 'cacheSize');
    if (type !== 'Server' && size < 0) {
      found.push(invalidValue(`${at}.cacheSize`, size, 'must not be negative'));
    }
  }
  if (found.length > 0) throw new Error(aggregate(found.map(fieldErrorText)));
  return limits.map((limit) => new Limit(limit));
}

export function eventRateLimit(configuration: JsonValue): AdmissionPlugin {
  const limits = readLimits(configuration);
  return {
    name: 'EventRateLimit',
    // of the older group alone, as upstream
    handles: ({ resource }, operation) =>
      resource.group === '' &&
      resource.kind === 'Event' &&
      (operation === 'CREATE' || operation === 'UPDATE'),
    validate: (write) => {
      if (write.isDryRun) return null;
      const nowMs = write.world.edge.nowMs();
      // each limit takes its token, whatever the others say
      const texts = limits.flatMap((limit) => {
        const key = KEYS[limit.type](write);
        if (limit.takes(key, nowMs)) return [];
        return [`limit reached on type ${limit.type} for key ${key}`];
      });
      if (texts.length === 0) return null;
      const { details: _, ...status } = tooManyRequests(
        `Too many requests: ${aggregate(texts)}`,
        0,
      );
      return status;
    },
  };
}
