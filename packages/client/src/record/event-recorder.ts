/**
 * Posts Events about objects, with client-go's rules against floods, in this order:
 *
 *   combine   the tenth and later different messages of one reason about one object within ten
 *             minutes share one Event, `(combined from similar events): ...`
 *   count     an event that was seen before raises the count of its Event (PATCH, not POST)
 *   drop      one object gets at most 25 of a type at once, then one in five minutes
 */
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { CONTENT, type Client } from '../rest/client.ts';
import { Lru } from '../cache/lru.ts';

const OBJECTS_MAX = 4096;
const SIMILAR_MAX = 10;
const SIMILAR_MS = 600_000;
const BURST_MAX = 25;
const REFILL_MS = 300_000;
const COMBINED = '(combined from similar events): ';
/** Longest message that the API server takes. */
const MESSAGE_CHARACTERS_MAX = 1024;

/** The object that an event is about. */
export interface EventSubject {
  readonly kind: string;
  readonly apiVersion: string;
  /** Empty for cluster-scoped objects, whose events go to `default`. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** The part of it that is meant, such as `spec.containers{web}`. */
  readonly fieldPath?: string;
}

export interface EventRecorderOptions {
  readonly client: Client;
  /** `source.component`, such as `default-scheduler`. */
  readonly component: string;
  /** `source.host`, unless an event has its own; left out when empty. */
  readonly host?: string;
}

export interface EventRecorder {
  /**
   * Records one event. Equal ones become one Event with a count; more than ten of the same reason
   * about one object within ten minutes are combined; more than 25 of a type per object, then one
   * per five minutes, are dropped. Never blocks and never fails: what cannot be posted is counted.
   */
  event(
    subject: EventSubject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    host?: string,
  ): void;
  readonly metrics: EventMetrics;
}

export interface EventMetrics {
  posted: number;
  combined: number;
  dropped: number;
  failed: number;
}

/** Tokens of one object; whole ones are spent, fractions come back with time. */
interface Allowance {
  tokens: number;
  atMs: number;
}

interface Similar {
  readonly messages: Set<string>;
  lastMs: number;
}

/** One Event object on the server. While a request for it is under way, changes are gathered. */
interface Posted {
  readonly namespace: string;
  readonly object: JsonObject;
  name: string;
  count: number;
  sentCount: number;
  lastTimestamp: string;
  isUnderWay: boolean;
}

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

