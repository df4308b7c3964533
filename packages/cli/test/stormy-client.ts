/** A client whose server has its weathers, and which counts what is asked of it. */
import type { Client, ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { StreamHandle, StreamSink } from '@megaplane/client/client';
import { madeUpStatus } from '@megaplane/client/answer';
import type { ClusterSimulation } from './cluster-simulation.ts';

const MINUTE_MS = 60_000;
/** What is answered at once takes so long. */
const ANSWER_MS = 5;
const SLOW_MS = 20_000;

/**
 * A number is the code that answers everything, 0 a refused connection. `half` refuses every second
 * change, `lost` makes them and tells nobody, `stale` keeps what watches have to say back.
 */
export type Weather = number | 'clear' | 'slow' | 'half' | 'lost' | 'stale';

export class StormyClient implements Client {
  weather: Weather = 'clear';
  /** Watches and lists that begin so are let through. */
  lets = 'nothing';
  readonly retryAfterSeconds = 0;
  readonly timers: ClusterSimulation['timers'];
  readonly metrics = { requestsInFlight: 0, requestsQueued: 0 } as Client['metrics'];
  readonly #cluster: ClusterSimulation;
  readonly #minute: Map<string, number> = new Map();
  readonly #held: (() => void)[] = [];
  #minuteMs = 0;
  #changes = 0;
  /** What was asked for most often in one minute. */
  worst = '';
  mostForOne = 0;

  constructor(cluster: ClusterSimulation) {
    this.#cluster = cluster;
    this.timers = cluster.timers;
  }

  /** The weather is over: what was held back is told. */
  clear(): void {
    this.weather = 'clear';
    for (const tell of this.#held.splice(0)) tell();
  }

  get #code(): number | null {
    return typeof this.weather === 'number' ? this.weather : null;
  }

  #count(method: string, path: string, body: string): void {
    if (this.timers.nowMs() - this.#minuteMs >= MINUTE_MS) {
      this.#minuteMs = this.timers.nowMs();
      this.#minute.clear();
    }
    const name = /"name":"([^"]+)"/.exec(body)?.[1] ?? '';
    const field = /fieldSelector=[^&]*/.exec(path)?.[0] ?? '';
    const key = `${method} ${path.split('?')[0]} ${method === 'POST' ? name : field}`;
    const count = (this.#minute.get(key) ?? 0) + 1;
    this.#minute.set(key, count);
    if (count <= this.mostForOne) return;
    this.mostForOne = count;
    this.worst = key;
  }

  send: Client['send'] = (method, path, contentType, body, done, tag = 0) => {
    const code = this.#code;
    this.#count(method, path, String(body ?? ''));
    if (code === null) return this.#cluster.send(method, path, contentType, body, done, tag);
    this.timers.after(ANSWER_MS, () => done(code, Buffer.from('{}'), 0, 2, tag));
    return true;
  };

  request: Client['request'] = async (request) => {
    const { body } = request;
    this.#count(request.method, request.path, typeof body === 'string' ? body : text(body));
    const { weather } = this;
    if (typeof weather === 'number') return this.#after(ANSWER_MS, refusal(weather));
    if (weather === 'slow') return this.#after(SLOW_MS, await this.#cluster.request(request));
    if (request.method === 'GET') return this.#cluster.request(request);
    if (weather === 'half' && this.#changes++ % 2 === 0) {
      return this.#after(ANSWER_MS, refusal(500));
    }
    const answer = await this.#cluster.request(request);
    return weather === 'lost' ? refusal(0) : answer;
  };

  #after(delayMs: number, answer: ClientResponse): Promise<ClientResponse> {
    return new Promise((resolve) => this.timers.after(delayMs, () => resolve(answer)));
  }

  stream: Client['stream'] = (path, sink) => {
    const code = path.startsWith(this.lets) ? null : this.#code;
    // without a connection nobody is asked: its pauses are the client's
    if (code !== 0) this.#count('GET', path, '');
    if (code === null) return this.#cluster.stream(path, this.#holding(sink));
    const cancel = this.timers.after(ANSWER_MS, () => {
      if (code === 0) return sink.onEnd('connection refused');
      sink.onHead(code, code === 429 ? 1 : 0);
      return sink.onEnd(null);
    });
    const handle: StreamHandle = { cancel, pause: () => {}, resume: () => {} };
    return handle;
  };

  #holding(sink: StreamSink): StreamSink {
    const later = (tell: () => void): void => {
      if (this.weather === 'stale') this.#held.push(tell);
      else tell();
    };
    return {
      onHead: (code, retryAfterSeconds) => later(() => sink.onHead(code, retryAfterSeconds)),
      onEnd: (error) => later(() => sink.onEnd(error)),
      onData: (bytes, start, end) => {
        if (this.weather !== 'stale') return sink.onData(bytes, start, end);
        const copy = bytes.slice(start, end);
        return later(() => sink.onData(copy, 0, copy.length));
      },
    };
  }

  room(): number {
    return this.#cluster.room();
  }
  random(): number {
    return this.#cluster.random();
  }
  onRoom(): void {}
  close(): void {}
}

function text(body: ClientRequest['body']): string {
  return body === undefined || body instanceof Uint8Array ? '' : JSON.stringify(body);
}

function refusal(code: number): ClientResponse {
  return { ok: false, code, status: madeUpStatus(code, 'a storm') };
}
