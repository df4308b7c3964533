/** Writes down requests as the policy says, in upstream's form (audit.k8s.io/v1 Event). */
import { isIP } from 'node:net';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { formatDuration, formatMicroTime } from '@megaplane/machinery/times';
import type { Call } from '../request/call.ts';
import { headerText, plainTarget } from '../request/header-text.ts';
import type { Identity } from '../request/identity.ts';
import { effectiveName, effectiveVerb } from '../request/request-terms.ts';
import { printFamily } from '../metrics/metric-families.ts';
import type { MetricsRegistry } from '../metrics/metrics-registry.ts';
import type { AuditBackend, Told } from './audit-backends.ts';
import { AuditEvent } from './audit-event.ts';
import { type AuditPolicy, type Level, type Stage } from './audit-policy.ts';
import { AuditRecord, withoutManagedFields, type Named } from './audit-record.ts';
import type { Auditor } from './auditor.ts';

/** Longer ones are cut, as upstream does. */
const AGENT_LENGTH_MAX = 1024;

/** From here on the parts of a request's time are told (upstream's `writeLatencyToAnnotation`). */
const SLOW_MS = 500;

/** Who is told that an event is kept, where nobody asks. */
const NOBODY_ASKS = (): void => {};

export class Audit implements Auditor {
  readonly #policy: AuditPolicy;
  readonly #backend: AuditBackend;
  readonly #nowMs: () => number;
  readonly clockMs: () => number;
  /** Requests by what the policy says of them. */
  readonly levels: Map<Level, number> = new Map();
  /** Events that were given to the backend. */
  #events = 0;
  /** Requests that could not be written down, and were refused for it. */
  #rejected = 0;
  /** Answers that have begun and go on. */
  readonly #lasting = new Set<Call>();

  /** `clockMs` never goes back and has fractions: parts of requests are measured by it. */
  constructor(
    policy: AuditPolicy,
    backend: AuditBackend,
    nowMs: () => number,
    clockMs: () => number,
  ) {
    this.clockMs = clockMs;
    this.#policy = policy;
    this.#backend = backend;
    this.#nowMs = nowMs;
  }

  received(call: Call, then: (isKept: boolean) => void): void {
    const record = this.#recordOf(call, call.identity);
    call.record = record;
    if (record === null || record.verdict.omitted.has('RequestReceived')) {
      then(true);
      return;
    }
    this.#write(call, 'RequestReceived', (isKept) => {
      if (!isKept) {
        this.#rejected++;
        call.record = null;
      }
      then(isKept);
    });
  }

  unauthenticated(call: Call): void {
    call.record = this.#recordOf(call, null);
  }

  refused(call: Call): void {
    this.#write(call, 'ResponseStarted');
  }

  #recordOf(call: Call, user: Identity | null): AuditRecord | null {
    const verdict = this.#policy.judge(call, user);
    this.levels.set(verdict.level, (this.levels.get(verdict.level) ?? 0) + 1);
    return verdict.level === 'None' ? null : new AuditRecord(verdict, user ?? NOBODY, this.clockMs);
  }

  started(call: Call): void {
    if (call.record === null) return;
    this.#write(call, 'ResponseStarted');
    if (call.code < 400) this.#lasting.add(call);
  }

  tick(): void {
    for (const call of this.#lasting) {
      if (!call.exchange.closed) continue;
      this.#lasting.delete(call);
      this.#write(call, 'ResponseComplete');
    }
  }

  complete(call: Call): void {
    if (!this.#lasting.has(call)) this.#write(call, 'ResponseComplete');
  }

  #write(call: Call, stage: Stage, told: Told = NOBODY_ASKS): void {
    const record = call.record instanceof AuditRecord ? call.record : null;
    if (record === null || record.verdict.omitted.has(stage)) return;
    const nowMs = this.#nowMs();
    if (stage === 'ResponseComplete') tellLatencies(call, record, nowMs);
    this.#events++;
    this.#backend.take([new AuditEvent(eventOf(call, stage, record, nowMs))], told);
  }

  /** Counts under upstream's names. */
  addTo(metrics: MetricsRegistry): void {
    metrics.addSource((lines) => {
      printFamily(lines, 'apiserver_audit_level_total');
      for (const [level, count] of this.levels) {
        lines.push(`apiserver_audit_level_total{level="${level}"} ${count}`);
      }
      printFamily(lines, 'apiserver_audit_event_total');
      lines.push(`apiserver_audit_event_total ${this.#events}`);
      printFamily(lines, 'apiserver_audit_requests_rejected_total');
      lines.push(`apiserver_audit_requests_rejected_total ${this.#rejected}`);
    });
  }
}

