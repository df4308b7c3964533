/**
 * Priority and fairness as a whole, in a time of its own: floods and trickles of random requests
 * that take processor time, then seats for a while, whose clients give up or wait; levels change
 * their shares meanwhile. What the published algorithm promises is looked at after each step.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Store } from '@megaplane/store/store';
import { createApiServer } from '../server/assembly.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import { Call } from '../request/call.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { identityOf } from '../request/identity.ts';
import { Query } from '../request/query.ts';
import { parseRequest } from '../request/request-info.ts';
import { findServed } from '../storage/served.ts';
import { Fairness } from './fairness.ts';
import type { PriorityLevel } from './priority-level.ts';
import type { Held } from './held-request.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const FLOWS = '/apis/flowcontrol.apiserver.k8s.io/v1';
const USERS = ['joe', 'ann', 'bob', 'system:kube-scheduler', 'system:node:n', 'admin'] as const;
const SEATS = 60;
const REQUEST_MS_MAX = 8000;
/** A quarter of that, and until the next second's look. */
const WAIT_MS_MAX = REQUEST_MS_MAX / 4 + 1100;

class Sim {
  nowMs = 1_800_000_000_000;
  readonly later: (() => void)[] = [];
  readonly #events: { readonly atMs: number; readonly run: () => void }[] = [];
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Below 1. */
  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  at(atMs: number, run: () => void): void {
    let index = this.#events.length;
    while (index > 0 && (this.#events[index - 1]?.atMs ?? 0) > atMs) index--;
    this.#events.splice(index, 0, { atMs, run });
  }

  /** One event, and the turns of the loop that follow it. */
  step(): boolean {
    const event = this.#events.shift();
    if (event === undefined) return false;
    this.nowMs = Math.max(this.nowMs, event.atMs);
    event.run();
    for (let work = this.later.shift(); work !== undefined; work = this.later.shift()) work();
    return true;
  }
}

interface Request {
  readonly arrivedMs: number;
  startedMs: number;
  level: string;
  outcome: 'waits' | 'runs' | 'served' | 'refused' | 'gone';
}

/** A server with its configuration, whose requests are played. */
class Rig {
  readonly sim: Sim;
  readonly fairness: Fairness;
  readonly requests: Request[] = [];
  readonly #api: ReturnType<typeof createApiServer>;
  readonly #store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);

  constructor(seed: number) {
    const sim = new Sim(seed);
    this.sim = sim;
    let uuids = 0;
    const edge = {
      nowMs: () => Math.floor(sim.nowMs),
      below: () => 0,
      uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
      defer: (work: () => void) => void sim.later.push(work),
      deferPiece: (work: () => void) => void sim.later.push(work),
    };
    const clockMs = (): number => sim.nowMs;
    this.#api = createApiServer({
      storage: new EmbeddedStorage(this.#store, () => Promise.resolve()),
      edge,
      address: '',
      clockMs,
    });
    const { world } = this.#api.parts;
    bootstrap(world, { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 1 });
    this.settle();
    const options = { serverSeats: SEATS, clockMs, requestMsMax: REQUEST_MS_MAX };
    this.fairness = new Fairness(world, options, () => {});
    this.fairness.config.generation();
    for (let index = 0; index < 20; index++) {
      this.ask('POST', MAPS, { metadata: { name: `m${index}` }, data: { a: 'x'.repeat(30_000) } });
    }
  }

  ask(method: string, path: string, body: unknown): ExchangeModel {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const exchange = new ExchangeModel(method, path, body, { 'content-type': type });
    this.#api.handle(exchange);
    exchange.endTurn();
    this.settle();
    return exchange;
  }

  settle(): void {
    this.#store.flush();
    for (let work = this.sim.later.shift(); work !== undefined; work = this.sim.later.shift()) {
      work();
    }
  }

  /** A request of `user` that takes `cpuMs`, and seats for `holdMs` after that. */
  send(
    user: string,
    verb: 'get' | 'list',
    cpuMs: number,
    holdMs: number,
    onEnd: (outcome: Request['outcome']) => void = () => {},
  ): void {
    const { sim, fairness } = this;
    const path = verb === 'get' ? `${MAPS}/m1` : `${MAPS}?limit=${1 + sim.below(20)}`;
    const exchange = new ExchangeModel('GET', path, undefined, {});
    const groups = user === 'admin' ? ['system:masters'] : groupsOf(user);
    const info = parseRequest('GET', path) ?? assert.fail(path);
    const identity = identityOf(user, groups);
    const call = new Call(exchange, info, new Query(path), identity, sim.nowMs, '');
    const request: Request = {
      arrivedMs: sim.nowMs,
      startedMs: -1,
      level: fairness.config.routeOf(call.identity, call.info, verb).level.name,
      outcome: 'waits',
    };
    this.requests.push(request);
    fairness.admit(call, verb, findServed('', 'v1', 'configmaps'), () => {
      request.startedMs = sim.nowMs;
      request.outcome = 'runs';
      this.#lookAtStart(request);
      sim.nowMs += cpuMs;
      const end = (): void => {
        request.outcome = 'served';
        call.sendText(200, '');
        call.done();
        onEnd('served');
      };
      if (holdMs === 0) end();
      else sim.at(sim.nowMs + holdMs, end);
    });
    if (request.outcome !== 'waits') return;
    const patience = exchange.status === 429 ? 0 : this.#patience();
    sim.at(sim.nowMs + patience, () => {
      if (request.outcome !== 'waits') return;
      request.outcome = exchange.status === 429 ? 'refused' : 'gone';
      assert.ok(patience < WAIT_MS_MAX || exchange.status === 429, 'nobody waits for ever');
      if (exchange.status !== 429) exchange.reset();
      onEnd(request.outcome);
    });
  }

  #lookAtStart(request: Request): void {
    const level = this.level(request.level);
    if (level.config.type === 'exempt') return;
    const { seatsInUse, seats, executing } = level;
    assert.ok(seatsInUse <= seats || executing === 1, `${level.name}: ${seatsInUse} of ${seats}`);
    const waitedMs = request.startedMs - request.arrivedMs;
    assert.ok(waitedMs <= WAIT_MS_MAX + 50, `started after ${waitedMs} ms`);
  }

