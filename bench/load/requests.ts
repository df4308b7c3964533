/**
 * Numbered requests against any API server: so many at once, at a rate if one is wanted, those that
 * a server in trouble refuses once more. What happened is shown each second and at the end.
 */
import { LatencyHistogram } from '@megaplane/base/histogram';
import { CONTENT, STATUS_NONE, type Client, type Method } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { printTable } from '../harness.ts';

export interface Shot {
  readonly method: Method;
  readonly path: string;
  readonly body: string | null;
}

/** `again`: as a server in trouble answers; `bad`: ends the run. */
export type Verdict = 'done' | 'already' | 'again' | 'bad';

export interface LoadOptions {
  readonly clients: readonly Client[];
  /** Numbers `first` to `first + count - 1`. */
  readonly first: number;
  readonly count: number;
  /** A second; 0: as fast as answers come. */
  readonly rate: number;
  /** Nothing may be done for so long; then the run ends with what was said last. 0: for ever. */
  readonly patienceSeconds: number;
  readonly what: string;
  /** What those are that need nothing done. */
  readonly already?: string;
  shot(index: number): Shot;
  judge(status: number): Verdict;
}

export interface LoadResult {
  readonly seconds: number;
  readonly done: number;
  readonly already: number;
  readonly repeated: number;
  readonly latencyMs: LatencyHistogram;
}

const RETRY_MS = 500;
const PACE_MS = 10;
const TEXT_MAX = 500;

/** Creations: one that is there already is as good, which is how a run is taken up again. */
export function judgeCreate(status: number): Verdict {
  if (status === 201 || status === 200 || status === 202) return 'done';
  return status === 409 ? 'already' : passing(status);
}

export function judgeDelete(status: number): Verdict {
  if (status === 200 || status === 202) return 'done';
  return status === 404 ? 'already' : passing(status);
}

/** Waits for objects to be gone. */
export function judgeGone(status: number): Verdict {
  if (status === 404) return 'done';
  return status === 200 ? 'again' : passing(status);
}

function passing(status: number): Verdict {
  return status === STATUS_NONE || status === 429 || status >= 500 ? 'again' : 'bad';
}

/** `count` clients with connections of their own, each with `inFlight` requests at once. */
export function openClients(
  kubeconfig: string,
  count: number,
  inFlight: number,
): Promise<readonly Client[]> {
  // what waits here would count as slow: the server is to be measured
  const limits = { connections: 1, inFlightMax: inFlight, queueMax: 1 };
  return Promise.all(Array.from({ length: count }, () => createKubeClient({ kubeconfig, limits })));
}

