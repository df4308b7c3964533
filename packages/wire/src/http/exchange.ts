/**
 * The server side of a request, whatever protocol carried it.
 *
 * HTTP/1.1 and HTTP/2 implement these interfaces; everything above the wire is written against
 * them. One thread runs everything: a callback runs to its end before the next event, and all
 * bytes that one turn produces for a connection leave in one write to its socket.
 *
 * The rule for large or endless answers is PULL: a producer keeps a cursor into its source, not a
 * queue of bytes. It writes while `writable()` is above zero, and goes on when `onWritable` calls.
 */

import type { FieldList } from '../fields.ts';

/** Why an exchange or connection ended before its natural end. */
export type CloseReason =
  /** The peer reset the stream, or closed the connection, before the answer was complete. */
  | 'cancelled'
  /** The connection broke: reset, timed out, or closed for a violation of the protocol. */
  | 'disconnected'
  /** This side gave it up: `reset()`, a limit, or the end of the server's grace period. */
  | 'aborted';

/** A client's certificate, in the fields that authentication reads. */
export interface PeerCertificate {
  /** The whole certificate, DER. */
  readonly raw: Buffer;
  /** The last CN of the subject, or `''`. */
  readonly commonName: string;
  /** Every O of the subject, in order. */
  readonly organizations: readonly string[];
  /** Every uid of a Kubernetes user in the subject (1.3.6.1.4.1.57683.2), in order. */
  readonly uids: readonly string[];
  /** True if the chain ends in one of the listener's client CAs and is valid by date. */
  readonly trusted: boolean;
  /** OpenSSL's reason when not `trusted`, for example `CERT_HAS_EXPIRED`; else `''`. */
  readonly failure: string;
  /** Those that stand above it, DER, as far as the peer sent them or they are known. */
  readonly issuers?: () => readonly Buffer[];
  /** Not before, not after: milliseconds since 1970. */
  readonly validFromMs: number;
  readonly validToMs: number;
}

/**
 * Whether a connection that has more is read on in a round of the event loop: `never` rests, rests
 * once the round has lasted `readMsMax` (`late`), or rests `now`. For listeners with that limit.
 */
export type Rest = 'never' | 'late' | 'now';

/** One transport connection of a client, as seen by handlers. */
export interface Connection {
  /** Unique in the life of the process, never reused. */
  readonly id: number;
  readonly protocol: 'h2' | 'http/1.1';
  /** True over TLS. */
  readonly secure: boolean;
  /** True if it came in by a Unix socket. */
  readonly unix: boolean;
  /** IP address of the peer, `''` on a Unix socket. */
  readonly remoteAddress: string;
  /** The certificate that the client presented; null without TLS or without a certificate.
   *  Parsed at the first call, then kept. */
  peerCertificate(): PeerCertificate | null;
  /** For the user: what it knows about this peer (its identity, say). Initially undefined. */
  slot: unknown;
  /** For the user: when what else has come on this connection is read a round of the event loop
   *  later. Initially `late`. */
  rest: Rest;

  /**
   * Keeps back all answers of this connection until a matching `release()`; calls nest.
   *
   * Answers are serialised meanwhile and leave in one write at the last release, in order. What
   * keeps the connection itself alive (acknowledgements of PING and SETTINGS, windows) flows on.
   * Held bytes count against the connection's output budget: over it the connection stops reading.
   * Used to let nothing out before it is durable; hold for milliseconds, not for seconds.
   */
  hold(): void;
  /** Undoes one `hold()`. A bug (assertion) without one. Harmless after the connection closed. */
  release(): void;
  /** Ends it at once: what is held never leaves. HTTP/2 tells the peer why. */
  abort(why: string): void;
  /** Lets the exchanges in flight finish and takes no new ones (GOAWAY, `connection: close`). */
  drain(): void;
  /** Calls back once when the connection is gone. At once (in the next turn) if it is already. */
  onceClosed(callback: () => void): void;
}

/** Bytes that many exchanges are given. */
export interface SharedBytes {
  /** The same bytes, all of them, in memory that never changes again. */
  kept(): Buffer;
}

/**
 * One request and its answer.
 *
 * The answer is either `respond(...)` once, or `open(...)`, any number of `write(...)`, `end()`.
 * All of them may be called in the handler or at any later time, as long as the exchange lives;
 * after its end (`closed`) they are ignored, so that an answer that crosses with a cancellation
 * needs no care. Answering twice is a bug and asserts.
 *
 * A handler that throws answers 500 without a body and the error goes to the listener's
 * `onError`; it must not happen.
 */
/** Fields that are there once; of several, servers in Go know the first. */
export const FIRST_COUNTS: ReadonlySet<string> = new Set([
  'accept',
  'authorization',
  'content-type',
]);

export interface Exchange {
  readonly connection: Connection;
  /** As sent, for example `GET`. */
  readonly method: string;
  /** The request target as sent, with its query, not decoded: starts with `/`, or is `*`. */
  readonly path: string;
  /** `host` or `:authority`, `''` if absent (HTTP/1.0). */
  readonly authority: string;
  /** Value of a header field by its lower-case name; several are joined by `, ` (`; ` for
   *  cookie), but for those of which the first counts (`FIRST_COUNTS`). Pseudo-fields and
   *  hop-by-hop fields are not here. */
  header(name: string): string | undefined;
  /**
   * All fields in the order of arrival. On HTTP/2 they were read already, and requests of a
   * connection that follow one another with the same fields give the same list: who remembers what
   * a list says need not look at it again, and a list that is another may say the same. On HTTP/1.1
   * each call makes a list, of what `header` finds cheaper: for proxies only.
   */
  fields(): FieldList;

