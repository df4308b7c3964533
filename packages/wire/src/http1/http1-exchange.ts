/**
 * One request over HTTP/1.1 and its answer.
 *
 * Answers leave in the order of the requests. The exchange whose turn it is writes straight into
 * the output of the connection; those behind it write into an output of their own, which is moved
 * over when their turn comes.
 */
import { blame } from '@megaplane/base/deferred';
import { STATUS_CODES } from 'node:http';
import { assert } from '@megaplane/base/assert';
import type { CloseReason, Connection, Exchange, UpgradedStream } from '../http/exchange.ts';
import type { Http1Head } from './http1-head.ts';
import { fieldLines, Http1Output } from './http1-output.ts';
import { hasDate } from '../http/response-date.ts';
import { STREAM_QUEUE_BYTES_MAX } from '../limits.ts';
import type { FieldList } from '../fields.ts';

const EMPTY = Buffer.alloc(0);
const LAST_CHUNK = '0\r\n';
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What an exchange asks of the connection that carries it. */
export interface ExchangeHost extends Connection {
  readonly output: Http1Output;
  /** The line that tells the time, '' where nobody does. */
  dateLine(): string;
  /** Octets that the connection would take now. */
  budget(): number;
  /** Something was written, or a held-up reader may go on. */
  changed(): void;
  /** The answer is complete in the output; the next exchange has its turn if this one had it. */
  finished(exchange: Http1Exchange): void;
  /** Whether no request is read after this one. */
  isLast(exchange: Http1Exchange): boolean;
  cut(): void;
  beginUpgrade(): UpgradedStream;
}

/** `waiting` for an answer, `open` while one is written, `answered`, `closed` by any cause. */
type AnswerState = 'waiting' | 'open' | 'answered' | 'closed';

export class Http1Exchange implements Exchange {
  readonly connection: Connection;
  readonly method: string;
  readonly path: string;
  readonly upgradeProtocol: string | undefined;
  body: Buffer = EMPTY;
  onBody: ((bytes: Buffer, start: number, end: number) => void) | null = null;
  onBodyEnd: (() => void) | null = null;
  onWritable: (() => void) | null = null;
  onClose: ((reason: CloseReason) => void) | null = null;
  onHalfClose: (() => void) | null = null;
  /** Whether its turn has come. */
  isFirst = false;
  /** The connection ends after this answer. */
  closesAfter: boolean;
  /** The client waits for `100 Continue` before it sends the body. */
  awaitsContinue: boolean;
  isBodyPaused = false;
  /** Its producer was told to wait. */
  wantsWritable = false;
  /** Whether the handler has seen it. */
  isHandled = false;
  /** The client said that it sends no further request. */
  readonly isLastRequest: boolean;
  readonly #host: ExchangeHost;
  #head: Http1Head;
  #isHeadKept = false;
  #isBodyBorrowed = false;
  #state: AnswerState = 'waiting';
  #isChunked = false;
  #isContinueDue = false;
  #own: Http1Output | null = null;
  readonly #minor: number;

  constructor(host: ExchangeHost, head: Http1Head, hasBody: boolean) {
    this.#host = host;
    this.connection = host;
    this.#head = head;
    this.#minor = head.minor;
    this.method = head.method();
    this.path = head.target();
    this.isLastRequest = !head.isPersistent;
    this.closesAfter = this.isLastRequest;
    this.awaitsContinue = head.expectsContinue && hasBody && head.minor === 1;
    const isUpgrade =
      head.upgradeField >= 0 && head.hasUpgradeToken && !hasBody && head.minor === 1;
    this.upgradeProtocol = isUpgrade ? head.value(head.upgradeField).toLowerCase() : undefined;
  }

  get authority(): string {
    return this.#head.find('host') ?? '';
  }

