// shell: a thread, seen from the thread that serves
/** One connection thread: its worker, its two rings, its connections as transports. */
import { blame, endOfTurn, guarded, nextTurn } from '@megaplane/base/deferred';
import { RingPost } from '@megaplane/base/ring-post';
import { ringMemory, RingReader } from '@megaplane/base/shared-ring';
import { Worker } from 'node:worker_threads';
import type { ReadRounds } from '../transport/read-rounds.ts';
import { freshId } from '../transport/socket-transport.ts';
import type { Protocol } from '../transport/transport.ts';
import type { ServedProtocols } from '../server/served-protocols.ts';
import {
  CLOSED,
  DRAINED,
  FORGET,
  OPENED,
  PEER_ENDED,
  readOpening,
  RECEIVED,
  type Opening,
} from './messages.ts';
import type { ThreadMemory } from './relays.ts';
import type { FromThread, ThreadStart, ToThread } from './thread-start.ts';
import { ThreadTransport, type ThreadPort } from './thread-transport.ts';

/** Rings: what a thread has read and nobody has looked at yet, and what is on its way out. */
const UP_BYTES: number = 1024 * 1024;
const DOWN_BYTES: number = 2 * 1024 * 1024;
/** Messages that are handled before anything else has its turn. */
const MESSAGES_MAX = 1024;
/** Messages that a sleeping thread may find when it wakes. */
const SENT_MAX = 16;
/** Octets that wait for the next round; beyond it they stay in the ring. */
const HELD_BYTES_MAX: number = 1024 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);

/** What the threads of a listener share. */
export interface LinkHost {
  readonly protocols: ServedProtocols;
  readonly rounds: ReadRounds | null;
  /** Counts a new connection; false: it is one too many, or its certificate is not wanted. */
  admits(transport: ThreadTransport): boolean;
  /** Counts it out. */
  leaves(transport: ThreadTransport): void;
  /** The thread has ended, whoever ended it; its connections are gone. */
  ended(link: ThreadLink): void;
  onError(error: unknown): void;
}

/** Started; resolves or rejects when the thread listens, or cannot. */
export class ThreadLink implements ThreadPort {
  readonly rounds: ReadRounds | null;
  readonly listening: Promise<{ readonly host: string; readonly port: number }>;
  readonly transports: Set<ThreadTransport> = new Set();
  readonly #host: LinkHost;
  readonly #worker: Worker;
  readonly #memory: ThreadMemory;
  readonly #written: Int32Array;
  readonly #up: RingReader;
  readonly #post: RingPost;
  readonly #pulse: Int32Array;
  readonly #bySlot: (ThreadTransport | null)[] = [];
  readonly #exited: Promise<void>;
  #held = 0;
  #isTurnPlanned = false;
  #isBellDue = false;
  #sentSince = 0;
  #isOver = false;
  #pulseSeen = 0;
  /** Looks in a row at which the pulse stood still. */
  stillCount = 0;