  /**
   * The whole request body; empty when there was none or when the body is streamed.
   *
   * A view into memory of the connection: valid only until the handler returns. Copy what is
   * needed later, or call `keepBody()`.
   */
  readonly body: Buffer;
  /**
   * Makes the body stay valid (copied once if it must be): from then on `body` is that copy, in
   * later turns, too. In the handler only.
   */
  keepBody(): Buffer;

  /**
   * Only when the listener's `streamsBody` chose streaming: each piece of the body as it arrives,
   * valid during the call; then `onBodyEnd` once. Set both in the handler. The peer's window is
   * given back as pieces are delivered, except between `pauseBody()` and `resumeBody()`.
   */
  onBody: ((bytes: Buffer, start: number, end: number) => void) | null;
  onBodyEnd: (() => void) | null;
  pauseBody(): void;
  resumeBody(): void;

  /**
   * The whole answer. `bytes` belongs to the wire from now on: the caller must not change it
   * until the exchange is closed. A string is sent as UTF-8. `contentType` null sends none.
   * `headers` must not hold content-length, content-type or hop-by-hop fields; names in lower case.
   * For HEAD the body is counted, not sent. Never queue large answers by this: use `open`.
   * `lasting`: more fields, in a list that is the same for many answers and never changes; they
   * are encoded once.
   */
  respond(
    status: number,
    contentType: string | null,
    bytes: Uint8Array | string | null,
    headers?: FieldList,
    lasting?: FieldList,
  ): void;
  /** The same with the first `length` of bytes that stay the caller's: they are copied before it
   *  returns. */
  respondCopy(
    status: number,
    contentType: string | null,
    bytes: Buffer,
    length: number,
    headers?: FieldList,
    lasting?: FieldList,
  ): void;
  /** Starts an answer of unknown length; the head leaves in this turn. */
  open(status: number, contentType: string | null, headers?: FieldList): void;
  /**
   * Appends `bytes[start..end)` to the answer; they are copied before it returns. More than
   * `writable()` is taken and queued (an event is not cut), but costs memory until the peer
   * reads: at `STREAM_QUEUE_BYTES_MAX` the exchange is reset. Whoever writes the same bytes to many
   * says so by `shared`: on HTTP/2 that one copy waits for all of them until the turn ends.
   */
  write(bytes: Uint8Array, start?: number, end?: number, shared?: SharedBytes): void;
  /** Ends an opened answer. `trailers` are sent on HTTP/2, and on HTTP/1.1 when chunked. */
  end(trailers?: FieldList): void;
  /**
   * Bytes that would leave at once: what the windows of the peer and the output budget of the
   * connection let through, shared fairly with other exchanges of the connection. After it
   * returned 0, `onWritable` is called once as soon as it is above 0 again.
   */
  writable(): number;
  onWritable: (() => void) | null;
  /** Called once if the exchange ends before the answer was handed over entirely to the
   *  transport; not called after a normal end. */
  onClose: ((reason: CloseReason) => void) | null;
  /**
   * Called once where the peer sends nothing more while nothing is answered (HTTP/1.1): most that
   * do so have left, and will not read it. What has only waited so far may be ended, as Go does.
   */
  onHalfClose: (() => void) | null;
  /** True when nothing can be answered any more. */
  readonly closed: boolean;
  /**
   * What is answered is lost work when it comes too late, as the changes that a watch tells: on
   * HTTP/2 over TLS more of it leaves with each turn of the event loop than of other answers.
   */
  hasten?(): void;
  /** Gives up the exchange: RST_STREAM(INTERNAL_ERROR), or the connection is cut on HTTP/1.1. */
  reset(): void;

  /** The protocol of an HTTP/1.1 `Upgrade` request in lower case (`websocket`, `spdy/3.1`), else
   *  undefined (always on HTTP/2). */
  readonly upgradeProtocol: string | undefined;
  /** Answers 101 with `headers` and turns the connection into a byte pipe. Asserts unless
   *  `upgradeProtocol` is set. The exchange is closed by it. */
  upgrade(headers: FieldList): UpgradedStream;
}

/** A connection after 101: bytes both ways, no framing by the wire. */
export interface UpgradedStream {
  readonly connection: Connection;
  /** Each piece from the peer, valid during the call. Bytes that came with the request are
   *  delivered in the next turn. */
  onData: ((bytes: Buffer, start: number, end: number) => void) | null;
  /** Once: the peer ended, or the connection broke. */
  onEnd: (() => void) | null;
  write(bytes: Uint8Array, start?: number, end?: number): void;
  writable(): number;
  onWritable: (() => void) | null;
  pause(): void;
  resume(): void;
  end(): void;
}

/** Answers requests. Called when the head and the whole body are in. */
export type Handler = (exchange: Exchange) => void;

/**
 * Asked once per request as its head is in. True: the handler is called at once and receives the
 * body by `onBody`. Otherwise the body is collected up to the limit (413 above it) and the
 * handler called at its end. Upgrade requests have no body.
 */
export type StreamsBody = (method: string, path: string) => boolean;

/**
 * Asked once of a request whose body is to be collected and has not come with its head, before
 * memory is taken for it: whose share that memory is of. Null: the request has been answered, and
 * nothing of its body is kept. For servers that look at credentials before they read.
 */
export type BodyOwner = (exchange: Exchange) => BodyShare | null;

/** Whose memory a body is. */
export interface BodyShare {
  /** A user, or an address. */
  readonly name: string;
  /** Nobody has looked at a credential, or there is none. */
  readonly isStranger: boolean;
}
