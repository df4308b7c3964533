/** Connections and calls of a simulated network: what is sent waits until the world delivers it. */
import type { CloseReason, Connection, Rest } from '@megaplane/wire/exchange';
import { IN_PLACE_ROOM_BYTES } from '@megaplane/wire/grpc';
import type {
  GrpcCall,
  GrpcCallHandler,
  GrpcCode,
  InPlaceCall,
  InPlaceHandler,
} from '@megaplane/wire/grpc';

/** Messages of a stream that its client has not taken; then the stream takes no more. */
const STREAM_MESSAGES_MAX = 3;

let nextId = 1;

export class SimulatedConnection implements Connection {
  readonly id: number = nextId++;
  readonly protocol = 'h2';
  readonly secure = false;
  readonly unix = false;
  readonly remoteAddress = '';
  slot: unknown = undefined;
  rest: Rest = 'late';
  readonly #queue: (() => void)[] = [];
  #holds = 0;
  #isCut = false;

  peerCertificate(): null {
    return null;
  }

  hold(): void {
    this.#holds++;
  }

  release(): void {
    this.#holds--;
  }

  abort(): void {
    this.#isCut = true;
  }

  drain(): void {}

  onceClosed(): void {}

  /** Something leaves for the client; `arrive` runs when it is there. */
  send(arrive: () => void): void {
    if (!this.#isCut) this.#queue.push(arrive);
  }

  get pending(): number {
    return this.#queue.length;
  }

  /** One message arrives, unless answers are kept back. */
  deliver(): void {
    if (this.#holds > 0) return;
    this.#queue.shift()?.();
  }

  /** Nothing more arrives. */
  cut(): void {
    this.#isCut = true;
    this.#queue.length = 0;
  }
}

export type Outcome =
  | { readonly kind: 'ok'; readonly bytes: Buffer }
  | { readonly kind: 'failed'; readonly code: number; readonly text: string };

const out = Buffer.alloc(IN_PLACE_ROOM_BYTES);

/** Runs a unary request now and returns what will arrive. */
export function runUnary(
  connection: SimulatedConnection,
  handler: InPlaceHandler,
  request: Buffer,
): Outcome {
  let outcome: Outcome = { kind: 'ok', bytes: Buffer.alloc(0) };
  const call: InPlaceCall = {
    connection,
    timeoutMs: Infinity,
    metadata: () => undefined,
    fail: (code, text) => {
      outcome = { kind: 'failed', code, text };
      return -1;
    },
    reply: (bytes) => {
      outcome = { kind: 'ok', bytes: Buffer.from(bytes) };
      return -2;
    },
    defer: () => -3,
  };
  const to = handler(request, 0, request.length, out, 0, call);
  if (to >= 0) outcome = { kind: 'ok', bytes: Buffer.from(out.subarray(0, to)) };
  return outcome;
}

/** A stream; `arrive` gets each message at the client. */
export class SimulatedCall implements GrpcCall {
  readonly connection: SimulatedConnection;
  readonly path = '/etcdserverpb.Watch/Watch';
  readonly timeoutMs: number = Infinity;
  readonly #arrive: (bytes: Buffer) => void;
  #handler: GrpcCallHandler | null = null;
  #under = 0;
  #wantsRoom = false;
  closed = false;
  slot: unknown = undefined;

  constructor(connection: SimulatedConnection, arrive: (bytes: Buffer) => void) {
    this.connection = connection;
    this.#arrive = arrive;
  }

  accept(handler: GrpcCallHandler): void {
    this.#handler = handler;
  }

  request(bytes: Buffer): void {
    if (!this.closed) this.#handler?.onMessage(bytes, 0, bytes.length);
  }

  metadata(): undefined {
    return undefined;
  }

  send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const copy = Buffer.from(bytes.subarray(start, end));
    this.#under++;
    this.connection.send(() => {
      this.#under--;
      this.#arrive(copy);
      if (!this.#wantsRoom || this.closed) return;
      this.#wantsRoom = false;
      this.#handler?.onWritable?.();
    });
  }

  writable(): number {
    if (this.#under < STREAM_MESSAGES_MAX) return 65_536;
    this.#wantsRoom = true;
    return 0;
  }

  pause(): void {}

  resume(): void {}

  finish(_code: GrpcCode): void {
    this.closed = true;
  }

  cancel(reason: CloseReason): void {
    if (this.closed) return;
    this.closed = true;
    this.#handler?.onCancel(reason);
  }
}
