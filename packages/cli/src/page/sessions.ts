// shell: streams to browsers
/**
 * The streams of the page: one for each open tab, of server-sent events. A reader that is slow gets
 * less, not later: what it has not read is bounded, and what does not fit is left out.
 */
import { afterMs, guarded } from '@megaplane/base/deferred';
import type { View } from '@megaplane/dashboard/protocol';
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';

/** Tabs at once. */
export const SESSIONS_MAX = 32;
/** What one tab has not read yet; more is left out. */
export const UNREAD_BYTES_MAX: number = 1024 * 1024;
/** A tab that has read nothing for so long is given up. */
export const STUCK_MS_MAX = 60_000;
/** Proxies and browsers take a stream that says nothing for dead. */
const KEEP_ALIVE_MS = 15_000;

/** One open tab. */
export class Session {
  readonly id: string = randomUUID();
  view: View = 'cluster';
  /** Events that were left out since the tab read last. */
  leftOut = 0;
  readonly #response: ServerResponse;
  #stuckSinceMs = Infinity;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Sends an event; false where it was left out. */
  send(event: string, data: object): boolean {
    if (this.unreadBytes > UNREAD_BYTES_MAX) {
      this.leftOut++;
      return false;
    }
    this.#response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    return true;
  }

  /** Keeps the stream alive. False where nobody reads it any more. */
  beat(nowMs: number): boolean {
    if (this.unreadBytes > UNREAD_BYTES_MAX) {
      this.#stuckSinceMs = Math.min(this.#stuckSinceMs, nowMs);
      return nowMs - this.#stuckSinceMs < STUCK_MS_MAX;
    }
    this.#stuckSinceMs = Infinity;
    this.#response.write(': still here\n\n');
    return true;
  }

  get unreadBytes(): number {
    return this.#response.writableLength + (this.#response.socket?.writableLength ?? 0);
  }

  end(): void {
    this.#response.destroy();
  }
}

export class Sessions {
  readonly #sessions: Map<string, Session> = new Map();
  readonly #onClose: (session: Session) => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(onClose: (session: Session) => void) {
    this.#onClose = onClose;
  }

  get all(): readonly Session[] {
    return [...this.#sessions.values()];
  }

  find(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  /** Begins a stream; undefined where there are too many. */
  open(response: ServerResponse): Session | undefined {
    if (this.#sessions.size >= SESSIONS_MAX) return undefined;
    const session = new Session(response);
    this.#sessions.set(session.id, session);
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    response.once(
      'close',
      guarded(() => {
        this.#sessions.delete(session.id);
        this.#onClose(session);
      }),
    );
    this.#timer ??= afterMs(KEEP_ALIVE_MS, () => this.#beat());
    return session;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const session of this.all) session.end();
  }

  #beat(): void {
    for (const session of this.all) if (!session.beat(performance.now())) session.end();
    this.#timer = this.#sessions.size === 0 ? null : afterMs(KEEP_ALIVE_MS, () => this.#beat());
  }
}
