/** One priority level: its seats, its queues, and what it has counted. */
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FlowQueues, type FlowQueue, type QueueShape, type Ticket } from './flow-queues.ts';
import { LevelUse } from './level-use.ts';
import { SeatDemand } from './seat-demand.ts';

/** Share of a level's nominal seats that one request may take. */
const SEATS_SHARE_MAX = 0.15;
/**
 * Queues are this many times longer than configured while seats are free and only the processor is
 * short: upstream counts on a request taking milliseconds, here one takes tens of microseconds.
 */
const BUSY_LENGTH_FACTOR = 16;
/** A level that rejects has one queue, for moments in which only the processor is short. */
const REJECTING: QueueShape = { queues: 1, handSize: 1, lengthMax: 50 };

/** What a PriorityLevelConfiguration says. */
export interface LevelConfig {
  readonly name: string;
  readonly uid: string;
  readonly type: 'exempt' | 'queue' | 'reject';
  readonly shares: number;
  readonly lendablePercent: number;
  /** Null: as much as there is. */
  readonly borrowingPercent: number | null;
  readonly shape: QueueShape;
}

/** Reads a PriorityLevelConfiguration object; its form has been validated. */
export function readLevel(object: JsonObject): LevelConfig {
  const limited = objectAt(object, 'spec', 'limited');
  const exempt = objectAt(object, 'spec', 'exempt');
  const own = limited ?? exempt;
  const queuing = objectAt(limited, 'limitResponse', 'queuing');
  const borrowing = limited?.['borrowingLimitPercent'];
  return {
    name: stringAt(object, 'metadata', 'name'),
    uid: stringAt(object, 'metadata', 'uid'),
    type: limited === undefined ? 'exempt' : queuing === undefined ? 'reject' : 'queue',
    shares: numberAt(own, 'nominalConcurrencyShares'),
    lendablePercent: numberAt(own, 'lendablePercent'),
    borrowingPercent: typeof borrowing === 'number' ? borrowing : null,
    shape:
      queuing === undefined
        ? REJECTING
        : {
            queues: numberAt(queuing, 'queues'),
            handSize: numberAt(queuing, 'handSize'),
            lengthMax: numberAt(queuing, 'queueLengthLimit'),
          },
  };
}

/** Why a request is refused, in the words of upstream's metric. */
export type Refusal = 'queue-full' | 'concurrency-limit' | 'time-out';

export class PriorityLevel<T> {
  config: LevelConfig;
  readonly queues: FlowQueues<T>;
  readonly demand: SeatDemand;
  readonly use: LevelUse;
  nominalSeats = 0;
  lowerSeats = 0;
  upperSeats = 0;
  /** What the level may use just now. */
  seats = 0;
  /** What it would have got, if there had been no others. */
  targetSeats = 0;
  seatsInUse = 0;
  executing = 0;
  /** Processor time used, in milliseconds for each seat: levels take turns by it. */
  usage = 0;
  /** Requests whose turn came; those refused; those that waited in vain, who are among them. */
  dispatched = 0;
  rejected = 0;
  cancelled = 0;
  /** Leases asked to be renewed since they were counted last. */
  renewals = 0;
  /** No schema leads here any more: it goes when it is empty. */
  isQuiescing = false;
  #isConfigured = false;

  constructor(config: LevelConfig, nowMs: number) {
    this.config = config;
    this.queues = new FlowQueues<T>(config.shape);
    this.demand = new SeatDemand(nowMs);
    this.use = new LevelUse(nowMs);
  }

  get name(): string {
    return this.config.name;
  }

  get waiting(): number {
    return this.queues.waiting;
  }

  get isIdle(): boolean {
    return this.executing === 0 && this.waiting === 0;
  }

