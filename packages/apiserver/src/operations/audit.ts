/** Writes down requests as the policy says, in upstream's form (audit.k8s.io/v1 Event). */
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { formatMicroTime } from '@megaplane/machinery/times';
import type { Call } from '../call.ts';
import type { Identity } from '../identity.ts';
import type { AuditPolicy, Level, Stage, Verdict } from './audit-policy.ts';
import { verbOf } from './long-running.ts';
import type { Auditor } from './request-tracker.ts';

/** Bodies above this are left out of events. */
const OBJECT_BYTES_MAX: number = 1536 * 1024;

/** Takes one line for each event. */
export type AuditSink = (line: string) => void;

interface Kept {
  readonly verdict: Verdict;
  /** Who sent it, before any impersonation. */
  readonly user: Identity;
}

export class Audit implements Auditor {
  readonly #policy: AuditPolicy;
  readonly #sink: AuditSink;
  readonly #nowMs: () => number;
  readonly #kept = new WeakMap<Call, Kept>();
  /** Answers that have begun and go on. */
  readonly #lasting = new Set<Call>();

  constructor(policy: AuditPolicy, sink: AuditSink, nowMs: () => number) {
    this.#policy = policy;
    this.#sink = sink;
    this.#nowMs = nowMs;
  }

  received(call: Call): void {
    const verdict = this.#policy.judge(call);
    if (verdict.level === 'None') return;
    this.#kept.set(call, { verdict, user: call.identity });
    if (verdict.level === 'Request' || verdict.level === 'RequestResponse') call.keepBody();
    if (verdict.level === 'RequestResponse') call.keepsAnswer = true;
    this.#write(call, 'RequestReceived');
  }

  started(call: Call): void {
    if (!this.#kept.has(call)) return;
    this.#write(call, 'ResponseStarted');
    this.#lasting.add(call);
  }

  tick(): void {
    for (const call of this.#lasting) {
      if (!call.exchange.closed) continue;
      this.#lasting.delete(call);
      this.#write(call, 'ResponseComplete');
    }
  }

  complete(call: Call): void {
    this.#write(call, 'ResponseComplete');
  }

  #write(call: Call, stage: Stage): void {
    const kept = this.#kept.get(call);
    if (kept === undefined || kept.verdict.omitted.has(stage)) return;
    this.#sink(`${JSON.stringify(eventOf(call, stage, kept, this.#nowMs()))}\n`);
  }
}

function eventOf(call: Call, stage: Stage, { verdict, user }: Kept, nowMs: number): JsonObject {
  const { exchange, info } = call;
  const event: JsonObject = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: verdict.level,
    auditID: call.auditId,
    stage,
    requestURI: exchange.path,
    verb: verbOf(call),
    user: userOf(user),
  };
  if (call.identity !== user && stage !== 'RequestReceived') {
    event['impersonatedUser'] = userOf(call.identity);
    if (call.constraint !== '') {
      event['authenticationMetadata'] = { impersonationConstraint: call.constraint };
    }
  }
  event['sourceIPs'] = sourcesOf(call);
  const agent = exchange.header('user-agent');
  if (agent !== undefined) event['userAgent'] = agent;
  if (info.isResource) event['objectRef'] = referenceOf(call);
  if (stage !== 'RequestReceived') {
    event['responseStatus'] = statusOf(call);
    addObjects(event, call, verdict, stage);
  }
  event['requestReceivedTimestamp'] = microTime(call.nowMs);
  event['stageTimestamp'] = microTime(nowMs);
  if (stage !== 'RequestReceived' && call.annotations !== null) {
    event['annotations'] = { ...call.annotations };
  }
  return event;
}

function microTime(ms: number): string {
  return formatMicroTime(Math.floor(ms / 1000), (ms % 1000) * 1_000_000);
}

function userOf({ user: username, uid, groups, extra }: Identity): JsonObject {
  const user: JsonObject = { username };
  if (uid !== '') user['uid'] = uid;
  if (groups.length > 0) user['groups'] = [...groups];
  const values = Object.entries(extra).map(([key, own]): [string, string[]] => [key, [...own]]);
  if (values.length > 0) user['extra'] = Object.fromEntries(values);
  return user;
}

function sourcesOf({ exchange }: Call): JsonValue[] {
  const forwarded = (exchange.header('x-forwarded-for') ?? '').split(',');
  const sources = [...forwarded, exchange.connection.remoteAddress].map((one) => one.trim());
  return [...new Set(sources.filter((one) => one !== ''))];
}

function referenceOf({ info }: Call): JsonObject {
  const reference: JsonObject = { resource: info.resource };
  if (info.namespace !== '') reference['namespace'] = info.namespace;
  if (info.name !== '') reference['name'] = info.name;
  if (info.group !== '') reference['apiGroup'] = info.group;
  reference['apiVersion'] = info.version;
  if (info.subresource !== '') reference['subresource'] = info.subresource;
  return reference;
}

function statusOf({ code, refusal }: Call): JsonObject {
  if (refusal === null) return { metadata: {}, code };
  const { status, message, reason, details } = refusal as unknown as JsonObject;
  const found: JsonObject = { metadata: {}, status: status ?? 'Failure' };
  if (message !== undefined) found['message'] = message;
  if (reason !== undefined) found['reason'] = reason;
  if (details !== undefined) found['details'] = details;
  found['code'] = code;
  return found;
}

const WITH_REQUEST: ReadonlySet<Level> = new Set(['Request', 'RequestResponse']);

function addObjects(event: JsonObject, call: Call, verdict: Verdict, stage: Stage): void {
  if (!call.info.isResource || !WITH_REQUEST.has(verdict.level)) return;
  const sent = objectIn(call.body, verdict);
  if (sent !== null) event['requestObject'] = sent;
  if (verdict.level !== 'RequestResponse' || stage !== 'ResponseComplete') return;
  const answered = call.answer === null ? null : objectIn(Buffer.from(call.answer), verdict);
  if (answered !== null) event['responseObject'] = answered;
}

/** JSON bodies only: the form of an object in protobuf is not one that people read. */
function objectIn(bytes: Buffer, { omitsManagedFields }: Verdict): JsonObject | null {
  if (bytes.length === 0 || bytes.length > OBJECT_BYTES_MAX || bytes[0] !== 0x7b) return null;
  try {
    const value = JSON.parse(bytes.toString('utf8')) as JsonValue;
    if (!isObject(value)) return null;
    const metadata = value['metadata'];
    if (omitsManagedFields && isObject(metadata)) delete metadata['managedFields'];
    return value;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
