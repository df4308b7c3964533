/**
 * The connections of a client: made when first needed, made again when lost.
 *
 *     idle ──► connecting ──► open ──► (draining) ──► waiting ──► connecting ...
 *                  └──────────────────────────────────►┘
 */
import { unreachable } from '@megaplane/base/assert';
import type { ClientConnection } from '@megaplane/wire/client';
import { Backoff } from './backoff.ts';
import type { ClientMetrics, Timers } from './client.ts';

/**
 * Connections that are added when watches take up the streams that the server allows: 50,000
 * watches with 100 on each, as upstream's server has it.
 */
const EXTRA_LINKS_MAX = 500;
/** Streams that watches leave free on each of the first connections: requests need them. */
const REQUEST_STREAMS_MIN = 25;
/**
 * Requests that follow each other go over one connection: where each takes the one with the most
 * room they alternate between all, and what those hold between the processor's caches.
 */
const IN_A_ROW = 32;
const BACKOFF = { baseMs: 50, capMs: 1500, jitter: 0.5, resetMs: 60_000 };

interface LinksOptions {
  readonly dial: () => ClientConnection;
  readonly timers: Timers;
  readonly random: () => number;
  readonly count: number;
  /** Connections are added for requests too, not only for watches. */
  readonly isSerial: boolean;
  readonly metrics: ClientMetrics;
  /** A connection was opened. */
  readonly onRoom: () => void;
  /** A connection could not be made, and no other is open. */
  readonly onFailure: (message: string) => void;
}

type LinkState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'connecting'; readonly connection: ClientConnection }
  | { readonly kind: 'open'; readonly connection: ClientConnection }
  | { readonly kind: 'waiting'; readonly cancel: () => void };

interface Link {
  state: LinkState;
  readonly backoff: Backoff;
}

export class ConnectionPool {
  readonly #options: LinksOptions;
  readonly #links: Link[] = [];
  /** Those that the server drains; their requests go on. */
  readonly #draining: Set<ClientConnection> = new Set();
  #extra = 0;
  /** What was picked for a request last, and for how many more it is. */
  #picked: ClientConnection | null = null;
  #inARow = 0;
  #isClosed = false;
  /** Why the last connection was lost or could not be made. */
  lastFailure = '';

  constructor(options: LinksOptions) {
    this.#options = options;
    for (let i = 0; i < options.count; i++) this.#add();
  }

  #add(): Link {
    const link: Link = {
      state: { kind: 'idle' },
      backoff: new Backoff(BACKOFF, this.#options.random),
    };
    this.#links.push(link);
    return link;
  }

  /**
   * The open connection with the most room, or for requests in a row the one before; null: then
   * `onRoom` or `onFailure` will tell.
   */
  pick(isStream: boolean): ClientConnection | null {
    if (this.#isClosed) return null;
    if (isStream) return this.#choose(true);
    const picked = this.#picked;
    if (this.#inARow-- > 0 && picked !== null && picked.capacity > 0) return picked;
    this.#picked = this.#choose(false);
    this.#inARow = IN_A_ROW - 1;
    return this.#picked;
  }

  #choose(isStream: boolean): ClientConnection | null {
    const { count, isSerial } = this.#options;
    const reserve = isStream && !isSerial ? REQUEST_STREAMS_MIN : 0;
    let best: ClientConnection | null = null;
    let bestRoom = 0;
    let openCount = 0;
    for (const [index, link] of this.#links.entries()) {
      const isExtra = index >= count;
      // what was added carries watches, and requests only when nothing else does
      if (isExtra && best !== null && !isStream && !isSerial) break;
      if (link.state.kind === 'idle') this.#dial(link);
      if (link.state.kind !== 'open') continue;
      openCount++;
      const { connection } = link.state;
      const room = connection.capacity - (isExtra ? 0 : reserve);
      if (room <= bestRoom) continue;
      best = connection;
      bestRoom = room;
    }
    const mayAdd = isStream || isSerial;
    if (best === null && mayAdd && openCount === this.#links.length) this.#addExtra();
    return best;
  }

  get isAnyOpen(): boolean {
    return this.#links.some((link) => link.state.kind === 'open');
  }

  #addExtra(): void {
    if (this.#extra >= EXTRA_LINKS_MAX) return;
    this.#extra++;
    this.#dial(this.#add());
  }

  #dial(link: Link): void {
    const { metrics, onRoom } = this.#options;
    const connection = this.#options.dial();
    link.state = { kind: 'connecting', connection };
    connection.onOpen = (): void => {
      metrics.connects++;
      link.backoff.reset();
      link.state = { kind: 'open', connection };
      onRoom();
    };
    connection.onDraining = (): void => {
      if (!isOf(link, connection)) return;
      this.#draining.add(connection);
      link.state = { kind: 'idle' };
      onRoom();
    };
    connection.onClosed = (reason): void => {
      this.#draining.delete(connection);
      if (isOf(link, connection)) this.#lost(link, reason);
    };
  }

  #lost(link: Link, reason: string): void {
    const { timers, metrics, onFailure, onRoom } = this.#options;
    this.lastFailure = reason;
    const wasConnecting = link.state.kind === 'connecting';
    if (wasConnecting) metrics.connectFailures++;
    if (this.#isClosed) {
      link.state = { kind: 'idle' };
      return;
    }
    const pauseMs = link.backoff.next(timers.nowMs());
    const cancel = timers.after(pauseMs, () => {
      link.state = { kind: 'idle' };
      onRoom();
    });
    link.state = { kind: 'waiting', cancel };
    if (wasConnecting && !this.isAnyOpen) onFailure(reason);
  }

  close(): void {
    this.#isClosed = true;
    for (const link of this.#links) {
      const { state } = link;
      link.state = { kind: 'idle' };
      switch (state.kind) {
        case 'idle':
          break;
        case 'waiting':
          state.cancel();
          break;
        case 'connecting':
        case 'open':
          state.connection.destroy();
          break;
        default:
          unreachable(state);
      }
    }
    for (const connection of this.#draining) connection.destroy();
  }
}

function isOf(link: Link, connection: ClientConnection): boolean {
  const { state } = link;
  return (state.kind === 'connecting' || state.kind === 'open') && state.connection === connection;
}
