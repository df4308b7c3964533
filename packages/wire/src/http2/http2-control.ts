// data plane
/**
 * Control of an HTTP/2 connection: settings, pings, windows, resets, GOAWAY, timeouts.
 *
 * Errors have two kinds (RFC 9113 5.4): `fail` ends the connection, `resetStream` one stream.
 * Frames that ask for work and bring none are paid from a purse that each tick fills up, and that
 * useful frames refill: floods of any kind empty it.
 */
import type { CloseReason } from '../http/exchange.ts';
import {
  ERRORS,
  FLAG_ACK,
  FRAME_BYTES_LEAST,
  FRAME_HEAD_BYTES,
  FRAMES,
  readUint32,
  SETTINGS,
  STREAM_ID_MAX,
  WINDOW_DEFAULT_BYTES,
  WINDOW_MAX_BYTES,
  writeFrameHead,
  writeNumberFrame,
  writeSetting,
  writeUint32,
} from './frames.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { Http2Sender } from './http2-sender.ts';
import type { WireLimits } from '../limits.ts';
import type { H2Stream } from './stream.ts';
import type { Transport } from '../transport/transport.ts';

/** Streams reset by this side whose late frames are passed over in silence. */
const RESETS_REMEMBERED_MAX = 128;
/** Settings in one SETTINGS frame. */
const SETTINGS_ENTRIES_MAX = 64;
/**
 * What a WINDOW_UPDATE must give back to be free. Go gives back 4 KiB at a time, to the stream and
 * to the connection: 2,000 of them are no more than a list of 4 MB. A peer cannot flood us by them
 * either: windows overflow at 2 GiB, unless it takes what it gives us room for.
 */
const WINDOW_STEP_BYTES = 1024;

export abstract class Http2Control extends Http2Sender {
  readonly decoder: HpackDecoder;
  /** Highest stream that the peer opened (server), or that this side opened (client). */
  lastId = 0;
  goawayReceived = false;
  goawaySent = false;
  receivedMs: number;
  protected settingsReceived = false;
  /**
   * A frame or block that has begun and is not complete: since when; Infinity without one. Here and
   * below, never 0: a field that holds whole numbers at first costs all compiled code that touches
   * the connection when a fraction comes.
   */
  protected cutSinceMs: number = Infinity;
  protected stalledSinceMs: number = Infinity;
  #settingsAcknowledged = false;
  #settingsSentMs = 0;
  #pingSentMs = Infinity;
  #resets: Set<number> | null = null;

  constructor(transport: Transport, limits: WireLimits) {
    super(transport, limits);
    this.decoder = new HpackDecoder(limits.headerTableBytes, limits.headBytesMax);
    this.receivedMs = transport.nowMs();
  }

  /** True if the peer never used `id`. */
  protected abstract isIdle(id: number): boolean;
  protected abstract onGoaway(lastId: number, code: number, text: string): void;
  protected abstract onSettings(id: number, value: number): void;
  /** All settings of a frame were applied and acknowledged. */
  protected onSettingsDone(): void {
    // For those who wait for it.
  }

  /** No stream is left. */
  protected abstract onIdle(): void;
  protected abstract onPingAnswered(): void;
  /** The connection failed: what was received and not yet handled is forgotten. */
  protected abstract stopReading(): void;
  /** True while received bytes wait for room in the output. */
  protected abstract isWaiting(): boolean;

  /** SETTINGS, and the connection's window beyond the default. Once, at the start. */
  protected sendSettings(server: boolean): void {
    const limits = this.limits;
    // a client's come behind its preface; a server's leave first, whatever is held
    const out = server ? this.reserveFirst(128) : this.reserve(128);
    const start = out.at;
    let at = start + FRAME_HEAD_BYTES;
    if (server) {
      at = writeSetting(out.bytes, at, SETTINGS.maxConcurrentStreams, limits.streamsMax);
    } else {
      at = writeSetting(out.bytes, at, SETTINGS.enablePush, 0);
    }
    at = writeSetting(out.bytes, at, SETTINGS.initialWindowSize, limits.streamWindowBytes);
    at = writeSetting(out.bytes, at, SETTINGS.maxHeaderListSize, limits.headBytesMax);
    if (limits.headerTableBytes !== 4096) {
      at = writeSetting(out.bytes, at, SETTINGS.headerTableSize, limits.headerTableBytes);
    }
    const length = at - start - FRAME_HEAD_BYTES;
    writeFrameHead(out.bytes, start, length, FRAMES.settings, 0, 0);
    const more = limits.connectionWindowBytes - WINDOW_DEFAULT_BYTES;
    if (more > 0) at = writeNumberFrame(out.bytes, at, FRAMES.windowUpdate, 0, more);
    out.at = at;
    this.#settingsSentMs = this.transport.nowMs();
  }