  /** `entry`: the thread's program, where it is another. */
  constructor(host: LinkHost, slots: number, start: Omit<ThreadStart, 'memory'>, entry?: URL) {
    this.#host = host;
    this.rounds = host.rounds;
    this.#memory = {
      up: ringMemory(UP_BYTES),
      down: ringMemory(DOWN_BYTES),
      written: new SharedArrayBuffer(4 * slots),
      pulse: new SharedArrayBuffer(4),
    };
    this.#written = new Int32Array(this.#memory.written);
    this.#pulse = new Int32Array(this.#memory.pulse);
    this.#up = new RingReader(this.#memory.up);
    const options = {
      workerData: { ...start, memory: this.#memory } satisfies ThreadStart,
      name: 'connections',
      // Flags of the main thread such as --eval must not reach the worker.
      execArgv: [],
    };
    this.#worker =
      entry === undefined
        ? new Worker(new URL('./connection-thread.ts', import.meta.url), options)
        : new Worker(entry, options);
    this.#post = new RingPost(this.#memory.down, () => this.#ringSoon());
    const listening = Promise.withResolvers<{ host: string; port: number }>();
    this.listening = listening.promise;
    this.#worker.on(
      'message',
      guarded((news: FromThread) => {
        if (news === null) this.#woken();
        else if (news.kind === 'listening') listening.resolve(news);
        else if (news.kind === 'error') host.onError(new Error(news.text));
        else listening.reject(Object.assign(new Error(news.text), { code: news.code }));
      }),
    );
    this.#worker.on('error', guarded(host.onError.bind(host)));
    const exited = Promise.withResolvers<void>();
    this.#exited = exited.promise;
    this.#worker.once(
      'exit',
      guarded(() => {
        listening.reject(new Error('a connection thread ended before it listened'));
        this.#end();
        exited.resolve();
      }),
    );
    this.#plan();
  }

  /** One bell for what a turn sends, unless it is much: then the thread may begin with it. */
  #ringSoon(): void {
    this.#isBellDue = true;
    this.#sentSince = 0;
    endOfTurn(this.#ring);
  }

  readonly #ring = (): void => {
    if (!this.#isBellDue) return;
    this.#isBellDue = false;
    this.#tell(null);
  };

  #tell(news: ToThread): void {
    this.#worker.postMessage(news);
  }

  /** New connections use these from now on. */
  reloadTls(tls: NonNullable<ThreadStart['tls']>): void {
    this.#tell({ kind: 'tls', tls });
  }

  /** Accepts no more; when its connections have gone, or the time is over, it ends. */
  close(graceMs: number): Promise<void> {
    if (!this.#isOver) this.#tell({ kind: 'close', graceMs });
    return this.#exited;
  }

  /** Ends it now, whatever it does. */
  async kill(): Promise<void> {
    await this.#worker.terminate();
    await this.#exited;
  }

  /** Looks whether its event loop has turned since the last look. */
  lookAtPulse(): void {
    const seen = Atomics.load(this.#pulse, 0);
    this.stillCount = seen === this.#pulseSeen ? this.stillCount + 1 : 0;
    this.#pulseSeen = seen;
  }

  send(kind: number, slot: number, bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    this.#post.send(kind, slot, bytes, start, end);
    if (this.#isBellDue && ++this.#sentSince >= SENT_MAX) this.#ring();
  }

  writtenOf(slot: number): number {
    return Atomics.load(this.#written, slot) >>> 0;
  }

  countHeld(change: number): void {
    this.#held += change;
  }

  choose(transport: ThreadTransport, bytes: Buffer): Protocol | null {
    return this.#host.protocols.choose(transport, bytes);
  }

  #woken(): void {
    if (this.#isTurnPlanned) return;
    this.#up.wakes();
    this.#turn();
  }

  readonly #turn = (): void => {
    this.#isTurnPlanned = false;
    if (this.#isOver) return;
    this.#post.pump();
    let count = 0;
    while (count < MESSAGES_MAX && this.#held < HELD_BYTES_MAX && this.#up.next()) {
      count++;
      // one connection's error must not keep the message, and with it all others
      try {
        this.#handle();
      } catch (error) {
        blame(error, null);
      }
      this.#up.done();
    }
    if (this.#up.mustRing()) this.#tell(null);
    // one more look after work costs less than a bell
    if (count > 0 || this.#held >= HELD_BYTES_MAX || !this.#up.sleeps()) this.#plan();
  };

  #plan(): void {
    if (this.#isTurnPlanned) return;
    this.#isTurnPlanned = true;
    nextTurn(this.#turn);
  }

  #handle(): void {
    const { kind, slot, bytes, start, end } = this.#up;
    if (kind === OPENED) {
      this.#open(slot, readOpening(bytes.subarray(start, end)));
      return;
    }
    const transport = this.#bySlot[slot] ?? null;
    if (transport === null) return;
    if (kind === RECEIVED) transport.received(bytes, start, end);
    else if (kind === DRAINED) transport.drained();
    else if (kind === PEER_ENDED) transport.peerEnded();
    else if (kind === CLOSED) this.#close(transport);
  }

  #open(slot: number, opening: Opening): void {
    const transport = new ThreadTransport(freshId(), slot, opening, this);
    this.#bySlot[slot] = transport;
    this.transports.add(transport);
    if (!this.#host.admits(transport)) {
      transport.destroy();
    } else if (opening.isHttp2) {
      transport.protocol = this.#host.protocols.http2(transport);
      transport.protocol.flush();
    }
  }

  #close(transport: ThreadTransport): void {
    const { slot } = transport;
    this.#bySlot[slot] = null;
    this.transports.delete(transport);
    this.#host.leaves(transport);
    transport.gone();
    this.#post.send(FORGET, slot, NOTHING, 0, 0);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const left = [...this.transports];
    this.transports.clear();
    this.#bySlot.length = 0;
    for (const transport of left) {
      this.#host.leaves(transport);
      transport.gone();
    }
    this.#host.ended(this);
  }
}
