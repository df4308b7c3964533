/**
 * Limits of a connection: name, unit, and what happens there.
 *
 * A listener or client may narrow or widen them; the defaults fit a control plane whose clients
 * send many small requests and read long watches.
 */

/** Largest payload of a frame that this side accepts (SETTINGS_MAX_FRAME_SIZE), the RFC's least. */
export const FRAME_BYTES_MAX = 16_384;
/** Bytes of one stream per turn of the round: a large list must not starve watches beside it. */
export const QUANTUM_BYTES = 16_384;
/** The same where no other stream of the connection has anything to say. */
export const QUANTUM_ALONE_BYTES = 65_536;
/** Queued bytes of one answer beyond what the peer takes; who writes on above it is reset. */
export const STREAM_QUEUE_BYTES_MAX: number = 64 * 1024 * 1024;

/** Octets of an unfinished head that no budget counts: who sends more is one of few. */
export const HEAD_BYTES_FREE: number = 64 * 1024;

export interface WireLimits {
  /** Streams that a peer may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS); more are
   *  refused. */
  readonly streamsMax: number;
  /** Octets of a request's or response's fields, counted as in RFC 9113 6.5.2; 431 above it. */
  readonly headBytesMax: number;
  /** Octets of a compressed header block with its CONTINUATIONs; above it the connection ends. */
  readonly blockBytesMax: number;
  /** Octets of a collected request body; 413 above it. */
  readonly bodyBytesMax: number;
  /** Octets of unfinished collected bodies of one connection; requests above it get 503. */
  readonly bodiesBytesMax: number;
  /** Octets of unfinished collected bodies of all connections of a listener, and of unfinished
   *  heads beyond `HEAD_BYTES_FREE`; requests above it get 503. */
  readonly listenerBodiesBytesMax: number;
  /** Octets waiting for the socket of one connection; above it the connection is not read and
   *  producers are told to wait. */
  readonly outputBytesMax: number;
  /** Octets of all answers of one connection that its peer's windows have no room for; above it
   *  new streams are refused, and above four times it, those that are open are reset. */
  readonly queuesBytesMax: number;
  /** The same of all connections of a listener: above it, connections of which something waits are
   *  refused new streams, and those that have taken nothing for a second are reset, the stillest
   *  first; above twice as much no answer waits. */
  readonly listenerQueuesBytesMax: number;
  /** Receive window of a stream, octets. */
  readonly streamWindowBytes: number;
  /** Receive window of a connection, octets. */
  readonly connectionWindowBytes: number;
  /** Table that peers may use to compress their fields (SETTINGS_HEADER_TABLE_SIZE), octets. */
  readonly headerTableBytes: number;
  /** Frames without use of their own (PING, SETTINGS, RST_STREAM, PRIORITY, WINDOW_UPDATE, empty
   *  DATA) that a peer may send per second beyond its useful work; ENHANCE_YOUR_CALM above it. */
  readonly idleFramesPerSecond: number;
  /** Time for the TLS handshake and the preface; the connection is cut after it. */
  readonly handshakeMsMax: number;
  /** Time for one request's head, from its first byte; 408 or a cut after it. */
  readonly headMsMax: number;
  /** Time without any byte of a started body; 408 or a reset after it. */
  readonly bodyIdleMsMax: number;
  /** Time for all of a body, or of a gRPC message, that is collected, from its start; 408 or a
   *  reset after it. */
  readonly bodyMsMax: number;
  /** Time a connection without any exchange is kept. */
  readonly idleMsMax: number;
  /** Time that bytes for the peer wait without any progress; the connection is cut after it. */
  readonly stallMsMax: number;
  /** Time without anything from the peer after which a PING asks whether it still lives. */
  readonly keepaliveMs: number;
  /** Time for the answer to that PING; the connection is cut after it. */
  readonly keepaliveTimeoutMs: number;
  /** Connections of one listener; more are closed at once. */
  readonly connectionsMax: number;
  /** Of those, from one address; more of it are closed at once. Unix sockets have no address. */
  readonly connectionsPerSourceMax: number;
  /** Time that a listener's connections are read in one round of the event loop; those that have
   *  more, and may (`Connection.rest`), rest until the next round. */
  readonly readMsMax: number;
}

export const SERVER_LIMITS: WireLimits = {
  streamsMax: 1000,
  headBytesMax: 1024 * 1024,
  blockBytesMax: 1024 * 1024,
  bodyBytesMax: 8 * 1024 * 1024,
  bodiesBytesMax: 64 * 1024 * 1024,
  listenerBodiesBytesMax: 512 * 1024 * 1024,
  outputBytesMax: 256 * 1024,
  queuesBytesMax: 256 * 1024 * 1024,
  listenerQueuesBytesMax: 2 * 1024 * 1024 * 1024,
  streamWindowBytes: 1024 * 1024,
  connectionWindowBytes: 16 * 1024 * 1024,
  headerTableBytes: 4096,
  idleFramesPerSecond: 2000,
  handshakeMsMax: 10_000,
  headMsMax: 10_000,
  bodyIdleMsMax: 30_000,
  bodyMsMax: 60_000,
  idleMsMax: 10 * 60_000,
  stallMsMax: 5 * 60_000,
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  connectionsMax: 100_000,
  connectionsPerSourceMax: Infinity,
  readMsMax: Infinity,
};

export const CLIENT_LIMITS: WireLimits = {
  ...SERVER_LIMITS,
  streamsMax: 0,
  bodyBytesMax: Number.MAX_SAFE_INTEGER,
  streamWindowBytes: 4 * 1024 * 1024,
  connectionWindowBytes: 64 * 1024 * 1024,
  idleMsMax: Number.MAX_SAFE_INTEGER,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 15_000,
};

export const BLOCK_BYTES: number = 128 * 1024;

/** What is smaller is copied, and pins no block while it waits. */
export const COPY_BYTES_MAX = 8192;

/** What one turn may send of a connection's watches. */
export const TURN_BYTES: number = 4 * BLOCK_BYTES;
