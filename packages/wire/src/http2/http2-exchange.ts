// data plane
/** One request and its answer over HTTP/2: `Exchange` on a stream. */
import { blame } from '@megaplane/base/deferred';
import { assert } from '@megaplane/base/assert';
import type {
  CloseReason,
  Connection,
  Exchange,
  SharedBytes,
  UpgradedStream,
} from '../http/exchange.ts';
import { ERRORS, FLAG_END_HEADERS, FLAG_END_STREAM, FRAMES, writeFrameHead } from './frames.ts';
import { fieldBlock, fieldBytesMax, writeField, writeStatus } from '../hpack/hpack-encoder.ts';
import { fieldValue } from './http2-head.ts';
import type { RequestHead } from './http2-head.ts';
import type { Http2Session } from './http2-session.ts';
import { hasDate } from '../http/response-date.ts';
import type { H2Stream, StreamOwner } from './stream.ts';
import type { FieldList } from '../fields.ts';

const NONE: Buffer = Buffer.alloc(0);
/** Octets of a head's first line: frame head, status, content-length. */
const HEAD_BASE_BYTES = 64;

export class Http2Exchange implements Exchange, StreamOwner {
  readonly connection: Connection;
  readonly #session: Http2Session;
  readonly #head: RequestHead;
  #stream: H2Stream | null;
  #opened = false;
  #finished = false;
  /** Its stream is gone before the answer was out: what is still answered is nobody's. */
  #isLost = false;
  body: Buffer = NONE;
  /** The body lies in a chunk or a shared buffer, not in memory of its own. */
  #bodyBorrowed = false;
  onBody: ((bytes: Buffer, start: number, end: number) => void) | null = null;
  onBodyEnd: (() => void) | null = null;
  onWritable: (() => void) | null = null;
  onClose: ((reason: CloseReason) => void) | null = null;
  /** Streams of a connection whose peer sends no more are reset. */
  onHalfClose: (() => void) | null = null;

  constructor(connection: Connection, session: Http2Session, stream: H2Stream, head: RequestHead) {
    this.connection = connection;
    this.#session = session;
    this.#stream = stream;
    this.#head = head;
    stream.owner = this;
  }

  get method(): string {
    return this.#head.method;
  }

  get path(): string {
    return this.#head.path;
  }

  get authority(): string {
    return this.#head.authority;
  }

