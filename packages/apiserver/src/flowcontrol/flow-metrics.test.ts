import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FlowSeries, printFlows, RequestKinds } from './flow-metrics.ts';
import { Ticket } from './flow-queues.ts';
import { Levels } from './levels.ts';
import type { LevelConfig } from './priority-level.ts';
import { TimedRatio } from './timed-ratio.ts';

test('a quantity is counted for as long as it was what it was', () => {
  const ratio = new TimedRatio([0, 0.5, 1], 1000);
  ratio.limitTo(4, 1000);
  ratio.set(2, 1010);
  ratio.add(2, 1030);
  ratio.limitTo(2, 1040);
  const lines: string[] = [];
  ratio.print(lines, 'name', 'a="b"', 1041);
  assert.deepEqual(lines, [
    'name_bucket{a="b",le="0"} 10000000',
    'name_bucket{a="b",le="0.5"} 30000000',
    'name_bucket{a="b",le="1"} 40000000',
    'name_bucket{a="b",le="+Inf"} 41000000',
    'name_sum{a="b"} 22000000',
    'name_count{a="b"} 41000000',
  ]);
});

const CONFIG: LevelConfig = {
  name: 'level',
  uid: 'u',
  type: 'queue',
  shares: 10,
  lendablePercent: 0,
  borrowingPercent: 0,
  shape: { queues: 2, handSize: 1, lengthMax: 5 },
};

test('levels are told with upstream’s names, and only what has happened', () => {
  const levels = new Levels<string>(10, 0);
  levels.configure([CONFIG], 0);
  const series = [new FlowSeries('level', 'one'), new FlowSeries('level', 'two')];
  const shown = (nowMs: number): Map<string, string> => {
    const lines: string[] = [];
    printFlows(lines, series, levels, new RequestKinds(nowMs), nowMs);
    const values = lines.filter((line) => !line.startsWith('#')).map((line) => line.split(' '));
    return new Map(values.map(([name = '', value = '']) => [name, value]));
  };
  const at = (name: string): string => `apiserver_flowcontrol_${name}`;
  const before = shown(10);
  assert.equal(before.get(at('nominal_limit_seats{priority_level="level"}')), '10');
  assert.equal(before.get(at('current_r{priority_level="level"}')), '0');
  const names = [...before.keys()].join('\n');
  assert.doesNotMatch(names, /flow_schema|dispatch_r|latest_s|next_/);

  const level = levels.find('level');
  assert.ok(level !== undefined);
  for (const name of ['a', 'b', 'c', 'd']) {
    const place = level.place(1n, 1);
    assert.ok(typeof place === 'object');
    level.wait(place, new Ticket(name, 5, 1n, 10), 10);
  }
  const next = level.next(20);
  assert.ok(next !== null);
  level.start(next, 20);
  const after = shown(30);
  const waiting = 'priority_level_request_utilization_sum{phase="waiting",priority_level="level"}';
  // four of ten places for 10 ms, three for 10 ms more
  assert.equal(after.get(at(waiting)), '7000000');
  const seats = 'priority_level_seat_utilization_sum{phase="executing",priority_level="level"}';
  assert.equal(after.get(at(seats)), '5000000');
  assert.equal(after.get(at('dispatch_r{priority_level="level"}')), '0.1');
  assert.equal(after.get(at('latest_s{priority_level="level"}')), '0');
  assert.equal(after.get(at('next_s_bounds{bound="min",priority_level="level"}')), '0.015');
  assert.equal(after.get(at('next_discounted_s_bounds{bound="max",priority_level="level"}')), '0');
});

test('a level whose queues have emptied within a turn wants nothing more', () => {
  const levels = new Levels<string>(10, 0);
  levels.configure([CONFIG], 0);
  const level = levels.find('level');
  assert.ok(level !== undefined);
  const place = level.place(1n, 1);
  assert.ok(typeof place === 'object');
  level.wait(place, new Ticket('a', 1, 1n, 10), 10);
  const next = level.next(20);
  assert.ok(next !== null);
  level.start(next, 20);
  level.finish(next, 20);
  for (const nowMs of [10_000, 20_000]) levels.tick(nowMs);
  assert.equal(level.demand.highWatermark, 0);
  assert.equal(level.demand.average, 0);
});
