import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { objectAt } from '@megaplane/machinery/json';
import { FakeLeases } from '../../test/fake-leases.ts';
import { FakeTimers } from '../../test/fake-timers.ts';
import type { Timers } from '../rest/client.ts';
import { createLeaderElection, type LeaderElection } from './leader-election.ts';

interface Runner {
  readonly election: LeaderElection;
  readonly lines: string[];
  isCut: boolean;
  /** By how much its clock was set forward. */
  aheadMs: number;
}

class World {
  readonly timers = new FakeTimers();
  readonly leases = new FakeLeases(this.timers);
  readonly runners: Runner[] = [];
  readonly log: string[] = [];

  run(identity: string): Runner {
    const lines: string[] = [];
    const say = (line: string): void => {
      lines.push(line);
      this.log.push(`${identity} ${line}`);
    };
    const timers: Timers = {
      nowMs: () => this.timers.nowMs() + runner.aheadMs,
      wallMs: () => this.timers.wallMs() + runner.aheadMs,
      after: (delayMs, fire) => this.timers.after(delayMs, fire),
    };
    const election = createLeaderElection({
      client: { ...this.leases.client(() => runner.isCut), timers },
      namespace: 'kube-system',
      name: 'lock',
      identity,
      onStartedLeading: () => say('starts'),
      onStoppedLeading: () => say('stops'),
      onNewLeader: (leader) => say(`sees ${leader}`),
      onTrouble: (message) => say(`trouble: ${message}`),
    });
    const runner: Runner = { election, lines, isCut: false, aheadMs: 0 };
    this.runners.push(runner);
    election.start();
    return runner;
  }

  /** Moves time in small steps and lets all promises run between them. */
  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 500) {
      await nextTurn();
      this.timers.advance(500);
      const leaders = this.runners.filter(({ election }) => election.isLeader);
      assert.ok(leaders.length <= 1, 'two leaders at once');
    }
    await nextTurn();
  }
}

test('the first candidate leads and renews, the second waits', async () => {
  const world = new World();
  const first = world.run('one');
  await world.pass(1000);
  const second = world.run('two');
  await world.pass(30_000);
  assert.deepEqual(first.lines, ['sees one', 'starts']);
  assert.deepEqual(second.lines, ['sees one']);
  assert.equal(second.election.leader, 'one');
  assert.ok(world.leases.writes >= 14 && world.leases.writes <= 17, `${world.leases.writes}`);
  const { renewTime, ...spec } = objectAt(world.leases.lease ?? undefined, 'spec') ?? {};
  assert.match(`${renewTime as string}`, /^1970-01-01T00:17:\d\d\.\d{3}000Z$/);
  assert.deepEqual(spec, {
    holderIdentity: 'one',
    leaseDurationSeconds: 15,
    acquireTime: '1970-01-01T00:16:40.000000Z',
    leaseTransitions: 0,
  });
});

test('a holder that is cut off stops before another one starts', async () => {
  const world = new World();
  const first = world.run('one');
  await world.pass(1000);
  const second = world.run('two');
  await world.pass(5000);
  first.isCut = true;
  await world.pass(60_000);
  assert.equal(world.leases.holder, 'two');
  assert.equal(world.leases.transitions, 1);
  const stops = world.log.indexOf('one stops');
  const starts = world.log.indexOf('two starts');
  assert.ok(stops >= 0 && stops < starts, world.log.join('\n'));
  assert.ok(first.lines.some((line) => line.includes('could not renew the lease for 10000 ms')));
  first.isCut = false;
  await world.pass(60_000);
  assert.equal(first.lines.at(-1), 'sees two');
  assert.equal(second.election.isLeader, true);
});

test('a holder that slept past its deadline leads no more, before any timer fires', async () => {
  const world = new World();
  const first = world.run('one');
  await world.pass(5000);
  assert.equal(first.election.isLeader, true);
  world.timers.sleep(11_000);
  assert.equal(first.election.isLeader, false);
  assert.deepEqual(first.lines, ['sees one', 'starts']);
  await world.pass(500);
  assert.equal(first.lines[2], 'trouble: could not renew the lease for 10000 ms');
  assert.equal(first.lines[3], 'stops');
});

test('a candidate whose clock is set forward takes over no sooner', async () => {
  const world = new World();
  const first = world.run('one');
  await world.pass(5000);
  const second = world.run('two');
  await world.pass(5000);
  // The holder cannot renew just now, and may lead until its deadline.
  first.isCut = true;
  await world.pass(4500);
  second.aheadMs = 3_600_000;
  await world.pass(4500);
  assert.equal(world.leases.holder, 'one');
  assert.equal(second.election.isLeader, false);
  first.isCut = false;
  await world.pass(5000);
  assert.equal(world.leases.holder, 'one');
});

test('a lease that is given back is taken at once', async () => {
  const world = new World();
  const first = world.run('one');
  await world.pass(1000);
  const second = world.run('two');
  await world.pass(5000);
  await first.election.stop();
  await first.election.stop();
  assert.equal(world.leases.holder, '');
  await world.pass(5000);
  assert.equal(second.election.isLeader, true);
  assert.deepEqual(first.lines, ['sees one', 'starts', 'stops']);
});

test('a lease that somebody else takes by force ends the leadership', async () => {
  const world = new World();
  const first = world.run('one');
  await world.pass(1000);
  const lease = world.leases.lease;
  assert.ok(lease);
  world.leases.version++;
  world.leases.lease = {
    metadata: { resourceVersion: `${world.leases.version}` },
    spec: { holderIdentity: 'thief', leaseDurationSeconds: 60 },
  };
  await world.pass(5000);
  assert.deepEqual(first.lines.slice(2), ['sees thief', 'stops']);
});

test('there is never more than one leader, and in the end there is one', async () => {
  const schedule = fc.array(fc.tuple(fc.nat(2), fc.boolean(), fc.integer({ min: 1, max: 40 })), {
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(schedule, async (steps) => {
      const world = new World();
      for (const identity of ['one', 'two', 'three']) world.run(identity);
      for (const [index, isCut, halfSeconds] of steps) {
        const runner = world.runners[index];
        if (runner !== undefined) runner.isCut = isCut;
        await world.pass(500 * halfSeconds);
      }
      for (const runner of world.runners) runner.isCut = false;
      await world.pass(40_000);
      const leaders = world.runners.filter(({ election }) => election.isLeader);
      assert.equal(leaders.length, 1);
    }),
    { numRuns: 30 },
  );
});
