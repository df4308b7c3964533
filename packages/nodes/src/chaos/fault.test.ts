import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { covers, isUp, readFaults, takes, turnMs, type Fault } from './fault.ts';

const FAULT: Fault = {
  id: 'f1',
  kind: 'flap',
  selector: '',
  names: [],
  percent: 100,
  untilMs: 0,
  periodMs: 60_000,
};
const nodes = Array.from({ length: 20_000 }, (_, index) => `node-${index}`);

test('a percentage takes about so many nodes, others for each fault, and more for more', () => {
  for (const percent of [0.5, 1, 10, 50]) {
    const taken = nodes.filter((name) => takes({ ...FAULT, percent }, name));
    const wanted = (nodes.length * percent) / 100;
    assert(Math.abs(taken.length - wanted) < 4 * Math.sqrt(wanted) + 1, `${percent} %`);
    assert(taken.every((name) => takes({ ...FAULT, percent: percent * 2 }, name)));
    const others = taken.filter((name) => takes({ ...FAULT, id: 'f2', percent }, name));
    assert(others.length < taken.length * 0.75);
  }
  assert(nodes.every((name) => takes(FAULT, name)));
});

test('selectors and names say which nodes are meant', () => {
  const zone = { ...FAULT, selector: 'zone in (a, b),!spare' };
  assert(covers(zone, 'n', { zone: 'a' }));
  assert(!covers(zone, 'n', { zone: 'a', spare: '' }));
  assert(!covers(zone, 'n', {}));
  assert(covers({ ...FAULT, names: ['n'] }, 'n', {}));
  assert(!covers({ ...FAULT, names: ['n'] }, 'm', {}));
});

test('a flapping node turns over when it said it would, and not before', () => {
  const times = fc.record({
    nowMs: fc.integer({ min: 1e12, max: 2e12 }),
    periodMs: fc.integer({ min: 1000, max: 3_600_000 }).map((half) => half * 2),
    name: fc.constantFrom(...nodes.slice(0, 100)),
  });
  fc.assert(
    fc.property(times, ({ nowMs, periodMs, name }) => {
      const fault = { ...FAULT, periodMs };
      const before = isUp(fault, name, nowMs);
      const restMs = turnMs(fault, name, nowMs);
      assert(restMs > 0 && restMs <= periodMs / 2);
      assert.equal(isUp(fault, name, nowMs + restMs - 1), before);
      assert.equal(isUp(fault, name, nowMs + restMs), !before);
    }),
  );
});

test('a list that is none, or names a kind that is none, is told', () => {
  const read = (faults: string): unknown => readFaults({ data: { faults } });
  assert.deepEqual(readFaults({}), []);
  assert.deepEqual(read(JSON.stringify([FAULT])), [FAULT]);
  assert.throws(() => read('{}'), /is no list/);
  assert.throws(() => read('[{"id":"f1","kind":"burn"}]'), /is no fault/);
  assert.throws(() => read('[{"id":"f1","kind":"down","selector":"a in"}]'), /f1: /);
  assert.throws(() => read('[1]'), /1 is no fault/);
});