  /** Some clients give up. */
  #patience(): number {
    return this.sim.random() < 0.05 ? this.sim.below(2000) : WAIT_MS_MAX;
  }

  level(name: string): PriorityLevel<Held> {
    return this.fairness.config.levels.find(name) ?? assert.fail(name);
  }

  /** What holds whenever the loop is at rest. */
  look(): void {
    const levels = this.fairness.config.levels.all();
    const runs = new Map<string, number>();
    for (const { outcome, level } of this.requests) {
      if (outcome === 'runs') runs.set(level, (runs.get(level) ?? 0) + 1);
    }
    for (const level of levels) {
      const { name, executing, waiting, seatsInUse, queues } = level;
      assert.equal(executing, runs.get(name) ?? 0, `${name} runs`);
      assert.ok(level.isIdle || executing > 0 || waiting > 0);
      assert.equal(queues.listWaiting().length, waiting);
      assert.equal(seatsInUse === 0, executing === 0);
      // no seat stays free while what is next would fit
      const next = waiting > 0 ? level.next(this.sim.nowMs) : null;
      assert.ok(next === null || !level.fits(next.seats), `${name} is lazy`);
    }
    const lines: string[] = [];
    this.fairness.print(lines);
    const sumOf = (metric: string): number =>
      lines
        .filter((line) => line.startsWith(`apiserver_flowcontrol_${metric}{`))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
    const total = (of: (level: PriorityLevel<Held>) => number): number =>
      levels.reduce((sum, level) => sum + of(level), 0);
    assert.equal(
      sumOf('current_inqueue_requests'),
      total((level) => level.waiting),
    );
    assert.equal(
      sumOf('current_executing_requests'),
      total((level) => level.executing),
    );
    assert.equal(
      sumOf('current_executing_seats'),
      total((level) => level.seatsInUse),
    );
    const begun = this.requests.filter(({ startedMs }) => startedMs >= 0).length;
    assert.equal(sumOf('dispatched_requests_total'), begun);
    assert.equal(
      sumOf('nominal_limit_seats'),
      total((level) => level.nominalSeats),
    );
    assert.equal(
      sumOf('current_limit_seats'),
      total((level) => level.seats),
    );
    assert.equal(
      sumOf('demand_seats_high_watermark'),
      total((at) => at.demand.highWatermark),
    );
  }

  /** Once a second, as the server does; `untilMs` from now. */
  tickUntil(untilMs: number): void {
    for (let afterMs = 1000; afterMs <= untilMs; afterMs += 1000) {
      this.sim.at(this.sim.nowMs + afterMs, () => this.fairness.tick());
    }
  }
}

function groupsOf(user: string): string[] {
  return user.startsWith('system:node:')
    ? ['system:nodes', 'system:authenticated']
    : ['system:authenticated'];
}

const LOADS = 8;

