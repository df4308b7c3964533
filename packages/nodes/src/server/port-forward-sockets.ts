// shell: sockets of upgraded connections
/**
 * Port-forward over WebSocket, as kubelets take it (`v4.channel.k8s.io`, and in texts
 * `v4.base64.channel.k8s.io`): each port that the query names has two channels, one for data and
 * one on which only a failure is told. Both begin with the number of the port.
 */
import { guarded } from '@megaplane/base/deferred';
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import {
  binaryFrame,
  closeFrame,
  FrameReader,
  textFrame,
} from '@megaplane/machinery/streams/websocket-frames';
import { acceptSocket, negotiated, refuseUpgrade } from './remote-streams.ts';
import { reply } from './spdy-session.ts';

const BINARY = 'v4.channel.k8s.io';
const BASE64 = 'v4.base64.channel.k8s.io';
/** A channel's number is told in one byte: two for each port. */
const PORTS_MAX = 64;
/** In texts a channel is told as a character, from this one on. */
const DIGIT_ZERO = 0x30;

/** Begins a forwarded connection: `near` is the client's end of it, `fail` tells why not. */
export type BeginForward = (port: number, near: Duplex, fail: (why: string) => void) => void;

/** The ports that a query names; a text for people where it names none. */
export function queriedPorts(query: URLSearchParams): number[] | string {
  const texts = query.getAll('port');
  if (texts.length === 0) return 'query parameter "port" is required';
  const ports: number[] = [];
  for (const text of texts) {
    if (text === '') return 'query parameter "port" cannot be empty';
    for (const one of text.split(',')) {
      const port = /^\d{1,5}$/.test(one) ? Number(one) : NaN;
      if (!(port <= 65_535)) return `unable to parse ${JSON.stringify(text)} as a port`;
      if (port === 0) return `port ${JSON.stringify(text)} must be > 0`;
      ports.push(port);
    }
  }
  return ports.length <= PORTS_MAX ? ports : `at most ${PORTS_MAX} ports are forwarded at once`;
}

/** Accepts the request and serves its channels until the client leaves or all of them ended. */
export function forwardOverSocket(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  query: URLSearchParams,
  begin: BeginForward,
): void {
  const ports = queriedPorts(query);
  if (typeof ports === 'string') return refuseUpgrade(socket, 400, ports);
  const offered = String(request.headers['sec-websocket-protocol'] ?? '');
  const protocol = offered === '' ? BINARY : negotiated(offered, [BINARY, BASE64]);
  if (protocol === undefined) {
    const text = `unable to negotiate protocol: client supports [${offered}], server accepts`;
    return refuseUpgrade(socket, 403, `unable to upgrade: ${text} [${BINARY} ${BASE64}]`);
  }
  acceptSocket(request, socket, protocol);
  const session = new SocketForwards(socket, protocol === BASE64);
  for (const [index, port] of ports.entries()) session.open(index, port, begin);
  session.begin(head);
}

class SocketForwards {
  readonly #socket: Duplex;
  readonly #isText: boolean;
  readonly #ends: ChannelEnd[] = [];
  /** Of the message that is being read. */
  #channel = -1;
  #digits = '';
  #open = 0;

  constructor(socket: Duplex, isText: boolean) {
    this.#socket = socket;
    this.#isText = isText;
  }

  open(index: number, port: number, begin: BeginForward): void {
    const number = Buffer.alloc(2);
    number.writeUInt16LE(port);
    this.send(2 * index, number);
    this.send(2 * index + 1, number);
    const end = new ChannelEnd(this, 2 * index);
    this.#ends.push(end);
    this.#open++;
    end.on(
      'error',
      guarded(() => end.destroy()),
    );
    end.on(
      'close',
      guarded(() => this.#ended()),
    );
    begin(port, end, (why) => this.send(2 * index + 1, Buffer.from(why)));
  }

  #ended(): void {
    this.#open--;
    if (this.#open === 0 && !this.#socket.destroyed) this.#socket.end(closeFrame());
  }

  /** What came with the request is read first. */
  begin(head: Buffer): void {
    const socket = this.#socket;
    const reader = new FrameReader({
      onData: (bytes, isContinued) => this.#take(bytes, isContinued),
      onReply: (bytes) => reply(socket, bytes),
      onClose: () => socket.end(),
    });
    if (head.length > 0) reader.read(head);
    socket.on(
      'data',
      guarded((bytes: Buffer) => reader.read(bytes)),
    );
    socket.on(
      'drain',
      guarded(() => {
        for (const end of this.#ends) end.drained();
      }),
    );
    socket.on(
      'error',
      guarded(() => socket.destroy()),
    );
    socket.on(
      'end',
      guarded(() => socket.end()),
    );
    socket.on(
      'close',
      guarded(() => {
        for (const end of this.#ends) end.destroy();
      }),
    );
  }

  #take(bytes: Buffer, isContinued: boolean): void {
    if (!isContinued) {
      this.#channel = (bytes[0] ?? 0) - (this.#isText ? DIGIT_ZERO : 0);
      this.#digits = '';
    }
    const rest = isContinued ? bytes : bytes.subarray(1);
    const data = this.#isText ? this.#decoded(rest) : rest;
    // what is sent on a channel of failures is nobody's
    const end = this.#channel % 2 === 0 ? this.#ends[this.#channel / 2] : undefined;
    if (data.length > 0) end?.deliver(data);
  }

  /** Four digits are three bytes; a message may come in pieces of any size. */
  #decoded(bytes: Buffer): Buffer {
    const digits = this.#digits + bytes.toString('latin1');
    const whole = digits.length - (digits.length % 4);
    this.#digits = digits.slice(whole);
    return Buffer.from(digits.slice(0, whole), 'base64');
  }

  /** False: wait until the socket takes more. */
  send(channel: number, bytes: Buffer): boolean {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) return true;
    if (this.#isText) {
      const digit = String.fromCharCode(DIGIT_ZERO + channel);
      return socket.write(textFrame(Buffer.from(digit + bytes.toString('base64'))));
    }
    return socket.write(binaryFrame(Buffer.concat([Buffer.from([channel]), bytes])));
  }

  /** Holds the client back, who has one connection for all channels. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }
}

/** The data channel of one forwarded port, as a Duplex of Node's. */
class ChannelEnd extends Duplex {
  readonly #session: SocketForwards;
  readonly #channel: number;
  #drained: (() => void) | null = null;

  constructor(session: SocketForwards, channel: number) {
    super({ allowHalfOpen: true });
    this.#session = session;
    this.#channel = channel;
  }

  deliver(bytes: Buffer): void {
    if (this.destroyed || this.readableEnded) return;
    if (!this.push(bytes)) this.#session.pause();
  }

  drained(): void {
    const done = this.#drained;
    this.#drained = null;
    done?.();
  }

  override _read(): void {
    this.#session.resume();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error) => void): void {
    if (this.#session.send(this.#channel, bytes)) done();
    else this.#drained = done;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.drained();
    // others go on, who may have been held back for this one
    this.#session.resume();
    done(error);
  }
}
