/**
 * The queues of one priority level, and which request comes next: fair queuing for server requests
 * (KEP-1040). Work is counted in seat-milliseconds; a meter `R` tells how much of it each queue
 * that has anything to do was due so far, and the queue whose oldest request would end first on
 * that meter goes next. What a request will take is not known beforehand: it counts as a guess
 * until it has ended.
 *
 * Times are milliseconds of a clock that never goes back, with fractions.
 */
import { dealHand } from './shuffle-shard.ts';

/** Upstream's guess of how long a request takes. */
const GUESS_MS = 3;

/** One request that waits or runs. The queues own what is marked so. */
export class Ticket<T> {
  readonly request: T;
  readonly seats: number;
  readonly hash: bigint;
  readonly arrivedMs: number;
  /** Owned by the queues. */
  queue: FlowQueue<T> | null = null;
  arrivalR = 0;
  startedMs = -1;
  isWaiting = false;

  constructor(request: T, seats: number, hash: bigint, arrivedMs: number) {
    this.request = request;
    this.seats = seats;
    this.hash = hash;
    this.arrivedMs = arrivedMs;
  }
}

/** One queue: requests in the order of their arrival. */
export class FlowQueue<T> {
  readonly index: number;
  /** Cancelled ones stay in their place and are passed over. */
  #tickets: Ticket<T>[] = [];
  #first = 0;
  waiting = 0;
  seatsWaiting = 0;
  executing = 0;
  seatsInUse = 0;
  /** Where on the meter the next request of this queue begins. */
  nextR = 0;

  constructor(index: number) {
    this.index = index;
  }

  push(ticket: Ticket<T>): void {
    this.#tickets.push(ticket);
    this.waiting++;
    this.seatsWaiting += ticket.seats;
    ticket.isWaiting = true;
  }

  /** The oldest that waits. */
  peek(): Ticket<T> | null {
    const tickets = this.#tickets;
    while (this.#first < tickets.length && tickets[this.#first]?.isWaiting !== true) this.#first++;
    if (this.#first >= tickets.length) {
      this.#tickets = [];
      this.#first = 0;
      return null;
    }
    if (this.#first > 64 && this.#first * 2 > tickets.length) {
      this.#tickets = tickets.slice(this.#first);
      this.#first = 0;
    }
    return this.#tickets[this.#first] ?? null;
  }

  /** Takes a waiting ticket out, wherever it stands. */
  remove(ticket: Ticket<T>): void {
    ticket.isWaiting = false;
    this.waiting--;
    this.seatsWaiting -= ticket.seats;
  }

  /**
   * No queue may save up time from before its oldest request came. To be told after each change:
   * what is paid for later counts from there.
   */
  bound(): void {
    const head = this.peek();
    if (head !== null && this.nextR < head.arrivalR) this.nextR = head.arrivalR;
  }

  /** Those that wait, oldest first. */
  list(): Ticket<T>[] {
    return this.#tickets.filter((ticket) => ticket.isWaiting);
  }
}

export interface QueueShape {
  readonly queues: number;
  readonly handSize: number;
  readonly lengthMax: number;
}

export class FlowQueues<T> {
  shape: QueueShape;
  readonly #queues = new Map<number, FlowQueue<T>>();
  /** Deals are the same for a flow each time, and cost microseconds. */
  readonly #hands = new Map<bigint, readonly number[]>();
  #turn = 0;
  #meter = 0;
  #meterMs = -1;
  #robin = 0;
  waiting = 0;
  seatsWaiting = 0;
  /** Of all queues. */
  #seatsInUse = 0;
  /** Where on the meter the last ticket began that had waited, and what the meter said then. */
  startR = 0;
  startMeter = 0;
  hasStarted = false;

  constructor(shape: QueueShape) {
    this.shape = shape;
  }

  get meter(): number {
    return this.#meter;
  }