test('whatever comes, seats are kept, none stays idle, all are answered, and figures agree', () => {
  let count = 0;
  const outcomes = new Map<string, number>();
  for (let seed = 1; seed <= LOADS; seed++) {
    const rig = new Rig(seed);
    const { sim } = rig;
    rig.tickUntil(90_000);
    const startMs = sim.nowMs;
    for (let flood = 0; flood < 8; flood++) {
      const user = USERS[sim.below(USERS.length)] ?? 'joe';
      const verb = sim.random() < 0.3 ? 'list' : 'get';
      const [cpuMs, holdMs] = [sim.below(30) / 10, sim.below(3) * sim.below(900)];
      const beginMs = startMs + sim.below(30_000);
      for (let burst = 0; burst < 5; burst++) {
        const many = 1 + sim.below(20);
        sim.at(beginMs + burst * sim.below(600), () => {
          for (let index = 0; index < many; index++) rig.send(user, verb, cpuMs, holdMs);
        });
      }
    }
    sim.at(startMs + sim.below(20_000), () => reconfigure(rig));
    sim.at(startMs + sim.below(20_000), () => reconfigure(rig));
    for (let step = 0; sim.step(); step++) if (step % 8 === 0) rig.look();
    rig.look();
    for (const { outcome, level } of rig.requests) {
      assert.ok(outcome !== 'waits' && outcome !== 'runs', `one of ${level} ${outcome}`);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    assert.ok(rig.fairness.config.levels.all().every(({ isIdle }) => isIdle));
    count += rig.requests.length;
  }
  assert.ok(count > LOADS * 100);
  for (const outcome of ['served', 'refused', 'gone']) assert.ok((outcomes.get(outcome) ?? 0) > 0);
});

/** Another share, other queues, or a level that goes. */
function reconfigure(rig: Rig): void {
  const { sim } = rig;
  const path = `${FLOWS}/prioritylevelconfigurations/global-default`;
  const queues = 2 + sim.below(60);
  const queuing = { queues, handSize: 1 + sim.below(2), queueLengthLimit: 1 + sim.below(30) };
  const limited = {
    nominalConcurrencyShares: 1 + sim.below(200),
    lendablePercent: sim.below(100),
    borrowingLimitPercent: sim.random() < 0.5 ? null : sim.below(200),
    limitResponse: { type: 'Queue', queuing },
  };
  const annotations = { 'apf.kubernetes.io/autoupdate-spec': 'false' };
  const done =
    sim.random() < 0.3
      ? rig.ask('DELETE', path, undefined)
      : rig.ask('PATCH', path, { metadata: { annotations }, spec: { limited } });
  assert.ok(done.status === 200 || done.status === 404, done.text);
}

test('seats that a level lent are its own again when it needs them', () => {
  for (let seed = 1; seed <= 4; seed++) {
    const rig = new Rig(seed);
    const { sim } = rig;
    const holdMs = 200 + sim.below(1500);
    rig.tickUntil(120_000);
    const startMs = sim.nowMs;
    /** Somebody who always wants more than there is. */
    const press = (user: string, fromMs: number, untilMs: number): void => {
      for (let atMs = fromMs; atMs < untilMs; atMs += 200) {
        sim.at(startMs + atMs, () => {
          for (let index = 0; index < 15; index++) rig.send(user, 'get', 0, holdMs);
        });
      }
    };
    press('joe', 0, 80_000);
    press('system:kube-scheduler', 40_000, 80_000);
    const [borrower, lender] = [rig.level('global-default'), rig.level('workload-high')];
    while (sim.nowMs < startMs + 39_900 && sim.step());
    assert.ok(borrower.seats > borrower.nominalSeats, 'seats were borrowed');
    assert.ok(lender.seats < lender.nominalSeats, 'and lent');
    // a period of borrowing, a second until it is looked at, and what was begun before
    const backMs = startMs + 40_000 + 10_000 + 1000 + holdMs + 10;
    while (sim.nowMs < backMs && sim.step());
    assert.ok(lender.seats >= lender.nominalSeats, `${lender.seats} of ${lender.nominalSeats}`);
    assert.equal(lender.seatsInUse, lender.seats);
    assert.ok(borrower.seatsInUse <= borrower.seats);
  }
});

test('flows that always want more share seats evenly, however long their requests take', () => {
  for (let seed = 1; seed <= 5; seed++) {
    const rig = new Rig(seed);
    const { sim } = rig;
    // one card for each flow, and these two get different ones
    const queuing = { queues: 64, handSize: 1, queueLengthLimit: 50 };
    const limited = { limitResponse: { type: 'Queue', queuing } };
    rig.ask('PATCH', `${FLOWS}/prioritylevelconfigurations/global-default`, { spec: { limited } });
    const level = rig.level('global-default');
    rig.tickUntil(20_000);
    const own = new Map<string, number>();
    const flows = [
      { user: 'joe', holdMs: 5 + sim.below(40), ahead: 30 },
      { user: 'ann', holdMs: 5 + sim.below(400), ahead: 45 },
    ];
    let isOver = false;
    for (const { user, holdMs, ahead } of flows) {
      own.set(user, 0);
      // one that ends is followed by another: as many are there all the time
      const again = (): void => {
        if (isOver) return;
        rig.send(user, 'get', 0, holdMs, (outcome) => {
          if (outcome === 'served') own.set(user, (own.get(user) ?? 0) + holdMs);
          sim.at(sim.nowMs + 1, again);
        });
      };
      sim.at(sim.nowMs, () => {
        for (let index = 0; index < ahead; index++) again();
      });
    }
    const endMs = sim.nowMs + 8000;
    while (sim.nowMs < endMs && sim.step());
    isOver = true;
    const [first = 0, second = 0] = [...own.values()];
    // what runs is paid for when it ends: so much may one be ahead of the other
    const bound = 2 * level.seats * Math.max(...flows.map(({ holdMs }) => holdMs)) + 100;
    const all = level.seats * 8000;
    assert.ok(first + second > all * 0.8, `${first + second} of ${all} seat-milliseconds`);
    assert.ok(Math.abs(first - second) <= bound, `${first} and ${second}, bound ${bound}`);
  }
});