class Run {
  readonly #options: LoadOptions;
  readonly #again: number[] = [];
  readonly #sentMs: Float64Array;
  readonly latencyMs: LatencyHistogram = new LatencyHistogram();
  readonly #startMs: number = performance.now();
  readonly #settle: { resolve: () => void; reject: (error: Error) => void };
  readonly ended: Promise<void>;
  #next = 0;
  #sent = 0;
  #lastText = '';
  #progressMs: number = performance.now();
  done = 0;
  already = 0;
  repeated = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#sentMs = new Float64Array(options.count);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#settle = { resolve, reject };
    for (const client of options.clients) client.onRoom(() => this.pump());
  }

  get answered(): number {
    return this.done + this.already;
  }

  get seconds(): number {
    return (performance.now() - this.#startMs) / 1000;
  }

  /** Gives up where nothing was done for too long. */
  check(): void {
    const { patienceSeconds, what, count } = this.#options;
    if (patienceSeconds === 0) return;
    if (performance.now() - this.#progressMs < patienceSeconds * 1000) return;
    const why = this.#lastText === '' ? 'there was no answer' : `last ${this.#lastText}`;
    const done = `${this.answered} of ${count} ${what}`;
    this.#settle.reject(new Error(`${done}, and no more for ${patienceSeconds} s: ${why}`));
  }

  pump(): void {
    const { count, rate, clients } = this.#options;
    if (this.answered === count) return this.#settle.resolve();
    const allowed = rate === 0 ? Infinity : Math.ceil(this.seconds * rate);
    for (const client of clients) {
      while (client.room() > 0 && this.#sent < allowed) {
        const index = this.#again.pop() ?? (this.#next < count ? this.#next++ : -1);
        if (index < 0) return;
        this.#send(client, index);
      }
    }
  }

  #send(client: Client, index: number): void {
    const { method, path, body } = this.#options.shot(this.#options.first + index);
    this.#sent++;
    this.#sentMs[index] = performance.now();
    client.send(method, path, body === null ? '' : CONTENT.json, body, this.#onAnswer, index);
  }

  readonly #onAnswer = (
    status: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    index: number,
  ): void => {
    const verdict = this.#options.judge(status);
    if (verdict === 'bad') {
      const text = Buffer.from(bytes.subarray(start, end)).toString('utf8').slice(0, TEXT_MAX);
      const { what, first } = this.#options;
      this.#settle.reject(new Error(`${what} ${first + index} is refused (${status}): ${text}`));
      return;
    }
    if (verdict === 'again') {
      this.repeated++;
      this.#lastText = this.#told(index, status, bytes, start, end);
      setTimeout(() => {
        this.#again.push(index);
        this.pump();
      }, RETRY_MS);
      return;
    }
    this[verdict]++;
    this.#progressMs = performance.now();
    this.latencyMs.record(performance.now() - (this.#sentMs[index] ?? 0));
    this.pump();
  };

  #told(index: number, status: number, bytes: Uint8Array, start: number, end: number): string {
    const { method, path } = this.#options.shot(this.#options.first + index);
    if (status === STATUS_NONE) return `${method} ${path} was not answered`;
    const text = Buffer.from(bytes.subarray(start, Math.min(end, start + TEXT_MAX)));
    const shown = status === 200 ? 'it is still there' : `${status} ${text.toString('utf8')}`;
    return `${method} ${path}: ${shown}`;
  }
}

/** A process that was interrupted ends with the code that shells give it. */
const INTERRUPTED = 130;

/** Sends them all. Rejects with the first refusal that would come again. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const run = new Run(options);
  let before = 0;
  const shown = setInterval(() => {
    const answered = run.answered;
    const text = `${answered} of ${options.count} ${options.what}, ${answered - before}/s`;
    process.stderr.write(`\r${text}, ${run.repeated} repeated    `);
    before = answered;
    run.check();
  }, 1000);
  const stop = (): void => {
    process.stderr.write('\n');
    printResult(`${options.what} so far`, run, options.already);
    process.exit(INTERRUPTED);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const paced = options.rate > 0 ? setInterval(() => run.pump(), PACE_MS) : undefined;
  try {
    run.pump();
    await run.ended;
  } finally {
    clearInterval(shown);
    clearInterval(paced);
    process.off('SIGINT', stop).off('SIGTERM', stop);
    process.stderr.write('\n');
  }
  const { done, already, repeated, latencyMs, seconds } = run;
  return { done, already, repeated, latencyMs, seconds };
}

export function printResult(what: string, result: LoadResult, alreadyName = 'there already'): void {
  const { done, already, repeated, latencyMs, seconds } = result;
  const ms = (part: number): string => `${latencyMs.quantile(part).toFixed(1)} ms`;
  printTable(
    ['', 'count', 'seconds', 'per second', 'p50', 'p99', 'max', alreadyName, 'repeated'],
    [
      [
        ...[what, String(done), seconds.toFixed(1), ((done + already) / seconds).toFixed(0)],
        ...[ms(0.5), ms(0.99), `${latencyMs.max.toFixed(1)} ms`, String(already)],
        String(repeated),
      ],
    ],
  );
}