  /** Queues with anything in them, by their numbers. */
  active(): FlowQueue<T>[] {
    return [...this.#queues.values()].toSorted((a, b) => a.index - b.index);
  }

  /** Brings the meter up to date; before anything changes. `limit`: seats of the level. */
  pass(nowMs: number, limit: number): void {
    const passed = this.#meterMs < 0 ? 0 : Math.max(0, nowMs - this.#meterMs);
    this.#meterMs = nowMs;
    const count = this.#queues.size;
    if (count === 0 || passed === 0) return;
    const wanted = this.#seatsInUse + this.seatsWaiting;
    this.#meter += (Math.min(wanted, limit) / count) * passed;
  }

  /** The queue of the ticket's hand with the least work waiting. */
  choose(hash: bigint): FlowQueue<T> {
    const hand = this.#handOf(hash);
    const offset = this.#turn++ % hand.length;
    let best: FlowQueue<T> | null = null;
    for (let step = 0; step < hand.length; step++) {
      const index = hand[(offset + step) % hand.length] ?? 0;
      const queue = this.#queues.get(index) ?? new FlowQueue<T>(index);
      if (best === null || queue.seatsWaiting < best.seatsWaiting) best = queue;
      if (best.seatsWaiting === 0) break;
    }
    return best ?? new FlowQueue<T>(0);
  }

  #handOf(hash: bigint): readonly number[] {
    let hand = this.#hands.get(hash);
    if (hand === undefined) {
      if (this.#hands.size >= HANDS_MAX) this.#hands.clear();
      hand = dealHand(hash, this.shape.queues, this.shape.handSize);
      this.#hands.set(hash, hand);
    }
    return hand;
  }

  /** Puts a ticket at the end of a queue that `choose` gave. */
  enqueue(queue: FlowQueue<T>, ticket: Ticket<T>): void {
    this.#activate(queue);
    ticket.queue = queue;
    ticket.arrivalR = this.#meter;
    queue.push(ticket);
    this.waiting++;
    this.seatsWaiting += ticket.seats;
    queue.bound();
  }

  #activate(queue: FlowQueue<T>): void {
    if (this.#queues.has(queue.index)) return;
    queue.nextR = this.#meter;
    this.#queues.set(queue.index, queue);
  }

  /** What comes next, left in its place; null where nothing waits. */
  next(): Ticket<T> | null {
    let best: Ticket<T> | null = null;
    let bestEnd = Infinity;
    let bestStep = Infinity;
    for (const queue of this.#queues.values()) {
      if (queue.waiting === 0) continue;
      const head = queue.peek();
      if (head === null) continue;
      const end = queue.nextR + head.seats * GUESS_MS;
      const { queues } = this.shape;
      const step = (queue.index - this.#robin - 1 + 2 * queues) % queues;
      if (end < bestEnd || (end === bestEnd && step < bestStep)) {
        best = head;
        bestEnd = end;
        bestStep = step;
      }
    }
    return best;
  }

  /**
   * Least and most, over the queues with anything waiting, of where on the meter their oldest
   * request begins; `isDiscounted`: less the guess for what each has running.
   */
  nextBounds(isDiscounted: boolean): readonly [number, number] {
    const waiting = [...this.#queues.values()].filter((queue) => queue.waiting > 0);
    if (waiting.length === 0) return [this.startR, this.startR];
    const places = waiting.map(({ nextR, seatsInUse }) => {
      return isDiscounted ? nextR - seatsInUse * GUESS_MS : nextR;
    });
    return [Math.min(...places), Math.max(...places)];
  }

  /** The ticket that `next` gave begins to run. */
  start(ticket: Ticket<T>, nowMs: number): void {
    const { queue } = ticket;
    if (queue === null) return;
    this.#robin = queue.index;
    ticket.startedMs = nowMs;
    this.drop(ticket);
    queue.executing++;
    queue.seatsInUse += ticket.seats;
    this.#seatsInUse += ticket.seats;
    this.hasStarted = true;
    this.startR = queue.nextR;
    this.startMeter = this.#meter;
    queue.nextR += ticket.seats * GUESS_MS;
    queue.bound();
  }

  /** A ticket that has run is over: its queue pays for what it really took. */
  finish(ticket: Ticket<T>, nowMs: number): void {
    const { queue } = ticket;
    if (queue === null) return;
    queue.executing--;
    queue.seatsInUse -= ticket.seats;
    this.#seatsInUse -= ticket.seats;
    queue.nextR -= ticket.seats * (GUESS_MS - (nowMs - ticket.startedMs));
    queue.bound();
    this.#retire(queue);
  }

  /** A ticket waits no longer: it runs, or nobody waits for it any more. */
  drop(ticket: Ticket<T>): void {
    const { queue } = ticket;
    if (queue === null || !ticket.isWaiting) return;
    queue.remove(ticket);
    this.waiting--;
    this.seatsWaiting -= ticket.seats;
    if (ticket.startedMs >= 0) return;
    queue.bound();
    this.#retire(queue);
  }

  /** A queue with nothing in it has no claims: when used again, it begins at the meter. */
  #retire(queue: FlowQueue<T>): void {
    if (queue.waiting === 0 && queue.executing === 0) this.#queues.delete(queue.index);
  }

  /** All tickets that wait, for dumps and for changes of the shape. */
  listWaiting(): Ticket<T>[] {
    return this.active().flatMap((queue) => queue.list());
  }

  /** Other numbers from now on; what waits keeps its order of arrival. */
  reshape(shape: QueueShape): void {
    const isSame =
      shape.queues === this.shape.queues &&
      shape.handSize === this.shape.handSize &&
      shape.lengthMax === this.shape.lengthMax;
    if (isSame) return;
    this.shape = shape;
    this.#hands.clear();
  }
}

/** Flows whose hands are remembered. */
const HANDS_MAX = 4096;
