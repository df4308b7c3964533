/**
 * What programs see of an API server: the interface that informers, pagers, elections and the
 * components are written against. `createKubeClient` (kube-client.ts) is the one over sockets;
 * tests put a fake in its place.
 *
 * Two dialects. `send` is for components with a hundred thousand requests in flight over time: a
 * callback, a number as tag, no promise, no object kept by the caller. `request` is for control
 * plane code: a promise, decoded JSON, failures as Status values.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import type { RequestMetrics } from '../metrics/request-metrics.ts';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Media types of bodies that the API server takes. */
export const CONTENT = {
  json: 'application/json',
  /**
   * As an Accept header: JSON without managedFields where the server can leave them out (ours can;
   * others ignore the parameter).
   */
  lean: 'application/json;managedfields=omit',
  protobuf: 'application/vnd.kubernetes.protobuf',
  jsonPatch: 'application/json-patch+json',
  mergePatch: 'application/merge-patch+json',
  strategicPatch: 'application/strategic-merge-patch+json',
  applyPatch: 'application/apply-patch+yaml',
} as const;

/** `status` of an answer that never came; the bytes then hold the reason as text. */
export const STATUS_NONE = 0;

/**
 * The end of one `send`. `bytes[start..end)` is the body of the answer, valid only during the call.
 * `status` is the HTTP status, or `STATUS_NONE` when no answer came (connection lost after the
 * request may have been processed, deadline passed, client closed): the outcome is then unknown.
 * `tag` is the number given to `send`.
 */
export type SendDone = (
  status: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  tag: number,
) => void;

/** One request of control-plane code. */
export interface ClientRequest {
  readonly method: Method;
  /** Path with query, escaped, beginning with `/`. */
  readonly path: string;
  /** Default: JSON when there is a body. */
  readonly contentType?: string;
  readonly body?: JsonObject | Uint8Array | string;
  /** Default `CONTENT.lean`. */
  readonly accept?: string;
  /** Default `ClientLimits.requestTimeoutMs`. */
  readonly timeoutMs?: number;
  /** The ETag of an answer that is kept: nothing newer is answered by 304 and an empty object. */
  readonly ifNoneMatch?: string;
}

/** An answer of 2xx, or the failure as a Status (made up locally when none was decodable). */
export type ClientResponse =
  | {
      readonly ok: true;
      readonly code: number;
      readonly object: JsonObject;
      readonly bytes: Buffer;
      /** ETag of the answer, '' without one. */
      readonly etag?: string;
    }
  | {
      readonly ok: false;
      /** HTTP status, or `STATUS_NONE` when the server did not answer. */
      readonly code: number;
      readonly status: Status;
    };

/** Receives one streamed answer (a watch, a log, a big list). Calls come in this order. */
export interface StreamSink {
  /** Head of the answer; failures (4xx, 5xx) come here too, with their body by `onData`. */
  onHead(status: number, retryAfterSeconds: number): void;
  /** The next bytes, valid only during the call; chunk borders mean nothing. */
  onData(bytes: Uint8Array, start: number, end: number): void;
  /**
   * Exactly once. `error` is null when the server ended the answer cleanly, else a text for people;
   * without an `onHead` before it the request was not answered at all.
   */
  onEnd(error: string | null): void;
}

/** A streamed answer under way. All methods may be called at any time, also after its end. */
export interface StreamHandle {
  /** Stops it: nothing is delivered afterwards, not even `onEnd`. */
  cancel(): void;
  /** Holds delivery back; the server is slowed down by flow control. */
  pause(): void;
  resume(): void;
}

/** Timers and clock as a component is given them, so that tests can own both. */
export interface Timers {
  /**
   * Milliseconds that never go back: for durations, deadlines and pauses. It jumps forward with the
   * wall clock, as after a machine has slept, and does not follow it back.
   */
  nowMs(): number;
  /**
   * Milliseconds since 1970-01-01 UTC by the machine's clock, which may be set back: for stamps,
   * and to compare with times that objects tell.
   */
  wallMs(): number;
  /** Runs `fire` once, at least `delayMs` from now; returns what cancels it. */
  after(delayMs: number, fire: () => void): () => void;
}

export interface Client {
  /**
   * Puts one request under way. The body is copied before the call returns.
   *
   * Returns false, having taken nothing and without ever calling `done`, when the queue is at its
   * limit: stop producing and go on when `onRoom` callbacks are called. Requests that the server
   * surely did not process (refused stream, GOAWAY, no connection) and 429 answers with Retry-After
   * are repeated by the client, up to `ClientLimits.retriesMax` times. `user`: act as this one.
   */
  send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag?: number,
    user?: string,
  ): boolean;

  /** How many more `send` calls will be taken now. */
  room(): number;

  /** Calls back each time the queue has fallen below half of its limit after having been full. */
  onRoom(callback: () => void): void;

  request(request: ClientRequest): Promise<ClientResponse>;

  /** Opens a streamed GET; `accept` defaults to `CONTENT.lean`. Never refused by the queue. */
  stream(path: string, sink: StreamSink, accept?: string): StreamHandle;

  /**
   * During a `done`: after how many seconds the server wants to be asked again; 0 where it did not
   * say. Requests that it puts off are repeated here, `retriesMax` times, before `done` is called.
   */
  readonly retryAfterSeconds: number;

  readonly metrics: ClientMetrics;
  readonly timers: Timers;
  /** Uniform in [0, 1): jitter for everything that uses this client. */
  random(): number;

  /** Ends all requests (`STATUS_NONE`) and connections; the client is of no use afterwards. */
  close(): void;
}

/** Counters since the start; plain numbers, read whenever wanted. */
export interface ClientMetrics {
  requestsStarted: number;
  requestsInFlight: number;
  requestsQueued: number;
  requestsRefused: number;
  /** Answers by first digit of their status; index 0 counts `STATUS_NONE`. */
  readonly answersByClass: Float64Array;
  retries: number;
  throttled: number;
  streamsOpen: number;
  connects: number;
  connectFailures: number;
  bytesSent: number;
  bytesReceived: number;
  /** By method and code, for scrapers. */
  readonly requests: RequestMetrics;
}

/** Limits of a client; each can be given in the options of `createKubeClient`. */
export interface ClientLimits {
  /** HTTP/2 connections per client. */
  readonly connections: number;
  /** Requests by `send` and `request` without an answer yet, over all connections. */
  readonly inFlightMax: number;
  /** Requests waiting for a place among those in flight. */
  readonly queueMax: number;
  readonly requestTimeoutMs: number;
  readonly retriesMax: number;
  /** Largest answer that `send` and `request` collect. */
  readonly answerBytesMax: number;
}
