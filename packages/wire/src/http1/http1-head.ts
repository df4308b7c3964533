// data plane
/**
 * The head of an HTTP/1.1 message (RFC 9112 sections 2 to 6), parsed in place and strictly.
 *
 * Two servers that read one byte stream differently let an attacker smuggle a request past the
 * first, so every ambiguity is refused, also where the RFC would let a server repair it: bare CR or
 * LF, folded lines, space before the colon, control bytes, more than one content-length (equal ones
 * too), content-length beside transfer-encoding, any transfer-encoding but `chunked`.
 *
 *     fields   Int32Array   4 per field, offsets from `start`:
 *              [nameStart, nameEnd, valueStart, valueEnd]   value without surrounding blanks
 */
import { FIRST_COUNTS } from '../http/exchange.ts';

/** Fields of one head that there is room for at first; what holds a whole head bounds them. */
const FIELDS_COMMON = 256;

export const HEAD_MORE = 0;
export const HEAD_DONE = 1;
export const HEAD_FAILED = 2;

/** Ways to be wrong: the status to answer, and the text for people. */
export const HTTP1_FAILURES = {
  startLine: { status: 400, text: 'the first line is no HTTP request line or status line' },
  version: { status: 505, text: 'this HTTP version is not spoken here, use HTTP/1.1' },
  target: { status: 400, text: 'the request target is neither a path, an http(s) URL nor *' },
  lineEnd: { status: 400, text: 'a line of the head does not end in CR LF' },
  folded: { status: 400, text: 'a header line begins with a blank (folded lines are obsolete)' },
  name: { status: 400, text: 'a header name holds a byte that names must not hold' },
  value: { status: 400, text: 'a header value holds a control byte' },
  headSize: { status: 431, text: 'the head of the request is too large' },
  host: { status: 400, text: 'exactly one host header is required' },
  hostValue: { status: 400, text: 'the host header holds a byte that hosts must not hold' },
  lengthValue: { status: 400, text: 'content-length is no plain number' },
  lengthTwice: { status: 400, text: 'there is more than one content-length' },
  lengthAndCoding: { status: 400, text: 'content-length and transfer-encoding exclude each other' },
  coding: { status: 501, text: 'only the transfer-encoding chunked is understood' },
  codingTwice: { status: 400, text: 'there is more than one transfer-encoding' },
  codingVersion: { status: 400, text: 'HTTP/1.0 has no transfer-encoding' },
  expectation: { status: 417, text: 'only the expectation 100-continue can be met' },
  chunkSize: { status: 400, text: 'a chunk size is no plain hexadecimal number' },
  chunkEnd: { status: 400, text: 'a chunk does not end in CR LF where its size says' },
  chunkLine: { status: 400, text: 'the line of a chunk size is too long' },
} as const;
export type Http1Failure = keyof typeof HTTP1_FAILURES;

const CR = 13;
const LF = 10;
const SPACE = 32;
const TAB = 9;
const COLON = 58;

const IS_TOKEN = 1;
const IS_VALUE = 2;
const IS_TARGET = 4;
const IS_HOST = 8;
const BYTE_CLASS: Uint8Array = byteClasses();

