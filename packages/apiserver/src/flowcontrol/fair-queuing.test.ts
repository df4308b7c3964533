import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FlowQueues, Ticket } from './flow-queues.ts';
import { Levels } from './levels.ts';
import { PriorityLevel, readLevel, type LevelConfig } from './priority-level.ts';
import { RetryAfter } from './retry-after.ts';
import { allocateSeats } from './seat-allocation.ts';
import { SeatDemand } from './seat-demand.ts';
import { dealHand, hashFlow } from './shuffle-shard.ts';

const SHAPE = { queues: 8, handSize: 2, lengthMax: 50 } as const;

function config(more: Partial<LevelConfig> = {}): LevelConfig {
  return {
    name: 'level',
    uid: 'u',
    type: 'queue',
    shares: 10,
    lendablePercent: 0,
    borrowingPercent: null,
    shape: SHAPE,
    ...more,
  };
}

test('hands are dealt as upstream deals them', () => {
  assert.deepEqual(dealHand(12345678901234567n, 128, 6), [7, 14, 94, 102, 22, 65]);
  assert.deepEqual(dealHand(12345678901234567n, 64, 6), [7, 22, 1, 35, 53, 54]);
  assert.deepEqual(dealHand(0n, 64, 6), [0, 1, 2, 3, 4, 5]);
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 8 }),
      (hash, queues, handSize) => {
        const size = Math.min(handSize, queues);
        const hand = dealHand(hash, queues, size);
        assert.equal(new Set(hand).size, size);
        assert.ok(hand.every((card) => card >= 0 && card < queues));
      },
    ),
  );
  assert.notEqual(hashFlow('a', 'b'), hashFlow('ab', ''));
});

