/** One request on its way through the server: what it asks, who asks, and how it is answered. */
import type { Owner } from '@megaplane/base/deferred';
import { ownMember, putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import { httpCode, statusBytes, type Status } from '@megaplane/machinery/status';
import type { Exchange } from '@megaplane/wire/exchange';
import { asksForGzip, gzipped, PACKED_FIELDS, PLAIN_BYTES_MAX } from './gzip-member.ts';
import type { Identity } from './identity.ts';
import {
  JSON_TYPE,
  negotiate,
  PLAIN_JSON,
  PROTOBUF_TYPE,
  UNROUTED_OFFER,
  YAML_TYPE,
  type Negotiated,
} from './negotiation.ts';
import { durationMs, type Query } from './query.ts';
import type { RequestRecord } from './request-record.ts';
import type { RequestInfo } from './request-info.ts';
import type { Sink } from '../sink/sink.ts';
import { indentedJson, yamlText } from './printed-text.ts';
import type { YamlReading } from './yaml-reading.ts';

const WARNINGS_RUNES_MAX = 4096;
const WARNING_RUNES_MAX = 256;

/** Programs whose answers upstream indents. */
const HUMAN_AGENT = /^(?:curl|Wget|Mozilla\/5\.0)/;

/** What Go reads as true; other parameters are read otherwise, see `Query.flag`. */
const GO_TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);

/** Codes that tell of what is stored; others tell of the request alone. */
const REFUSALS_OF_STATE: ReadonlySet<number> = new Set([403, 404, 409, 422, 429]);

/** Counts the bytes of answers. */
export interface AnswerSizes {
  addSize(bytes: number): void;
}

/** See `Call.watcher`. */
export interface CallWatcher {
  answered(call: Call): void;
  /** Told where there is a record: the answer was handed over. */
  ended(call: Call): void;
}

const NO_FIELDS: readonly string[] = [];
const lastings = new WeakMap<readonly string[], readonly string[]>();

/** Header fields of all answers of one flow: the same list each time, which the wire may keep. */
function lastingOf(flowFields: readonly string[]): readonly string[] {
  let fields = lastings.get(flowFields);
  if (fields === undefined) {
    fields = ['cache-control', 'no-cache, private', ...flowFields];
    lastings.set(flowFields, fields);
  }
  return fields;
}

interface EncodedStatus {
  readonly type: string;
  readonly bytes: Uint8Array | string;
  /** The client takes the type. */
  readonly isNegotiated: boolean;
}

const BROKE = 'This request caused apiserver to panic. Look in the logs for details.\n';

export class Call implements Owner {
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly query: Query;
  identity: Identity;
  readonly nowMs: number;
  readonly auditId: string;
  /** How the answer is encoded; JSON until the Accept header was read. */
  media: Negotiated = PLAIN_JSON;
  readonly #warnings: string[] = [];
  /** Who comes to own the fields that this request writes; set with the options of a write. */
  fieldManager = '';
  #code = 0;
  /** Told once, when the code of the answer is known. */
  watcher: CallWatcher | null = null;
  /** Told how long the answer is; set with its code where somebody counts. */
  sizes: AnswerSizes | null = null;
  /** Somebody serves what it asks for, and it may. */
  isRouted = false;
  /** Milliseconds that others took: webhooks, and those who were before it in a queue. */
  othersMs = 0;
  /** It is gone through to learn what such a write makes: nobody sent it, and nothing counts it. */
  isRehearsal = false;
  #sharedMs = 0;
  /** It counts among those in flight; the watcher's own. */
  isCounted = false;
  /** Its answer goes on after the code was given, until `done`. */
  isLasting = false;
  /** Told once, when the answer needs the server no longer; see `fairness/`. */
  onDone: (() => void) | null = null;
  /** Header fields that tell which flow the request belongs to. */
  flowFields: readonly string[] = NO_FIELDS;
  /** What the audit log keeps of the request; null: nothing. */
  record: RequestRecord | null = null;
  /** The Status that is answered, where it is of a type that the client takes. */
  refusal: Status | null = null;
  /** The mode by which the request acts as somebody else, for the audit log; '': none. */
  constraint = '';
  /** What parts of the server have to say about the request, for the audit log. */
  annotations: Record<string, string> | null = null;
  /**
   * Taken instead of a refusal that what is stored gave rise to, once: set where the storage is
   * shared and the refusal may rest on an old state.
   */
  retry: (() => void) | null = null;

  /** What the body says in YAML, or an applied one in JSON, where that was read before. */
  yaml: YamlReading | null = null;
  json: JsonValue | undefined;

  constructor(
    exchange: Exchange,
    info: RequestInfo,
    query: Query,
    identity: Identity,
    nowMs: number,
    auditId: string,
  ) {
    this.exchange = exchange;
    this.info = info;
    this.query = query;
    this.identity = identity;
    this.nowMs = nowMs;
    this.auditId = auditId;
  }

  /** Code of the answer; 0 until it is given. */
  get code(): number {
    return this.#code;
  }

