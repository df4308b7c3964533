/** The calls of one connection, from what both ends say. */
import { Message } from '@megaplane/etcd/message';
import { callShape, type CallShape } from './call-shape.ts';
import { FrameTap, MessageTap } from './frame-tap.ts';
import type { TracedCall, TraceSummary } from './trace-summary.ts';

/** Calls that are open at once on a connection and looked at; more pass unseen. */
const CALLS_MAX = 10_000;
const WATCH = '/etcdserverpb.Watch/Watch';

interface Call {
  readonly path: string;
  readonly startMs: number;
  shape: CallShape | null;
  requestBytes: number;
  responseBytes: number;
  readonly requests: MessageTap;
  readonly responses: MessageTap;
  /** Of a watch: creations that wait for their number, and the shapes of those that have one. */
  readonly asked: { readonly shape: CallShape; readonly startMs: number; readonly bytes: number }[];
  readonly watches: Map<bigint, CallShape>;
}

export interface TraceOptions {
  readonly summary: TraceSummary;
  readonly nowMs: () => number;
  /** One call has ended. */
  readonly onCall: (call: TracedCall & { readonly path: string }) => void;
}

export class ConnectionTrace {
  /** What the client says, and what the server says. */
  readonly client: FrameTap;
  readonly server: FrameTap;
  readonly #options: TraceOptions;
  readonly #calls: Map<number, Call> = new Map();

  constructor(options: TraceOptions) {
    this.#options = options;
    this.client = new FrameTap(
      {
        onHeaders: (stream, fields) => this.#begin(stream, fields),
        onData: (stream, bytes) => this.#calls.get(stream)?.requests.push(bytes),
        onReset: (stream) => void this.#calls.delete(stream),
      },
      true,
    );
    this.server = new FrameTap(
      {
        onHeaders: (stream, fields, isLast) => {
          if (isLast) this.#end(stream, Number(fieldOf(fields, 'grpc-status') || 0));
        },
        onData: (stream, bytes, isLast) => {
          this.#calls.get(stream)?.responses.push(bytes);
          if (isLast) this.#end(stream, 0);
        },
        onReset: (stream) => void this.#calls.delete(stream),
      },
      false,
    );
  }

  #begin(stream: number, fields: readonly string[]): void {
    const path = fieldOf(fields, ':path');
    if (path === '' || this.#calls.size >= CALLS_MAX) return;
    const call: Call = {
      ...{ path, startMs: this.#options.nowMs(), shape: null, requestBytes: 0, responseBytes: 0 },
      requests: new MessageTap((kept, length) => this.#onRequest(call, kept, length)),
      responses: new MessageTap((kept, length) => this.#onResponse(call, kept, length)),
      asked: [],
      watches: new Map(),
    };
    this.#calls.set(stream, call);
  }

  #onRequest(call: Call, kept: Buffer, length: number): void {
    call.requestBytes += length;
    const shape = callShape(call.path, kept);
    call.shape ??= shape;
    if (call.path !== WATCH || !shape.shape.startsWith('Watch')) return;
    if (shape.prefix === '' && /cancel|progress$/.test(shape.shape)) return;
    if (call.asked.length < CALLS_MAX) {
      call.asked.push({ shape, startMs: this.#options.nowMs(), bytes: length });
    }
  }

  #onResponse(call: Call, kept: Buffer, length: number): void {
    call.responseBytes += length;
    if (call.path !== WATCH) return;
    const message = new Message(kept);
    const id = message.number(2);
    if (message.number(3) > 0n) {
      const asked = call.asked.shift();
      if (asked === undefined) return;
      if (call.watches.size < CALLS_MAX) call.watches.set(id, asked.shape);
      const ms = this.#options.nowMs() - asked.startMs;
      this.#tell(call.path, asked.shape, asked.bytes, length, ms, 0);
      return;
    }
    const shape = call.watches.get(id);
    const events = message.messages(11).length;
    if (shape !== undefined && events > 0) {
      this.#options.summary.addEvents(shape.shape, shape.prefix, events, length);
    }
    if (message.number(4) > 0n) call.watches.delete(id);
  }

  #end(stream: number, status: number): void {
    const call = this.#calls.get(stream);
    if (call === undefined) return;
    this.#calls.delete(stream);
    if (call.path === WATCH) return;
    const shape = call.shape ?? callShape(call.path, Buffer.alloc(0));
    const ms = this.#options.nowMs() - call.startMs;
    this.#tell(call.path, shape, call.requestBytes, call.responseBytes, ms, status);
  }

  #tell(
    path: string,
    shape: CallShape,
    requestBytes: number,
    responseBytes: number,
    ms: number,
    status: number,
  ): void {
    const call: TracedCall = { ...shape, requestBytes, responseBytes, ms, events: 0, status };
    this.#options.summary.add(call);
    this.#options.onCall({ path, ...call });
  }
}

function fieldOf(fields: readonly string[], name: string): string {
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at] === name) return fields[at + 1] ?? '';
  }
  return '';
}
