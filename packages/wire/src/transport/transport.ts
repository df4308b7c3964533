/**
 * Between a protocol and its socket: what each may ask of the other.
 *
 * A protocol (HTTP/1.1, HTTP/2, either end) is a machine: it is given chunks, ticks and the news
 * about its socket, and writes bytes. It knows no clock and no socket. The shell owns the socket,
 * calls the protocol, and flushes all protocols that asked for it at the end of the turn.
 */
import type { ResponseDate } from '../http/response-date.ts';
import type { AnswerBudget } from './answer-budget.ts';
import type { BodyBudget } from './body-budget.ts';
import type { BodyOwner, Handler, PeerCertificate, Rest, StreamsBody } from '../http/exchange.ts';
import type { WireLimits } from '../limits.ts';

/** The socket's side, implemented by the shell (and by tests, over plain arrays). */
export interface Transport {
  /** Unique in the life of the process. */
  readonly id: number;
  readonly secure: boolean;
  readonly unix: boolean;
  readonly remoteAddress: string;
  peerCertificate(): PeerCertificate | null;
  /**
   * Hands `bytes[start..end)` to the socket. True if all of it was taken synchronously and the
   * memory may be reused at once; false if the shell still reads it, then `done` is called when
   * it may be reused (also when the socket broke). One call is one write to the socket.
   */
  write(bytes: Buffer, start: number, end: number, done: () => void): boolean;
  /** Bytes given to `write` that the kernel has not taken yet. */
  pending(): number;
  /** A write is under way: whatever is written now waits for it. `drained()` follows its end. */
  writing(): boolean;
  /** Stops reading until `resume`. Idempotent. */
  pause(): void;
  resume(): void;
  /** Asks for one `flush()` of the protocol at the end of this turn. Idempotent within a turn. */
  requestFlush(): void;
  /** Asks for one `drained()` in the event loop's next round, after other sockets had theirs. */
  requestTurn(): void;
  /** Ends after what was written: half-close, then close when the peer ended or a second passed. */
  end(): void;
  /** Cuts the connection now. `closed()` follows. */
  destroy(): void;
  /** Coarse monotonic time in milliseconds, as of the turn's start (or the last tick). */
  nowMs(): number;
  /** The same clock, looked at. */
  preciseMs(): number;
}

/** The protocol's side, called by the shell. */
export interface Protocol {
  /** Of a server's end. */
  readonly protocol?: 'h2' | 'http/1.1';
  /** When reading stops for the rest of a round; absent: `late`. */
  readonly rest?: Rest;
  /** A chunk from the peer. `bytes[start..end)` is valid during the call only. */
  receive(bytes: Buffer, start: number, end: number): void;
  /** Write out what the turn produced. Called by the shell after `receive` and after
   *  `requestFlush`. */
  flush(): void;
  /** The kernel took what was pending (`pending()` fell to 0), or `requestTurn` asked for it. */
  drained(): void;
  /** The peer half-closed: nothing more will be received. */
  ended(): void;
  /** The socket is gone. Called once, last. */
  closed(): void;
  /** About once a second. All timeouts are decided here. */
  tick(nowMs: number): void;
  /** Finish what is in flight, take nothing new, then `transport.end()`. */
  drain(): void;
}

/**
 * What a server protocol serves with. A protocol is made by a function
 * `(transport: Transport, options: ServerOptions) => Protocol` once the listener knows which one
 * the peer speaks; the bytes seen so far then come by `receive`.
 */
export interface ServerOptions {
  readonly handler: Handler;
  readonly streamsBody: StreamsBody;
  /** Whose a body is that does not come at once; absent: that of its peer's address. */
  readonly bodyOwner?: BodyOwner;
  readonly limits: WireLimits;
  /** Shared by all connections of a listener. */
  readonly bodies: BodyBudget;
  /** The same; without it connections have their own bounds only. */
  readonly answers?: AnswerBudget;
  /** Told with every answer that does not tell it itself; without it answers have none. */
  readonly date?: ResponseDate;
  /** An error that a handler threw; the exchange was answered 500. */
  readonly onError: (error: unknown) => void;
}

/**
 * What a client protocol starts with: `(transport, options) => ClientConnection & Protocol`. The
 * transport is connected already (over TLS: the handshake is done).
 */
export interface ClientOptions {
  /** `host` or `:authority` of all requests. */
  readonly authority: string;
  readonly limits: WireLimits;
  /** Asked once at the end: why the socket is gone, for people ('' if unknown), and whether it was
   *  ever connected: if not, the server has seen nothing. */
  readonly whyClosed?: () => { readonly text: string; readonly reached: boolean };
}
