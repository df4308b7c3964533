// data plane
/**
 * The receiving half of an HTTP/2 connection: one pass over each chunk, frame by frame in place.
 *
 * A frame that the chunk cuts is completed in a small buffer of its own, so that the rest of the
 * next chunk is read in place again. Handlers run inside the pass; what they answer is in the
 * output when the pass ends. When the output grows past its limit the pass stops in the middle of
 * the chunk and goes on when the socket took some: a peer that sends but does not read costs one
 * chunk and one output limit. When it has lasted `readMsMax` it stops, too, and goes on in the next
 * round: three hundred requests that come in one chunk are no reason for others to wait.
 */
import type { ResponseDate } from '../http/response-date.ts';
import { assert } from '@megaplane/base/assert';
import {
  ERRORS,
  FLAG_ACK,
  FLAG_END_HEADERS,
  FLAG_END_STREAM,
  FLAG_PADDED,
  FLAG_PRIORITY,
  FRAME_HEAD_BYTES,
  FRAMES,
  readUint32,
  STREAM_ID_MAX,
  WINDOW_DEFAULT_BYTES,
} from './frames.ts';
import { Http2Control } from './http2-control.ts';
import type { Rest } from '../http/exchange.ts';
import { FRAME_BYTES_MAX } from '../limits.ts';
import type { WireLimits } from '../limits.ts';
import type { H2Stream } from './stream.ts';
import type { Protocol, Transport } from '../transport/transport.ts';

/** CONTINUATION frames of one block: empty ones would otherwise be endless. */
const CONTINUATIONS_MAX = 64;
/** Frames after which the clock is looked at: two are a request of 15 us or more. */
const CLOCK_FRAMES = 4;
const NONE: Buffer = Buffer.alloc(0);
const SPARE_BYTES: number = FRAME_HEAD_BYTES + FRAME_BYTES_MAX;
/** Room for a cut frame of whichever connection has one, as most chunks cut one. */
let spare: Buffer | null = Buffer.allocUnsafeSlow(SPARE_BYTES);

export abstract class Http2Session extends Http2Control implements Protocol {
  /** Told with answers; null: they have none. */
  date: ResponseDate | null = null;
  /** When reading stops for the rest of a round; `never`: chunks are handled whole, too. */
  rest: Rest = 'late';
  /** What the peer may still send on the connection, and what of it was not given back. */
  #receiveWindow: number;
  #consumed = 0;
  /** The frame that chunks cut: octets so far. */
  #partial: Buffer = NONE;
  #partialLength = 0;
  /** What of a chunk waits until the output has room, or for the next round. */
  #waiting: Buffer | null = null;
  #inputPaused = false;
  /** The block whose CONTINUATIONs come: its stream (0: none), flags, octets so far. */
  #blockStream = 0;
  #blockFlags = 0;
  #block: Buffer = NONE;
  #blockLength = 0;
  #blockFrames = 0;

  constructor(transport: Transport, limits: WireLimits) {
    super(transport, limits);
    this.#receiveWindow = Math.max(limits.connectionWindowBytes, WINDOW_DEFAULT_BYTES);
  }

