/** Closed loops: a number of calls is always in flight. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcClient, GrpcClientCall, GrpcSink, GrpcStatus } from '@megaplane/wire/grpc';
import * as harness from '../harness.ts';

/** What is sent: the path, how the call of an index is written, and what is read off its answer. */
export interface Request {
  readonly path: string;
  write(out: Buffer, index: number): number;
  readonly read?: (index: number, bytes: Buffer, start: number, end: number) => void;
}

const TAG_SPAN = 2 ** 24;

/** Keeps all connections busy until told to stop, or until `next` gives -1. */
export class Load implements GrpcSink {
  readonly #clients: readonly GrpcClient[];
  readonly #request: Request;
  readonly #next: () => number;
  readonly #message = Buffer.alloc(8192);
  readonly #sentMs: Float64Array;
  /** Milliseconds of each call, when asked for. */
  readonly latencies: number[] = [];
  readonly #measures: boolean;
  answered = 0;
  isOver = false;
  inFlight = 0;
  /** The first call that failed; nothing is sent after it. */
  failure: Error | null = null;
  #onIdle: () => void = () => {};

  constructor(
    clients: readonly GrpcClient[],
    request: Request,
    next: () => number,
    measures = false,
  ) {
    this.#clients = clients;
    this.#request = request;
    this.#next = next;
    this.#measures = measures;
    this.#sentMs = new Float64Array(clients.length);
  }

  start(inFlight: number): void {
    for (let i = 0; i < inFlight; i++) {
      for (const client of this.#clients.keys()) this.#send(client);
    }
  }

  #send(client: number): void {
    if (this.isOver) return;
    const index = this.#next();
    if (index < 0) return;
    const size = this.#request.write(this.#message, index);
    this.inFlight++;
    if (this.#measures) this.#sentMs[client] = performance.now();
    const tag = client * TAG_SPAN + index;
    const message = this.#message.subarray(0, size);
    this.#clients[client]?.unary(this.#request.path, message, this, { tag });
  }

  onMessage(call: GrpcClientCall, bytes: Buffer, start: number, end: number): void {
    this.#request.read?.(call.tag % TAG_SPAN, bytes, start, end);
  }

  onStatus(call: GrpcClientCall, status: GrpcStatus): void {
    this.inFlight--;
    if (status.code !== 0) this.#fail(`a call failed: ${status.code} ${status.message}`);
    else this.answered++;
    const client = Math.floor(call.tag / TAG_SPAN);
    if (this.#measures) this.latencies.push(performance.now() - (this.#sentMs[client] ?? 0));
    this.#send(client);
    if (this.inFlight === 0) this.#onIdle();
  }

  #fail(message: string): void {
    this.failure ??= new Error(message);
    this.isOver = true;
  }

  /** Resolves when nothing is in flight; throws what a call failed with. */
  async idle(): Promise<void> {
    if (this.inFlight > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    if (this.failure !== null) throw this.failure;
  }
}

/** Sends each index below `count` once. */
export async function fill(
  clients: readonly GrpcClient[],
  request: Request,
  count: number,
): Promise<void> {
  let next = 0;
  const load = new Load(clients, request, () => (next < count ? next++ : -1));
  load.start(100);
  await load.idle();
}

/** Indexes below `count` whose neighbours in time are far apart, none twice at once. */
export function scattered(count: number): () => number {
  let cursor = 0;
  return () => (cursor = (cursor + 611_953) % count);
}

export interface Rate {
  readonly perSecond: number;
  readonly perCpuSecond: number;
  /** Sorted. */
  readonly latencies: readonly number[];
}

/** Runs a load for a while and stops it. */
export async function rate(
  load: Load,
  inFlight: number,
  seconds: number,
  pid: number,
): Promise<Rate> {
  load.start(inFlight);
  await sleep(500);
  load.latencies.length = 0;
  const startMs = performance.now();
  const startCpu = harness.cpuSeconds(pid);
  const before = load.answered;
  await sleep(seconds * 1000);
  const elapsed = (performance.now() - startMs) / 1000;
  const cpu = harness.cpuSeconds(pid) - startCpu;
  const count = load.answered - before;
  load.isOver = true;
  await load.idle();
  const latencies = load.latencies.toSorted((a, b) => a - b);
  return { perSecond: count / elapsed, perCpuSecond: count / cpu, latencies };
}
