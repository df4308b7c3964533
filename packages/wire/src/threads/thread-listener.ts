// shell
/**
 * Listens on a port by threads: each of them accepts on it, and carries decrypted octets to this
 * one, which serves them as if the sockets were its own.
 *
 * All threads listen on the same port by SO_REUSEPORT, so that the kernel spreads connections. What
 * is limited is counted here, for all of them. A thread that ends, or whose event loop stands
 * still, takes its connections along and is started again.
 */
import { afterMs, everyMs, guarded, pauseMs } from '@megaplane/base/deferred';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:net';
import { readRounds } from '../transport/socket-read.ts';
import { explainListening, listen, type Listener } from '../server/listener.ts';
import type { ListenOptions, ListenTls } from '../server/listener.ts';
import { ServedProtocols } from '../server/served-protocols.ts';
import type { ReadRounds } from '../transport/read-rounds.ts';
import { connectionsToMove } from './balance.ts';
import { ThreadLink, type LinkHost } from './thread-link.ts';
import type { ThreadStart } from './thread-start.ts';
import type { ThreadTransport } from './thread-transport.ts';

const TICK_MS = 1000;
const DRAIN_LOOK_MS = 20;
/** Looks, one a second, at which a thread may stand still before it is replaced. */
const STILL_LOOKS_MAX = 10;
/** Looks after which that is told. */
const STILL_LOOKS_FAULT = 2;
/** A look that comes later than this tells nothing of others: this thread stood still, too. */
const LATE_MS = 3 * TICK_MS;
/** Before a thread is started again; twice as long each time it ends at once, up to the longest. */
const AGAIN_MS_MIN = 100;
const AGAIN_MS_MAX = 5000;
/** Looks between two at which connections are balanced. */
const BALANCE_LOOKS = 2;
/** Threads get this long to end their connections after the last answer. */
const LEAVE_MS = 1000;

/** As `listen`, with the threads that own the sockets. */
export interface ThreadedOptions extends Omit<ListenOptions, 'unixPath' | 'take' | 'reusePort'> {
  /** 0: the thread that serves owns them. */
  readonly threads: number;
  /** The program of the threads, for tests that have them die and hang. */
  readonly entry?: URL;
  /** Looks, one a second, at which a thread may stand still before it is replaced. */
  readonly stillLooksMax?: number;
}

/** The listener as its owner sees it. */
export interface ThreadedListener extends Listener {
  /** Threads that listen now, of `threads` that should. */
  readonly listeningThreads: number;
  readonly threads: number;
  /** Connections by thread. */
  connectionsByThread(): number[];
  /** What is wrong with the threads, for people; null: nothing. */
  fault(): string | null;
}

/** Resolves when all threads listen. Rejects with a message for people when they cannot. */
export async function listenOnThreads(options: ThreadedOptions): Promise<ThreadedListener> {
  if (options.threads === 0) return withoutThreads(await listen(options));
  const made = new Threads(options);
  await made.start();
  return made;
}

function withoutThreads(listener: Listener): ThreadedListener {
  return Object.assign(listener, {
    listeningThreads: 0,
    threads: 0,
    connectionsByThread: () => [],
    fault: () => null,
  });
}

class Threads implements ThreadedListener, LinkHost {
  readonly threads: number;
  readonly protocols: ServedProtocols;
  readonly rounds: ReadRounds | null;
  readonly #options: ThreadedOptions;
  readonly #links = new Set<ThreadLink>();
  readonly #listening = new Set<ThreadLink>();
  /** Of those that are served. */
  readonly #counted = new Set<ThreadTransport>();
  readonly #perSource = new Map<string, number>();
  #tls: ListenTls | null;
  #address: { host: string; port: number };
  #ticker: NodeJS.Timeout | null = null;
  #tickedMs = 0;
  #looks = 0;
  #againMs = AGAIN_MS_MIN;
  #isClosing = false;

