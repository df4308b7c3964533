// shell
/**
 * A socket as a `Transport`, for plain, Unix and TLS sockets, at both ends.
 *
 * The turn: all chunks of one socket event are handled, then the protocol is flushed once. What
 * other code writes in a turn of its own (an answer after a group commit, a watch event) is flushed
 * when that turn ends, connection by connection, once each.
 */
import { blame, endOfTurn, guarded, nextTurn } from '@megaplane/base/deferred';
import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { TLSSocket } from 'node:tls';
import type { PeerCertificate } from '../http/exchange.ts';
import { countOutstanding } from './outstanding.ts';
import type { ReadRounds } from './read-rounds.ts';
import { readInPlace } from './socket-read.ts';
import type { Protocol, Transport } from './transport.ts';
import { WaitingWrites, type LeavingWrite } from './waiting-writes.ts';

/** After this side ended, how long the peer may take to end too. */
const LINGER_MS = 1000;
/** How long those that asked for a turn have theirs before sockets are read again. */
const TURNS_MS_MAX = 4;
const NOTHING: Buffer = Buffer.alloc(0);

let nextId = 1;
/** A number that no connection of the process had, also where other threads own the sockets. */
export function freshId(): number {
  return nextId++;
}

let now: number = performance.now();
const transportOf = new WeakMap<Socket, SocketTransport>();
let flushes: SocketTransport[] = [];
let turns: SocketTransport[] = [];
let areTurnsPlanned = false;

/** What a transport tells whoever made it. */
export interface TransportHost {
  /** Bounds what is read of its sockets at a time; null: nothing does. */
  readonly rounds: ReadRounds | null;
  /** The first bytes came and no protocol was chosen yet: choose one, or null to wait for more. */
  choose(transport: SocketTransport, bytes: Buffer): Protocol | null;
  /** The socket is gone. */
  forget(transport: SocketTransport): void;
}

export class SocketTransport implements Transport {
  readonly id: number = freshId();
  readonly socket: Socket;
  readonly secure: boolean;
  readonly unix: boolean;
  protocol: Protocol | null = null;
  readonly bornMs: number;
  /** Why the socket broke, for messages. */
  error: string | null = null;
  readonly #host: TransportHost;
  #early: Buffer | null = null;
  #endedMs = 0;
  #peerEnded = false;
  #flushAsked = false;
  #turnAsked = false;
  /** Over TLS: one write at a time, and what waits for its end. */
  readonly #waiting: WaitingWrites | null;
  #isWriting = false;
  /** What of this one is among the outstanding octets. */
  #counted = 0;
  #certificate: PeerCertificate | null | undefined = undefined;

  constructor(socket: Socket, unix: boolean, host: TransportHost) {
    this.socket = socket;
    this.secure = socket instanceof TLSSocket;
    this.unix = unix;
    this.#waiting = this.secure ? new WaitingWrites() : null;
    this.#host = host;
    now = performance.now();
    this.bornMs = now;
    transportOf.set(socket, this);
    socket.setNoDelay(true);
    const take = (bytes: Buffer, count: number): void => this.received(bytes, count);
    readInPlace(socket, host.rounds, take, () => this.protocol?.rest ?? 'late');
    socket.on('data', onData);
    socket.on('end', onEnd);
    socket.on('error', onError);
    socket.on('close', onClose);
  }

  get remoteAddress(): string {
    return this.unix ? '' : (this.socket.remoteAddress ?? '');
  }