  /** The octets before the first frame, of which `start` is the first. Returns where frames start,
   *  or -1 when the rest is not there yet (or the connection failed). */
  protected abstract readPreface(bytes: Buffer, start: number, end: number): number;
  /** A complete header block; must be decoded, whatever becomes of it. */
  protected abstract onBlock(
    bytes: Buffer,
    start: number,
    end: number,
    id: number,
    endStream: boolean,
  ): void;
  protected abstract onBody(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void;
  abstract closed(): void;

  /** Room for a gRPC message that has come in part; false: there is none. */
  holdMessage(_bytes: number): boolean {
    return true;
  }

  freeMessage(_bytes: number): void {
    // A client believes its server.
  }

  abstract drain(): void;

  receive(bytes: Buffer, start: number, end: number): void {
    if (this.dead) return;
    this.receivedMs = this.transport.nowMs();
    if (this.#waiting !== null) {
      this.#waiting = Buffer.concat([this.#waiting, bytes.subarray(start, end)]);
      return;
    }
    this.inTurn = true;
    let at = start;
    if (this.#partialLength > 0) at = this.#completePartial(bytes, start, end);
    if (at < end && !this.dead) this.#frames(bytes, at, end);
    if (this.hasRound) this.pump();
    this.#giveBack();
    this.inTurn = false;
  }

  flush(): void {
    if (this.hasRound && !this.dead) this.pump();
    this.control.flush(this.transport);
    this.sentInTurn = 0;
    if (this.holds === 0) {
      this.flushData();
      const isWaiting = this.hasRound && !this.transport.writing();
      if (isWaiting && this.sendWindow > 0 && this.budget() > 0) this.transport.requestTurn();
    } else {
      this.data.park();
    }
    if (!this.#hasRoom()) this.#pauseInput();
    else if (this.#inputPaused) this.transport.requestTurn();
  }

  drained(): void {
    this.stalledSinceMs = Infinity;
    if (this.dead) return;
    if (this.#waiting !== null && this.#hasRoom()) {
      const waiting = this.#waiting;
      this.#waiting = null;
      this.receive(waiting, 0, waiting.length);
    }
    // What waits is framed by the flush, connection by connection: when hundreds of sockets have
    // written in one turn, they take the same block after one another, not a block each.
    this.transport.requestFlush();
    if (this.#inputPaused && this.#waiting === null && this.#hasRoom()) {
      this.#inputPaused = false;
      this.transport.resume();
    }
  }

  ended(): void {
    // A peer that can send no more (window updates, say) is gone, whatever it might still read.
    if (this.dead) return;
    this.flush();
    this.dead = true;
    this.stopReading();
    for (const stream of this.streams.list()) this.loseStream(stream, 'disconnected', 0);
    this.transport.end();
  }

  #pauseInput(): void {
    this.#inputPaused = true;
    this.transport.pause();
  }

  #hasRoom(): boolean {
    return this.transport.pending() + this.data.size < this.outputMost;
  }

  /** Adds to the cut frame; returns where the chunk goes on after it. */
  #completePartial(bytes: Buffer, start: number, end: number): number {
    let at = start;
    for (let need = FRAME_HEAD_BYTES; at < end;) {
      if (this.#partialLength >= FRAME_HEAD_BYTES) {
        const size = this.#frameSize(this.#partial, 0);
        if (size < 0) return end;
        need = FRAME_HEAD_BYTES + size;
      }
      if (this.#partialLength < need) {
        const count = Math.min(need - this.#partialLength, end - at);
        this.#keepPartial(bytes, at, at + count);
        at += count;
        if (this.#partialLength < need) return at;
        if (need === FRAME_HEAD_BYTES) continue;
      }
      break;
    }
    const length = this.#partialLength;
    if (length < FRAME_HEAD_BYTES) return at;
    const size = this.#frameSize(this.#partial, 0);
    if (size < 0) return end;
    if (length < FRAME_HEAD_BYTES + size) return at;
    const partial = this.#partial;
    this.#partial = NONE;
    this.#partialLength = 0;
    if (this.#blockStream === 0) this.cutSinceMs = Infinity;
    this.#frame(partial, 0, FRAME_HEAD_BYTES + size);
    if (partial.length === SPARE_BYTES) spare = partial;
    return at;
  }

  #keepPartial(bytes: Buffer, start: number, end: number): void {
    const length = this.#partialLength + end - start;
    if (this.cutSinceMs === Infinity) this.cutSinceMs = this.transport.nowMs();
    if (length > this.#partial.length) {
      // Grows as octets arrive, not by the announced length: announcing costs a peer nothing.
      const larger = takeRoom(Math.max(64, length, this.#partial.length * 2));
      this.#partial.copy(larger, 0, 0, this.#partialLength);
      this.#partial = larger;
    }
    bytes.copy(this.#partial, this.#partialLength, start, end);
    this.#partialLength = length;
  }

  /** Payload octets of the frame head at `at`, or -1 after the connection failed for it. */
  #frameSize(bytes: Buffer, at: number): number {
    const size = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    if (size <= FRAME_BYTES_MAX) return size;
    this.fail(ERRORS.frameSize, `frame of ${size} octets, at most ${FRAME_BYTES_MAX} are allowed`);
    return -1;
  }

  #frames(bytes: Buffer, start: number, end: number): void {
    let at = this.readPreface(bytes, start, end);
    if (at < 0) return;
    const endMs = this.transport.preciseMs() + this.limits.readMsMax;
    let frames = 0;
    while (end - at >= FRAME_HEAD_BYTES) {
      const size = this.#frameSize(bytes, at);
      if (size < 0) return;
      const next = at + FRAME_HEAD_BYTES + size;
      if (next > end) break;
      this.#frame(bytes, at, next);
      at = next;
      if (this.dead) return;
      if (at < end && !this.#hasRoom()) {
        if (this.holds === 0) {
          this.control.flush(this.transport);
          this.flushData();
        }
        if (!this.#hasRoom()) return this.#leaveWaiting(bytes, at, end);
      }
      if (++frames % CLOCK_FRAMES !== 0 || at === end || this.rest === 'never') continue;
      if (this.transport.preciseMs() >= endMs) return this.#leaveWaiting(bytes, at, end);
    }
    if (at < end) this.#keepPartial(bytes, at, end);
  }

  #leaveWaiting(bytes: Buffer, at: number, end: number): void {
    this.#waiting = Buffer.from(bytes.subarray(at, end));
    this.#pauseInput();
  }

  #frame(bytes: Buffer, at: number, end: number): void {
    const type = bytes[at + 3]!;
    const flags = bytes[at + 4]!;
    const id = readUint32(bytes, at + 5) & STREAM_ID_MAX;
    const start = at + FRAME_HEAD_BYTES;
    if (!this.settingsReceived && (type !== FRAMES.settings || (flags & FLAG_ACK) !== 0)) {
      return this.fail(ERRORS.protocol, 'the first frame must be SETTINGS');
    }
    if (this.#blockStream !== 0 && (type !== FRAMES.continuation || id !== this.#blockStream)) {
      return this.fail(ERRORS.protocol, 'a header block may be followed by CONTINUATION only');
    }
    switch (type) {
      case FRAMES.data:
        return this.#onData(bytes, start, end, flags, id);
      case FRAMES.headers:
        return this.#onHeaders(bytes, start, end, flags, id);
      case FRAMES.priority:
        return this.onPriority(bytes, start, end, id);
      case FRAMES.rstStream:
        return this.onReset(bytes, start, end, id);
      case FRAMES.settings:
        return this.onSettingsFrame(bytes, start, end, flags, id);
      case FRAMES.pushPromise:
        return this.fail(ERRORS.protocol, 'PUSH_PROMISE is not allowed here');
      case FRAMES.ping:
        return this.onPing(bytes, start, end, flags, id);
      case FRAMES.goaway:
        return this.onGoawayFrame(bytes, start, end, id);
      case FRAMES.windowUpdate:
        return this.onWindowUpdate(bytes, start, end, id);
      case FRAMES.continuation:
        return this.#onContinuation(bytes, start, end, flags, id);
      default:
        // Unknown frames are passed over (RFC 9113 4.1), but not for ever.
        this.useless();
    }
  }

  #onData(bytes: Buffer, start: number, end: number, flags: number, id: number): void {
    if (id === 0) return this.fail(ERRORS.protocol, 'DATA on stream 0');
    const size = end - start;
    this.#receiveWindow -= size;
    this.#consumed += size;
    if (this.#receiveWindow < 0) {
      return this.fail(ERRORS.flowControl, 'DATA beyond the window of the connection');
    }
    if ((flags & FLAG_PADDED) !== 0) {
      if (start === end || start + 1 + bytes[start]! > end) {
        return this.fail(ERRORS.protocol, 'padding is longer than the frame');
      }
      end -= bytes[start++]!;
    }
    const stream = this.streams.get(id);
    if (stream === null) return this.#dataWithoutStream(id);
    const endStream = (flags & FLAG_END_STREAM) !== 0;
    if (stream.endReceived) return this.resetStream(stream, ERRORS.streamClosed);
    if (!stream.headReceived) return this.resetStream(stream, ERRORS.protocol);
    stream.receiveWindow -= size;
    if (stream.receiveWindow < 0) return this.resetStream(stream, ERRORS.flowControl);
    if (start < end) this.earn();
    else if (!endStream && !this.useless()) return;
    stream.bodyReceived += end - start;
    if (stream.bodyExpected >= 0 && stream.bodyReceived !== stream.bodyExpected) {
      if (endStream || stream.bodyReceived > stream.bodyExpected) {
        return this.resetStream(stream, ERRORS.protocol);
      }
    }
    stream.consumed += size;
    this.onBody(stream, bytes, start, end, endStream);
    if (!endStream && stream.id === id) this.giveStreamBack(stream);
  }

  #dataWithoutStream(id: number): void {
    if (this.isIdle(id)) return this.fail(ERRORS.protocol, `DATA on idle stream ${id}`);
    if (!this.useless()) return;
    if (!this.wasReset(id)) this.writeReset(id, ERRORS.streamClosed);
  }

  /** Returns the stream's window when half of it is used, unless its owner paused it. */
  giveStreamBack(stream: H2Stream): void {
    if (stream.paused || stream.endReceived || stream.consumed === 0) return;
    if (stream.consumed * 2 < this.limits.streamWindowBytes) return;
    this.writeWindowUpdate(stream.id, stream.consumed);
    stream.receiveWindow += stream.consumed;
    stream.consumed = 0;
  }

  #giveBack(): void {
    if (this.#consumed * 2 < this.limits.connectionWindowBytes || this.#consumed === 0) return;
    this.writeWindowUpdate(0, this.#consumed);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
  }

  #onHeaders(bytes: Buffer, start: number, end: number, flags: number, id: number): void {
    if (id === 0) return this.fail(ERRORS.protocol, 'HEADERS on stream 0');
    if ((flags & FLAG_PADDED) !== 0) {
      if (start === end) return this.fail(ERRORS.frameSize, 'HEADERS without its padding length');
      const padding = bytes[start++]!;
      if (start + padding > end) {
        return this.fail(ERRORS.protocol, 'padding is longer than the frame');
      }
      end -= padding;
    }
    if ((flags & FLAG_PRIORITY) !== 0) {
      if (end - start < 5) return this.fail(ERRORS.frameSize, 'HEADERS without its priority');
      if ((readUint32(bytes, start) & STREAM_ID_MAX) === id) {
        return this.fail(ERRORS.protocol, 'a stream cannot depend on itself');
      }
      start += 5;
    }
    const endStream = (flags & FLAG_END_STREAM) !== 0;
    if ((flags & FLAG_END_HEADERS) !== 0) return this.onBlock(bytes, start, end, id, endStream);
    this.#blockStream = id;
    this.#blockFlags = flags;
    this.#blockFrames = 0;
    this.cutSinceMs = this.transport.nowMs();
    this.#appendBlock(bytes, start, end);
  }

  #onContinuation(bytes: Buffer, start: number, end: number, flags: number, id: number): void {
    if (this.#blockStream === 0) {
      return this.fail(ERRORS.protocol, 'CONTINUATION without a header block before it');
    }
    if (++this.#blockFrames > CONTINUATIONS_MAX) {
      return this.fail(ERRORS.enhanceYourCalm, `more than ${CONTINUATIONS_MAX} CONTINUATIONs`);
    }
    this.#appendBlock(bytes, start, end);
    if (this.dead || (flags & FLAG_END_HEADERS) === 0) return;
    const block = this.#block;
    const length = this.#blockLength;
    this.#blockStream = 0;
    this.cutSinceMs = Infinity;
    this.#block = NONE;
    this.#blockLength = 0;
    this.holdBlock(0);
    this.onBlock(block, 0, length, id, (this.#blockFlags & FLAG_END_STREAM) !== 0);
  }

  #appendBlock(bytes: Buffer, start: number, end: number): void {
    const length = this.#blockLength + end - start;
    if (length > this.limits.blockBytesMax) {
      const most = this.limits.blockBytesMax;
      return this.fail(ERRORS.enhanceYourCalm, `header block of more than ${most} octets`);
    }
    if (!this.holdBlock(length)) {
      return this.fail(ERRORS.enhanceYourCalm, 'too many large header blocks at once');
    }
    if (length > this.#block.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#block.length * 2));
      this.#block.copy(larger, 0, 0, this.#blockLength);
      this.#block = larger;
    }
    bytes.copy(this.#block, this.#blockLength, start, end);
    this.#blockLength = length;
  }

  /** So many octets of an unfinished header block are kept; false: there is no room for them. */
  protected holdBlock(_bytes: number): boolean {
    return true;
  }

  protected stopReading(): void {
    this.#waiting = null;
    if (this.#partial.length === SPARE_BYTES) spare = this.#partial;
    this.#partial = NONE;
    this.#partialLength = 0;
    this.cutSinceMs = Infinity;
  }

  protected isWaiting(): boolean {
    return this.#waiting !== null;
  }

  /** The socket is gone: every stream with it. */
  protected loseAll(): void {
    assert(!this.inTurn, 'a socket closes between its chunks');
    this.dead = true;
    this.data.clear();
    this.control.clear();
    this.stopReading();
    for (const stream of this.streams.list()) this.loseStream(stream, 'disconnected', 0);
  }
}

/** At least so many octets: the spare room, or memory of its own where it is taken or too small. */
function takeRoom(bytesMin: number): Buffer {
  const taken = spare;
  if (taken === null || bytesMin > SPARE_BYTES) return Buffer.allocUnsafeSlow(bytesMin);
  spare = null;
  return taken;
}
