// shell: sockets of upgraded connections, and the time that clients take
/**
 * The streams of exec and attach, over SPDY/3.1 or WebSocket, as kubelets take them: protocols v1
 * to v4 over SPDY, `channel.k8s.io`, v4 and v5 over WebSocket.
 */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { createHash } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  binaryFrame,
  closeFrame,
  FrameReader,
} from '@megaplane/machinery/streams/websocket-frames';
import { reply, SpdySession, type SpdyStream } from './spdy-session.ts';

/** A terminal's size has some thirty. */
const RESIZE_BYTES_MAX = 1024;
/** A client has this long to open its streams. */
export const STREAMS_MS_MAX = 30_000;
/** A connection over which nothing was said for so long is closed, as kubelets do. */
export const IDLE_MS_MAX: number = 4 * 60 * 60 * 1000;
/** RFC 6455 section 1.3. */
const ACCEPT_KEY = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const SPDY_PROTOCOLS = ['v4', 'v3', 'v2', ''].map((version) =>
  version === '' ? 'channel.k8s.io' : `${version}.channel.k8s.io`,
);
const SOCKET_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'channel.k8s.io'];
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
const ERROR_PLAIN = 3;

/** Which streams the request asks for. */
export interface WantedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** What the two ways of transport have in common. */
export interface RemoteStreams {
  /** Input is delivered from here on; what came before was kept. Set the callbacks first. */
  begin(): void;
  onStdin: (bytes: Buffer) => void;
  onStdinEnd: () => void;
  onResize: (columns: number, rows: number) => void;
  /** More may be written again. */
  onDrain: () => void;
  /** The client is gone. */
  onClose: () => void;
  /** False: wait for `onDrain`. */
  write(stream: 'stdout' | 'stderr', bytes: Buffer): boolean;
  /** Holds the client's input back. */
  pause(): void;
  resume(): void;
  /** Tells how it ended, and ends the connection. */
  finish(status: JsonObject): void;
}

/** The streams that a kubelet's query names; a text for people if it names none. */
export function wantedStreams(query: URLSearchParams): WantedStreams | string {
  const flag = (name: string): boolean => query.get(name) === '1' || query.get(name) === 'true';
  const tty = flag('tty');
  const stdin = flag('input');
  const stdout = flag('output');
  // a terminal has one output
  const stderr = flag('error') && !tty;
  if (!stdin && !stdout && !stderr) {
    return 'you must specify at least 1 of stdin, stdout, stderr';
  }
  return { stdin, stdout, stderr, tty };
}

