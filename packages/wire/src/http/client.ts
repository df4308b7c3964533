/**
 * The client side: many requests in flight over one connection, answers by callbacks.
 *
 * `connect` (connect.ts) makes a connection for HTTP/2 or HTTP/1.1; both have this interface. A
 * connection never reconnects by itself: its user sees `onClosed` and decides (back-off, other
 * server). Requests given before it is open wait for it.
 */
import type { FieldList } from '../fields.ts';

/** How a request failed, and whether the server can have acted on it. */
export type RequestFailure = {
  readonly kind:
    /** The server certainly did nothing: refused, or beyond the last stream of its GOAWAY, or the
     *  connection was never made. Safe to repeat. */
    | 'refused'
    /** The server reset the stream while working on it. */
    | 'reset'
    /** The connection broke after the request was sent. */
    | 'disconnected'
    /** This side gave up: `cancel()`, or a limit. */
    | 'cancelled';
  /** HTTP/2 error code where there is one, else 0. */
  readonly code: number;
  /** For people: what was asked, what happened. */
  readonly message: string;
};

/**
 * Receives the answers. One sink may serve any number of requests: each call names the stream, and
 * `stream.tag` is the user's. Calls for one stream: `onHead` once, `onData` any number, `onEnd`
 * once, last, exactly once for every request.
 */
export interface ResponseSink {
  /** It does not look at `audit-id`, which may be another answer's then: reading it takes time. */
  readonly takesAnyName?: boolean;
  /** The final status (1xx are skipped) and fields `[name, value, ...]`, names in lower case. */
  onHead(stream: ClientStream, status: number, fields: FieldList): void;
  /**
   * A piece of the body: `bytes[start..end)` is valid during the call only; where `isLast`, until
   * `onEnd` returns, which follows at once.
   */
  onData(stream: ClientStream, bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** The end. `failure` null: the answer is complete; `trailers` if there were any. */
  onEnd(stream: ClientStream, failure: RequestFailure | null, trailers: FieldList): void;
}

/** One request in flight. */
export interface ClientStream {
  /** The user's, initially as given to `request`. */
  tag: number;
  readonly connection: ClientConnection;
  readonly closed: boolean;
  /** Stops giving window to the server (HTTP/2) or reading the socket (HTTP/1.1); what is under
   *  way (at most a window) still arrives. */
  pause(): void;
  resume(): void;
  /** Gives the request up. `onEnd` with `cancelled` follows in this call. */
  cancel(): void;
  /** For a request made by `open`: as in Exchange. */
  write(bytes: Uint8Array, start?: number, end?: number): void;
  end(): void;
  writable(): number;
  onWritable: (() => void) | null;
}

/** Header fields made ready once and used for many requests (HPACK indexes them). */
export interface PreparedFields {
  readonly fields: FieldList;
}

export interface ClientConnection {
  readonly protocol: 'h2' | 'http/1.1';
  /** `draining`: the server sent GOAWAY (or `connection: close`), or `drain()` was called:
   *  requests in flight go on, new ones fail as `refused`. */
  readonly state: 'connecting' | 'open' | 'draining' | 'closed';
  /** Requests that may be started now without waiting for another one's end. */
  readonly capacity: number;
  /** Requests that have not ended. */
  readonly inFlight: number;
  /**
   * Starts a request. Leaves at the end of this turn, together with all others of the turn.
   *
   * `fields` must not hold pseudo-fields, content-length or hop-by-hop fields; lower-case names.
   * `body` is copied (a string is sent as UTF-8), null is no body. When the server's limit of
   * streams is reached, requests wait in order, at most `REQUESTS_WAITING_MAX`, then they fail as
   * `refused`.
   */
  request(
    method: string,
    path: string,
    fields: PreparedFields,
    body: Uint8Array | string | null,
    sink: ResponseSink,
    tag?: number,
  ): ClientStream;
  /** The same for a request whose body follows by `stream.write` and ends by `stream.end`. */
  open(
    method: string,
    path: string,
    fields: PreparedFields,
    sink: ResponseSink,
    tag?: number,
  ): ClientStream;
  /** Once: why the connection is no more (or could not be made). After every request's `onEnd`. */
  onClosed: ((reason: string) => void) | null;
  /** Once: the connection is usable. */
  onOpen: (() => void) | null;
  /** Once: the server drains; open a new connection for further requests. */
  onDraining: (() => void) | null;
  /** Takes no new requests; ends when those in flight have. */
  drain(): void;
  /** Cuts it now; requests in flight fail as `disconnected`. */
  destroy(): void;
}

/** Requests that wait for the server to allow another stream, on one connection. */
export const REQUESTS_WAITING_MAX = 100_000;

/** Fields for many requests. */
export function prepareFields(fields: FieldList): PreparedFields {
  return { fields };
}
