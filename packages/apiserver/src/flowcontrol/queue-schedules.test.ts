import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ticket } from './flow-queues.ts';
import { PriorityLevel } from './priority-level.ts';
import { SCHEDULES } from './queue-schedules.sim.ts';

/** What upstream's hashes were, for each number of a flow. */
const HASH_STEP = 104_729n;

interface Schedule {
  /** Queues, cards, length, seats. */
  readonly set: readonly number[];
  readonly steps: readonly string[];
  readonly answers: readonly string[];
}

function readSchedules(): Schedule[] {
  const words = (lines: readonly string[], start: string): string[] =>
    lines.flatMap((line) => (line.startsWith(start) ? line.slice(start.length).split(' ') : []));
  return SCHEDULES.trim()
    .split(/^set /m)
    .slice(1)
    .map((text) => {
      const [set = '', ...lines] = text.trimEnd().split('\n');
      return {
        set: set.split(' ').map(Number),
        steps: words(lines, 'do '),
        answers: words(lines, '  '),
      };
    });
}

class Player {
  readonly answers: string[] = [];
  readonly #level: PriorityLevel<number>;
  #waiting: Ticket<number>[] = [];
  readonly #running: Ticket<number>[] = [];
  #count = 0;

  constructor([queues = 0, handSize = 0, lengthMax = 0, seats = 0]: readonly number[]) {
    const shape = { queues, handSize, lengthMax };
    const limits = { shares: 1, lendablePercent: 0, borrowingPercent: null };
    this.#level = new PriorityLevel({ name: 'x', uid: '', type: 'queue', shape, ...limits }, 0);
    this.#level.seats = seats;
  }

  play(step: string): void {
    const [, at = '', kind = '', rest = ''] = /^([\d.]+)([-+x=?])(.*)$/.exec(step) ?? [];
    const nowMs = Number(at);
    const level = this.#level;
    level.queues.pass(nowMs, level.seats);
    if (kind === '+') this.#arrive(nowMs, rest.split('*').map(Number));
    if (kind === '-') this.#finish(nowMs, Number(rest));
    if (kind === 'x') this.#giveUp(nowMs, Number(rest));
    if (kind === '=') level.seats = Number(rest);
    if (kind === '?') this.#tell(nowMs);
    if (kind !== 'x') this.#dispatch(nowMs);
    const started = this.#waiting.filter((ticket) => ticket.startedMs >= 0);
    this.#waiting = this.#waiting.filter((ticket) => ticket.startedMs < 0);
    for (const ticket of started) {
      this.#running.push(ticket);
      this.answers.push(`${ticket.request}@${ticket.queue?.index}`);
    }
  }

  #arrive(nowMs: number, [flow = 0, seats = 0]: readonly number[]): void {
    const ticket = new Ticket(this.#count++, seats, BigInt(flow) * HASH_STEP, nowMs);
    const place = this.#level.place(ticket.hash, seats);
    if (typeof place === 'string') {
      this.answers.push(`no${ticket.request}`);
      return;
    }
    this.#level.wait(place, ticket, nowMs);
    this.#waiting.push(ticket);
  }

  #finish(nowMs: number, pick: number): void {
    const [ticket] = this.#running.splice(pick % this.#running.length, 1);
    if (ticket !== undefined) this.#level.finish(ticket, nowMs);
  }

  #giveUp(nowMs: number, pick: number): void {
    const [ticket] = this.#waiting.splice(pick % this.#waiting.length, 1);
    if (ticket !== undefined) this.#level.drop(ticket, nowMs);
  }

  #dispatch(nowMs: number): void {
    const level = this.#level;
    while (level.waiting > 0) {
      const ticket = level.next(nowMs);
      if (ticket === null || !level.fits(ticket.seats)) return;
      level.start(ticket, nowMs);
    }
  }

  #tell(nowMs: number): void {
    const { demand, queues } = this.#level;
    demand.close(nowMs);
    const figures = [demand.average, demand.deviation, demand.highWatermark, queues.meter / 1000];
    this.answers.push(figures.map((one) => String(Math.round(one * 1000) / 1000)).join('/'));
  }
}

test('queues decide as upstream’s did, request for request', () => {
  const schedules = readSchedules();
  assert.equal(schedules.length, 40);
  for (const [index, { set, steps, answers }] of schedules.entries()) {
    const player = new Player(set);
    for (const step of steps) player.play(step);
    assert.deepEqual(player.answers, answers, `schedule ${index}`);
  }
});
