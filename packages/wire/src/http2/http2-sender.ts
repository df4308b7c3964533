// data plane
/**
 * The sending half of an HTTP/2 connection: windows, and who may write next.
 *
 * Bytes go straight into the output block while the stream's window, the connection's window and
 * the output budget let them. What does not fit waits in its stream, or better, was never produced:
 * its owner asked `writable`, got 0 and waits for `ready`. Streams that can go on stand in a round;
 * each turn of it is one quantum, so that a long list and a small event are served alike.
 *
 *   round:  head -> stream -> stream -> tail      (intrusive links, a stream stands in it once)
 *
 * Output has two parts: `data`, which `hold` keeps back, and `control`, which flows on meanwhile.
 * Without a hold everything is written to `data`, in order.
 */
import { assert } from '@megaplane/base/assert';
import { asBuffer } from '@megaplane/base/bytes';
import {
  ERRORS,
  FLAG_END_STREAM,
  FRAME_BYTES_LEAST,
  FRAME_HEAD_BYTES,
  FRAMES,
  headerFramesBytes,
  WINDOW_DEFAULT_BYTES,
  writeFrameHead,
  writeHeaderFrames,
  writeNumberFrame,
} from './frames.ts';
import {
  QUANTUM_BYTES,
  QUANTUM_ALONE_BYTES,
  STREAM_QUEUE_BYTES_MAX,
  BLOCK_BYTES,
  COPY_BYTES_MAX,
  TURN_BYTES,
} from '../limits.ts';
import type { SharedBytes } from '../http/exchange.ts';
import type { WireLimits } from '../limits.ts';
import { giveBlock, Output, takeBlock } from './output.ts';
import { isCrowded } from '../transport/outstanding.ts';
import { H2Stream, StreamTable } from './stream.ts';
import type { Transport } from '../transport/transport.ts';

/** DATA frames smaller than this do not count as useful work: a peer may force them. */
const USEFUL_BYTES = 256;
/** Less room than this in a block is not worth another frame. */
const PIECE_BYTES_MIN = 1024;
/** Room for the heads of the frames that one stream sends in its turn. */
const FRAMES_HEADS_BYTES = 1024;
/** Of `outputBytesMax`: what may wait for a secure socket, of this turn and the one before. */
const SECURE_FACTOR = 3;
/**
 * Streams are refused as long as they are told so before they begin, which a client may try again;
 * a peer that opens all of its streams before the first answer is met by this multiple.
 */
const RESET_FACTOR = 4;
/** Streams kept for reuse by the process. */
const STREAMS_KEPT_MAX = 4096;
const keptStreams: H2Stream[] = [];

/** Memory of blocks that stand in queues; others' memory must never get among the blocks. */
const lent = new WeakSet<ArrayBufferLike>();

export abstract class Http2Sender {
  readonly transport: Transport;
  readonly limits: WireLimits;
  readonly streams: StreamTable = new StreamTable();
  /** Not readonly: an in-place handler writes into this one, and whoever else writes meanwhile
   *  is diverted to another. */
  data: Output = new Output();
  readonly control: Output = new Output();
  holds = 0;
  /** The socket is gone, or GOAWAY with an error was sent: nothing is sent any more. */
  dead = false;
  /** What the peer lets us send on the connection. */
  sendWindow: number = WINDOW_DEFAULT_BYTES;
  peerInitialWindow: number = WINDOW_DEFAULT_BYTES;
  peerFrameBytes: number = FRAME_BYTES_LEAST;
  /** Octets in the queues of all streams. */
  queuedBytes = 0;
  /** When the peer took some of them last, or they began to wait. */
  tookMs = 0;
  /** Frames without use that the peer may still send until the next tick. */
  patience: number;
  /** DATA of this turn: a producer whose peer reads as fast as it writes must not keep the turn
   *  for itself. */
  sentInTurn = 0;
  /** Inside `receive`: the shell flushes afterwards anyway. */
  inTurn = false;
  #roundHead: H2Stream | null = null;
  #roundTail: H2Stream | null = null;
  #pumping: H2Stream | null = null;

  constructor(transport: Transport, limits: WireLimits) {
    this.transport = transport;
    this.limits = limits;
    this.patience = limits.idleFramesPerSecond;
  }

