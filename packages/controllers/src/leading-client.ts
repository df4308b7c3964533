/**
 * A client that changes nothing once the lease of its process is over. A process that slept past
 * its lease has timers and answers that come before the one that ends it, while another process
 * leads already.
 */
import { madeUpStatus } from '@megaplane/client/answer';
import {
  STATUS_NONE,
  type Client,
  type ClientMetrics,
  type ClientRequest,
  type ClientResponse,
  type Method,
  type SendDone,
  type StreamHandle,
  type StreamSink,
  type Timers,
} from '@megaplane/client/client';

const WHY = 'the lease of this process is over: another one may lead';

export class LeadingClient implements Client {
  readonly #client: Client;
  readonly #mayWrite: () => boolean;

  constructor(client: Client, mayWrite: () => boolean) {
    this.#client = client;
    this.#mayWrite = mayWrite;
  }

  /** What is refused is answered later, as what finds no server is. */
  send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag: number = 0,
    user?: string,
  ): boolean {
    if (method === 'GET' || this.#mayWrite()) {
      return this.#client.send(method, path, contentType, body, done, tag, user);
    }
    const text = Buffer.from(WHY);
    this.timers.after(0, () => done(STATUS_NONE, text, 0, text.length, tag));
    return true;
  }

  request(request: ClientRequest): Promise<ClientResponse> {
    if (request.method === 'GET' || this.#mayWrite()) return this.#client.request(request);
    const status = madeUpStatus(STATUS_NONE, WHY);
    return new Promise((resolve) => {
      this.timers.after(0, () => resolve({ ok: false, code: STATUS_NONE, status }));
    });
  }

  room(): number {
    return this.#client.room();
  }

  onRoom(callback: () => void): void {
    this.#client.onRoom(callback);
  }

  stream(path: string, sink: StreamSink, accept?: string): StreamHandle {
    return this.#client.stream(path, sink, accept);
  }

  get retryAfterSeconds(): number {
    return this.#client.retryAfterSeconds;
  }

  get metrics(): ClientMetrics {
    return this.#client.metrics;
  }

  get timers(): Timers {
    return this.#client.timers;
  }

  random(): number {
    return this.#client.random();
  }

  close(): void {
    this.#client.close();
  }
}
