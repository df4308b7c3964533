/** When pods of a namespace are given nodes, as a watch tells it. */
import type { Client, StreamHandle } from '@megaplane/client/client';

const NEWLINE = 0x0a;

/**
 * Counts the events of a watch that tells a pod once it has a node. kube-scheduler's performance
 * tests count scheduled pods so as well, each second from the first on; their average is the rate
 * between the first and the last.
 */
export class Progress {
  count = 0;
  /** By `performance.now`; of the first and of the last. */
  firstMs = 0;
  lastMs = 0;
  /** Of those that came with the first. */
  #atFirst = 0;
  #handle: StreamHandle | null = null;
  #error: string | null = null;
  readonly #count: number;
  #settle: (() => void) | null = null;

  /** `count`: how many are waited for. */
  constructor(count: number) {
    this.#count = count;
  }

  /** Resolves when the watch is there. */
  async open(client: Client, namespace: string): Promise<void> {
    const query = 'watch=true&fieldSelector=spec.nodeName%21%3D&resourceVersion=0';
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#handle = client.stream(`/api/v1/namespaces/${namespace}/pods?${query}`, {
      onHead: (status) => {
        if (status !== 200) this.#error = `the watch of ${namespace} is answered by ${status}`;
        resolve();
      },
      onData: (bytes, start, end) => this.#receive(bytes, start, end),
      onEnd: (error) => {
        this.#error ??= error ?? 'the watch has ended';
        this.#settle?.();
      },
    });
    await promise;
  }

  /** Resolves when all have nodes, or with what went wrong. */
  async ended(withinMs: number): Promise<string | null> {
    if (this.count < this.#count && this.#error === null) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#settle = resolve;
      const timer = setTimeout(resolve, withinMs);
      await promise;
      clearTimeout(timer);
    }
    this.#handle?.cancel();
    if (this.count >= this.#count) return null;
    const missing = `${this.#count - this.count} pods have no node after ${withinMs / 1000} s`;
    return this.#error ?? missing;
  }

  get perSecond(): number {
    return ((this.count - this.#atFirst) / (this.lastMs - this.firstMs)) * 1000;
  }

  #receive(bytes: Uint8Array, start: number, end: number): void {
    let found = 0;
    for (let at = bytes.indexOf(NEWLINE, start); at >= 0 && at < end; found++) {
      at = bytes.indexOf(NEWLINE, at + 1);
    }
    if (found === 0) return;
    this.lastMs = performance.now();
    if (this.count === 0) {
      this.firstMs = this.lastMs;
      this.#atFirst = found;
    }
    this.count += found;
    if (this.count >= this.#count) this.#settle?.();
  }
}
