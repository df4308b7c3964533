/** Reads collections too big for one answer, page by page, item by item, without parsing them. */
import type { Status } from '@megaplane/machinery/status';
import { madeUpStatus, statusOf } from '../rest/answer.ts';
import { Backoff } from '../rest/backoff.ts';
import { STATUS_NONE, type Client, type StreamHandle, type StreamSink } from '../rest/client.ts';
import { withQuery } from '../rest/list-query.ts';
import { Page } from './page.ts';

/** Items of a page unless told otherwise; upstream's number. */
export const PAGE_ITEMS = 500;
/** Largest page that is collected. */
export const PAGE_BYTES_MAX: number = 1024 * 1024 * 1024;
/** Times that one page is asked for before its failure is the list's. */
const TRIES_MAX = 8;
const BACKOFF = { baseMs: 100, capMs: 10_000, jitter: 0.5, resetMs: 60_000 };
const EMPTY = Buffer.alloc(0);

export interface PagerOptions {
  readonly client: Client;
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly shardSelector?: string;
  /** Items per page; default 500. */
  readonly limit?: number;
  /** Pages follow each other no faster than so; default 0: as soon as the one before is read. */
  readonly pageMs?: number;
  /** As in the list request; left out when empty (the most recent state). */
  readonly resourceVersion?: string;
  /**
   * When the pages take longer than the server keeps their revision: true ends with 410, false
   * (the default) goes on with the present state, so that objects which changed meanwhile may be
   * missing.
   */
  readonly mustBeConsistent?: boolean;
  /**
   * A server that can leaves out what has changed since this revision and was there before; see
   * `Pages.unchangedOf`. Default 0: nothing.
   */
  readonly unchangedSince?: number;
  /** One object's JSON, valid only during the call. List items carry no kind and apiVersion. */
  onItem(bytes: Uint8Array, start: number, end: number): void;
}

export type PagerResult =
  | { readonly ok: true; readonly resourceVersion: string; readonly items: number }
  | { readonly ok: false; readonly status: Status };

/** Reads a whole collection. Pages that fail for a passing reason are asked for again. */
export function readPages(options: PagerOptions): Promise<PagerResult> {
  return new Promise((resolve) => {
    new Pages(options, resolve).start();
  });
}

/** A list under way. */
export class Pages implements StreamSink {
  readonly #options: PagerOptions;
  readonly #onResult: (result: PagerResult) => void;
  readonly #backoff: Backoff;
  readonly #page = new Page();
  #token = '';
  #resourceVersion = -1;
  #items = 0;
  #tries = 0;
  #status = 0;
  #retryAfterSeconds = 0;
  #body: Buffer = EMPTY;
  #length = 0;
  #askedMs = 0;
  #isOver = false;
  /**
   * The server has followed `unchangedSince`: how many objects the whole collection had when the
   * page was begun; -1 where items are the whole collection. Good from the first item on.
   */
  unchangedOf = -1;
  #handle: StreamHandle | null = null;
  #cancelWait: (() => void) | null = null;

  constructor(options: PagerOptions, onResult: (result: PagerResult) => void) {
    this.#options = options;
    this.#onResult = onResult;
    this.#backoff = new Backoff(BACKOFF, () => options.client.random());
  }

  start(): void {
    this.#ask();
  }

  /** Stops; no result follows. */
  cancel(): void {
    this.#isOver = true;
    this.#handle?.cancel();
    this.#cancelWait?.();
  }

  #ask(): void {
    const { client, path, labelSelector, fieldSelector, shardSelector } = this.#options;
    const { limit = PAGE_ITEMS, resourceVersion, unchangedSince = 0 } = this.#options;
    this.#tries++;
    this.#status = 0;
    this.#retryAfterSeconds = 0;
    this.#length = 0;
    this.#askedMs = client.timers.nowMs();
    const isFirst = this.#token === '';
    const query = withQuery(path, {
      labelSelector,
      fieldSelector,
      shardSelector,
      limit: `${limit}`,
      continue: this.#token,
      resourceVersion: isFirst ? resourceVersion : undefined,
      unchangedSince: unchangedSince > 0 ? `${unchangedSince}` : undefined,
    });
    this.#handle = client.stream(query, this);
  }

  onHead(status: number, retryAfterSeconds: number): void {
    this.#status = status;
    this.#retryAfterSeconds = retryAfterSeconds;
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    const length = this.#length + end - start;
    if (length > PAGE_BYTES_MAX) {
      this.#handle?.cancel();
      const message = `a page of ${this.#options.path} is larger than ${PAGE_BYTES_MAX} bytes`;
      return this.#finish({ ok: false, status: madeUpStatus(STATUS_NONE, message) });
    }
    if (length > this.#body.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(64 * 1024, length, 2 * this.#body.length));
      this.#body.copy(grown, 0, 0, this.#length);
      this.#body = grown;
    }
    this.#body.set(bytes.subarray(start, end), this.#length);
    this.#length = length;
  }

  onEnd(error: string | null): void {
    if (this.#isOver) return;
    if (error !== null || this.#status === 0) {
      const why = `GET ${this.#options.path}: ${error ?? 'no answer'}`;
      return this.#retryOr(madeUpStatus(STATUS_NONE, why), true);
    }
    if (this.#status >= 300) return this.#refused();
    const page = this.#page;
    const options = this.#options;
    const isList = page.read(this.#body, this.#length);
    const isOther = this.#resourceVersion >= 0 && this.unchangedOf < 0 !== page.unchangedOf < 0;
    if (isList && isOther) {
      const message = `GET ${options.path}: of two pages one leaves out what has changed`;
      return this.#finish({ ok: false, status: madeUpStatus(STATUS_NONE, message) });
    }
    this.unchangedOf = page.unchangedOf;
    const count = isList
      ? page.forEach((bytes, start, end) => options.onItem(bytes, start, end))
      : -1;
    if (this.#isOver) return;
    if (count < 0) {
      const message = `GET ${this.#options.path}: the answer is no list of objects in JSON`;
      return this.#finish({ ok: false, status: madeUpStatus(STATUS_NONE, message) });
    }
    this.#items += count;
    this.#resourceVersion = page.resourceVersion;
    this.#token = page.continueToken;
    this.#tries = 0;
    if (this.#token !== '') return this.#askNext();
    const resourceVersion = `${Math.max(0, this.#resourceVersion)}`;
    this.#finish({ ok: true, resourceVersion, items: this.#items });
  }

  #askNext(): void {
    const { client, pageMs = 0 } = this.#options;
    const pauseMs = pageMs - (client.timers.nowMs() - this.#askedMs);
    if (pauseMs <= 0) return this.#ask();
    this.#cancelWait = client.timers.after(pauseMs, () => this.#ask());
  }

  #refused(): void {
    const code = this.#status;
    const status = statusOf(code, this.#body, 0, this.#length);
    const fresh = status.metadata?.continue ?? '';
    if (code === 410 && fresh !== '' && this.#options.mustBeConsistent !== true) {
      this.#token = fresh;
      return this.#ask();
    }
    this.#retryOr(status, code === 429 || code >= 500);
  }

  #retryOr(status: Status, isPassing: boolean): void {
    if (!isPassing || this.#tries >= TRIES_MAX) return this.#finish({ ok: false, status });
    const { timers } = this.#options.client;
    const pauseMs = Math.max(this.#retryAfterSeconds * 1000, this.#backoff.next(timers.nowMs()));
    this.#cancelWait = timers.after(pauseMs, () => this.#ask());
  }

  #finish(result: PagerResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body = EMPTY;
    this.#onResult(result);
  }
}