  /** The stream is over on both sides, or reset; forget it. */
  abstract forget(stream: H2Stream): void;

  /** Our side of the stream is complete and the peer's is not. */
  protected abstract onSentEarly(stream: H2Stream): void;

  complete(stream: H2Stream): void {
    const owner = stream.owner;
    this.forget(stream);
    owner?.onDone();
  }

  newStream(id: number, receiveWindow: number): H2Stream {
    const stream = keptStreams.pop() ?? new H2Stream();
    stream.id = id;
    stream.sendWindow = this.peerInitialWindow;
    stream.receiveWindow = receiveWindow;
    stream.bornMs = stream.touchedMs = this.transport.nowMs();
    this.streams.add(stream);
    return stream;
  }

  /** Takes the stream from the table. Its owner must not use it afterwards. */
  dropStream(stream: H2Stream): void {
    this.streams.remove(stream.id);
    if (stream.queuedBytes > 0) this.countQueued(-stream.queuedBytes);
    // One that still stands in the round is found there with id 0, and only then reused.
    const reusable = !stream.inRound && this.#pumping !== stream;
    stream.clear();
    if (reusable && keptStreams.length < STREAMS_KEPT_MAX) keptStreams.push(stream);
  }

  /** Octets that may still be produced before the socket must take some. */
  budget(hastens = false): number {
    const fresh = Math.max(this.sentInTurn, this.data.size);
    const most = hastens ? this.outputMost : this.limits.outputBytesMax;
    return most - this.transport.pending() - fresh;
  }

  /** Octets that may wait for the socket. */
  protected get outputMost(): number {
    const { outputBytesMax } = this.limits;
    return this.transport.secure && !isCrowded() ? SECURE_FACTOR * outputBytesMax : outputBytesMax;
  }

  earn(): void {
    if (this.patience < this.limits.idleFramesPerSecond) this.patience += 2;
  }

  /**
   * Room for `count` octets in the data output, which leaves at the end of the turn and not before:
   * whoever answers may still ask for a hold.
   */
  reserve(count: number): Output {
    const out = this.data;
    out.reserve(count);
    if (!this.inTurn) this.transport.requestFlush();
    return out;
  }

  /** The only way out for answers: none leaves while it is held. */
  protected flushData(): void {
    assert(this.holds === 0, 'what is held would leave');
    this.data.flush(this.transport);
  }

  /** Room for what no hold keeps back, also one that comes before it has left. */
  protected reserveFirst(count: number): Output {
    this.control.reserve(count);
    if (!this.inTurn) this.transport.requestFlush();
    return this.control;
  }

  /** Room for a frame that a hold must not keep back. */
  reserveControl(count: number): Output {
    if (this.holds === 0) return this.reserve(count);
    this.control.reserve(count);
    if (!this.inTurn) this.transport.requestFlush();
    return this.control;
  }

  sendHeaders(
    stream: H2Stream,
    block: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    if (this.dead) return;
    const out = this.reserve(headerFramesBytes(end - start, this.peerFrameBytes));
    const max = this.peerFrameBytes;
    out.at = writeHeaderFrames(out.bytes, out.at, stream.id, block, start, end, endStream, max);
    if (endStream) this.sentEnd(stream);
  }

  /** RST_STREAM, in order with the stream's other frames; forgets the stream. */
  sendReset(stream: H2Stream, code: number): void {
    this.writeReset(stream.id, code);
    this.forget(stream);
  }

  writeReset(id: number, code: number): void {
    if (this.dead) return;
    const out = this.reserve(FRAME_HEAD_BYTES + 4);
    out.at = writeNumberFrame(out.bytes, out.at, FRAMES.rstStream, id, code);
  }

  writeWindowUpdate(id: number, increment: number): void {
    if (this.dead) return;
    const out = this.reserveControl(FRAME_HEAD_BYTES + 4);
    out.at = writeNumberFrame(out.bytes, out.at, FRAMES.windowUpdate, id, increment);
  }

  /** What the owner may write now without a queue. 0 promises a later `ready`. */
  writable(stream: H2Stream): number {
    if (this.dead || stream.id === 0 || stream.endQueued || stream.endSent) return 0;
    let room = Math.min(stream.sendWindow, this.sendWindow, this.budget(stream.hastens));
    if (this.#pumping !== null) {
      room = this.#pumping === stream ? Math.min(room, stream.grant) : 0;
    } else if (this.#roundHead !== null) {
      room = 0;
    }
    if (room > 0 && stream.queuedBytes === 0) return room;
    stream.wantsReady = true;
    if (stream.sendWindow > 0) this.#enterRound(stream);
    return 0;
  }