/** Answers a request that cannot be upgraded. */
export function refuseUpgrade(socket: Duplex, code: number, text: string): void {
  const body = `${text}\n`;
  socket.end(
    `HTTP/1.1 ${code} ${STATUS_CODES[code] ?? 'Bad Request'}\r\n` +
      'Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** The protocol to speak: the first of the client's that we know; undefined: none of them. */
export function negotiated(offered: string, known: readonly string[]): string | undefined {
  const names = offered.split(',').map((name) => name.trim());
  if (offered === '') return known.at(-1);
  return names.find((name) => known.includes(name));
}

/** The head that accepts SPDY. */
export function acceptSpdy(socket: Duplex, protocol: string): void {
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n' +
      `X-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
  );
}

/** The head that accepts a WebSocket (RFC 6455 section 4.2.2). */
export function acceptSocket(request: IncomingMessage, socket: Duplex, protocol: string): void {
  const key = String(request.headers['sec-websocket-key'] ?? '');
  const accept = createHash('sha1')
    .update(key + ACCEPT_KEY)
    .digest('base64');
  const isNamed = request.headers['sec-websocket-protocol'] !== undefined;
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n` +
      (isNamed ? `Sec-WebSocket-Protocol: ${protocol}\r\n\r\n` : '\r\n'),
  );
}

/** Accepts the request and waits for its streams; null: it was refused, or the client left. */
export async function openStreams(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  wanted: WantedStreams,
): Promise<RemoteStreams | null> {
  if ('setTimeout' in socket && typeof socket.setTimeout === 'function') {
    socket.setTimeout(IDLE_MS_MAX, () => socket.destroy());
  }
  const isSocket = (request.headers.upgrade ?? '').toLowerCase() === 'websocket';
  const header = isSocket ? 'sec-websocket-protocol' : 'x-stream-protocol-version';
  const offered = String(request.headers[header] ?? '');
  const known = isSocket ? SOCKET_PROTOCOLS : SPDY_PROTOCOLS;
  const protocol = negotiated(offered, known);
  if (protocol === undefined) {
    const text =
      `unable to upgrade: unable to negotiate protocol: client supports [${offered}], ` +
      `server accepts [${known.join(' ')}]`;
    refuseUpgrade(socket, 403, text);
    return null;
  }
  if (!isSocket) return openSpdy(socket, head, protocol, wanted);
  return new SocketStreams(request, socket, head, protocol, wanted);
}

function openSpdy(
  socket: Duplex,
  head: Buffer,
  protocol: string,
  wanted: WantedStreams,
): Promise<RemoteStreams | null> {
  const hasResize = wanted.tty && (protocol.startsWith('v4') || protocol.startsWith('v3'));
  const expected = ['error', ...(['stdin', 'stdout', 'stderr'] as const).filter((x) => wanted[x])];
  if (hasResize) expected.push('resize');
  acceptSpdy(socket, protocol);
  return new Promise((resolve) => {
    const found = new Map<string, SpdyStream>();
    const timer = afterMs(STREAMS_MS_MAX, () => socket.destroy());
    const session = new SpdySession(socket, head, (stream) => {
      const type = stream.headers.get('streamtype') ?? '';
      if (!expected.includes(type) || found.has(type)) return stream.reset();
      found.set(type, stream);
      if (found.size < expected.length) return;
      clearTimeout(timer);
      resolve(new SpdyStreams(session, found, !protocol.startsWith('v4')));
    });
    session.onClose = () => {
      clearTimeout(timer);
      resolve(null);
    };
  });
}

abstract class Callbacks {
  onStdin: (bytes: Buffer) => void = () => {};
  onStdinEnd: () => void = () => {};
  onResize: (columns: number, rows: number) => void = () => {};
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  #early: (() => void)[] | null = [];
  /** What came of the next size. */
  #sizes = '';

  begin(): void {
    const early = this.#early ?? [];
    this.#early = null;
    for (const deliver of early) deliver();
  }

  protected deliver(run: () => void): void {
    if (this.#early === null) run();
    else this.#early.push(run);
  }

  /** Of the resize stream: `{"Width":80,"Height":24}`, the members in any order, in pieces too. */
  protected resized(bytes: Buffer): void {
    const texts = (this.#sizes + bytes.toString('latin1')).split('}');
    this.#sizes = texts.pop()?.slice(0, RESIZE_BYTES_MAX) ?? '';
    for (const text of texts) {
      const width = /"Width":\s*(\d{1,5})/i.exec(text);
      const height = /"Height":\s*(\d{1,5})/i.exec(text);
      if (width !== null && height !== null) this.onResize(Number(width[1]), Number(height[1]));
    }
  }
}

/** What the error stream says: JSON from v4 on, before that the text of a failure. */
function lastWords(status: JsonObject, isPlain: boolean): Buffer {
  if (!isPlain) return Buffer.from(JSON.stringify(status));
  return Buffer.from(status['status'] === 'Success' ? '' : stringAt(status, 'message'));
}

class SpdyStreams extends Callbacks implements RemoteStreams {
  readonly #session: SpdySession;
  readonly #streams: ReadonlyMap<string, SpdyStream>;
  readonly #isPlain: boolean;

  constructor(session: SpdySession, streams: ReadonlyMap<string, SpdyStream>, isPlain: boolean) {
    super();
    this.#session = session;
    this.#streams = streams;
    this.#isPlain = isPlain;
    const stdin = streams.get('stdin');
    if (stdin !== undefined) {
      stdin.onData = (bytes) => this.deliver(() => this.onStdin(bytes));
      stdin.onEnd = () => this.deliver(() => this.onStdinEnd());
      stdin.onReset = () => this.deliver(() => this.onStdinEnd());
    }
    const resize = streams.get('resize');
    if (resize !== undefined) resize.onData = (bytes) => this.deliver(() => this.resized(bytes));
    session.onDrain = () => this.onDrain();
    session.onClose = () => this.deliver(() => this.onClose());
  }

  write(stream: 'stdout' | 'stderr', bytes: Buffer): boolean {
    return this.#streams.get(stream)?.write(bytes) ?? true;
  }

  pause(): void {
    this.#session.pause();
  }

  resume(): void {
    this.#session.resume();
  }

  finish(status: JsonObject): void {
    this.#streams.get('error')?.write(lastWords(status, this.#isPlain));
    for (const stream of this.#streams.values()) stream.end();
    this.#session.close();
  }
}

class SocketStreams extends Callbacks implements RemoteStreams {
  readonly #socket: Duplex;
  readonly #isPlain: boolean;
  #channel: number = CHANNEL.stdin;

  constructor(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    protocol: string,
    wanted: WantedStreams,
  ) {
    super();
    this.#socket = socket;
    this.#isPlain = protocol === 'channel.k8s.io';
    acceptSocket(request, socket, protocol);
    const reader = new FrameReader({
      onData: (bytes, isContinued) => this.deliver(() => this.#onFrame(bytes, isContinued)),
      onReply: (bytes) => reply(socket, bytes),
      onClose: () => socket.end(),
    });
    socket.on(
      'data',
      guarded((bytes: Buffer) => reader.read(bytes)),
    );
    socket.on(
      'drain',
      guarded(() => this.onDrain()),
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
      guarded(() => this.deliver(() => this.onClose())),
    );
    // as kubelets: an empty message says that the connection stands
    this.#send(wanted.stdout ? CHANNEL.stdout : wanted.stderr ? CHANNEL.stderr : CHANNEL.error);
    if (head.length > 0) reader.read(head);
  }

  #onFrame(bytes: Buffer, isContinued: boolean): void {
    if (!isContinued) this.#channel = bytes[0] ?? CHANNEL.stdin;
    const data = isContinued ? bytes : bytes.subarray(1);
    if (this.#channel === CHANNEL.stdin && data.length > 0) this.onStdin(data);
    else if (this.#channel === CHANNEL.resize) this.resized(data);
    else if (this.#channel === CHANNEL.close && data[0] === CHANNEL.stdin) this.onStdinEnd();
  }

  #send(channel: number, bytes: Buffer = Buffer.alloc(0)): boolean {
    if (this.#socket.destroyed || this.#socket.writableEnded) return true;
    return this.#socket.write(binaryFrame(Buffer.concat([Buffer.from([channel]), bytes])));
  }

  write(stream: 'stdout' | 'stderr', bytes: Buffer): boolean {
    return this.#send(CHANNEL[stream], bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  finish(status: JsonObject): void {
    const words = lastWords(status, this.#isPlain);
    if (words.length > 0) this.#send(ERROR_PLAIN, words);
    if (!this.#socket.destroyed) this.#socket.end(closeFrame());
  }
}
