/** One request from its acceptance to its end; made once, used for many requests in turn. */
import type { ClientStream } from '@megaplane/wire/client';
import type { Method, SendDone } from './client.ts';

/** Room that a slot keeps for its next request and answer; larger ones are given back. */
const KEPT_ROOM_BYTES_MAX: number = 16 * 1024;
const FIRST_ROOM_BYTES = 512;
const EMPTY = Buffer.alloc(0);
const NOBODY: SendDone = () => {};

/**
 * `dead`: it ended (deadline, closed) while some list still held it; whoever takes it from there
 * frees it.
 */
export type SlotState = 'free' | 'queued' | 'delayed' | 'flying' | 'dead';

export class Slot {
  readonly index: number;
  state: SlotState = 'free';
  method: Method = 'GET';
  path = '';
  contentType = '';
  accept = '';
  /** A field of this request alone, `name: value`; '' without one. */
  extra = '';
  done: SendDone = NOBODY;
  tag = 0;
  startMs = 0;
  deadlineMs = 0;
  sentBytes = 0;
  tries = 0;
  /** The next one in the queue. */
  next: Slot | null = null;
  stream: ClientStream | null = null;
  /** Of the answer. */
  status = 0;
  retryAfterSeconds = 0;
  etag = '';
  isTooLarge = false;
  answer: Buffer = EMPTY;
  answerStart = 0;
  answerLength = 0;
  #room: Buffer = EMPTY;
  #text: string | null = null;
  #bytes: Buffer = EMPTY;
  /** The first `#length` of `#bytes`; bodies that follow each other are often equally long. */
  #view: Buffer = EMPTY;
  #length = -1;

  constructor(index: number) {
    this.index = index;
  }

  fill(
    method: Method,
    path: string,
    contentType: string,
    accept: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag: number,
  ): void {
    this.method = method;
    this.path = path;
    this.contentType = contentType;
    this.accept = accept;
    this.done = done;
    this.tag = tag;
    this.tries = 0;
    this.sentBytes = 0;
    this.next = null;
    this.#text = null;
    this.#length = -1;
    if (typeof body === 'string') this.#text = body;
    else if (body !== null) {
      if (this.#bytes.length < body.length) {
        this.#bytes = Buffer.allocUnsafeSlow(Math.max(FIRST_ROOM_BYTES, body.length));
        this.#view = EMPTY;
      }
      this.#bytes.set(body);
      this.#length = body.length;
    }
  }

  /** The body as `ClientConnection.request` takes it. */
  body(): Uint8Array | string | null {
    if (this.#text !== null) return this.#text;
    if (this.#length < 0) return null;
    if (this.#view.length !== this.#length) this.#view = this.#bytes.subarray(0, this.#length);
    return this.#view;
  }

  beginAnswer(): void {
    this.status = 0;
    this.retryAfterSeconds = 0;
    if (this.etag !== '') this.etag = '';
    this.isTooLarge = false;
    this.answer = EMPTY;
    this.answerStart = 0;
    this.answerLength = 0;
  }

  /** Keeps a copy of a piece of the answer; rooms grow up to `bytesMax`. */
  addAnswer(bytes: Uint8Array, start: number, end: number, bytesMax: number): void {
    const length = this.answerLength + end - start;
    if (length > this.#room.length) {
      const room = Math.max(length, 2 * this.#room.length, FIRST_ROOM_BYTES);
      const grown = Buffer.allocUnsafeSlow(Math.min(room, Math.max(length, bytesMax)));
      this.#room.copy(grown, 0, 0, this.answerLength);
      this.#room = grown;
    }
    this.#room.set(bytes.subarray(start, end), this.answerLength);
    this.answer = this.#room;
    this.answerLength = length;
  }

  /** The whole answer, valid until the request has ended in this turn. */
  lendAnswer(bytes: Buffer, start: number, end: number): void {
    this.answer = bytes;
    this.answerStart = start;
    this.answerLength = end - start;
  }

  /** Forgets the request and its rooms, if they are large. */
  clear(): void {
    this.state = 'free';
    this.done = NOBODY;
    this.stream = null;
    this.next = null;
    this.#text = null;
    this.path = '';
    this.answer = EMPTY;
    if (this.#room.length > KEPT_ROOM_BYTES_MAX) this.#room = EMPTY;
    if (this.#bytes.length <= KEPT_ROOM_BYTES_MAX) return;
    this.#bytes = EMPTY;
    this.#view = EMPTY;
  }
}