  peerCertificate(): PeerCertificate | null {
    if (this.#certificate === undefined) this.#certificate = readCertificate(this.socket);
    return this.#certificate;
  }

  write(bytes: Buffer, start: number, end: number, done: () => void): boolean {
    const socket = this.socket;
    if (socket.destroyed || socket.writableEnded) return true;
    if (this.#waiting !== null) return this.#writeSecure(this.#waiting, bytes, start, end, done);
    let taken = false;
    const whole = start === 0 && end === bytes.length;
    socket.write(whole ? bytes : bytes.subarray(start, end), () => {
      if (taken) return;
      done();
      // Not by 'drain': that comes only after a write beyond the high-water mark.
      if (socket.writableLength === 0 && !socket.destroyed) this.#drained();
    });
    taken = socket.writableLength === 0;
    return taken;
  }

  /**
   * TLS encrypts a single buffer before `socket.write` returns and keeps nothing of it (a test
   * watches over that), so the same block serves again while it is in the cache. Several buffers
   * it would first copy into new memory; so what comes meanwhile waits here, and leaves as one.
   * Before TCP is connected it encrypts nothing, and keeps what it is given: that is copied, or
   * what others write into the block meanwhile, answers to other clients, would leave here.
   */
  #writeSecure(
    waiting: WaitingWrites,
    bytes: Buffer,
    start: number,
    end: number,
    done: () => void,
  ): boolean {
    if (this.#isWriting || this.socket.writableLength > 0) {
      const isCopied = waiting.add(bytes, start, end, done);
      this.#count(this.pending());
      return isCopied;
    }
    const piece = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
    this.#send(this.socket.connecting ? Buffer.from(piece) : piece);
    this.#count(this.pending());
    return true;
  }

  #count(bytes: number): void {
    if (bytes === this.#counted) return;
    countOutstanding(bytes - this.#counted);
    this.#counted = bytes;
  }

  #send(bytes: Buffer): void {
    this.#isWriting = true;
    this.socket.write(bytes, this.#onWritten);
  }

  readonly #onWritten = (): void => {
    this.#isWriting = false;
    if (this.socket.destroyed) return;
    const next = this.#waiting?.take() ?? null;
    if (next !== null) {
      this.#send(next.bytes);
      next.done();
      this.#count(this.pending());
    } else {
      this.#count(this.pending());
      if (this.socket.writableLength === 0) this.#drained();
    }
  };

  pending(): number {
    return this.socket.writableLength + (this.#waiting?.size ?? 0);
  }

  writing(): boolean {
    return this.#isWriting;
  }

  pause(): void {
    if (!this.socket.isPaused()) this.socket.pause();
  }

  resume(): void {
    if (this.socket.isPaused()) this.socket.resume();
  }

  requestFlush(): void {
    if (this.#flushAsked) return;
    this.#flushAsked = true;
    if (flushes.push(this) === 1) endOfTurn(flushAll);
  }

  requestTurn(): void {
    if (this.#turnAsked) return;
    this.#turnAsked = true;
    turns.push(this);
    planTurns();
  }

  end(): void {
    if (this.#endedMs > 0) return;
    this.#endedMs = Math.max(1, now);
    // from here on the socket itself keeps the order
    for (let next = this.#takeLast(); next !== null; next = this.#takeLast()) {
      this.socket.write(next.bytes);
      next.done();
    }
    this.socket.end();
    this.resume();
    if (this.#peerEnded) this.socket.destroySoon();
  }

  /** Waiting bytes in memory of their own. */
  #takeLast(): LeavingWrite | null {
    const next = this.#waiting?.take() ?? null;
    return next === null ? null : { bytes: Buffer.from(next.bytes), done: next.done };
  }

  destroy(): void {
    this.socket.destroy();
  }

  nowMs(): number {
    return now;
  }

  preciseMs(): number {
    return performance.now();
  }

  /** About once a second, by whoever made it. */
  tick(nowMs: number, handshakeMsMax: number): void {
    now = nowMs;
    if (this.#endedMs > 0 && nowMs - this.#endedMs > LINGER_MS) this.destroy();
    else if (this.protocol !== null) this.#turn(() => this.protocol?.tick(nowMs));
    else if (nowMs - this.bornMs > handshakeMsMax) this.destroy();
  }

  #turn(work: () => void): void {
    try {
      work();
      this.protocol?.flush();
    } catch (error) {
      this.#broke(error);
    }
  }

  /** An error in what handles this connection ends the connection, and nothing else. */
  #broke(error: unknown): void {
    this.destroy();
    blame(error, null);
  }

  /** The first `count` octets of `chunk`, which are lent for the call. */
  received(chunk: Buffer, count: number): void {
    now = performance.now();
    try {
      if (this.protocol === null) return this.#receivedEarly(chunk, count);
      this.protocol.receive(chunk, 0, count);
      this.protocol.flush();
    } catch (error) {
      this.#broke(error);
    }
  }

  #receivedEarly(chunk: Buffer, count: number): void {
    const bytes = Buffer.concat([this.#early ?? NOTHING, chunk.subarray(0, count)]);
    this.protocol = this.#host.choose(this, bytes);
    this.#early = this.protocol === null ? bytes : null;
    if (this.protocol === null) return;
    this.protocol.receive(bytes, 0, bytes.length);
    this.protocol.flush();
  }

  peerEnded(): void {
    this.#peerEnded = true;
    if (this.protocol === null || this.#endedMs > 0) this.socket.destroySoon();
    else this.#turn(() => this.protocol?.ended());
  }

  #drained(): void {
    now = performance.now();
    this.turnAsked();
  }

  gone(): void {
    now = performance.now();
    this.#host.forget(this);
    this.#waiting?.clear();
    this.#count(0);
    const { protocol } = this;
    this.protocol = null;
    try {
      protocol?.closed();
    } catch (error) {
      this.#broke(error);
    }
  }

  flushAsked(): void {
    this.#flushAsked = false;
    try {
      this.protocol?.flush();
    } catch (error) {
      this.#broke(error);
    }
  }

  turnAsked(): void {
    this.#turnAsked = false;
    try {
      this.protocol?.drained();
    } catch (error) {
      this.#broke(error);
    }
  }
}

/** The monotonic clock of all transports. */
export function monotonicMs(): number {
  return performance.now();
}

const onData = guarded(function (this: Socket, chunk: Buffer): void {
  transportOf.get(this)?.received(chunk, chunk.length);
});

const onEnd = guarded(function (this: Socket): void {
  transportOf.get(this)?.peerEnded();
});

const onError = guarded(function (this: Socket, error: Error): void {
  const transport = transportOf.get(this);
  if (transport !== undefined) transport.error ??= error.message;
});

const onClose = guarded(function (this: Socket): void {
  transportOf.get(this)?.gone();
});

function flushAll(): void {
  const asked = flushes;
  flushes = [];
  for (const transport of asked) transport.flushAsked();
}

function planTurns(): void {
  if (areTurnsPlanned) return;
  areTurnsPlanned = true;
  nextTurn(turnAll);
}

function turnAll(): void {
  areTurnsPlanned = false;
  now = performance.now();
  const endMs = now + TURNS_MS_MAX;
  const asked = turns;
  turns = [];
  for (const [index, transport] of asked.entries()) {
    transport.turnAsked();
    now = performance.now();
    if (now < endMs) continue;
    // others are read before the rest has its turn, which is ahead of who asked meanwhile
    turns = [...asked.slice(index + 1), ...turns];
    break;
  }
  if (turns.length > 0) planTurns();
}

/** Longer chains are cut. */
const ISSUERS_MAX = 10;
/** Attribute of a subject that OpenSSL has no name for: the uid of a Kubernetes user. */
const USER_UID = '1.3.6.1.4.1.57683.2';

function readCertificate(socket: Socket): PeerCertificate | null {
  if (!(socket instanceof TLSSocket)) return null;
  const found = socket.getPeerX509Certificate();
  if (found === undefined) return null;
  const subject = found.toLegacyObject().subject as unknown as Record<string, unknown> | undefined;
  return {
    raw: found.raw,
    commonName: texts(subject?.['CN']).at(-1) ?? '',
    organizations: texts(subject?.['O']),
    uids: texts(subject?.[USER_UID]),
    trusted: socket.authorized,
    failure: socket.authorized ? '' : String(socket.authorizationError),
    issuers: () => issuersOf(found),
    validFromMs: Date.parse(found.validFrom),
    validToMs: Date.parse(found.validTo),
  };
}

function issuersOf(leaf: X509Certificate): Buffer[] {
  const found: Buffer[] = [];
  let above = leaf.issuerCertificate;
  while (above !== undefined && found.length < ISSUERS_MAX) {
    found.push(above.raw);
    above = above.issuerCertificate;
  }
  return found;
}

function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
