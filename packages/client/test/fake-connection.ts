import assert from 'node:assert/strict';
import type {
  ClientConnection,
  ClientStream,
  PreparedFields,
  RequestFailure,
  ResponseSink,
} from '@megaplane/wire/client';

/** One request as the server of the test sees it. */
export class FakeRequest implements ClientStream {
  tag: number;
  closed = false;
  onWritable: (() => void) | null = null;
  readonly connection: FakeConnection;
  readonly method: string;
  readonly path: string;
  readonly fields: readonly string[];
  readonly body: string | null;
  isPaused = false;
  readonly #sink: ResponseSink;

  constructor(
    connection: FakeConnection,
    method: string,
    path: string,
    fields: readonly string[],
    body: Uint8Array | string | null,
    sink: ResponseSink,
    tag: number,
  ) {
    this.connection = connection;
    this.method = method;
    this.path = path;
    this.fields = fields;
    this.body = body === null ? null : Buffer.from(body).toString();
    this.#sink = sink;
    this.tag = tag;
  }

  answer(status: number, body: string = '', fields: readonly string[] = []): void {
    this.head(status, fields);
    // of an odd length: whole, in memory that is lent until the end
    const half = body.length % 2 === 0 ? body.length >> 1 : 0;
    this.data(body.slice(0, half));
    const last = Buffer.from(`#${body.slice(half)}`);
    if (!this.closed && last.length > 1) {
      this.#sink.onData(this, last, 1, last.length, half === 0);
    }
    if (half > 0) last.fill(35);
    this.#close(null);
    last.fill(35);
  }

  head(status: number, fields: readonly string[] = []): void {
    if (!this.closed) this.#sink.onHead(this, status, fields);
  }

  data(text: string): void {
    if (this.closed || text === '') return;
    const bytes = Buffer.from(`#${text}`);
    this.#sink.onData(this, bytes, 1, bytes.length, false);
    bytes.fill(35);
  }

  fail(kind: RequestFailure['kind'], message: string = kind): void {
    this.#close({ kind, code: 0, message });
  }

  end(): void {
    this.#close(null);
  }

  cancel(): void {
    this.fail('cancelled');
  }

  #close(failure: RequestFailure | null): void {
    if (this.closed) return;
    this.closed = true;
    this.connection.requests.delete(this);
    this.#sink.onEnd(this, failure, []);
  }

  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  write(): void {}
  writable(): number {
    return 0;
  }
}

/** A connection whose server is the test. */
export class FakeConnection implements ClientConnection {
  readonly protocol = 'h2' as const;
  state: 'connecting' | 'open' | 'draining' | 'closed' = 'connecting';
  onClosed: ((reason: string) => void) | null = null;
  onOpen: (() => void) | null = null;
  onDraining: (() => void) | null = null;
  streamsMax = 100;
  readonly requests: Set<FakeRequest> = new Set();

  get capacity(): number {
    return this.state === 'open' ? Math.max(0, this.streamsMax - this.requests.size) : 0;
  }

  get inFlight(): number {
    return this.requests.size;
  }

  request(
    method: string,
    path: string,
    { fields }: PreparedFields,
    body: Uint8Array | string | null,
    sink: ResponseSink,
    tag: number = 0,
  ): ClientStream {
    assert.equal(this.state, 'open', 'requests wait until the connection is open');
    const request = new FakeRequest(this, method, path, fields, body, sink, tag);
    this.requests.add(request);
    return request;
  }

  open(): ClientStream {
    throw new Error('no streamed bodies here');
  }

  opened(): void {
    this.state = 'open';
    this.onOpen?.();
  }

  draining(): void {
    this.state = 'draining';
    this.onDraining?.();
  }

  lose(reason: string): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    for (const request of this.requests) request.fail('disconnected', reason);
    this.onClosed?.(reason);
  }

  drain(): void {
    this.draining();
  }

  destroy(): void {
    this.lose('cut by this side');
  }
}
