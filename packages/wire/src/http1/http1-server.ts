/**
 * The server's end of an HTTP/1.1 connection (RFC 9112), as a machine without socket and clock.
 *
 * Requests may come faster than answers (pipelining): their exchanges wait in a queue, answers
 * leave in its order. Reading stops while the queue is full, while the output is over its budget,
 * while a streamed body is paused, and after a request to upgrade until it is answered; what was
 * received meanwhile is kept by the parser, and the socket is paused so that it is at most a chunk.
 *
 * A violation of the protocol is answered with its status and ends the connection, because nobody
 * knows where the next request would begin.
 */
import { endOfTurn } from '@megaplane/base/deferred';
import { STATUS_CODES } from 'node:http';
import { shareOfPeer } from '../transport/body-budget.ts';
import { assert, BrokenInvariant } from '@megaplane/base/assert';
import type { CloseReason, PeerCertificate, Rest, UpgradedStream } from '../http/exchange.ts';
import { Http1Body } from './http1-body.ts';
import { Http1Exchange, type ExchangeHost } from './http1-exchange.ts';
import { HeadRoom } from '../transport/head-room.ts';
import { HTTP1_FAILURES, type Http1Head } from './http1-head.ts';
import { Http1Output } from './http1-output.ts';
import {
  Http1Parser,
  STEP_DATA,
  STEP_END,
  STEP_FAILED,
  STEP_HEAD,
  STEP_MORE,
} from './http1-parser.ts';
import { Http1Upgrade, type UpgradeHost } from './http1-upgrade.ts';
import type { Protocol, ServerOptions, Transport } from '../transport/transport.ts';

/** Requests of one connection that wait for their answer; above it the connection is not read. */
export const PIPELINED_MAX = 64;
/** Read while a connection takes no more requests. */
const AHEAD_BYTES_MAX = 16_384;

const EMPTY = Buffer.alloc(0);

/**
 * `ending`: nothing more is read, the connection ends with the last answer; `ended`: it was told
 * to.
 */
type ConnectionState = 'serving' | 'ending' | 'ended' | 'upgraded' | 'closed';

export class Http1Server implements Protocol, ExchangeHost, UpgradeHost {
  readonly id: number;
  readonly protocol = 'http/1.1' as const;
  readonly secure: boolean;
  readonly unix: boolean;
  readonly remoteAddress: string;
  readonly output: Http1Output = new Http1Output();
  slot: unknown = undefined;
  rest: Rest = 'late';
  readonly #transport: Transport;
  readonly #options: ServerOptions;
  readonly #parser: Http1Parser;
  readonly #headRoom: HeadRoom;
  #state: ConnectionState = 'serving';
  /** Exchanges without a complete answer in the output, in the order of their requests. */
  readonly #queue: Http1Exchange[] = [];
  /** The request whose body is being read. */
  #current: Http1Exchange | null = null;
  #body: Http1Body | null = null;
  /** A request to upgrade, from its head to its answer. */
  #upgrading: Http1Exchange | null = null;
  #upgrade: Http1Upgrade | null = null;
  #isRunning = false;
  #isPaused = false;
  #isDraining = false;
  #hasPeerEnded = false;
  #holds = 0;
  /** The answer to a violation, sent after all others. */
  #farewell = '';
  #closeReason: CloseReason = 'cancelled';
  readonly #closeCallbacks: (() => void)[] = [];
  /** When the peer last sent something or an answer was last completed. */
  #activeMs: number;
  #headSinceMs = -1;
  #progressMs: number;
  #pendingBytes = 0;

  constructor(transport: Transport, options: ServerOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#parser = new Http1Parser(false, options.limits.headBytesMax);
    this.#headRoom = new HeadRoom(options.bodies, this);
    this.id = transport.id;
    this.secure = transport.secure;
    this.unix = transport.unix;
    this.remoteAddress = transport.remoteAddress;
    this.#activeMs = transport.nowMs();
    this.#progressMs = transport.nowMs();
  }

  peerCertificate(): PeerCertificate | null {
    return this.#transport.peerCertificate();
  }

  hold(): void {
    this.#holds++;
  }