  header(name: string): string | undefined {
    return fieldValue(this.#head.fields, name);
  }

  fields(): FieldList {
    return this.#head.fields;
  }

  /** For the session, around the handler. */
  lendBody(bytes: Buffer, borrowed: boolean): void {
    this.body = bytes;
    this.#bodyBorrowed = borrowed;
  }

  keepBody(): Buffer {
    if (this.#bodyBorrowed) {
      this.body = Buffer.from(this.body);
      this.#bodyBorrowed = false;
    }
    return this.body;
  }

  /** True if the handler took no copy: the session takes the view back. */
  get bodyBorrowed(): boolean {
    return this.#bodyBorrowed;
  }

  pauseBody(): void {
    if (this.#stream !== null) this.#stream.paused = true;
  }

  resumeBody(): void {
    const stream = this.#stream;
    if (stream === null || !stream.paused) return;
    stream.paused = false;
    this.#session.giveStreamBack(stream);
  }

  get closed(): boolean {
    return this.#stream === null;
  }

  /** True once an answer was begun: the session must not answer for the handler. */
  get answered(): boolean {
    return this.#opened || this.#finished;
  }

  respond(
    status: number,
    contentType: string | null,
    bytes: Uint8Array | string | null,
    headers?: FieldList,
    lasting?: FieldList,
  ): void {
    if (this.#isLost) return;
    const stream = this.#stream;
    assert(!this.#opened && !this.#finished, 'an exchange is answered once');
    this.#finished = true;
    if (stream === null) return;
    const body = bytes === null ? NONE : asBuffer(bytes);
    const bodiless = this.method === 'HEAD' || status === 204 || status === 304;
    const length = status === 204 || status === 304 ? -1 : body.length;
    const endStream = bodiless || body.length === 0;
    this.#sendHead(stream, status, contentType, headers, length, endStream, lasting);
    if (!endStream) this.#session.sendLast(stream, body);
  }

  respondCopy(
    status: number,
    contentType: string | null,
    bytes: Buffer,
    length: number,
    headers?: FieldList,
    lasting?: FieldList,
  ): void {
    if (this.#isLost) return;
    const stream = this.#stream;
    assert(!this.#opened && !this.#finished, 'an exchange is answered once');
    assert(status !== 204 && status !== 304, 'such an answer has no body');
    this.#finished = true;
    if (stream === null) return;
    const endStream = this.method === 'HEAD' || length === 0;
    this.#sendHead(stream, status, contentType, headers, length, endStream, lasting);
    if (!endStream) this.#session.sendLastCopy(stream, bytes, 0, length);
  }

  open(status: number, contentType: string | null, headers?: FieldList): void {
    if (this.#isLost) return;
    assert(!this.#opened && !this.#finished, 'an exchange is answered once');
    this.#opened = true;
    if (this.#stream === null) return;
    this.#sendHead(this.#stream, status, contentType, headers, -1, false);
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length, shared?: SharedBytes): void {
    if (this.#isLost) return;
    assert(this.#opened && !this.#finished, 'write comes between open and end');
    if (this.#stream === null || start === end || this.method === 'HEAD') return;
    if (shared !== undefined) this.#session.sendShared(this.#stream, shared);
    else this.#session.sendData(this.#stream, asBuffer(bytes), start, end);
  }

  end(trailers?: FieldList): void {
    if (this.#isLost) return;
    assert(this.#opened && !this.#finished, 'end comes once, after open');
    this.#finished = true;
    const stream = this.#stream;
    if (stream === null) return;
    const block = trailers === undefined ? null : fieldBlock(trailers);
    this.#session.sendEnd(stream, block);
  }

  writable(): number {
    if (this.#stream === null || this.#finished) return 0;
    return this.#session.writable(this.#stream);
  }

  hasten(): void {
    if (this.#stream !== null) this.#stream.hastens = true;
  }

  reset(): void {
    const stream = this.#stream;
    if (stream === null) return;
    this.#isLost = true;
    this.#finished = true;
    this.#stream = null;
    stream.owner = null;
    this.#session.sendReset(stream, ERRORS.internal);
    this.#tellClosed('aborted');
  }

  readonly upgradeProtocol: undefined = undefined;

  upgrade(): UpgradedStream {
    assert(false, 'HTTP/2 has no upgrade');
  }

  onData(bytes: Buffer, start: number, end: number): void {
    try {
      this.onBody?.(bytes, start, end);
    } catch (error) {
      this.#broke(error);
    }
  }

  onEnd(): void {
    try {
      this.onBodyEnd?.();
    } catch (error) {
      this.#broke(error);
    }
  }

  /** An error of whoever takes the body or makes the answer ends this exchange alone. */
  #broke(error: unknown): void {
    this.reset();
    blame(error, null);
  }

  onDone(): void {
    this.#stream = null;
  }

  onLost(reason: CloseReason): void {
    this.#isLost = true;
    this.#stream = null;
    this.#finished = true;
    this.#tellClosed(reason);
  }

  #tellClosed(reason: CloseReason): void {
    try {
      this.onClose?.(reason);
    } catch (error) {
      blame(error, null);
    }
  }

  onReady(): void {
    try {
      this.onWritable?.();
    } catch (error) {
      this.#broke(error);
    }
  }

  onExpired(): void {
    // No deadline is ever set: handlers know their own.
  }

  #sendHead(
    stream: H2Stream,
    status: number,
    contentType: string | null,
    headers: FieldList | undefined,
    length: number,
    endStream: boolean,
    lasting?: FieldList,
  ): void {
    const session = this.#session;
    const block = lasting === undefined ? NONE : lastingBlock(lasting);
    const date = hasDate(headers) ? NONE : (session.date?.block() ?? NONE);
    let bytesMax = HEAD_BASE_BYTES + (contentType === null ? 0 : contentType.length + 16);
    bytesMax += block.length + date.length;
    if (headers !== undefined) {
      for (let i = 0; i < headers.length; i += 2) {
        bytesMax += fieldBytesMax(headers[i]!, headers[i + 1]!);
      }
    }
    if (session.dead) return;
    if (bytesMax > session.peerFrameBytes) {
      const whole = Buffer.allocUnsafe(bytesMax);
      let end = writeHeadBlock(whole, 0, status, contentType, headers, length);
      end += block.copy(whole, end);
      end += date.copy(whole, end);
      return session.sendHeaders(stream, whole, 0, end, endStream);
    }
    const out = session.reserve(bytesMax);
    const at = out.at;
    let end = writeHeadBlock(out.bytes, at + 9, status, contentType, headers, length);
    if (block.length > 0) end += block.copy(out.bytes, end);
    if (date.length > 0) end += date.copy(out.bytes, end);
    const flags = FLAG_END_HEADERS | (endStream ? FLAG_END_STREAM : 0);
    writeFrameHead(out.bytes, at, end - at - 9, FRAMES.headers, flags, stream.id);
    out.at = end;
    if (endStream) session.sentEnd(stream);
  }
}

function asBuffer(bytes: Uint8Array | string): Buffer {
  if (typeof bytes === 'string') return Buffer.from(bytes);
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function writeHeadBlock(
  out: Buffer,
  at: number,
  status: number,
  contentType: string | null,
  headers: FieldList | undefined,
  length: number,
): number {
  at = writeStatus(out, at, status);
  if (contentType !== null) at = writeField(out, at, 'content-type', contentType);
  if (length >= 0) at = writeField(out, at, 'content-length', String(length));
  if (headers === undefined) return at;
  for (let i = 0; i < headers.length; i += 2) {
    at = writeField(out, at, headers[i]!, headers[i + 1]!);
  }
  return at;
}

/** Blocks of lists that answers are given again and again. */
const blocks = new WeakMap<FieldList, Buffer>();

function lastingBlock(fields: FieldList): Buffer {
  let block = blocks.get(fields);
  if (block === undefined) blocks.set(fields, (block = fieldBlock(fields)));
  return block;
}