  /** The level's part of the server's seats, by its shares; `sum`: the shares of all levels. */
  configure(config: LevelConfig, serverSeats: number, sum: number): void {
    this.config = config;
    this.queues.reshape(config.shape);
    const nominal = sum === 0 ? 0 : Math.ceil((serverSeats * config.shares) / sum);
    const lendable = Math.round((nominal * config.lendablePercent) / 100);
    const borrowable =
      config.borrowingPercent === null
        ? serverSeats
        : Math.round((nominal * config.borrowingPercent) / 100);
    this.nominalSeats = nominal;
    this.lowerSeats = nominal - lendable;
    this.upperSeats = nominal + borrowable;
    if (!this.#isConfigured) this.seats = nominal - Math.trunc(lendable / 2);
    this.#isConfigured = true;
  }

  /** The level's seats for the next while; `spare` stands for them where it has none. */
  allot(seats: number, spare: number, nowMs: number): void {
    this.seats = seats;
    this.use.limitTo(seats > 0 ? seats : spare, this.places, nowMs);
  }

  /** As many may wait in the queues as these are configured. */
  get places(): number {
    const { type, shape } = this.config;
    return type === 'queue' ? shape.queues * shape.lengthMax : 0;
  }

  /** The most seats that one request may take; only queues have a limit of their own. */
  get seatsMax(): number {
    const { type, shape } = this.config;
    if (type !== 'queue') return Infinity;
    const share = Math.ceil(this.nominalSeats * SEATS_SHARE_MAX);
    return Math.max(1, Math.min(share, Math.floor(this.nominalSeats / shape.handSize)));
  }

  /** A request of so many seats could run now. */
  fits(seats: number): boolean {
    const { type } = this.config;
    if (type === 'exempt') return true;
    // queues wait until a seat is free, so those of a level without any wait in vain
    if (type === 'queue' && this.seatsInUse >= this.seats) return false;
    // one that is wider than the level runs alone
    if (seats > this.seats) return this.executing === 0;
    return this.seatsInUse + seats <= this.seats;
  }

  /** The queue for a request that has to wait, or why it may not. */
  place(hash: bigint, seats: number): FlowQueue<T> | Refusal {
    if (this.config.type === 'reject' && !this.fits(seats)) return 'concurrency-limit';
    const queue = this.queues.choose(hash);
    const { lengthMax } = this.queues.shape;
    const isSeatless = this.seatsInUse >= this.seats;
    const limit = isSeatless ? lengthMax : lengthMax * BUSY_LENGTH_FACTOR;
    return queue.waiting >= limit ? 'queue-full' : queue;
  }

  wait(queue: FlowQueue<T>, ticket: Ticket<T>, nowMs: number): void {
    this.queues.pass(nowMs, this.seats);
    this.queues.enqueue(queue, ticket);
    this.#tellDemand(nowMs);
  }

  /** What would run next, where its seats are free. */
  next(nowMs: number): Ticket<T> | null {
    this.queues.pass(nowMs, this.seats);
    return this.queues.next();
  }

  /** A request begins to run; it may have waited. */
  start(ticket: Ticket<T>, nowMs: number): void {
    if (ticket.isWaiting) this.queues.start(ticket, nowMs);
    else ticket.startedMs = nowMs;
    this.dispatched++;
    this.executing++;
    this.seatsInUse += ticket.seats;
    this.#tellUse(nowMs);
    this.demand.touch(this.seatsInUse + this.queues.seatsWaiting);
  }

  /** A request is over. */
  finish(ticket: Ticket<T>, nowMs: number): void {
    if (ticket.queue !== null) this.queues.pass(nowMs, this.seats);
    this.executing--;
    this.seatsInUse -= ticket.seats;
    this.queues.finish(ticket, nowMs);
    // what waited was told of; what came and went within a turn was a peak only
    if (ticket.queue === null) this.#tellUse(nowMs);
    else this.#tellDemand(nowMs);
  }

  /** A request does not end in the turn in which it began: its seats count from now on. */
  linger(nowMs: number): void {
    this.#tellDemand(nowMs);
  }

  /** A request waits no longer, and will not run. */
  drop(ticket: Ticket<T>, nowMs: number): void {
    this.queues.pass(nowMs, this.seats);
    this.queues.drop(ticket);
    this.#tellDemand(nowMs);
  }

  #tellUse(nowMs: number): void {
    this.use.executing.set(this.executing, nowMs);
    this.use.seats.set(this.seatsInUse, nowMs);
    this.use.waiting.set(this.waiting, nowMs);
  }

  #tellDemand(nowMs: number): void {
    const demand = this.seatsInUse + this.queues.seatsWaiting;
    this.demand.set(demand, nowMs);
    this.use.demand.set(demand, nowMs);
    this.#tellUse(nowMs);
  }
}