  set code(code: number) {
    const isFirst = this.#code === 0;
    this.#code = code;
    if (!isFirst || code === 0) return;
    this.watcher?.answered(this);
    if (!this.isLasting) this.done();
  }

  /** The answer was handed over, or nobody waits for it any more; later calls do nothing. */
  done(): void {
    const { onDone } = this;
    this.onDone = null;
    onDone?.();
    if (this.record !== null) this.watcher?.ended(this);
  }

  /**
   * The server broke on it: 500 in the words of upstream, or an end where the answer has begun. All
   * that it held is given back, by what is told of its code and of its end.
   */
  broke(): void {
    const { exchange } = this;
    this.retry = null;
    try {
      if (this.#code === 0 && !exchange.closed) this.sendText(500, BROKE);
      else if (!exchange.closed) exchange.reset();
    } finally {
      if (this.#code === 0) this.code = exchange.closed ? 499 : 500;
      this.done();
    }
  }

  /** JSON is asked for indented: by the query, or by a program that people look at. */
  get isPretty(): boolean {
    const pretty = this.query.text('pretty');
    if (pretty !== '') return GO_TRUE.has(pretty);
    return HUMAN_AGENT.test(this.exchange.header('user-agent') ?? '');
  }

  /** How long the client gives the server, in milliseconds; 0 where it does not say. */
  get timeoutMs(): number {
    return durationMs(this.query.text('timeout')) ?? 0;
  }

  /** Others took so long; of those at once (`isShared`) the longest counts. */
  noteOthers(name: string, ms: number, isShared: boolean): void {
    this.othersMs += isShared ? Math.max(0, ms - this.#sharedMs) : ms;
    if (isShared) this.#sharedMs = Math.max(ms, this.#sharedMs);
    this.record?.noteLatency(name, ms, isShared);
  }

  /** Tells the audit log how long a part of the server takes: from now until `then` is called. */
  timed<Args extends unknown[]>(part: string, then: (...args: Args) => void): typeof then {
    const { record } = this;
    if (record === null) return then;
    const sinceMs = record.clockMs();
    return (...args) => {
      record.noteLatency(part, record.clockMs() - sinceMs, false);
      then(...args);
    };
  }

  /** Adds an annotation for the audit log; the first of a name stays. */
  annotate(name: string, value: string): void {
    this.annotations ??= {};
    if (ownMember(this.annotations, name) === undefined) putMember(this.annotations, name, value);
  }

  /** The body of the request; good until the handler returns, or for ever after `keepBody`. */
  get body(): Buffer {
    return this.exchange.body;
  }

  /** For answers that need the body in a later turn. */
  keepBody(): void {
    this.exchange.keepBody();
  }

  /** Adds a Warning header to the answer; doubles, and what no header can say, are dropped. */
  warn(text: string): void {
    if (text === '' || CONTROL.test(text) || this.#warnings.includes(text)) return;
    this.#warnings.push(text);
  }

  /** Headers of every answer, and those given. */
  headers(...more: readonly string[]): string[] {
    const fields = ['audit-id', this.auditId, 'cache-control', 'no-cache, private'];
    fields.push(...this.flowFields, ...more);
    for (const text of fittingWarnings(this.#warnings)) {
      const escaped = text.replaceAll(/["\\]/g, '\\$&');
      // the bytes of UTF-8, as upstream has them
      const bytes = Buffer.from(`299 - "${escaped}"`).toString('latin1');
      fields.push('warning', bytes);
    }
    return fields;
  }

  /** Answers with bytes as they are. */
  send(code: number, contentType: string | null, bytes: Uint8Array | string | null): void {
    if (bytes !== null) this.keepAnswer(bytes);
    const length = bytes === null ? 0 : lengthOf(bytes);
    if (bytes !== null && length > PLAIN_BYTES_MAX && this.#isPacked(contentType)) {
      this.#sendPacked(code, contentType, bytes);
      return;
    }
    this.code = code;
    this.sizes?.addSize(length);
    const { exchange } = this;
    if (this.#warnings.length > 0) exchange.respond(code, contentType, bytes, this.headers());
    else exchange.respond(code, contentType, bytes, this.#own(), lastingOf(this.flowFields));
  }

  /** The same with what a sink holds, which is the caller's again afterwards. */
  sendFrom(code: number, contentType: string, sink: Sink): void {
    if (this.record !== null) this.keepAnswer(sink.take());
    const { exchange } = this;
    const { bytes, length } = sink;
    if (length > PLAIN_BYTES_MAX && this.#isPacked(contentType)) {
      this.#sendPacked(code, contentType, bytes.subarray(0, length));
      return;
    }
    this.code = code;
    this.sizes?.addSize(length);
    if (this.#warnings.length > 0) {
      exchange.respondCopy(code, contentType, bytes, length, this.headers());
      return;
    }
    const lasting = lastingOf(this.flowFields);
    exchange.respondCopy(code, contentType, bytes, length, this.#own(), lasting);
  }

  /** Objects of that length are compressed for those who ask so; texts of other layers are not. */
  #isPacked(contentType: string | null): boolean {
    const isObject = contentType !== null && !contentType.startsWith('text/');
    return isObject && asksForGzip(this.exchange);
  }

  #sendPacked(code: number, contentType: string | null, bytes: Uint8Array | string): void {
    const packed = gzipped(bytes);
    this.code = code;
    this.sizes?.addSize(packed.length);
    this.exchange.respond(code, contentType, packed, this.headers(...PACKED_FIELDS));
  }

  /** Bytes of an answer, for the audit log. */
  keepAnswer(bytes: Uint8Array | string): void {
    const { record } = this;
    if (record?.keepsAnswer === true) record.keepAnswer(bytes);
  }

  /** Header fields that no other answer has. */
  #own(): string[] {
    return ['audit-id', this.auditId];
  }

  /** Answers with plain text, as the outer layers do. */
  sendText(code: number, text: string, more: readonly string[] = []): void {
    this.code = code;
    this.sizes?.addSize(lengthOf(text));
    const headers = this.headers('x-content-type-options', 'nosniff', ...more);
    this.exchange.respond(code, 'text/plain; charset=utf-8', text, headers);
  }

  /** Refuses what the identity may not do, with the field that upstream's filters add. */
  deny(status: Status): void {
    this.#fail(status, ['x-content-type-options', 'nosniff']);
  }

  /** Answers with a failure (or a success without an object). */
  fail(status: Status): void {
    this.#fail(status, []);
  }

  #fail(status: Status, fields: readonly string[]): void {
    const code = httpCode(status);
    const { retry: again } = this;
    if (again !== null && REFUSALS_OF_STATE.has(code)) {
      this.retry = null;
      again();
      return;
    }
    const retry = status.details?.retryAfterSeconds;
    const more = retry === undefined ? [...fields] : ['retry-after', String(retry), ...fields];
    const { type, bytes: plain, isNegotiated } = this.#encodeStatus(status);
    let bytes = plain;
    // upstream writes the others past its log
    if (isNegotiated) {
      this.refusal = status;
      this.keepAnswer(bytes);
    }
    if (lengthOf(bytes) > PLAIN_BYTES_MAX && this.#isPacked(type)) {
      bytes = gzipped(bytes);
      more.push(...PACKED_FIELDS);
    }
    this.code = code;
    this.sizes?.addSize(lengthOf(bytes));
    this.exchange.respond(this.code, type, bytes, this.headers(...more));
  }

  #encodeStatus(status: Status): EncodedStatus {
    const object = status as unknown as JsonObject;
    const accept = this.exchange.header('accept') ?? '';
    const asked = negotiate(accept, UNROUTED_OFFER, this.isPretty);
    // What fits nothing that the client takes is JSON for people, indented.
    if (!asked.ok) {
      return { type: JSON_TYPE, bytes: statusBytes(status, true), isNegotiated: false };
    }
    const { encoding, pretty } = asked.value;
    const isNegotiated = true;
    if (encoding === 'protobuf') {
      const bytes = encodeProtobuf(object);
      if (bytes !== undefined) return { type: PROTOBUF_TYPE, bytes, isNegotiated };
    }
    if (encoding === 'yaml') return { type: YAML_TYPE, bytes: yamlText(object), isNegotiated };
    return { type: JSON_TYPE, bytes: statusBytes(status, pretty), isNegotiated };
  }

  /** Answers with an object as it is, in the negotiated encoding, without any transform. */
  sendObject(code: number, object: JsonObject): void {
    if (object['kind'] === 'Status') this.refusal = object as unknown as Status;
    if (this.media.encoding === 'protobuf') {
      const bytes = encodeProtobuf(object);
      if (bytes !== undefined) {
        this.send(code, PROTOBUF_TYPE, bytes);
        return;
      }
    }
    if (this.media.encoding === 'yaml') this.send(code, YAML_TYPE, yamlText(object));
    else this.send(code, JSON_TYPE, jsonText(object, this.media.pretty));
  }
}

/** An object as JSON, as people or as programs read it. */
export function jsonText(object: JsonObject, pretty: boolean): string {
  return pretty ? indentedJson(object) : `${JSON.stringify(object)}\n`;
}

function lengthOf(bytes: Uint8Array | string): number {
  return typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length;
}

/** Characters that upstream's recorder lets no warning have. */
const CONTROL = /\p{Cc}/u;

/**
 * As many warnings as upstream's recorder sends: once they are too many together, each is cut, and
 * none is added to those that fill the bounds even so.
 */
export function fittingWarnings(warnings: readonly string[]): readonly string[] {
  let written = 0;
  const runes = warnings.map((text) => Array.from(text));
  const whole = runes.findIndex(({ length }) => (written += length) > WARNINGS_RUNES_MAX);
  if (whole < 0) return warnings;
  const cut = runes.map((own) => own.slice(0, WARNING_RUNES_MAX).join(''));
  written = 0;
  const last = runes.findIndex(({ length }, index) => {
    written += Math.min(length, WARNING_RUNES_MAX);
    return index >= whole && written >= WARNINGS_RUNES_MAX;
  });
  return last < 0 ? cut : cut.slice(0, last + 1);
}