  get closed(): boolean {
    return this.#state === 'answered' || this.#state === 'closed';
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  header(name: string): string | undefined {
    return HOP_BY_HOP.has(name) ? undefined : this.#head.find(name);
  }

  fields(): FieldList {
    const fields: string[] = [];
    for (let field = 0; field < this.#head.fieldCount; field++) {
      const name = this.#head.name(field);
      if (!HOP_BY_HOP.has(name)) fields.push(name, this.#head.value(field));
    }
    return fields;
  }

  /** For the session, around the handler. */
  lendBody(bytes: Buffer, isBorrowed: boolean): void {
    this.body = bytes;
    this.#isBodyBorrowed = isBorrowed;
  }

  keepBody(): Buffer {
    if (this.#isBodyBorrowed) this.lendBody(Buffer.from(this.body), false);
    return this.body;
  }

  /** True if the handler took no copy: the session takes the view back. */
  get isBodyBorrowed(): boolean {
    return this.#isBodyBorrowed;
  }

  /** Makes the head outlive the chunk that it came in. */
  keepHead(): void {
    if (this.#isHeadKept) return;
    this.#head = this.#head.keep();
    this.#isHeadKept = true;
  }

  pauseBody(): void {
    this.isBodyPaused = true;
  }

  resumeBody(): void {
    this.isBodyPaused = false;
    this.#host.changed();
  }

  #output(): Http1Output {
    if (this.isFirst) return this.#host.output;
    this.#own ??= new Http1Output();
    return this.#own;
  }

  /** Its turn has come: what was written meanwhile moves to the connection. */
  becomeFirst(): void {
    this.isFirst = true;
    if (this.#isContinueDue && this.#state === 'waiting') this.askForBody();
    if (this.#own !== null) this.#host.output.putAll(this.#own);
    this.#own = null;
    if (this.#state === 'answered') this.#settle();
  }

  /** The whole answer is in the connection's output. */
  #settle(): void {
    this.#state = 'closed';
    this.onClose = null;
  }

  /** Sends `100 Continue` if the client waits for it, as soon as its turn has come. */
  askForBody(): void {
    if (!this.awaitsContinue || this.closed) return;
    this.#isContinueDue = !this.isFirst;
    if (this.#isContinueDue) return;
    this.awaitsContinue = false;
    this.#host.output.putText('HTTP/1.1 100 Continue\r\n\r\n');
    this.#host.changed();
  }

  #putHead(status: number, contentType: string | null, headers: FieldList, framing: string): void {
    assert(status >= 200 && status <= 999, `status ${status} is no final status`);
    // A client that was never told to go on may send the body or not: the next request would
    // begin at an unknown place.
    if (this.awaitsContinue) this.closesAfter = true;
    if (this.#host.isLast(this)) this.closesAfter = true;
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
    if (contentType !== null) text += fieldLines(['content-type', contentType]);
    text += fieldLines(headers) + framing;
    if (!hasDate(headers)) text += this.#host.dateLine();
    if (this.closesAfter) text += 'connection: close\r\n';
    else if (this.#minor === 0) text += 'connection: keep-alive\r\n';
    this.#output().putText(`${text}\r\n`);
  }

  respond(
    status: number,
    contentType: string | null,
    bytes: Uint8Array | string | null,
    headers: FieldList = [],
    lasting: FieldList = [],
  ): void {
    if (this.closed) return;
    assert(this.#state === 'waiting', `${this.method} ${this.path} was answered twice`);
    const body = typeof bytes === 'string' ? Buffer.from(bytes) : (bytes ?? EMPTY);
    const hasLength = status !== 204 && status !== 304;
    const framing = hasLength ? `content-length: ${body.length}\r\n` : '';
    this.#putHead(status, contentType, [...headers, ...lasting], framing);
    if (hasLength && this.method !== 'HEAD') this.#output().put(body, 0, body.length);
    this.#finish();
  }

  respondCopy(
    status: number,
    contentType: string | null,
    bytes: Buffer,
    length: number,
    headers: FieldList = [],
    lasting: FieldList = [],
  ): void {
    // the output copies what it is given
    this.respond(status, contentType, bytes.subarray(0, length), headers, lasting);
  }

  open(status: number, contentType: string | null, headers: FieldList = []): void {
    if (this.closed) return;
    assert(this.#state === 'waiting', `${this.method} ${this.path} was answered twice`);
    const hasBody = status !== 204 && status !== 304;
    this.#isChunked = hasBody && this.#minor === 1;
    // HTTP/1.0 knows no end but the end of the connection.
    if (hasBody && this.#minor === 0) this.closesAfter = true;
    const framing = this.#isChunked ? 'transfer-encoding: chunked\r\n' : '';
    this.#putHead(status, contentType, headers, framing);
    this.#state = 'open';
    this.#host.changed();
  }

  write(bytes: Uint8Array, start: number = 0, end: number = bytes.length): void {
    if (this.closed) return;
    assert(this.#state === 'open', `${this.method} ${this.path}: write() comes after open()`);
    if (this.method === 'HEAD') return;
    const output = this.#output();
    if (this.#isChunked) output.putChunk(bytes, start, end);
    else output.put(bytes, start, end);
    if (output.length > STREAM_QUEUE_BYTES_MAX) this.reset();
    else this.#host.changed();
  }

  end(trailers: FieldList = []): void {
    if (this.closed) return;
    assert(this.#state === 'open', `${this.method} ${this.path}: end() comes after open()`);
    if (this.#isChunked && this.method !== 'HEAD') {
      this.#output().putText(`${LAST_CHUNK}${fieldLines(trailers)}\r\n`);
    }
    this.#finish();
  }

  #finish(): void {
    this.onWritable = null;
    this.#state = 'answered';
    if (this.isFirst) this.#settle();
    this.#host.changed();
    this.#host.finished(this);
  }

  writable(): number {
    if (this.closed) return 0;
    const bytes = this.isFirst ? Math.max(0, this.#host.budget()) : 0;
    if (bytes === 0) this.wantsWritable = true;
    return bytes;
  }

  /** Tells the producer once that it may go on, if it was told to wait. */
  offerWritable(): void {
    if (!this.wantsWritable || this.closed || this.#host.budget() <= 0) return;
    this.wantsWritable = false;
    try {
      this.onWritable?.();
    } catch (error) {
      this.reset();
      blame(error, null);
    }
  }

  reset(): void {
    if (!this.closed) this.#host.cut();
  }

  /** The connection ends before the answer was out. */
  abandon(reason: CloseReason): void {
    if (this.#state === 'closed') return;
    const onClose = this.onClose;
    this.#state = 'closed';
    this.onClose = null;
    this.onBody = null;
    this.onBodyEnd = null;
    this.onWritable = null;
    this.#own?.discard();
    this.#own = null;
    try {
      onClose?.(reason);
    } catch (error) {
      blame(error, null);
    }
  }

  upgrade(headers: FieldList): UpgradedStream {
    const protocol = this.upgradeProtocol;
    assert(protocol !== undefined, `${this.path} asked for no upgrade`);
    assert(this.#state === 'waiting' && this.isFirst, `${this.path} cannot be upgraded now`);
    const lines = fieldLines(['upgrade', protocol, ...headers]);
    this.#host.output.putText(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n${lines}\r\n`,
    );
    this.#state = 'closed';
    this.onClose = null;
    this.#host.changed();
    return this.#host.beginUpgrade();
  }
}
