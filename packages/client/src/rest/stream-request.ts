/** One streamed answer, between the connection that carries it and the sink of its user. */
import type {
  ClientConnection,
  ClientStream,
  PreparedFields,
  RequestFailure,
  ResponseSink,
} from '@megaplane/wire/client';
import type { StreamHandle, StreamSink } from './client.ts';
import { retryAfterOf } from './request-fields.ts';
import type { FieldList } from '@megaplane/wire/fields';

const RETRY_AFTER_SECONDS_MAX = 600;

type StreamState =
  | { readonly kind: 'waiting'; isPaused: boolean }
  | { readonly kind: 'flying'; readonly stream: ClientStream }
  | { readonly kind: 'over' };

export class StreamRequest implements ResponseSink, StreamHandle {
  readonly path: string;
  readonly accept: string;
  readonly #sink: StreamSink;
  readonly #onHead: (status: number) => void;
  readonly #onOver: (stream: StreamRequest) => void;
  #state: StreamState = { kind: 'waiting', isPaused: false };

  constructor(
    path: string,
    sink: StreamSink,
    accept: string,
    onHead: (status: number) => void,
    onOver: (stream: StreamRequest) => void,
  ) {
    this.path = path;
    this.accept = accept;
    this.#sink = sink;
    this.#onHead = onHead;
    this.#onOver = onOver;
  }

  get isWaiting(): boolean {
    return this.#state.kind === 'waiting';
  }

  begin(connection: ClientConnection, path: string, fields: PreparedFields): void {
    if (this.#state.kind !== 'waiting') return;
    const { isPaused } = this.#state;
    const stream = connection.request('GET', path, fields, null, this);
    // A connection may end a request at once; then `onEnd` has been here before.
    if (!this.isWaiting) return;
    this.#state = { kind: 'flying', stream };
    if (isPaused) stream.pause();
  }

  /** Ends it without an answer. */
  fail(message: string): void {
    if (this.#over()) this.#sink.onEnd(message);
  }

  #over(): boolean {
    if (this.#state.kind === 'over') return false;
    this.#state = { kind: 'over' };
    this.#onOver(this);
    return true;
  }

  onHead(_stream: ClientStream, status: number, fields: FieldList): void {
    if (this.#state.kind === 'over') return;
    this.#onHead(status);
    this.#sink.onHead(status, retryAfterOf(fields, RETRY_AFTER_SECONDS_MAX));
  }

  onData(_stream: ClientStream, bytes: Buffer, start: number, end: number): void {
    if (this.#state.kind !== 'over') this.#sink.onData(bytes, start, end);
  }

  onEnd(_stream: ClientStream, failure: RequestFailure | null): void {
    if (this.#over()) this.#sink.onEnd(failure === null ? null : failure.message);
  }

  cancel(): void {
    const state = this.#state;
    if (this.#over() && state.kind === 'flying') state.stream.cancel();
  }

  pause(): void {
    if (this.#state.kind === 'waiting') this.#state.isPaused = true;
    else if (this.#state.kind === 'flying') this.#state.stream.pause();
  }

  resume(): void {
    if (this.#state.kind === 'waiting') this.#state.isPaused = false;
    else if (this.#state.kind === 'flying') this.#state.stream.resume();
  }
}
