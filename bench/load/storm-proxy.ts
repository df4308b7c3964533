/**
 * A proxy before an API server that makes bad weather, and counts what each program asks of each
 * object. All requests go on in the name of the administrator.
 */
import {
  connect,
  createSecureServer,
  type ClientHttp2Session,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** `throttle`: 429 with Retry-After; `fail`: 500 as of a webhook that fails; `refuse`: 403 as of
 *  one that denies; `slow`: each answer 3 s later; `cut`: connections are lost. */
export const WEATHERS = ['throttle', 'fail', 'refuse', 'slow', 'cut'] as const;
export type Weather = (typeof WEATHERS)[number];

const SLOW_MS = 3000;
const MINUTE_MS = 60_000;
/** Watches take a stream each; a session carries no more than so many. */
const STREAMS_MAX = 100;
const STATUS = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' };
const REFUSALS = {
  throttle: { code: 429, reason: 'TooManyRequests', message: 'too many requests' },
  fail: { code: 500, reason: 'InternalError', message: 'failed calling webhook "w": timeout' },
  refuse: { code: 403, reason: 'Forbidden', message: 'admission webhook "w" denied the request' },
} as const;

export interface Counted {
  /** Requests since the last look. */
  requests: number;
  /** Most requests within one second. */
  mostInSecond: number;
  /** Most requests for one object by one verb within a minute, and for which. */
  mostForOne: number;
  worst: string;
}

export interface StormProxyOptions {
  readonly certificate: string;
  readonly key: string;
  readonly upstream: {
    readonly url: string;
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
  };
}

export class StormProxy {
  weather: Weather | null = null;
  readonly #options: StormProxyOptions;
  readonly #server: Http2SecureServer;
  readonly #sessions: { readonly session: ClientHttp2Session; open: number }[] = [];
  readonly #minute: Map<string, number> = new Map();
  readonly #downstream: Set<{ destroy(): void }> = new Set();
  #counted: Counted = fresh();
  #minuteMs = performance.now();
  #secondMs = performance.now();
  #inSecond = 0;

  constructor(options: StormProxyOptions) {
    this.#options = options;
    const { certificate: cert, key } = options;
    const settings = { maxConcurrentStreams: 10_000 };
    this.#server = createSecureServer({ cert, key, settings });
    this.#server.on('session', (session) => {
      this.#downstream.add(session);
      session.on('close', () => this.#downstream.delete(session));
      session.on('error', () => session.destroy());
    });
    this.#server.on(
      'stream',
      (stream, headers) => void this.#serve(stream as ServerHttp2Stream, headers),
    );
    this.#server.on('secureConnection', (socket) => {
      if (this.weather === 'cut') socket.destroy();
    });
  }

  /** Resolves with the port. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const session of this.#downstream) session.destroy();
    for (const { session } of this.#sessions) session.destroy();
    this.#server.close();
  }

  turn(weather: Weather | null): void {
    this.weather = weather;
    if (weather === 'cut') for (const session of this.#downstream) session.destroy();
  }

  /** What was counted since the last call. */
  take(): Counted {
    this.#closeMinute();
    const counted = this.#counted;
    this.#counted = fresh();
    return counted;
  }

  #closeMinute(): void {
    for (const [key, count] of this.#minute) {
      if (count <= this.#counted.mostForOne) continue;
      this.#counted.mostForOne = count;
      this.#counted.worst = key;
    }
    this.#minute.clear();
    this.#minuteMs = performance.now();
  }

  #count(method: string, path: string, body: Buffer): void {
    const nowMs = performance.now();
    if (nowMs - this.#minuteMs >= MINUTE_MS) this.#closeMinute();
    if (nowMs - this.#secondMs >= 1000) {
      this.#inSecond = 0;
      this.#secondMs = nowMs;
    }
    this.#counted.requests++;
    this.#counted.mostInSecond = Math.max(this.#counted.mostInSecond, ++this.#inSecond);
    const key = keyOf(method, path, body);
    if (key !== '') this.#minute.set(key, (this.#minute.get(key) ?? 0) + 1);
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => stream.destroy());
    const parts: Buffer[] = [];
    stream.on('data', (part: Buffer) => parts.push(part));
    await new Promise((resolve) => stream.once('end', resolve).once('close', resolve));
    const body = Buffer.concat(parts);
    const { ':method': method = 'GET', ':path': path = '/' } = headers;
    this.#count(String(method), String(path), body);
    const weather = this.weather;
    if (weather === 'slow') await sleep(SLOW_MS);
    else if (weather === 'cut') return stream.session?.destroy();
    else if (weather !== null) return refuse(stream, weather);
    if (!stream.destroyed) this.#forward(stream, headers, body);
  }

  #forward(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, body: Buffer): void {
    const link = this.#link();
    const { authorization: _a, host: _h, ...kept } = headers;
    const [path, method] = [headers[':path'], headers[':method']];
    const plain = Object.fromEntries(Object.entries(kept).filter(([name]) => name[0] !== ':'));
    const endStream = body.length === 0;
    const own = { ...plain, ':path': path, ':method': method };
    const onward = link.session.request(own, { endStream });
    link.open++;
    onward.on('close', () => {
      link.open--;
      // whoever waits must not wait for an answer that was lost
      if (!stream.destroyed && !stream.writableEnded) stream.close(8);
    });
    onward.on('error', () => onward.destroy());
    stream.on('close', () => onward.close(8));
    onward.on('response', (fields) => {
      if (stream.destroyed) return;
      const told = Object.entries(fields).filter(([name]) => name[0] !== ':' || name === ':status');
      stream.respond(Object.fromEntries(told));
      onward.pipe(stream);
    });
    if (!endStream) onward.end(body);
  }

  #link(): { readonly session: ClientHttp2Session; open: number } {
    const found = this.#sessions.find(({ open }) => open < STREAMS_MAX);
    if (found !== undefined) return found;
    const { url, ca, cert, key } = this.#options.upstream;
    const session = connect(url, { ca, cert, key });
    const link = { session, open: 0 };
    this.#sessions.push(link);
    session.on('error', () => session.destroy());
    session.on('close', () => this.#sessions.splice(this.#sessions.indexOf(link), 1));
    session.on('goaway', () => session.destroy());
    return link;
  }
}

function fresh(): Counted {
  return { requests: 0, mostInSecond: 0, mostForOne: 0, worst: '' };
}

function refuse(stream: ServerHttp2Stream, weather: 'throttle' | 'fail' | 'refuse'): void {
  if (stream.destroyed) return;
  const refusal = REFUSALS[weather];
  const more = weather === 'throttle' ? { 'retry-after': '1' } : {};
  stream.respond({ ':status': refusal.code, 'content-type': 'application/json', ...more });
  stream.end(JSON.stringify({ ...STATUS, ...refusal }));
}

/** Verb and object; '' for what is made without a name. */
function keyOf(method: string, path: string, body: Buffer): string {
  const [plain = '', query = ''] = path.split('?');
  if (method !== 'POST') {
    const field = /fieldSelector=[^&]*/.exec(query)?.[0] ?? '';
    return `${method} ${plain} ${query.includes('watch=') ? 'watch' : ''} ${field}`.trim();
  }
  const name = /"metadata":\{[^}]*?"name":"([^"]+)"/.exec(body.toString('utf8', 0, 2000))?.[1];
  return name === undefined ? '' : `POST ${plain}/${name}`;
}