  release(): void {
    assert(this.#holds > 0, 'release() without hold()');
    this.#holds--;
    if (this.#holds === 0) this.changed();
  }

  abort(_why: string): void {
    this.#destroy('aborted');
  }

  onceClosed(callback: () => void): void {
    if (this.#state === 'closed') endOfTurn(callback);
    else this.#closeCallbacks.push(callback);
  }

  // The socket's news.

  receive(bytes: Buffer, start: number, end: number): void {
    this.#activeMs = this.#transport.nowMs();
    if (this.#upgrade !== null) return this.#upgrade.receive(bytes, start, end);
    if (this.#state !== 'serving') return;
    this.#parser.push(bytes, start, end);
    this.#run();
  }

  /** Takes steps until the input is used up or something else must happen first. */
  #run(): void {
    if (this.#isRunning || this.#state !== 'serving') return;
    this.#isRunning = true;
    while (!this.#isBlocked() && this.#takeStep());
    this.#isRunning = false;
    if (this.#state !== 'serving') return;
    this.#parser.keep();
    const isBlocked = this.#isBlocked();
    // a little is read ahead, or nobody would hear of a peer that leaves
    const ahead = this.#current === null && this.budget() > 0 ? AHEAD_BYTES_MAX : 0;
    if (isBlocked && this.#parser.rest >= ahead) this.pauseReading();
    else this.resumeReading();
    const isInHead = !this.#parser.isIdle && !this.#parser.isInBody;
    if (!this.#headRoom.hold(isInHead ? this.#parser.rest : 0)) {
      return this.#refuse(503, 'too many large heads at once');
    }
    if (!isInHead || isBlocked) this.#headSinceMs = -1;
    else if (this.#headSinceMs < 0) this.#headSinceMs = this.#transport.nowMs();
    if (this.#hasPeerEnded && !isBlocked) this.#dropUnfinished();
  }

  pauseReading(): void {
    if (!this.#isPaused) this.#transport.pause();
    this.#isPaused = true;
  }

  resumeReading(): void {
    if (this.#isPaused) this.#transport.resume();
    this.#isPaused = false;
  }

  #isBlocked(): boolean {
    return (
      this.#state !== 'serving' ||
      (this.#upgrading !== null && this.#current === null) ||
      (this.#current === null && this.#queue.length >= PIPELINED_MAX) ||
      (this.#current !== null && this.#current.isBodyPaused && !this.#current.closed) ||
      (this.#current === null && this.budget() <= 0)
    );
  }

  /** False when the input is used up. */
  #takeStep(): boolean {
    const parser = this.#parser;
    switch (parser.step()) {
      case STEP_HEAD:
        this.#beginRequest(parser.head);
        return true;
      case STEP_DATA:
        this.#takeBody(parser.input, parser.dataStart, parser.dataEnd);
        return true;
      case STEP_END:
        this.#endRequest();
        return true;
      case STEP_FAILED: {
        const { status, text } = HTTP1_FAILURES[parser.failure];
        this.#refuse(status, text);
        return false;
      }
      case STEP_MORE:
      default:
        return false;
    }
  }

  #beginRequest(head: Http1Head): void {
    const { limits, bodies, streamsBody } = this.#options;
    const hasBody = head.isChunked || head.contentLength > 0;
    const exchange = new Http1Exchange(this, head, hasBody);
    this.#current = exchange;
    this.#enqueue(exchange);
    if (exchange.upgradeProtocol !== undefined) this.#upgrading = exchange;
    if (hasBody && streamsBody(exchange.method, exchange.path)) {
      this.#handle(exchange);
      exchange.askForBody();
      return;
    }
    if (!hasBody) return;
    const nowMs = this.#transport.nowMs();
    this.#body = new Http1Body(head.contentLength, limits.bodyBytesMax, bodies, nowMs);
    if (head.contentLength > limits.bodyBytesMax) {
      if (this.#claimBody(this.#body, exchange)) this.#refuseBody();
      return;
    }
    // The head is read from the chunk itself when the whole request lies in it.
    if (head.isChunked || this.#parser.rest < head.contentLength) exchange.keepHead();
    if (exchange.awaitsContinue && !this.#claimBody(this.#body, exchange)) return;
    exchange.askForBody();
  }

  /** Finds out whose a body is that has not come at once. False: nobody wants it. */
  #claimBody(body: Http1Body, exchange: Http1Exchange): boolean {
    const { bodyOwner, onError } = this.#options;
    if (body.share !== null) return true;
    if (bodyOwner === undefined) {
      body.share = shareOfPeer(this, false);
      return true;
    }
    const { closesAfter } = exchange;
    // An answer now is an answer in the middle of a body, behind which nothing is read.
    exchange.closesAfter = true;
    exchange.keepHead();
    try {
      body.share = bodyOwner(exchange);
    } catch (error) {
      onError(error);
      if (!exchange.closed && !exchange.isOpen) exchange.respond(500, null, null);
    }
    if (body.share !== null && !exchange.closed) {
      exchange.closesAfter = closesAfter;
      return true;
    }
    exchange.isHandled = true;
    this.#dropBody();
    return false;
  }

  #enqueue(exchange: Http1Exchange): void {
    this.#queue.push(exchange);
    if (this.#queue.length === 1) exchange.becomeFirst();
  }

  #takeBody(bytes: Buffer, start: number, end: number): void {
    // Whoever sends the body does not wait to be asked for it.
    if (this.#current !== null) this.#current.awaitsContinue = false;
    if (this.#body !== null) {
      const isKept = !this.#body.isWhole(end - start);
      const exchange = this.#current;
      if (isKept && exchange !== null && !this.#claimBody(this.#body, exchange)) return;
      const added = this.#body.add(bytes, start, end);
      if (added === 'tooLarge') this.#refuseBody();
      else if (added === 'noRoom') this.#refuse(503, 'too many request bodies at once');
    } else if (this.#current?.closed === false) {
      this.#current.onBody?.(bytes, start, end);
    }
  }

  #dropBody(): void {
    this.#body?.release();
    this.#body = null;
  }

  #endRequest(): void {
    const exchange = this.#current;
    assert(exchange !== null, 'a request ends that did not begin');
    this.#current = null;
    if (exchange.isHandled) {
      if (!exchange.closed) exchange.onBodyEnd?.();
    } else {
      if (this.#body !== null) exchange.lendBody(this.#body.view(), true);
      this.#dropBody();
      // An upgrade can only be answered when everything before it is.
      if (exchange === this.#upgrading && !exchange.isFirst) exchange.keepHead();
      else this.#handleWhole(exchange);
    }
    if (exchange.isLastRequest || this.#isDraining) this.#endReading();
  }

  /** Whoever waits for a body piece by piece learns of the end of one that is not there, too. */
  #handleWhole(exchange: Http1Exchange): void {
    this.#handle(exchange);
    if (!exchange.closed) exchange.onBodyEnd?.();
  }

  #handle(exchange: Http1Exchange): void {
    exchange.isHandled = true;
    try {
      this.#options.handler(exchange);
    } catch (error) {
      if (error instanceof BrokenInvariant) throw error;
      this.#options.onError(error);
      if (!exchange.closed && !exchange.isOpen) exchange.respond(500, null, null);
      else this.cut();
    }
    if (exchange.isBodyBorrowed) exchange.lendBody(EMPTY, false);
    if (!exchange.closed) exchange.keepHead();
  }

  /** Answers a violation in its turn, then ends. */
  #refuse(status: number, text: string): void {
    const refused = this.#current;
    this.#current = null;
    this.#dropBody();
    if (refused !== null && !refused.closed) {
      // Its answer may be under way already; there is no way to take it back.
      if (refused.isHandled) return this.cut();
      this.#queue.pop();
    }
    const body = `${status} ${STATUS_CODES[status] ?? ''}: ${text}\n`;
    this.#farewell =
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n` +
      `content-type: text/plain; charset=utf-8\r\ncontent-length: ${body.length}\r\n` +
      `${this.dateLine()}connection: close\r\n\r\n${body}`;
    this.#endReading();
  }

  #refuseBody(): void {
    this.#refuse(413, `the body is larger than ${this.#options.limits.bodyBytesMax} bytes`);
  }

  /** No request is read any more; what was received beyond is dropped. */
  #endReading(): void {
    if (this.#state !== 'serving') return;
    this.#state = 'ending';
    this.#headSinceMs = -1;
    // The peer may still send a body; unread bytes would turn the end into a reset.
    this.resumeReading();
    this.changed();
  }

  /** The peer sends nothing more: a request that is not complete never will be. */
  #dropUnfinished(): void {
    const dropped = this.#current;
    this.#current = null;
    if (dropped !== null && !dropped.closed) {
      this.#queue.splice(this.#queue.indexOf(dropped), 1);
      dropped.abandon('cancelled');
    }
    this.#endReading();
  }

  // What exchanges ask.

  dateLine(): string {
    return this.#options.date?.line() ?? '';
  }

  budget(): number {
    return this.#options.limits.outputBytesMax - this.output.length - this.#transport.pending();
  }

  changed(): void {
    if (this.#state !== 'closed') this.#transport.requestFlush();
  }

  isLast(exchange: Http1Exchange): boolean {
    if (this.#queue.at(-1) !== exchange || this.#farewell !== '') return false;
    return this.#state === 'ending' || (this.#isDraining && this.#current === exchange);
  }

  finished(exchange: Http1Exchange): void {
    this.#activeMs = this.#transport.nowMs();
    if (exchange === this.#upgrading) this.#upgrading = null;
    while (this.#queue[0]?.closed === true) {
      const done = this.#queue.shift();
      if (done?.closesAfter === true) {
        for (const left of this.#queue.splice(0)) left.abandon('aborted');
        this.#farewell = '';
        this.#endReading();
        return;
      }
      const next = this.#queue[0];
      next?.becomeFirst();
      if (next !== undefined && next === this.#upgrading && !next.isHandled) this.#handle(next);
    }
  }

  cut(): void {
    this.#destroy('aborted');
  }

  #destroy(reason: CloseReason): void {
    this.#state = 'ended';
    this.#closeReason = reason;
    this.#transport.destroy();
  }

  beginUpgrade(): UpgradedStream {
    const parser = this.#parser;
    const early = parser.input.subarray(parser.offset, parser.offset + parser.rest);
    this.#upgrade = new Http1Upgrade(this, Buffer.from(early));
    this.#upgrading = null;
    this.#current = null;
    this.#queue.length = 0;
    this.#state = 'upgraded';
    this.resumeReading();
    return this.#upgrade;
  }

  // What the shell asks.

  flush(): void {
    if (this.#state === 'closed' || this.#state === 'ended') return;
    this.#run();
    if (this.#holds > 0) return;
    const isOut = this.#flushOutput();
    // Producers go on when other connections had their turn.
    const wantsTurn = this.#queue[0]?.wantsWritable === true || this.#upgrade?.wantsTurn === true;
    if (wantsTurn && this.budget() > 0) this.#transport.requestTurn();
    if (!isOut) return;
    const isDone = this.#state === 'ending' && this.#queue.length === 0;
    if (!isDone && this.#upgrade?.isEnded !== true) return;
    this.output.putText(this.#farewell);
    if (this.#flushOutput() && this.output.length === 0) {
      this.#state = 'ended';
      this.#transport.end();
    }
  }

  #flushOutput(): boolean {
    assert(this.#holds === 0, 'what is held would leave');
    if (this.#transport.pending() === 0) this.#progressMs = this.#transport.nowMs();
    const isOut = this.output.flush(this.#transport);
    this.#pendingBytes = this.#transport.pending();
    return isOut;
  }

  drained(): void {
    this.#progressMs = this.#transport.nowMs();
    this.#upgrade?.turn();
    this.#queue[0]?.offerWritable();
    this.changed();
  }

  ended(): void {
    this.#hasPeerEnded = true;
    for (const exchange of [...this.#queue]) {
      const { onHalfClose } = exchange;
      exchange.onHalfClose = null;
      if (!exchange.closed && !exchange.isOpen) onHalfClose?.();
    }
    if (this.#upgrade !== null) return this.#upgrade.over();
    // Nobody can tell a client that only half-closed from one that went away; an answer without
    // an end (a watch) must not be kept for the latter.
    if (this.#queue[0]?.isOpen === true) this.#destroy('cancelled');
    else this.#run();
  }

  closed(): void {
    this.#headRoom.hold(0);
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#current = null;
    this.#dropBody();
    for (const left of this.#queue.splice(0)) left.abandon(this.#closeReason);
    this.#upgrade?.over();
    this.output.discard();
    for (const callback of this.#closeCallbacks.splice(0)) callback();
  }

  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    if (this.#current === null) this.#endReading();
  }

  #tickBody(body: Http1Body, exchange: Http1Exchange, nowMs: number): void {
    const { bodyMsMax } = this.#options.limits;
    if (nowMs - body.sinceMs > bodyMsMax) {
      this.#refuse(408, `the body of the request took longer than ${bodyMsMax} ms`);
    } else if (body.share === null) {
      this.#claimBody(body, exchange);
    }
  }

  tick(nowMs: number): void {
    const { limits } = this.#options;
    const pending = this.#transport.pending();
    if (pending === 0 || pending < this.#pendingBytes) this.#progressMs = nowMs;
    this.#pendingBytes = pending;
    const quietMs = nowMs - this.#activeMs;
    if (nowMs - this.#progressMs > limits.stallMsMax) {
      this.#destroy('disconnected');
    } else if (this.#state !== 'serving' || this.#isPaused) {
      return;
    } else if (this.#headSinceMs >= 0 && nowMs - this.#headSinceMs > limits.headMsMax) {
      this.#refuse(408, `the head of the request took longer than ${limits.headMsMax} ms`);
    } else if (this.#current !== null && quietMs > limits.bodyIdleMsMax) {
      this.#refuse(408, `nothing of the body came for ${limits.bodyIdleMsMax} ms`);
    } else if (this.#body !== null && this.#current !== null) {
      this.#tickBody(this.#body, this.#current, nowMs);
    } else if (this.#queue.length === 0 && quietMs > limits.idleMsMax) {
      this.#endReading();
    }
  }
}