test('each level gets the same part of its target, within its bounds', () => {
  const claim = fc
    .tuple(
      fc.double({ min: 0, max: 100, noNaN: true }),
      fc.double({ min: 0, max: 100, noNaN: true }),
    )
    .chain(([lower, more]) =>
      fc.record({
        lower: fc.constant(lower),
        upper: fc.constant(lower + more),
        target: fc.double({ min: lower, max: lower + 200, noNaN: true }),
      }),
    );
  fc.assert(
    fc.property(
      fc.array(claim, { minLength: 1, maxLength: 9 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (claims, part) => {
        const lowest = claims.reduce((sum, { lower }) => sum + lower, 0);
        const highest = claims.reduce((sum, { upper }) => sum + upper, 0);
        const total = lowest + part * (highest - lowest);
        const allocation = allocateSeats(total, claims);
        assert.ok(allocation !== null);
        const { seats, fairFraction } = allocation;
        const sum = seats.reduce((all, one) => all + one, 0);
        assert.ok(Math.abs(sum - total) < 1e-6 * Math.max(1, total), `${sum} of ${total}`);
        for (const [index, { lower, upper, target }] of claims.entries()) {
          const own = seats[index] ?? 0;
          const fair = fairFraction * Math.max(target, 0.001);
          assert.ok(own >= lower && own <= upper);
          assert.ok(Math.abs(own - Math.max(lower, Math.min(upper, fair))) < 1e-9);
        }
      },
    ),
  );
  assert.equal(allocateSeats(5, [{ lower: 6, upper: 7, target: 6 }]), null);
  assert.equal(allocateSeats(8, [{ lower: 6, upper: 7, target: 6 }]), null);
});

test('seats are divided to the half as upstream divides them', () => {
  const divide = (total: number, rows: readonly (readonly number[])[]): number[] => {
    const claims = rows.map(([lower = 0, upper = 0, target = 0]) => ({ lower, upper, target }));
    const { seats, fairFraction } = allocateSeats(total, claims) ?? assert.fail();
    return [...seats.map(Math.round), fairFraction];
  };
  // rows as Go's flowcontrol package 0.36.1 answered them
  const rows = [
    [50, 244, 71],
    [24, 32, 61],
    [23, 196, 25],
    [25, 85, 59],
  ];
  assert.deepEqual(divide(261, rows), [107, 32, 38, 85, 1.5]);
  assert.deepEqual(
    divide(67, [
      [20, 45, 80],
      [47, 140, 125],
    ]),
    [20, 47, 0.25],
  );
  assert.deepEqual(
    divide(185, [
      [20, 45, 80],
      [47, 140, 125],
    ]),
    [45, 140, 1.12],
  );
  assert.deepEqual(divide(0, [[0, 5, 3]]), [0, 0]);
});

test('a level whose drain is over leaves its seats to the others', () => {
  const levels = new Levels<number>(600, 0);
  levels.configure([config({ name: 'a' }), config({ name: 'b' })], 0);
  const [a, b] = [levels.find('a'), levels.find('b')];
  const ticket = new Ticket(0, 1, 0n, 0);
  b?.start(ticket, 0);
  levels.configure([config({ name: 'a' })], 1);
  assert.equal(a?.nominalSeats, 300);
  b?.finish(ticket, 2);
  levels.tick(1000);
  assert.equal(levels.find('b'), undefined);
  assert.deepEqual([a?.nominalSeats, a?.seats], [600, 600]);
});

test('a flow with a flood gets no more than one with a trickle', () => {
  const level = new PriorityLevel<string>(config(), 0);
  level.configure(config(), 4, 10);
  // flows that share no queue
  const [flood, trickle] = [0n, 5n * 8n + 4n];
  let nowMs = 0;
  const waiting = (flow: string, hash: bigint): void => {
    const ticket = new Ticket(flow, 1, hash, nowMs);
    const queue = level.place(hash, 1);
    assert.ok(typeof queue === 'object');
    level.wait(queue, ticket, nowMs);
  };
  for (let index = 0; index < 400; index++) waiting('flood', flood);
  for (let index = 0; index < 20; index++) waiting('trickle', trickle);
  const order: string[] = [];
  const running: Ticket<string>[] = [];
  for (let step = 0; step < 120; step++) {
    nowMs += 10;
    const done = running.length >= 4 ? running.shift() : undefined;
    if (done !== undefined) level.finish(done, nowMs);
    const next = level.next(nowMs);
    assert.ok(next !== null);
    level.start(next, nowMs);
    order.push(next.request);
    running.push(next);
  }
  const among = order.slice(0, 60).filter((flow) => flow === 'trickle').length;
  assert.equal(among, 20, order.join(' '));
  const last = order.lastIndexOf('trickle');
  assert.ok(last < 62, `the trickle was done after ${last} requests`);
});

test('a queue is full where no seat is free, and longer where only the processor is short', () => {
  const level = new PriorityLevel<number>(
    config({ shape: { queues: 1, handSize: 1, lengthMax: 2 } }),
    0,
  );
  level.configure(config({ shape: { queues: 1, handSize: 1, lengthMax: 2 } }), 2, 10);
  const put = (): boolean => {
    const place = level.place(1n, 1);
    if (typeof place === 'string') return false;
    level.wait(place, new Ticket(0, 1, 1n, 0), 0);
    return true;
  };
  let placed = 0;
  while (put()) placed++;
  assert.equal(placed, 32);
  for (let index = 0; index < 2; index++) {
    const next = level.next(1);
    assert.ok(next !== null);
    level.start(next, 1);
  }
  assert.equal(level.fits(1), false);
  assert.equal(level.place(1n, 1), 'queue-full');
});

test('a request that is wider than its level runs alone', () => {
  const level = new PriorityLevel<number>(config(), 0);
  level.configure(config(), 3, 10);
  assert.equal(level.seats, 3);
  assert.ok(level.fits(5));
  level.start(new Ticket(0, 1, 0n, 0), 0);
  assert.ok(!level.fits(5));
  assert.ok(level.fits(2));
  assert.ok(!level.fits(3));
});

test('what waits is served in the order of its queue, and nothing is lost', () => {
  const step = fc.oneof(
    fc.record({ put: fc.bigInt({ min: 0n, max: 40n }), seats: fc.integer({ min: 1, max: 3 }) }),
    fc.constant('next' as const),
    fc.constant('finish' as const),
    fc.record({ drop: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queues = new FlowQueues<number>(SHAPE);
      const waiting: Ticket<number>[] = [];
      const running: Ticket<number>[] = [];
      let nowMs = 0;
      let count = 0;
      for (const one of steps) {
        nowMs++;
        queues.pass(nowMs, 10);
        if (one === 'next') {
          const ticket = queues.next();
          assert.equal(ticket === null, waiting.length === 0);
          if (ticket === null) continue;
          const older = waiting.find(({ queue }) => queue === ticket.queue);
          assert.equal(older, ticket);
          queues.start(ticket, nowMs);
          waiting.splice(waiting.indexOf(ticket), 1);
          running.push(ticket);
        } else if (one === 'finish') {
          const ticket = running.shift();
          if (ticket !== undefined) queues.finish(ticket, nowMs);
        } else if ('put' in one) {
          const ticket = new Ticket(count++, one.seats, one.put, nowMs);
          const queue = queues.choose(one.put);
          assert.ok(dealHand(one.put, 8, 2).includes(queue.index));
          queues.enqueue(queue, ticket);
          waiting.push(ticket);
        } else if (waiting.length > 0) {
          const [ticket] = waiting.splice(one.drop % waiting.length, 1);
          if (ticket !== undefined) queues.drop(ticket);
        }
        assert.equal(queues.waiting, waiting.length);
        const active = queues.active();
        assert.equal(
          active.reduce((sum, queue) => sum + queue.executing, 0),
          running.length,
        );
        assert.ok(active.every((queue) => queue.waiting + queue.executing > 0));
      }
    }),
  );
});

test('idle levels lend what they may, and get it back when they need it', () => {
  const levels = new Levels<number>(600, 0);
  const configs = [
    config({ name: 'busy', shares: 20, lendablePercent: 50 }),
    config({ name: 'idle', shares: 40, lendablePercent: 50 }),
  ];
  levels.configure(configs, 0);
  const [busy, idle] = [levels.find('busy'), levels.find('idle')];
  assert.ok(busy !== undefined && idle !== undefined);
  assert.deepEqual([busy.nominalSeats, idle.nominalSeats], [200, 400]);
  busy.demand.set(500, 0);
  for (let nowMs = 1000; nowMs <= 60_000; nowMs += 1000) levels.tick(nowMs);
  assert.equal(busy.seats, 400);
  assert.equal(idle.seats, 200);
  idle.demand.set(500, 60_000);
  for (let nowMs = 61_000; nowMs <= 120_000; nowMs += 1000) levels.tick(nowMs);
  assert.equal(idle.seats, 400);
  assert.equal(busy.seats, 200);
});

test('a level that no schema names any more goes when it is empty', () => {
  const levels = new Levels<number>(10, 0);
  levels.configure([config({ name: 'a' }), config({ name: 'b' })], 0);
  const b = levels.find('b');
  const ticket = new Ticket(0, 1, 0n, 0);
  b?.start(ticket, 0);
  levels.configure([config({ name: 'a' })], 1);
  assert.equal(levels.find('b')?.isQuiescing, true);
  b?.finish(ticket, 2);
  levels.tick(10_001);
  assert.equal(levels.find('b'), undefined);
});

test('demand is an average over time, and its memory fades', () => {
  const demand = new SeatDemand(0);
  demand.set(10, 5000);
  demand.close(10_000);
  assert.deepEqual([demand.average, demand.deviation, demand.highWatermark], [5, 5, 10]);
  assert.equal(demand.smoothed, 10);
  demand.set(0, 10_000);
  demand.close(20_000);
  assert.equal(demand.average, 0);
  assert.ok(Math.abs(demand.smoothed - 9.77) < 1e-9);
});

test('clients are sent away for longer while many are refused', () => {
  const retry = new RetryAfter();
  const seen: number[] = [];
  for (let second = 100; second < 140; second++) {
    for (let count = 0; count < 200; count++) retry.drop(second * 1000 + count);
    seen.push(retry.seconds);
  }
  assert.equal(seen[0], 1);
  assert.equal(seen[1], 2);
  assert.equal(seen.at(-1), 32);
  for (let second = 200; second < 240; second++) retry.drop(second * 1000);
  assert.ok(retry.seconds < 32);
});

test('a level is read with upstream’s limits on one request', () => {
  const level = new PriorityLevel<number>(
    readLevel({
      metadata: { name: 'workload-low', uid: 'x' },
      spec: {
        type: 'Limited',
        limited: {
          nominalConcurrencyShares: 100,
          lendablePercent: 90,
          limitResponse: {
            type: 'Queue',
            queuing: { queues: 128, handSize: 6, queueLengthLimit: 50 },
          },
        },
      },
    }),
    0,
  );
  level.configure(level.config, 600, 245);
  assert.equal(level.nominalSeats, 245);
  assert.equal(level.lowerSeats, 24);
  assert.equal(level.upperSeats, 845);
  assert.equal(level.seats, 135);
  assert.equal(level.seatsMax, 37);
  level.configure({ ...level.config, type: 'reject' }, 600, 245);
  assert.equal(level.seatsMax, Infinity, 'only queues limit what one request takes');
});