function byteClasses(): Uint8Array {
  const classes = new Uint8Array(256);
  for (let byte = 0; byte < 256; byte++) {
    if (/[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(byte))) classes[byte]! |= IS_TOKEN;
    if (byte === TAB || (byte >= SPACE && byte !== 127)) classes[byte]! |= IS_VALUE;
    if (byte > SPACE && byte < 127) classes[byte]! |= IS_TARGET;
    // uri-host and port of RFC 3986 3.2.2
    if (/[\w!$%&'()*+,\-.:;=[\]~]/.test(String.fromCharCode(byte))) classes[byte]! |= IS_HOST;
  }
  return classes;
}

const HOST = Buffer.from('host');
const EXPECT = Buffer.from('expect');
const UPGRADE = Buffer.from('upgrade');
const CONNECTION = Buffer.from('connection');
const CONTENT_LENGTH = Buffer.from('content-length');
const TRANSFER_ENCODING = Buffer.from('transfer-encoding');
const CHUNKED = Buffer.from('chunked');
const CONTINUE = Buffer.from('100-continue');

/** Whether a range equals `lower` when ASCII letters are compared without case. */
export function equalsFolded(
  bytes: Uint8Array,
  start: number,
  end: number,
  lower: Uint8Array,
): boolean {
  if (end - start !== lower.length) return false;
  for (let i = 0; i < lower.length; i++) {
    const byte = bytes[start + i]!;
    const folded = byte >= 65 && byte <= 90 ? byte | 32 : byte;
    if (folded !== lower[i]) return false;
  }
  return true;
}

/** A parsed head. `parse` may be called again for another one; `keep` makes it last. */
export class Http1Head {
  bytes: Buffer = Buffer.alloc(0);
  /** Where the head starts in `bytes`; all other offsets count from here. */
  start = 0;
  /** Length of the head with its empty line. */
  length = 0;
  failure: Http1Failure = 'startLine';
  /** Requests: ends of the method (which starts at 0) and range of the target. */
  methodEnd = 0;
  targetStart = 0;
  targetEnd = 0;
  /** Responses. */
  status = 0;
  /** 0 or 1, for HTTP/1.0 and HTTP/1.1. */
  minor = 1;
  fieldCount = 0;
  fields: Int32Array;
  /** -1 without a content-length. */
  contentLength = -1;
  isChunked = false;
  expectsContinue = false;
  /** Index of the first `upgrade` field, or -1. */
  upgradeField = -1;
  hostField = -1;
  #hosts = 0;
  hasClose = false;
  hasKeepAlive = false;
  hasUpgradeToken = false;

  constructor(fields: Int32Array = new Int32Array(4 * FIELDS_COMMON)) {
    this.fields = fields;
  }

  /**
   * Parses `bytes[start..end)`. HEAD_MORE: the end was not reached, and what is there is right so
   * far. HEAD_FAILED: see `failure`.
   */
  parse(bytes: Buffer, start: number, end: number, isResponse: boolean): number {
    this.bytes = bytes;
    this.start = start;
    this.fieldCount = 0;
    this.contentLength = -1;
    this.isChunked = false;
    this.expectsContinue = false;
    this.upgradeField = -1;
    this.hostField = -1;
    this.#hosts = 0;
    this.hasClose = false;
    this.hasKeepAlive = false;
    this.hasUpgradeToken = false;
    const at = isResponse ? this.#statusLine(start, end) : this.#requestLine(start, end);
    if (at < 0) return at === -1 ? HEAD_MORE : HEAD_FAILED;
    const result = this.#fieldLines(at, end, true);
    if (result !== HEAD_DONE) return result;
    return this.#agrees(isResponse) ? HEAD_DONE : HEAD_FAILED;
  }

  /** Parses the trailer section of a chunked body; framing fields in it are refused. */
  parseTrailers(bytes: Buffer, start: number, end: number): number {
    this.bytes = bytes;
    this.start = start;
    this.fieldCount = 0;
    return this.#fieldLines(start, end, false);
  }

  #fail(failure: Http1Failure): number {
    this.failure = failure;
    return HEAD_FAILED;
  }

  /** Returns the offset after the line, -1 for more, -2 for failed. */
  #requestLine(start: number, end: number): number {
    const bytes = this.bytes;
    let at = start;
    while (at < end && (BYTE_CLASS[bytes[at]!]! & IS_TOKEN) !== 0) at++;
    if (at === end) return -1;
    if (at === start || bytes[at] !== SPACE) return this.#badLine('startLine');
    this.methodEnd = at - start;
    this.targetStart = ++at - start;
    while (at < end && (BYTE_CLASS[bytes[at]!]! & IS_TARGET) !== 0) at++;
    if (at === end) return -1;
    if (at - start === this.targetStart || bytes[at] !== SPACE) return this.#badLine('startLine');
    this.targetEnd = at - start;
    at = this.#version(at + 1, end);
    return at < 0 ? at : this.#lineEnd(at, end);
  }

  #statusLine(start: number, end: number): number {
    const bytes = this.bytes;
    let at = this.#version(start, end);
    if (at < 0) return at;
    if (end - at < 4) return -1;
    if (bytes[at] !== SPACE) return this.#badLine('startLine');
    this.status = 0;
    for (let i = 1; i <= 3; i++) {
      const digit = bytes[at + i]! - 48;
      if (digit < 0 || digit > 9) return this.#badLine('startLine');
      this.status = this.status * 10 + digit;
    }
    at += 4;
    if (at === end) return -1;
    // Some servers leave the blank out when there is no reason text.
    if (bytes[at] !== SPACE && bytes[at] !== CR) return this.#badLine('startLine');
    while (at < end && (BYTE_CLASS[bytes[at]!]! & IS_VALUE) !== 0) at++;
    return this.status < 100 ? this.#badLine('startLine') : this.#lineEnd(at, end);
  }

  #badLine(failure: Http1Failure): number {
    this.#fail(failure);
    return -2;
  }

  /** `HTTP/1.x`; `at` may be anywhere in a chunk. */
  #version(at: number, end: number): number {
    const bytes = this.bytes;
    const text = 'HTTP/';
    for (let i = 0; i < 5; i++) {
      if (at + i >= end) return -1;
      if (bytes[at + i] !== text.charCodeAt(i)) return this.#badLine('startLine');
    }
    if (at + 8 > end) return -1;
    const major = bytes[at + 5]! - 48;
    const minor = bytes[at + 7]! - 48;
    const isWellFormed = major >= 0 && major <= 9 && bytes[at + 6] === 46;
    if (!isWellFormed || minor < 0 || minor > 9) return this.#badLine('startLine');
    if (major !== 1) return this.#badLine('version');
    this.minor = minor === 0 ? 0 : 1;
    return at + 8;
  }

  #lineEnd(at: number, end: number): number {
    if (at >= end) return -1;
    if (this.bytes[at] !== CR) return this.#badLine('lineEnd');
    if (at + 1 >= end) return -1;
    return this.bytes[at + 1] === LF ? at + 2 : this.#badLine('lineEnd');
  }

  #fieldLines(from: number, end: number, isHead: boolean): number {
    const bytes = this.bytes;
    const base = this.start;
    let at = from;
    while (at < end) {
      const first = bytes[at]!;
      if (first === CR) {
        if (at + 1 >= end) return HEAD_MORE;
        if (bytes[at + 1] !== LF) return this.#fail('lineEnd');
        this.length = at + 2 - base;
        return HEAD_DONE;
      }
      if (first === SPACE || first === TAB) return this.#fail('folded');
      const nameStart = at;
      while (at < end && (BYTE_CLASS[bytes[at]!]! & IS_TOKEN) !== 0) at++;
      if (at === end) return HEAD_MORE;
      if (bytes[at] !== COLON || at === nameStart) {
        return this.#fail(first === LF ? 'lineEnd' : 'name');
      }
      const nameEnd = at++;
      while (at < end && (bytes[at] === SPACE || bytes[at] === TAB)) at++;
      const valueStart = at;
      while (at < end && (BYTE_CLASS[bytes[at]!]! & IS_VALUE) !== 0) at++;
      if (at === end) return HEAD_MORE;
      let valueEnd = at;
      while (valueEnd > valueStart && bytes[valueEnd - 1]! <= SPACE) valueEnd--;
      if (bytes[at] !== CR) return this.#fail(bytes[at] === LF ? 'lineEnd' : 'value');
      if (at + 1 >= end) return HEAD_MORE;
      if (bytes[at + 1] !== LF) return this.#fail('lineEnd');
      at += 2;
      const row = 4 * this.fieldCount;
      if (row === this.fields.length) this.#widen();
      this.fields[row] = nameStart - base;
      this.fields[row + 1] = nameEnd - base;
      this.fields[row + 2] = valueStart - base;
      this.fields[row + 3] = valueEnd - base;
      if (!this.#note(nameStart, nameEnd, valueStart, valueEnd, isHead)) return HEAD_FAILED;
      this.fieldCount++;
    }
    return HEAD_MORE;
  }

  #widen(): void {
    const wider = new Int32Array(2 * this.fields.length);
    wider.set(this.fields);
    this.fields = wider;
  }

  /** Takes in a field that frames the message or steers the connection. */
  #note(
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
    isHead: boolean,
  ): boolean {
    const bytes = this.bytes;
    switch (nameEnd - nameStart) {
      case 4:
        if (equalsFolded(bytes, nameStart, nameEnd, HOST)) {
          this.#hosts++;
          this.hostField = this.fieldCount;
        }
        return true;
      case 6:
        if (!isHead || !equalsFolded(bytes, nameStart, nameEnd, EXPECT)) return true;
        this.expectsContinue = equalsFolded(bytes, valueStart, valueEnd, CONTINUE);
        if (!this.expectsContinue) this.failure = 'expectation';
        return this.expectsContinue;
      case 7:
        if (!equalsFolded(bytes, nameStart, nameEnd, UPGRADE)) return true;
        if (this.upgradeField < 0) this.upgradeField = this.fieldCount;
        return true;
      case 10:
        if (!equalsFolded(bytes, nameStart, nameEnd, CONNECTION)) return true;
        this.#connectionTokens(valueStart, valueEnd);
        return true;
      case 14:
        if (!equalsFolded(bytes, nameStart, nameEnd, CONTENT_LENGTH)) return true;
        return this.#length(valueStart, valueEnd, isHead);
      case 17:
        if (!equalsFolded(bytes, nameStart, nameEnd, TRANSFER_ENCODING)) return true;
        if (this.isChunked) this.failure = 'codingTwice';
        else if (equalsFolded(bytes, valueStart, valueEnd, CHUNKED)) {
          this.isChunked = isHead;
          return isHead;
        } else this.failure = 'coding';
        return false;
      default:
        return true;
    }
  }

  #length(valueStart: number, valueEnd: number, isHead: boolean): boolean {
    if (!isHead || this.contentLength >= 0) {
      this.failure = 'lengthTwice';
      return false;
    }
    let length = 0;
    for (let at = valueStart; at < valueEnd; at++) {
      const digit = this.bytes[at]! - 48;
      length = digit >= 0 && digit <= 9 ? length * 10 + digit : Infinity;
    }
    if (valueStart === valueEnd || length > Number.MAX_SAFE_INTEGER) {
      this.failure = 'lengthValue';
      return false;
    }
    this.contentLength = length;
    return true;
  }

  #connectionTokens(valueStart: number, valueEnd: number): void {
    const text = this.bytes.toString('latin1', valueStart, valueEnd).toLowerCase();
    for (const part of text.split(',')) {
      const token = part.trim();
      if (token === 'close') this.hasClose = true;
      else if (token === 'keep-alive') this.hasKeepAlive = true;
      else if (token === 'upgrade') this.hasUpgradeToken = true;
    }
  }

  /** What only the whole head can tell. */
  #agrees(isResponse: boolean): boolean {
    if (this.isChunked && this.contentLength >= 0) this.failure = 'lengthAndCoding';
    else if (this.isChunked && this.minor === 0) this.failure = 'codingVersion';
    else if (isResponse) return true;
    else if (this.#hosts > 1 || (this.#hosts === 0 && this.minor === 1)) this.failure = 'host';
    else if (!this.#isHost()) this.failure = 'hostValue';
    else return this.#target();
    return false;
  }

  /** RFC 9112 3.2: what is no host must be refused. */
  #isHost(): boolean {
    if (this.hostField < 0) return true;
    const row = 4 * this.hostField;
    const end = this.start + this.fields[row + 3]!;
    for (let at = this.start + this.fields[row + 2]!; at < end; at++) {
      if ((BYTE_CLASS[this.bytes[at]!]! & IS_HOST) === 0) return false;
    }
    return true;
  }

  /** Brings an absolute URL to its path, which starts within it; refuses what is no target. */
  #target(): boolean {
    const bytes = this.bytes;
    const first = bytes[this.start + this.targetStart]!;
    if (first === 47) return true;
    if (first === 42 && this.targetEnd - this.targetStart === 1) return true;
    const text = bytes.toString(
      'latin1',
      this.start + this.targetStart,
      this.start + this.targetEnd,
    );
    const match = /^https?:\/\/[^/?#]+(?=\/)/i.exec(text);
    if (match === null) {
      this.failure = 'target';
      return false;
    }
    this.targetStart += match[0].length;
    return true;
  }

  /** Whether the connection goes on after this message, by its version and `connection`. */
  get isPersistent(): boolean {
    return !this.hasClose && (this.minor === 1 || this.hasKeepAlive);
  }

  /** Text of the method, which is ASCII by construction. */
  method(): string {
    return this.bytes.toString('latin1', this.start, this.start + this.methodEnd);
  }

  target(): string {
    return this.bytes.toString(
      'latin1',
      this.start + this.targetStart,
      this.start + this.targetEnd,
    );
  }

  name(field: number): string {
    const row = 4 * field;
    const from = this.start + this.fields[row]!;
    return this.bytes.toString('latin1', from, this.start + this.fields[row + 1]!).toLowerCase();
  }

  value(field: number): string {
    const row = 4 * field;
    return this.bytes.toString(
      'latin1',
      this.start + this.fields[row + 2]!,
      this.start + this.fields[row + 3]!,
    );
  }

  /** Values of all fields of that lower-case name, joined as RFC 9110 5.3 says. */
  find(name: string): string | undefined {
    let found: string | undefined;
    for (let field = 0; field < this.fieldCount; field++) {
      const row = 4 * field;
      if (this.fields[row + 1]! - this.fields[row]! !== name.length) continue;
      if (this.name(field) !== name) continue;
      if (found !== undefined && FIRST_COUNTS.has(name)) break;
      const value = this.value(field);
      found = found === undefined ? value : `${found}${name === 'cookie' ? '; ' : ', '}${value}`;
    }
    return found;
  }

  /** A copy that outlives the chunk. */
  keep(): Http1Head {
    const kept = new Http1Head(this.fields.slice(0, 4 * this.fieldCount));
    kept.bytes = Buffer.from(this.bytes.subarray(this.start, this.start + this.length));
    kept.length = this.length;
    kept.methodEnd = this.methodEnd;
    kept.targetStart = this.targetStart;
    kept.targetEnd = this.targetEnd;
    kept.fieldCount = this.fieldCount;
    return kept;
  }
}