  /** The receive window of new streams: until our SETTINGS are acknowledged, the peer may still
   *  reckon with the default. */
  protected initialReceiveWindow(): number {
    const bytes = this.limits.streamWindowBytes;
    return this.#settingsAcknowledged ? bytes : Math.max(bytes, WINDOW_DEFAULT_BYTES);
  }

  protected onPriority(bytes: Buffer, start: number, end: number, id: number): void {
    if (id === 0) return this.fail(ERRORS.protocol, 'PRIORITY on stream 0');
    if (!this.useless()) return;
    if (end - start !== 5) {
      const stream = this.streams.get(id);
      if (stream !== null) this.resetStream(stream, ERRORS.frameSize);
      else this.fail(ERRORS.frameSize, 'PRIORITY of a wrong length');
    } else if ((readUint32(bytes, start) & STREAM_ID_MAX) === id) {
      const stream = this.streams.get(id);
      if (stream !== null) this.resetStream(stream, ERRORS.protocol);
      else this.fail(ERRORS.protocol, 'a stream cannot depend on itself');
    }
  }

  protected onReset(bytes: Buffer, start: number, end: number, id: number): void {
    if (end - start !== 4) return this.fail(ERRORS.frameSize, 'RST_STREAM of a wrong length');
    if (id === 0) return this.fail(ERRORS.protocol, 'RST_STREAM on stream 0');
    if (!this.useless()) return;
    const stream = this.streams.get(id);
    if (stream === null) {
      if (this.isIdle(id)) this.fail(ERRORS.protocol, `RST_STREAM on idle stream ${id}`);
      return;
    }
    this.loseStream(stream, 'cancelled', readUint32(bytes, start));
  }

  protected onSettingsFrame(
    bytes: Buffer,
    start: number,
    end: number,
    flags: number,
    id: number,
  ): void {
    if (id !== 0) return this.fail(ERRORS.protocol, 'SETTINGS on a stream');
    const length = end - start;
    if ((flags & FLAG_ACK) !== 0) {
      if (length !== 0) return this.fail(ERRORS.frameSize, 'SETTINGS acknowledgement with payload');
      if (!this.#settingsAcknowledged) {
        this.#settingsAcknowledged = true;
        this.decoder.acknowledgeTableSize(this.limits.headerTableBytes);
      }
      return;
    }
    if (length % 6 !== 0) return this.fail(ERRORS.frameSize, 'SETTINGS of a wrong length');
    if (length > SETTINGS_ENTRIES_MAX * 6) {
      return this.fail(ERRORS.enhanceYourCalm, `more than ${SETTINGS_ENTRIES_MAX} settings`);
    }
    if (this.settingsReceived && !this.useless()) return;
    this.settingsReceived = true;
    for (let at = start; at < end && !this.dead; at += 6) {
      this.#setting((bytes[at]! << 8) | bytes[at + 1]!, readUint32(bytes, at + 2));
    }
    if (this.dead) return;
    const out = this.reserveControl(FRAME_HEAD_BYTES);
    out.at = writeFrameHead(out.bytes, out.at, 0, FRAMES.settings, FLAG_ACK, 0);
    this.onSettingsDone();
  }

