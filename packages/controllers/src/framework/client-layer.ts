/** A client in front of another one: it passes on whatever a layer does not do otherwise. */
import type {
  Client,
  ClientMetrics,
  ClientRequest,
  ClientResponse,
  Method,
  SendDone,
  StreamHandle,
  StreamSink,
  Timers,
} from '@megaplane/client/client';

export class ClientLayer implements Client {
  readonly next: Client;

  constructor(next: Client) {
    this.next = next;
  }

  send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag?: number,
    user?: string,
  ): boolean {
    return this.next.send(method, path, contentType, body, done, tag, user);
  }

  request(request: ClientRequest): Promise<ClientResponse> {
    return this.next.request(request);
  }

  room(): number {
    return this.next.room();
  }

  onRoom(callback: () => void): void {
    this.next.onRoom(callback);
  }

  stream(path: string, sink: StreamSink, accept?: string): StreamHandle {
    return this.next.stream(path, sink, accept);
  }

  get retryAfterSeconds(): number {
    return this.next.retryAfterSeconds;
  }

  get metrics(): ClientMetrics {
    return this.next.metrics;
  }

  get timers(): Timers {
    return this.next.timers;
  }

  random(): number {
    return this.next.random();
  }

  close(): void {
    this.next.close();
  }
}
