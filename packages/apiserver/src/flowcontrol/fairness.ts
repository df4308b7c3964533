/**
 * Priority and fairness: which request runs now, which one waits, and which one is refused.
 *
 * Two things are scarce. *Seats*, as upstream counts them, bound what goes on at the same time:
 * requests that wait for etcd or a webhook, lists on their way to slow clients. The *processor*
 * bounds everything else: most requests here begin and end within tens of microseconds, in one turn
 * of the event loop. So a turn serves what comes until it has lasted `TURN_MS`; what comes later in
 * it waits in the queues of its priority level. Then the levels take turns by the processor time
 * that they have used for each of their seats, and within a level its flows do, by fair queuing. A
 * flood fills its own queues; a kubelet's lease goes next.
 */
import { actFor, unowned } from '@megaplane/base/deferred';
import { BodyBudget } from '@megaplane/wire/body-budget';
import type { Exchange, Rest } from '@megaplane/wire/exchange';
import type { Call } from '../request/call.ts';
import type { Identity } from '../request/identity.ts';
import type { Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import { FlowConfig } from './flow-config.ts';
import { FlowHashes } from './flow-hashes.ts';
import { printFlows, RequestKinds } from './flow-metrics.ts';
import { Ticket } from './flow-queues.ts';
import { shareOf, type Held, type Route, type Waiter } from './held-request.ts';
import { LeaseFlows, type LeaseFlow } from './lease-flows.ts';
import type { PriorityLevel, Refusal } from './priority-level.ts';
import { RetryAfter } from './retry-after.ts';
import { WorkEstimate } from './work-estimate.ts';

/** A turn that has lasted so long takes in no more; what waits gets as much. */
const TURN_MS = 8;
/**
 * Requests that wait hold no more than this, bodies and some for each, in shares as bodies that
 * come: nobody more than what is left for others.
 */
export const WAITING_BYTES_MAX: number = 128 * 1024 * 1024;
const REQUEST_BYTES = 1024;
/** Of all renewals of a second: leaders of controllers renew too, on levels of their own. */
const RENEWING_SHARE = 0.9;
/** A request waits for a quarter of its time, but no longer than this. */
const WAIT_MS_MAX = 60_000;
const REFUSED = 'Too many requests, please try again later.\n';
export interface FairnessOptions {
  /** All that may go on at once (`--max-requests-inflight` and the mutating ones together). */
  readonly serverSeats: number;
  /** Milliseconds of a clock that never goes back, with fractions. */
  readonly clockMs: () => number;
  /** The most that a request may take, 0: no limit. */
  readonly requestMsMax: number;
}

export class Fairness {
  /** Requests that did not end in the turn in which they began. */
  readonly #lingering = new Set<Ticket<Held>>();
  #current: Ticket<Held> | null = null;
  readonly config: FlowConfig;
  readonly #options: FairnessOptions;
  readonly #defer: (work: () => void) => void;
  readonly #estimate: WorkEstimate;
  readonly #hashes = new FlowHashes();
  readonly #retries = new Map<string, RetryAfter>();
  readonly #late: (exchange: Exchange) => void;
  readonly #leaseFlows: LeaseFlows;
  readonly #kinds: RequestKinds;
  #turnStartMs = 0;
  #isTurnOpen = false;
  /** Of which nearly all renewals are. */
  #renewingLevel: PriorityLevel<Held> | null = null;
  #isPumpPlanned = false;
  #waiting = 0;
  readonly #budget = new BodyBudget(WAITING_BYTES_MAX);
  /** Usage of the level that ran last: who comes anew begins there. */
  #usageFloor = 0;

  /** `late` is told of requests that ran in a later turn than they came in. */
  constructor(world: World, options: FairnessOptions, late: (exchange: Exchange) => void) {
    this.#options = options;
    // whose turn it happens to be has nothing to do with what comes then
    this.#defer = (work) => world.edge.defer(unowned(work));
    this.#estimate = new WorkEstimate(world);
    this.#late = late;
    this.config = new FlowConfig(world, options.serverSeats, options.clockMs, () => {
      if (this.#waiting > 0) this.#planPump();
    });
    this.#leaseFlows = new LeaseFlows(this.config, this.#hashes);
    this.#kinds = new RequestKinds(options.clockMs());
  }

  /** Runs `run` now or later, or answers with 429. `verb` as authorizers see it. */
  admit(call: Call, verb: string, served: Served | undefined, run: () => void): void {
    const route = this.config.routeOf(call.identity, call.info, verb);
    const { level, schema, series } = route;
    call.flowFields = route.fields;
    const isExempt = level.config.type === 'exempt';
    const seats = this.#estimate.seatsOf(call, verb, served, level.seatsMax);
    series.seats.observe(seats);
    if (served !== undefined) this.#estimate.countWatches(call, verb, served, series);
    const nowMs = this.#options.clockMs();
    const distinguisher = isExempt ? '' : this.config.distinguish(schema, call);
    const bytes = REQUEST_BYTES + call.body.length;
    const held: Held = {
      waiter: call,
      verb,
      route,
      distinguisher,
      bytes,
      run,
      share: null,
      isLingering: false,
      isOver: false,
    };
    if (isExempt || (!this.#isBehind(nowMs) && level.waiting === 0 && level.fits(seats))) {
      if (level.config.type === 'queue') series.enqueueAlone();
      this.#start(new Ticket(held, seats, 0n, nowMs), nowMs, nowMs);
      return;
    }
    const hash = this.#hashes.of(schema.name, distinguisher);
    this.#wait(new Ticket(held, seats, hash, nowMs), nowMs);
  }

  /** The flow of renewals of leases by somebody in a namespace. */
  leaseFlow(identity: Identity, namespace: string): LeaseFlow {
    return this.#leaseFlows.of(identity, namespace);
  }

  /** Whether a renewal may go on in this turn. */
  mayRenew({ route: { level } }: LeaseFlow): boolean {
    if (level.config.type === 'exempt') return true;
    return level.waiting === 0 && level.fits(1) && !this.#isBehind(this.#options.clockMs());
  }

  /**
   * When the connection of a renewal is read on. What comes on it is most likely another one, which
   * would have to wait in a queue in a turn that has lasted, and that costs as much again. Where
   * renewals of several levels come, queues must see them all, or who has more connections wins.
   */
  restAfter({ route: { level } }: LeaseFlow): Rest {
    level.renewals++;
    if (level !== this.#renewingLevel) return 'never';
    return level.waiting > 0 ? 'now' : 'late';
  }

  /** A lease was renewed at once. */
  countRenewal({ route: { level, series } }: LeaseFlow): void {
    level.dispatched++;
    series.dispatched++;
    if (level.config.type === 'queue') series.enqueueAlone();
  }

  /** Lets a renewal wait for its turn, or refuses it. `bytes`: of its body. */
  holdRenewal(flow: LeaseFlow, waiter: Waiter, bytes: number, run: () => void): void {
    const { route, distinguisher, hash } = flow;
    route.series.seats.observe(1);
    const held: Held = {
      waiter,
      verb: 'update',
      route,
      distinguisher,
      bytes: REQUEST_BYTES + bytes,
      run,
      share: null,
      isLingering: false,
      isOver: false,
    };
    const nowMs = this.#options.clockMs();
    this.#wait(new Ticket(held, 1, hash, nowMs), nowMs);
  }

  /** The present turn has lasted long enough. */
  #isBehind(nowMs: number): boolean {
    if (!this.#isTurnOpen) {
      this.#isTurnOpen = true;
      this.#turnStartMs = nowMs;
      this.#defer(() => {
        this.#isTurnOpen = false;
      });
    }
    return nowMs - this.#turnStartMs >= TURN_MS;
  }

  #wait(ticket: Ticket<Held>, nowMs: number): void {
    const { waiter, verb, route, bytes } = ticket.request;
    const { level, series } = route;
    const share = shareOf(waiter.exchange, waiter.identity);
    const place = level.place(ticket.hash, ticket.seats);
    if (typeof place === 'string' || !this.#budget.take(share, bytes)) {
      this.#refuse(waiter, route, typeof place === 'string' ? place : 'queue-full', nowMs);
      return;
    }
    waiter.keepBody();
    if (this.#waiting === 0) {
      this.#usageFloor = 0;
      for (const one of this.config.levels.all()) one.usage = 0;
    }
    if (level.waiting === 0) level.usage = Math.max(level.usage, this.#usageFloor);
    level.wait(place, ticket, nowMs);
    this.#waiting++;
    ticket.request.share = share;
    waiter.exchange.onClose = () => this.#abandon(ticket);
    waiter.exchange.onHalfClose = () => this.#giveUp(ticket);
    series.waiting++;
    series.seatsWaiting += ticket.seats;
    series.hasQueued = true;
    this.#kinds.of(verb).enqueue(nowMs);
    series.queueLengths.observe(place.waiting);
    this.#planPump();
  }

  #refuse(waiter: Waiter, { level, series }: Route, reason: Refusal, nowMs: number): void {
    level.rejected++;
    series.reject(reason);
    series.gaveUp.observe(0);
    this.#sendRefusal(waiter, level, nowMs);
  }

  #sendRefusal(waiter: Waiter, level: PriorityLevel<Held>, nowMs: number): void {
    let retry = this.#retries.get(level.name);
    if (retry === undefined) this.#retries.set(level.name, (retry = new RetryAfter()));
    retry.drop(nowMs);
    waiter.sendText(429, REFUSED, ['retry-after', String(retry.seconds)]);
  }

  #planPump(): void {
    if (this.#isPumpPlanned) return;
    this.#isPumpPlanned = true;
    this.#defer(() => {
      this.#isPumpPlanned = false;
      this.#pump();
    });
  }

  /** Lets in what waits, for one turn. */
  #pump(): void {
    const startMs = this.#options.clockMs();
    let nowMs = startMs;
    while (this.#waiting > 0) {
      if (nowMs - startMs >= TURN_MS) {
        this.#planPump();
        return;
      }
      const ticket = this.#pick(nowMs);
      if (ticket === null) return;
      const { waiter, route } = ticket.request;
      if (waiter.exchange.closed || waiter.code !== 0) this.#leave(ticket, nowMs);
      else {
        this.#unwait(ticket, nowMs);
        this.#usageFloor = route.level.usage;
        nowMs = this.#start(ticket, nowMs, ticket.arrivedMs);
        this.#late(waiter.exchange);
        continue;
      }
      nowMs = this.#options.clockMs();
    }
  }

  /** The next request of the level that has used least, among those that can go on. */
  #pick(nowMs: number): Ticket<Held> | null {
    let best: Ticket<Held> | null = null;
    let least = Infinity;
    for (const level of this.config.levels.all()) {
      if (level.waiting === 0 || level.usage >= least) continue;
      const ticket = level.next(nowMs);
      if (ticket === null) continue;
      if (!level.fits(ticket.seats)) {
        if (level.seatsInUse < level.seats) ticket.request.route.series.unaccommodated++;
        continue;
      }
      best = ticket;
      least = level.usage;
    }
    return best;
  }

  /** What runs: what asks for it last. */
  executing(): readonly Ticket<Held>[] {
    return this.#current === null ? [...this.#lingering] : [...this.#lingering, this.#current];
  }

  #unwait(ticket: Ticket<Held>, nowMs: number): void {
    const { waiter, verb, route, bytes, share } = ticket.request;
    waiter.exchange.onClose = null;
    waiter.exchange.onHalfClose = null;
    this.#kinds.of(verb).waiting.add(-1, nowMs);
    this.#waiting--;
    if (share !== null) this.#budget.give(share, bytes);
    route.series.waiting--;
    route.series.seatsWaiting -= ticket.seats;
  }

  /** The client has gone, or was answered meanwhile. */
  #leave(ticket: Ticket<Held>, nowMs: number): void {
    const { level, series } = ticket.request.route;
    this.#unwait(ticket, nowMs);
    level.drop(ticket, nowMs);
    // as upstream: whoever waits in vain, for whatever reason, was cancelled by time
    level.cancelled++;
    level.rejected++;
    series.reject('time-out');
    series.gaveUp.observe((nowMs - ticket.arrivedMs) / 1000);
  }

  /** The client has gone: nobody waits behind it, as upstream has it. */
  #abandon(ticket: Ticket<Held>): void {
    if (!ticket.isWaiting) return;
    this.#leave(ticket, this.#options.clockMs());
    ticket.request.waiter.done();
    if (this.#waiting > 0) this.#planPump();
  }

  /** The client says no more, and has most likely gone: it is refused, should it still read. */
  #giveUp(ticket: Ticket<Held>): void {
    if (!ticket.isWaiting) return;
    const nowMs = this.#options.clockMs();
    const { waiter, route } = ticket.request;
    this.#leave(ticket, nowMs);
    this.#sendRefusal(waiter, route.level, nowMs);
    if (this.#waiting > 0) this.#planPump();
  }

  /** Runs a request; returns the time after it. */
  #start(ticket: Ticket<Held>, nowMs: number, sinceMs: number): number {
    const held = ticket.request;
    const { waiter, verb, route } = held;
    const { level, series } = route;
    level.start(ticket, nowMs);
    series.dispatched++;
    series.executing++;
    series.seatsInUse += ticket.seats;
    if (level.config.type !== 'exempt') series.waited.observe((nowMs - sinceMs) / 1000);
    this.#kinds.of(verb).executing.add(1, nowMs);
    if (nowMs > sinceMs) waiter.noteOthers?.('apf-queue-wait', nowMs - sinceMs, false);
    waiter.onDone = () => {
      held.isOver = true;
      if (held.isLingering) this.#finish(ticket, this.#options.clockMs());
    };
    const around = this.#current;
    this.#current = ticket;
    actFor(waiter, held.run);
    this.#current = around;
    const endMs = this.#options.clockMs();
    level.usage += (endMs - nowMs) / Math.max(1, level.seats);
    if (held.isOver) this.#finish(ticket, endMs);
    else if (waiter.exchange.closed) waiter.done();
    else level.linger(endMs);
    held.isLingering = !held.isOver;
    if (held.isLingering) this.#lingering.add(ticket);
    return endMs;
  }

  #finish(ticket: Ticket<Held>, nowMs: number): void {
    const { verb, route } = ticket.request;
    const { level, series } = route;
    const wasLingering = ticket.request.isLingering;
    ticket.request.isLingering = false;
    if (wasLingering) this.#lingering.delete(ticket);
    level.finish(ticket, nowMs);
    if (wasLingering) level.linger(nowMs);
    series.executing--;
    series.seatsInUse -= ticket.seats;
    this.#kinds.of(verb).executing.add(-1, nowMs);
    const histogram = verb === 'watch' ? series.begun : series.executed;
    histogram.observe((nowMs - ticket.startedMs) / 1000);
    if (level.waiting > 0) this.#planPump();
  }

  /** About once a second: borrowing, and requests that have waited too long. */
  tick(): void {
    const nowMs = this.#options.clockMs();
    this.#kinds.endSecond();
    this.config.levels.tick(nowMs);
    this.#renewingLevel = this.#findRenewing();
    if (this.#waiting === 0) return;
    for (const level of this.config.levels.all()) this.#expire(level, nowMs);
    this.#planPump();
  }

  /** Begins to count renewals anew. */
  #findRenewing(): PriorityLevel<Held> | null {
    let sum = 0;
    let first: PriorityLevel<Held> | null = null;
    for (const level of this.config.levels.all()) {
      sum += level.renewals;
      if (first === null || level.renewals > first.renewals) first = level;
    }
    const isAlone = first !== null && first.renewals > sum * RENEWING_SHARE;
    for (const level of this.config.levels.all()) level.renewals = 0;
    return isAlone ? first : null;
  }

  #expire(level: PriorityLevel<Held>, nowMs: number): void {
    if (level.waiting === 0) return;
    for (const ticket of level.queues.listWaiting()) {
      const { waiter } = ticket.request;
      if (waiter.exchange.closed || waiter.code !== 0) {
        this.#leave(ticket, nowMs);
        continue;
      }
      if (nowMs - ticket.arrivedMs < this.#waitMsMax(waiter)) continue;
      this.#leave(ticket, nowMs);
      this.#sendRefusal(waiter, level, nowMs);
    }
  }

  #waitMsMax(waiter: Waiter): number {
    const { requestMsMax } = this.#options;
    const own = requestMsMax === 0 ? Infinity : requestMsMax;
    const asked = waiter.timeoutMs;
    return Math.min(WAIT_MS_MAX, (asked > 0 ? Math.min(own, asked) : own) / 4);
  }

  print(lines: string[]): void {
    const nowMs = this.#options.clockMs();
    const { levels } = this.config;
    this.#kinds.printQueued(lines);
    this.#kinds.limitTo(levels.seats, levels.places, nowMs);
    printFlows(lines, this.config.allSeries(), levels, this.#kinds, nowMs);
  }
}