  #setting(id: number, value: number): void {
    switch (id) {
      case SETTINGS.enablePush:
        if (value > 1) return this.fail(ERRORS.protocol, 'ENABLE_PUSH is neither 0 nor 1');
        break;
      case SETTINGS.initialWindowSize:
        if (value > WINDOW_MAX_BYTES) {
          return this.fail(ERRORS.flowControl, 'INITIAL_WINDOW_SIZE is too large');
        }
        this.#resizeWindows(value - this.peerInitialWindow);
        this.peerInitialWindow = value;
        break;
      case SETTINGS.maxFrameSize:
        if (value < FRAME_BYTES_LEAST || value > 0xff_ffff) {
          return this.fail(ERRORS.protocol, 'MAX_FRAME_SIZE is out of range');
        }
        this.peerFrameBytes = value;
        break;
    }
    this.onSettings(id, value);
  }

  /** A new initial window applies to the streams that are open, too (RFC 9113 6.9.2). */
  #resizeWindows(delta: number): void {
    if (delta === 0) return;
    for (const stream of this.streams.list()) {
      stream.sendWindow += delta;
      if (stream.sendWindow > WINDOW_MAX_BYTES) {
        return this.fail(ERRORS.flowControl, 'INITIAL_WINDOW_SIZE overflows a window');
      }
      if (delta > 0) this.wakeStream(stream);
    }
  }

  protected onPing(bytes: Buffer, start: number, end: number, flags: number, id: number): void {
    if (id !== 0) return this.fail(ERRORS.protocol, 'PING on a stream');
    if (end - start !== 8) return this.fail(ERRORS.frameSize, 'PING of a wrong length');
    if ((flags & FLAG_ACK) !== 0) {
      this.#pingSentMs = Infinity;
      this.onPingAnswered();
      return;
    }
    if (!this.useless()) return;
    const out = this.reserveControl(FRAME_HEAD_BYTES + 8);
    const at = writeFrameHead(out.bytes, out.at, 8, FRAMES.ping, FLAG_ACK, 0);
    bytes.copy(out.bytes, at, start, end);
    out.at = at + 8;
  }

  sendPing(): void {
    if (this.dead) return;
    const out = this.reserveControl(FRAME_HEAD_BYTES + 8);
    const at = writeFrameHead(out.bytes, out.at, 8, FRAMES.ping, 0, 0);
    out.bytes.fill(0, at, at + 8);
    out.at = at + 8;
    this.#pingSentMs = this.transport.nowMs();
  }

  protected onGoawayFrame(bytes: Buffer, start: number, end: number, id: number): void {
    if (id !== 0) return this.fail(ERRORS.protocol, 'GOAWAY on a stream');
    if (end - start < 8) return this.fail(ERRORS.frameSize, 'GOAWAY of a wrong length');
    const last = readUint32(bytes, start) & STREAM_ID_MAX;
    this.goawayReceived = true;
    const text = bytes.toString('latin1', start + 8, Math.min(end, start + 264));
    this.onGoaway(last, readUint32(bytes, start + 4), text);
  }

  protected onWindowUpdate(bytes: Buffer, start: number, end: number, id: number): void {
    if (end - start !== 4) return this.fail(ERRORS.frameSize, 'WINDOW_UPDATE of a wrong length');
    const increment = readUint32(bytes, start) & WINDOW_MAX_BYTES;
    if (increment < WINDOW_STEP_BYTES && !this.useless()) return;
    if (id === 0) {
      if (increment === 0) return this.fail(ERRORS.protocol, 'WINDOW_UPDATE of 0');
      this.sendWindow += increment;
      if (this.sendWindow > WINDOW_MAX_BYTES) {
        this.fail(ERRORS.flowControl, 'WINDOW_UPDATE overflows the window of the connection');
      }
      return;
    }
    const stream = this.streams.get(id);
    if (stream === null) {
      if (this.isIdle(id)) this.fail(ERRORS.protocol, `WINDOW_UPDATE on idle stream ${id}`);
      return;
    }
    if (increment === 0) return this.resetStream(stream, ERRORS.protocol);
    stream.sendWindow += increment;
    if (stream.sendWindow > WINDOW_MAX_BYTES) {
      return this.resetStream(stream, ERRORS.flowControl);
    }
    this.wakeStream(stream);
  }

  /** Counts a frame that asks for work and brings none. False: it was one too many. */
  protected useless(): boolean {
    if (--this.patience >= 0) return true;
    const most = this.limits.idleFramesPerSecond;
    this.fail(ERRORS.enhanceYourCalm, `more than ${most} frames a second without use`);
    return false;
  }

  /** A stream error of this side's making: RST_STREAM, and its owner hears of it. */
  resetStream(stream: H2Stream, code: number): void {
    const owner = stream.owner;
    this.sendReset(stream, code);
    this.useless();
    owner?.onLost(code === ERRORS.none ? 'aborted' : 'disconnected', code);
  }

  /** The peer or the connection ended the stream. */
  loseStream(stream: H2Stream, reason: CloseReason, code: number): void {
    const owner = stream.owner;
    this.forget(stream);
    owner?.onLost(reason, code);
  }

  override sendReset(stream: H2Stream, code: number): void {
    this.rememberReset(stream.id);
    super.sendReset(stream, code);
  }

  /** Frames of this stream that are under way will not be answered again. */
  rememberReset(id: number): void {
    this.#resets ??= new Set();
    if (this.#resets.size >= RESETS_REMEMBERED_MAX) {
      for (const oldest of this.#resets) {
        this.#resets.delete(oldest);
        break;
      }
    }
    this.#resets.add(id);
  }

  wasReset(id: number): boolean {
    return this.#resets?.has(id) === true;
  }

  forget(stream: H2Stream): void {
    this.dropStream(stream);
    if (this.streams.count === 0) this.onIdle();
  }

  sendGoaway(lastId: number, code: number, text: string): void {
    if (this.dead) return;
    const out = this.reserveControl(FRAME_HEAD_BYTES + 8 + text.length);
    let at = writeFrameHead(out.bytes, out.at, 8 + text.length, FRAMES.goaway, 0, 0);
    at = writeUint32(out.bytes, at, lastId);
    at = writeUint32(out.bytes, at, code);
    out.at = at + out.bytes.write(text, at, 'latin1');
    this.goawaySent = true;
  }

  /** A connection error: GOAWAY with the reason, then the end. */
  fail(code: number, text: string): void {
    if (this.dead) return;
    this.sendGoaway(this.lastId, code, text);
    // What is held must not leave: it is not durable yet.
    if (this.holds > 0) this.data.clear();
    else this.flushData();
    this.control.flush(this.transport);
    this.dead = true;
    this.stopReading();
    for (const stream of this.streams.list()) this.loseStream(stream, 'disconnected', code);
    this.transport.end();
  }

  tick(nowMs: number): void {
    if (this.dead) return;
    const limits = this.limits;
    this.patience = limits.idleFramesPerSecond;
    if (!this.settingsReceived) {
      if (nowMs - this.#settingsSentMs > limits.handshakeMsMax) this.transport.destroy();
      return;
    }
    if (nowMs - this.cutSinceMs > limits.headMsMax && !this.isWaiting()) {
      return this.fail(ERRORS.enhanceYourCalm, 'a frame took too long to arrive');
    }
    if (!this.#settingsAcknowledged && nowMs - this.#settingsSentMs > limits.handshakeMsMax) {
      return this.fail(ERRORS.settingsTimeout, 'SETTINGS were not acknowledged in time');
    }
    if (this.transport.pending() === 0) this.stalledSinceMs = Infinity;
    else if (this.stalledSinceMs === Infinity) this.stalledSinceMs = nowMs;
    else if (nowMs - this.stalledSinceMs > limits.stallMsMax) return this.transport.destroy();
    if (nowMs - this.#pingSentMs > limits.keepaliveTimeoutMs) {
      if (this.receivedMs < this.#pingSentMs && !this.isWaiting()) {
        return this.transport.destroy();
      }
    } else if (this.#pingSentMs === Infinity && nowMs - this.receivedMs > limits.keepaliveMs) {
      this.sendPing();
    }
    if (this.streams.count > 0) this.tickStreams(nowMs);
  }

  /** Deadlines of streams. */
  protected tickStreams(nowMs: number): void {
    for (const stream of this.streams.list()) {
      if (stream.id === 0) continue;
      if (nowMs >= stream.deadlineMs) {
        stream.owner?.onExpired();
      } else if (stream.queuedBytes > 0 && nowMs - stream.touchedMs > this.limits.stallMsMax) {
        this.resetStream(stream, ERRORS.cancel);
      }
    }
  }
}