/** What of a slow request's time went where; watches are not measured. */
function tellLatencies(call: Call, record: AuditRecord, nowMs: number): void {
  const tookMs = nowMs - call.nowMs;
  if (tookMs <= SLOW_MS || effectiveVerb(call) === 'watch') return;
  const parts = [...record.latencies].filter(([, ms]) => ms > 0);
  for (const [name, ms] of [...parts, ['total', tookMs] as const]) {
    call.annotate(`apiserver.latency.k8s.io/${name}`, formatDuration(Math.round(ms * 1e6)));
  }
}

/** Who has not shown who they are. */
const NOBODY: Identity = { user: '', uid: '', groups: [], extra: {}, isMaster: false };

function eventOf(call: Call, stage: Stage, record: AuditRecord, nowMs: number): JsonObject {
  const { exchange, info } = call;
  const { user, verdict } = record;
  const isReceived = stage === 'RequestReceived';
  const event: JsonObject = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: verdict.level,
    auditID: call.auditId,
    stage,
    requestURI: plainTarget(exchange.path),
    verb: effectiveVerb(call),
    user: userOf(user),
  };
  if (user !== NOBODY && call.identity !== user && !isReceived) {
    event['impersonatedUser'] = userOf(call.identity);
    if (call.constraint !== '') {
      event['authenticationMetadata'] = { impersonationConstraint: call.constraint };
    }
  }
  event['sourceIPs'] = sourcesOf(call);
  const agent = headerText(exchange.header('user-agent') ?? '');
  if (agent !== '') event['userAgent'] = cutAgent(agent);
  if (info.isResource) event['objectRef'] = referenceOf(call, isReceived ? null : record.named);
  if (!isReceived) {
    event['responseStatus'] = statusOf(call);
    addObjects(event, call, record, stage);
  }
  event['requestReceivedTimestamp'] = microTime(call.nowMs);
  event['stageTimestamp'] = microTime(isReceived ? call.nowMs : nowMs);
  if (!isReceived && call.annotations !== null) event['annotations'] = { ...call.annotations };
  return event;
}

function cutAgent(agent: string): string {
  if (agent.length <= AGENT_LENGTH_MAX) return agent;
  return `${agent.slice(0, AGENT_LENGTH_MAX)}...TRUNCATED`;
}

function microTime(ms: number): string {
  return formatMicroTime(Math.floor(ms / 1000), (ms % 1000) * 1_000_000);
}

function userOf({ user: username, uid, groups, extra }: Identity): JsonObject {
  const user: JsonObject = {};
  if (username !== '') user['username'] = username;
  if (uid !== '') user['uid'] = uid;
  if (groups.length > 0) user['groups'] = [...groups];
  const values = Object.entries(extra).map(([key, own]): [string, string[]] => [key, [...own]]);
  if (values.length > 0) user['extra'] = Object.fromEntries(values);
  return user;
}

/** Addresses that proxies tell, then the one of the connection (upstream's SourceIPs). */
function sourcesOf({ exchange }: Call): JsonValue[] {
  const sources = (exchange.header('x-forwarded-for') ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => isIP(one) !== 0);
  const real = exchange.header('x-real-ip') ?? '';
  if (isIP(real) !== 0 && !sources.includes(real)) sources.push(real);
  const { remoteAddress } = exchange.connection;
  if (remoteAddress !== '' && sources.at(-1) !== remoteAddress) sources.push(remoteAddress);
  return sources;
}

/** What the path names, and what an object that was sent names beside it. */
function referenceOf(call: Call, named: Named | null): JsonObject {
  const { info } = call;
  const fields: Readonly<Record<string, string>> = {
    resource: info.resource,
    namespace: info.namespace || (named?.namespace ?? ''),
    name: effectiveName(call) || (named?.name ?? ''),
    uid: named?.uid ?? '',
    apiGroup: info.group,
    apiVersion: info.version,
    resourceVersion: named?.resourceVersion ?? '',
    subresource: info.subresource,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
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

function addObjects(event: JsonObject, call: Call, record: AuditRecord, stage: Stage): void {
  const { omitsManagedFields } = record.verdict;
  const shown = (value: JsonValue): JsonValue =>
    omitsManagedFields ? withoutManagedFields(value) : value;
  if (record.sent !== undefined) event['requestObject'] = shown(record.sent);
  if (!record.keepsAnswer || !isLogged(call, stage)) return;
  const answered = record.answered();
  if (answered !== undefined) event['responseObject'] = shown(answered);
}

/** Upstream writes its own documents past the log, and events of a watch never were in it. */
function isLogged({ info, refusal, code }: Call, stage: Stage): boolean {
  if (refusal !== null || code >= 400) return true;
  if (stage !== 'ResponseComplete') return false;
  return info.isResource || /^\/apis?(\/|$)/.test(info.path);
}
