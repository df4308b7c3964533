/** Work that is tried again and again while a server is in trouble, with growing pauses. */
import { Backoff } from '@megaplane/client/backoff';
import { STATUS_NONE, type Client } from '@megaplane/client/client';

const BACKOFF = { baseMs: 1000, capMs: 15_000, jitter: 0.5, resetMs: 120_000 };

export interface RetryOptions {
  readonly client: Client;
  /** Nobody wants it any more. */
  isStopped(): boolean;
  /** Hears the first reason. */
  onTrouble(message: string): void;
  /** Resolves with what is in the way; '': nothing, it is done. */
  attempt(): Promise<string>;
}

/** Resolves when the work is done, or not wanted any more. */
export async function retry(options: RetryOptions): Promise<void> {
  const { timers } = options.client;
  const backoff = new Backoff(BACKOFF, () => options.client.random());
  let hasTold = false;
  while (!options.isStopped()) {
    const reason = await options.attempt();
    if (reason === '' || options.isStopped()) return;
    if (!hasTold) options.onTrouble(`${reason}; trying on`);
    hasTold = true;
    const pauseMs = backoff.next(timers.nowMs());
    await new Promise<void>((resolve) => timers.after(pauseMs, resolve));
  }
}

/** Whether an answer says "not now" and not "no": nobody answered, or a server in trouble did. */
export function isPassing(code: number): boolean {
  return code === STATUS_NONE || code === 429 || code >= 500;
}