  constructor(options: ThreadedOptions) {
    this.#options = options;
    this.threads = options.threads;
    this.protocols = new ServedProtocols(options);
    const { limits } = this.protocols.options;
    this.rounds = limits.readMsMax < Infinity ? readRounds(limits.readMsMax) : null;
    this.#tls = options.tls ?? null;
    this.#address = { host: options.host ?? '127.0.0.1', port: options.port ?? 0 };
  }

  async start(): Promise<void> {
    const { host, port } = this.#address;
    const where = `${host}:${port}`;
    // shared ports say nothing of other processes that listen there
    if (port !== 0) await assertFree(host, port);
    try {
      this.#address = await this.#startOne();
      const others = Array.from({ length: this.threads - 1 }, () => this.#startOne());
      await Promise.all(others);
    } catch (error) {
      await this.#endAll();
      throw new Error(`cannot listen on ${where}: ${(error as Error).message}`, { cause: error });
    }
    this.#tickedMs = performance.now();
    this.#ticker = everyMs(TICK_MS, () => this.#tick());
    this.#ticker.unref();
  }

  /** A thread that listens. */
  async #startOne(): Promise<{ host: string; port: number }> {
    const { connectionsMax } = this.protocols.options.limits;
    const start = { ...this.#address, ...this.#startFields() };
    const link = new ThreadLink(this, connectionsMax, start, this.#options.entry);
    this.#links.add(link);
    const address = await link.listening;
    this.#listening.add(link);
    return address;
  }

  #startFields(): Omit<ThreadStart, 'memory' | 'host' | 'port'> {
    const { alsoPlain = false, isSilent = false, speaksHttp2 = true } = this.#options;
    const { connectionsMax, connectionsPerSourceMax, handshakeMsMax } =
      this.protocols.options.limits;
    return {
      tls: this.#tls === null ? null : withoutFunctions(this.#tls),
      rules: { alsoPlain, isSilent, speaksHttp2 },
      limits: { connectionsMax, connectionsPerSourceMax, handshakeMsMax },
    };
  }

  get address(): { host: string; port: number; unixPath: string } {
    return { ...this.#address, unixPath: '' };
  }

  get connections(): number {
    return this.#counted.size;
  }

  get listeningThreads(): number {
    return this.#listening.size;
  }

  connectionsByThread(): number[] {
    return [...this.#listening].map(({ transports }) => transports.size);
  }

  fault(): string | null {
    const { size } = this.#listening;
    if (size < this.threads) return `${size} of ${this.threads} connection threads listen`;
    const isStill = [...this.#listening].some(({ stillCount }) => stillCount >= STILL_LOOKS_FAULT);
    return isStill ? 'a connection thread stands still' : null;
  }

  reloadTls(tls: ListenTls): void {
    this.#tls = tls;
    for (const link of this.#links) link.reloadTls(withoutFunctions(tls));
  }

  admits(transport: ThreadTransport): boolean {
    const { connectionsMax, connectionsPerSourceMax } = this.protocols.options.limits;
    const certificate = transport.peerCertificate();
    const { accepts } = this.#tls ?? {};
    if (this.#isClosing || this.#counted.size >= connectionsMax) return false;
    if (accepts !== undefined && certificate !== null) {
      if (!accepts(new X509Certificate(certificate.raw))) return false;
    }
    const { remoteAddress } = transport;
    const count = this.#perSource.get(remoteAddress) ?? 0;
    if (count >= connectionsPerSourceMax) return false;
    this.#perSource.set(remoteAddress, count + 1);
    this.#counted.add(transport);
    return true;
  }

  leaves(transport: ThreadTransport): void {
    if (!this.#counted.delete(transport)) return;
    const { remoteAddress } = transport;
    const left = (this.#perSource.get(remoteAddress) ?? 1) - 1;
    if (left > 0) this.#perSource.set(remoteAddress, left);
    else this.#perSource.delete(remoteAddress);
  }

  onError(error: unknown): void {
    this.protocols.options.onError(error);
  }

  ended(link: ThreadLink): void {
    this.#links.delete(link);
    const hasListened = this.#listening.delete(link);
    if (this.#isClosing || !hasListened) return;
    this.onError(new Error('a connection thread has ended; its connections end, it starts again'));
    this.#again();
  }

  #again(): void {
    const waitMs = this.#againMs;
    this.#againMs = Math.min(AGAIN_MS_MAX, 2 * waitMs);
    const start = (): void => {
      if (this.#isClosing) return;
      this.#startOne().catch((error: unknown) => {
        this.onError(error);
        this.#again();
      });
    };
    afterMs(waitMs, start).unref();
  }

  #tick(): void {
    const nowMs = performance.now();
    const isLate = nowMs - this.#tickedMs > LATE_MS;
    this.#tickedMs = nowMs;
    const { handshakeMsMax } = this.protocols.options.limits;
    for (const link of this.#links) {
      for (const transport of link.transports) transport.tick(nowMs, handshakeMsMax);
    }
    if (!isLate) this.#lookAtThreads();
    if (++this.#looks % BALANCE_LOOKS === 0) this.#balance();
    const tls = this.#options.currentTls?.() ?? null;
    if (tls !== null && tls !== this.#tls) this.reloadTls(tls);
  }

  #lookAtThreads(): void {
    const { stillLooksMax = STILL_LOOKS_MAX } = this.#options;
    let isCalm = true;
    for (const link of this.#listening) {
      link.lookAtPulse();
      if (link.stillCount > 0) isCalm = false;
      if (link.stillCount < stillLooksMax) continue;
      this.onError(new Error(`a connection thread stands still for ${stillLooksMax} s`));
      link.stillCount = 0;
      void link.kill();
    }
    if (isCalm && this.#listening.size === this.threads) this.#againMs = AGAIN_MS_MIN;
  }

  /** Asks clients of a thread that has too much to come again. */
  #balance(): void {
    const links = [...this.#listening];
    const all = links.map(({ transports }) => [...transports]);
    const loads = all.map((transports) => ({
      recentBytes: transports.map(({ recentBytes }) => recentBytes / BALANCE_LOOKS),
    }));
    for (const [index, count] of connectionsToMove(loads).entries()) {
      if (count === 0) continue;
      const most = (all[index] ?? [])
        .filter(({ isMovable }) => isMovable)
        .sort((a, b) => b.recentBytes - a.recentBytes || b.id - a.id);
      for (const transport of most.slice(0, count)) transport.move();
    }
    for (const transports of all) for (const each of transports) each.recentBytes = 0;
  }

  async close(graceMs = 0): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    const untilMs = performance.now() + graceMs;
    const ended = [...this.#links].map((link) => link.close(graceMs + LEAVE_MS));
    for (const { transports } of this.#links) {
      for (const transport of transports) transport.leave();
    }
    while (this.#hasConnections() && performance.now() < untilMs) await pauseMs(DRAIN_LOOK_MS);
    for (const { transports } of this.#links) {
      for (const transport of transports) transport.destroy();
    }
    await Promise.race([Promise.all(ended), pauseMs(LEAVE_MS)]);
    await this.#endAll();
    if (this.#ticker !== null) clearInterval(this.#ticker);
  }

  #hasConnections(): boolean {
    return [...this.#links].some(({ transports }) => transports.size > 0);
  }

  async #endAll(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#links].map((link) => link.kill()));
  }
}

/** What a message to a thread may hold: certificates are judged here. */
function withoutFunctions(tls: ListenTls): ListenTls {
  const { accepts: _, ...rest } = tls;
  return rest;
}

/** Rejects where somebody listens: two that both share a port would not notice. */
function assertFree(host: string, port: number): Promise<void> {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        const why = explainListening(error);
        reject(new Error(`cannot listen on ${host}:${port}: ${why}`, { cause: error }));
      }),
    );
    probe.listen({ host, port }, () => void probe.close(() => resolve()));
  });
}
