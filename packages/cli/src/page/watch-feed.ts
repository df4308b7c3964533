/**
 * A watch for eyes: what changes is gathered for a moment and told together, and a watch that tells
 * more than anybody can read is let go for a while, so that looking costs the server little.
 */
import type { Client, StreamHandle } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { EVENT_BOOKMARK, EVENT_ERROR, WatchFrames } from '@megaplane/client/watch-frames';

/** Changes of so long are told together. */
const GATHER_MS = 500;
/** What a watch may tell in a second; one that tells more rests. */
export const BYTES_PER_SECOND_MAX: number = 256 * 1024;
export const REST_MS = 5000;
const AGAIN_MS = 2000;

export interface FeedOptions {
  readonly client: Client;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly accept: string;
  /** One event, as the bytes of its JSON object. */
  readonly onEvent: (type: number, object: Buffer) => void;
  /** Changes have come, and it is time to tell of them. */
  readonly onRound: () => void;
  /** Events were or will be missed: what is shown must be read anew. */
  readonly onGap: () => void;
}

/** Watches from a revision on until it is stopped; after a gap `start` again. */
export class WatchFeed {
  readonly #options: FeedOptions;
  #handle: StreamHandle | null = null;
  #cancels: Set<() => void> = new Set();
  #isStopped = false;
  #isGathering = false;
  #secondMs = 0;
  #bytes = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  start(resourceVersion: string): void {
    const { client, path, query, accept } = this.#options;
    const frames = new WatchFrames();
    this.#handle?.cancel();
    let isGood = false;
    const sink = {
      onHead: (status: number): void => void (isGood = status === 200),
      onData: (bytes: Uint8Array, start: number, end: number): void => {
        if (!isGood || this.#isStopped) return;
        if (!this.#pays(end - start)) return this.#gap(REST_MS);
        frames.push(bytes, start, end);
        while (frames.next()) {
          if (frames.type === EVENT_ERROR) return this.#gap(AGAIN_MS);
          if (frames.type === EVENT_BOOKMARK) continue;
          const object = Buffer.from(frames.bytes.subarray(frames.objectStart, frames.objectEnd));
          this.#options.onEvent(frames.type, object);
          this.#gather();
        }
        if (frames.isTooLong) this.#gap(AGAIN_MS);
      },
      onEnd: (): void => {
        if (!this.#isStopped) this.#gap(AGAIN_MS);
      },
    };
    const whole = withQuery(path, { ...query, watch: '1', resourceVersion, timeoutSeconds: '600' });
    this.#handle = client.stream(whole, sink, accept);
  }

  stop(): void {
    this.#isStopped = true;
    this.#handle?.cancel();
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
  }

  /** Whether this much more is still in the second's measure. */
  #pays(bytes: number): boolean {
    const nowMs = this.#options.client.timers.nowMs();
    if (nowMs - this.#secondMs >= 1000) {
      this.#secondMs = nowMs;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return this.#bytes <= BYTES_PER_SECOND_MAX;
  }

  #gap(restMs: number): void {
    this.#handle?.cancel();
    this.#handle = null;
    this.#after(restMs, () => this.#options.onGap());
  }

  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#after(GATHER_MS, () => {
      this.#isGathering = false;
      this.#options.onRound();
    });
  }

  #after(ms: number, run: () => void): void {
    const cancel = this.#options.client.timers.after(ms, () => {
      this.#cancels.delete(cancel);
      if (!this.#isStopped) run();
    });
    this.#cancels.add(cancel);
  }
}