  /**
   * Sends `head[0..headEnd)` and `bytes[start..end)` at once, if one frame takes both and nothing
   * stands before them; false: nothing was sent.
   */
  sendJoined(
    stream: H2Stream,
    head: Uint8Array,
    headEnd: number,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): boolean {
    const length = headEnd + end - start;
    const frameMax = Math.min(this.peerFrameBytes, QUANTUM_BYTES);
    if (length > frameMax || length > this.#roomNow(stream)) return false;
    const out = this.#reserveData(stream, length, frameMax);
    for (let i = 0; i < headEnd; i++) out.bytes[out.at + i] = head[i]!;
    asBuffer(bytes).copy(out.bytes, out.at + headEnd, start, end);
    out.at += length;
    return true;
  }

  /** Sends `bytes[start..end)` as far as it may and queues a copy of the rest. */
  sendData(stream: H2Stream, bytes: Buffer, start: number, end: number): void {
    const from = this.#sendNow(stream, bytes, start, end, false);
    if (from < end) this.#enqueueCopy(stream, bytes, from, end);
  }

  /**
   * Queues what many streams are sent. It is framed when its connection is flushed, so that the
   * connections of one turn take the same block after one another, which stays in the cache.
   */
  sendShared(stream: H2Stream, shared: SharedBytes): void {
    this.#enqueue(stream, shared.kept());
  }

  /** Sends all of `bytes`, which belongs to the wire, and ends the stream by it. */
  sendLast(stream: H2Stream, bytes: Buffer): void {
    const start = this.#sendNow(stream, bytes, 0, bytes.length, true);
    if (start === bytes.length) {
      if (start === 0) this.sendEnd(stream, null);
      return;
    }
    this.#enqueue(stream, start === 0 ? bytes : bytes.subarray(start));
    stream.endQueued = stream.id !== 0;
  }

  /** The same with bytes that stay the caller's. */
  sendLastCopy(stream: H2Stream, bytes: Buffer, start: number, end: number): void {
    const from = this.#sendNow(stream, bytes, start, end, true);
    if (from === end) {
      if (start === end) this.sendEnd(stream, null);
      return;
    }
    this.#enqueueCopy(stream, bytes, from, end);
    // One that was reset meanwhile is kept for others.
    stream.endQueued = stream.id !== 0;
  }

  /** Ends the stream after what is queued, with a block of trailers or without. */
  sendEnd(stream: H2Stream, trailers: Buffer | null): void {
    if (stream.queuedBytes > 0) {
      stream.endQueued = true;
      stream.trailers = trailers;
    } else if (trailers !== null) {
      this.sendHeaders(stream, trailers, 0, trailers.length, true);
    } else if (!this.dead) {
      const out = this.reserve(FRAME_HEAD_BYTES);
      out.at = writeFrameHead(out.bytes, out.at, 0, FRAMES.data, FLAG_END_STREAM, stream.id);
      this.sentEnd(stream);
    }
  }

  sentEnd(stream: H2Stream): void {
    stream.endSent = true;
    this.earn();
    if (stream.endReceived) this.complete(stream);
    else this.onSentEarly(stream);
  }

  /** A window of the stream grew: it may stand in the round again. */
  wakeStream(stream: H2Stream): void {
    if (stream.sendWindow > 0 && (stream.queuedBytes > 0 || stream.wantsReady)) {
      this.#enterRound(stream);
    }
  }

  get hasRound(): boolean {
    return this.#roundHead !== null;
  }

  /**
   * Serves the round while the connection's window and the budget last. Not while a write is under
   * way: what waits as it is costs nothing, what is framed early needs a block to wait in.
   */
  pump(): void {
    if (this.transport.writing()) return;
    // one write of all is encrypted before it returns, and its memory serves the next connection
    if (this.transport.secure && this.holds === 0) this.data.expect(this.#expected());
    const passed: H2Stream[] = [];
    while (this.#roundHead !== null && this.sendWindow > 0 && !this.dead && this.budget(true) > 0) {
      if (this.#roomFor(true) < PIECE_BYTES_MIN) break;
      const stream = this.#roundHead;
      this.#roundHead = stream.next;
      if (stream.next === null) this.#roundTail = null;
      stream.next = null;
      stream.inRound = false;
      if (stream.id === 0) {
        if (keptStreams.length < STREAMS_KEPT_MAX) keptStreams.push(stream);
      } else if (this.#mayServe(stream)) this.#serve(stream);
      else {
        // it stands in the round all the time: one that is dropped meanwhile is not reused yet
        stream.inRound = true;
        passed.push(stream);
      }
    }
    for (const stream of passed) this.#append(stream);
  }

  /** Octets that the queues may send in this turn, with the heads of their frames. */
  #expected(): number {
    const most = Math.min(this.queuedBytes, this.sendWindow) + FRAMES_HEADS_BYTES;
    return Math.min(most, isCrowded() ? BLOCK_BYTES : TURN_BYTES);
  }

  /** What is not hastened has its first block, and goes on in the next turn. */
  #mayServe({ hastens }: H2Stream): boolean {
    return hastens || (this.budget() > 0 && this.#roomFor(false) >= PIECE_BYTES_MIN);
  }

  /**
   * Octets that one turn of the round may still frame. Over TLS one write is under way at a time,
   * and a turn has one or two: so much leaves with each, or long turns make a slow connection.
   */
  #roomFor(hastens: boolean): number {
    if (!this.transport.secure) return Infinity;
    const most = hastens && !isCrowded() ? TURN_BYTES : BLOCK_BYTES;
    return most - this.data.size - FRAMES_HEADS_BYTES;
  }

  #serve(stream: H2Stream): void {
    const quantum = this.#roundHead === null ? QUANTUM_ALONE_BYTES : QUANTUM_BYTES;
    stream.grant = Math.min(quantum, this.#roomFor(stream.hastens));
    this.#pumping = stream;
    if (stream.queuedBytes > 0) this.#sendQueued(stream);
    if (stream.id !== 0 && stream.wantsReady && stream.queuedBytes === 0) {
      stream.wantsReady = false;
      stream.owner?.onReady();
    }
    this.#pumping = null;
    if (stream.id !== 0) this.wakeStream(stream);
  }

  #enterRound(stream: H2Stream): void {
    if (stream.inRound || this.#pumping === stream) return;
    this.#append(stream);
    if (!this.inTurn && this.#pumping === null) this.transport.requestFlush();
  }

  #append(stream: H2Stream): void {
    stream.inRound = true;
    if (this.#roundTail === null) this.#roundHead = stream;
    else this.#roundTail.next = stream;
    this.#roundTail = stream;
  }

  /** Small pieces are copied as they are, large ones into blocks that serve again. */
  #enqueueCopy(stream: H2Stream, bytes: Buffer, start: number, end: number): void {
    if (!this.#mayQueue(stream)) return;
    while (end - start > COPY_BYTES_MAX) {
      const block = takeBlock(BLOCK_BYTES);
      lent.add(block.buffer);
      const size = bytes.copy(block, 0, start, Math.min(end, start + BLOCK_BYTES));
      this.#push(stream, size === BLOCK_BYTES ? block : block.subarray(0, size));
      start += size;
    }
    if (start < end) this.#push(stream, Buffer.from(bytes.subarray(start, end)));
  }

  #enqueue(stream: H2Stream, bytes: Buffer): void {
    if (this.#mayQueue(stream)) this.#push(stream, bytes);
  }

  /**
   * Whether the stream, and the connection, may have more waiting than they have. How large the
   * next piece is does not matter: an answer is as large as it is. If not, the stream was reset.
   */
  #mayQueue(stream: H2Stream): boolean {
    if (this.dead || stream.id === 0) return false;
    assert(!stream.endQueued, 'nothing is written to a stream after its end');
    const isCrowded = this.queuedBytes > this.limits.queuesBytesMax * RESET_FACTOR;
    if (!isCrowded && stream.queuedBytes <= STREAM_QUEUE_BYTES_MAX && this.mayWait()) return true;
    this.#dropQueue(stream);
    return false;
  }

  #dropQueue(stream: H2Stream): void {
    const owner = stream.owner;
    this.sendReset(stream, ERRORS.enhanceYourCalm);
    owner?.onLost('aborted', ERRORS.enhanceYourCalm);
  }

  /** Resets the streams of which something waits. */
  dropQueues(): void {
    for (const stream of this.streams.list()) if (stream.queuedBytes > 0) this.#dropQueue(stream);
  }

  /** May more wait, by what waits elsewhere? */
  protected mayWait(): boolean {
    return true;
  }

  /** So much more waits in queues, or less. */
  protected countQueued(change: number): void {
    if (change < 0 || this.queuedBytes === 0) this.tookMs = this.transport.nowMs();
    this.queuedBytes += change;
  }

  #push(stream: H2Stream, bytes: Buffer): void {
    stream.queue ??= [];
    stream.queue.push(bytes);
    stream.queuedBytes += bytes.length;
    this.countQueued(bytes.length);
    if (stream.sendWindow > 0) this.#enterRound(stream);
  }