class Recorder implements EventRecorder {
  readonly metrics: EventMetrics = { posted: 0, combined: 0, dropped: 0, failed: 0 };
  readonly #options: EventRecorderOptions;
  readonly #allowances = new Lru<Allowance>(OBJECTS_MAX);
  readonly #similar = new Lru<Similar>(OBJECTS_MAX);
  readonly #posted = new Lru<Posted>(OBJECTS_MAX);
  #serial = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  event(
    subject: EventSubject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    host: string = this.#options.host ?? '',
  ): void {
    const nowMs = this.#options.client.timers.nowMs();
    const { kind, apiVersion, namespace, name, uid = '' } = subject;
    const object = [kind, apiVersion, namespace, name, uid].join(' ');
    if (!this.#isAllowed(`${object} ${type}`, nowMs)) {
      this.metrics.dropped++;
      return;
    }
    const group = `${object} ${type} ${reason}`;
    const isCombined = this.#isOneOfMany(group, message, nowMs);
    if (isCombined) this.metrics.combined++;
    const shown = (isCombined ? COMBINED + message : message).slice(0, MESSAGE_CHARACTERS_MAX);
    // Combined events are one Event whatever their message; it shows the last one.
    const key = isCombined ? group : `${group} ${subject.fieldPath ?? ''} ${message}`;
    const wallMs = this.#options.client.timers.wallMs();
    const now = `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
    let posted = this.#posted.get(key);
    if (posted === undefined) {
      posted = this.#newEvent(subject, type, reason, now, host);
      // client-go's EventAggregate says only by `source` who combined them.
      if (isCombined)
        Object.assign(posted.object, { reportingComponent: '', reportingInstance: '' });
      this.#posted.set(key, posted);
    }
    posted.count++;
    posted.lastTimestamp = now;
    posted.object['message'] = shown;
    this.#sync(posted);
  }

  #isAllowed(object: string, nowMs: number): boolean {
    const allowance = this.#allowances.get(object) ?? { tokens: BURST_MAX, atMs: nowMs };
    const refilled = allowance.tokens + (nowMs - allowance.atMs) / REFILL_MS;
    allowance.tokens = Math.min(BURST_MAX, refilled);
    allowance.atMs = nowMs;
    this.#allowances.set(object, allowance);
    if (allowance.tokens < 1) return false;
    allowance.tokens--;
    return true;
  }

  #isOneOfMany(group: string, message: string, nowMs: number): boolean {
    let similar = this.#similar.get(group);
    if (similar === undefined || nowMs - similar.lastMs > SIMILAR_MS) {
      similar = { messages: new Set(), lastMs: nowMs };
      this.#similar.set(group, similar);
    }
    similar.lastMs = nowMs;
    if (similar.messages.size < SIMILAR_MAX) similar.messages.add(message);
    return similar.messages.size >= SIMILAR_MAX;
  }

  #newEvent(
    subject: EventSubject,
    type: string,
    reason: string,
    now: string,
    host: string,
  ): Posted {
    const { component } = this.#options;
    const namespace = subject.namespace === '' ? 'default' : subject.namespace;
    const object: JsonObject = {
      kind: 'Event',
      apiVersion: 'v1',
      metadata: {},
      involvedObject: { ...subject },
      reason,
      message: '',
      source: host === '' ? { component } : { component, host },
      firstTimestamp: now,
      type,
      reportingComponent: component,
      reportingInstance: host,
    };
    return {
      namespace,
      object,
      name: '',
      count: 0,
      sentCount: 0,
      lastTimestamp: now,
      isUnderWay: false,
    };
  }

  /** Brings the server's Event to the state of ours: POST the first time, then PATCH. */
  #sync(posted: Posted): void {
    if (posted.isUnderWay || posted.sentCount === posted.count) return;
    const { client } = this.#options;
    const path = `/api/v1/namespaces/${posted.namespace}/events`;
    const count = posted.count;
    const isNew = posted.name === '';
    const { lastTimestamp, object } = posted;
    if (isNew) {
      posted.name = this.#freshName(object);
      const metadata = { name: posted.name, namespace: posted.namespace };
      posted.object['metadata'] = metadata;
    }
    const body = isNew
      ? JSON.stringify({ ...object, lastTimestamp, count })
      : JSON.stringify({ message: object['message'] ?? '', lastTimestamp, count });
    const done = (status: number): void => this.#answered(posted, status, count, isNew);
    posted.isUnderWay = isNew
      ? client.send('POST', path, CONTENT.json, body, done)
      : client.send('PATCH', `${path}/${posted.name}`, CONTENT.strategicPatch, body, done);
    if (posted.isUnderWay) return;
    this.metrics.failed++;
    if (isNew) posted.name = '';
  }

  #answered(posted: Posted, status: number, count: number, isNew: boolean): void {
    posted.isUnderWay = false;
    if (status >= 200 && status < 300) {
      this.metrics.posted++;
      posted.sentCount = count;
      return this.#sync(posted);
    }
    // Events live for an hour; one that has expired is posted anew.
    if (isNew || status === 404) posted.name = '';
    if (!isNew && status === 404) return this.#sync(posted);
    this.metrics.failed++;
    return undefined;
  }

  /** Upstream's form: the object's name, a dot, and the time in nanoseconds as hexadecimal. */
  #freshName(object: JsonObject): string {
    const nanoseconds = BigInt(Math.floor(this.#options.client.timers.wallMs())) * 1_000_000n;
    this.#serial = (this.#serial + 1) % 1_000_000;
    const stamp = (nanoseconds + BigInt(this.#serial)).toString(16);
    return `${stringAt(object, 'involvedObject', 'name')}.${stamp}`;
  }
}