  /** Writes DATA frames directly; returns where it had to stop. Ends the stream if `last`. */
  #sendNow(stream: H2Stream, bytes: Buffer, start: number, end: number, last: boolean): number {
    return this.#sendFrames(stream, bytes, start, end, this.#roomNow(stream), last);
  }

  /** Octets of DATA that the stream may send before others. */
  #roomNow(stream: H2Stream): number {
    if (stream.queuedBytes > 0 || this.dead) return 0;
    const room = Math.min(stream.sendWindow, this.sendWindow, this.budget(stream.hastens));
    if (this.#pumping === null) {
      // Others wait already: what is long must not pass them.
      return this.#roundHead === null ? room : Math.min(room, QUANTUM_BYTES);
    }
    return this.#pumping === stream ? Math.min(room, Math.max(0, stream.grant)) : 0;
  }

  #sendFrames(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    room: number,
    last: boolean,
  ): number {
    const frameMax = Math.min(this.peerFrameBytes, QUANTUM_BYTES);
    while (start < end && room > 0) {
      const length = Math.min(end - start, room, frameMax);
      const out = this.#reserveData(stream, length, frameMax);
      const isLast = last && start + length === end;
      bytes.copy(out.bytes, out.at, start, start + length);
      out.at += length;
      start += length;
      room -= length;
      if (!isLast) continue;
      out.closeData(FLAG_END_STREAM);
      this.sentEnd(stream);
    }
    return start;
  }

  /** Room for so many octets of DATA, which the windows allow and which are written now. */
  #reserveData(stream: H2Stream, length: number, frameMax: number): Output {
    const out = this.data;
    out.reserveData(stream.id, length, frameMax);
    if (!this.inTurn) this.transport.requestFlush();
    stream.sendWindow -= length;
    stream.grant -= length;
    this.sendWindow -= length;
    this.sentInTurn += length;
    if (length >= USEFUL_BYTES) this.earn();
    return out;
  }

  #sendQueued(stream: H2Stream): void {
    const queue = stream.queue!;
    stream.touchedMs = this.transport.nowMs();
    for (;;) {
      const bytes = queue[stream.queueIndex]!;
      const isLast =
        stream.endQueued && stream.trailers === null && stream.queueIndex === queue.length - 1;
      const room = Math.min(stream.sendWindow, this.sendWindow, stream.grant);
      const at = this.#sendFrames(stream, bytes, stream.queueAt, bytes.length, room, isLast);
      if (stream.id === 0) return;
      if (at > stream.queueAt) this.countQueued(stream.queueAt - at);
      stream.queuedBytes -= at - stream.queueAt;
      if (stream.endSent) {
        stream.queue = null;
        return;
      }
      stream.queueAt = at;
      if (at < bytes.length) break;
      if (lent.delete(bytes.buffer)) {
        giveBlock(Buffer.from(bytes.buffer, 0, BLOCK_BYTES));
      }
      stream.queueIndex++;
      stream.queueAt = 0;
      if (stream.queueIndex === queue.length) {
        stream.queue = null;
        stream.queueIndex = 0;
        break;
      }
    }
    if (stream.queueIndex > 64) {
      queue.splice(0, stream.queueIndex);
      stream.queueIndex = 0;
    }
    if (stream.queuedBytes === 0 && stream.endQueued) {
      stream.endQueued = false;
      this.sendEnd(stream, stream.trailers);
    }
  }
}
