import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as supervision from './supervision.ts';
import type { ChildEvent, ChildState } from './supervision.ts';

function play(script: readonly (readonly [number, ChildEvent])[]): string[] {
  let state: ChildState = { kind: 'stopped' };
  const transcript: string[] = [];
  for (const [nowMs, event] of script) {
    const next = supervision.step(state, event, nowMs);
    state = next.state;
    const effects = next.effects.map((effect) => {
      if (effect.kind === 'wakeAt') return `wakeAt ${effect.timeMs}`;
      return effect.kind === 'signal' ? effect.signal : effect.kind;
    });
    transcript.push([`${event.kind} -> ${state.kind}`, ...effects].join(', '));
  }
  return transcript;
}

test('a child that dies after it was ready is started again, each time a little later', () => {
  assert.deepEqual(
    play([
      [0, { kind: 'start' }],
      [300, { kind: 'ready' }],
      [1000, { kind: 'exited', exit: 'signal SIGKILL' }],
      [1199, { kind: 'tick' }],
      [1200, { kind: 'tick' }],
      [1300, { kind: 'exited', exit: 'code 1' }],
      [1700, { kind: 'tick' }],
      [1800, { kind: 'ready' }],
      [1800 + supervision.STEADY_MS, { kind: 'exited', exit: 'code 1' }],
    ]),
    [
      'start -> starting, spawn',
      'ready -> ready',
      'exited -> backingOff, report, wakeAt 1200',
      'tick -> backingOff',
      'tick -> starting, spawn',
      'exited -> backingOff, report, wakeAt 1700',
      'tick -> starting, spawn',
      'ready -> ready, report',
      'exited -> backingOff, report, wakeAt 62000',
    ],
  );
});

test('a child that dies before it was ever ready has failed', () => {
  assert.deepEqual(
    play([
      [0, { kind: 'start' }],
      [50, { kind: 'exited', exit: 'code 1' }],
      [99, { kind: 'tick' }],
    ]),
    ['start -> starting, spawn', 'exited -> failed', 'tick -> failed'],
  );
});

test('a child that does not stop when asked is killed after the grace', () => {
  assert.deepEqual(
    play([
      [0, { kind: 'start' }],
      [10, { kind: 'ready' }],
      [20, { kind: 'stop' }],
      [30, { kind: 'stop' }],
      [20 + supervision.STOP_GRACE_MS, { kind: 'tick' }],
      [21 + supervision.STOP_GRACE_MS, { kind: 'exited', exit: 'signal SIGKILL' }],
    ]),
    [
      'start -> starting, spawn',
      'ready -> ready',
      `stop -> stopping, SIGTERM, wakeAt ${20 + supervision.STOP_GRACE_MS}`,
      'stop -> stopping',
      'tick -> stopping, SIGKILL',
      'exited -> stopped',
    ],
  );
});

test('whatever happens, never two processes at once, and none after a stop', () => {
  const event = fc.constantFrom<ChildEvent>(
    { kind: 'start' },
    { kind: 'ready' },
    { kind: 'exited', exit: 'code 1' },
    { kind: 'tick' },
    { kind: 'stop' },
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 90_000 }), event)), (script) => {
      let state: ChildState = { kind: 'stopped' };
      let nowMs = 0;
      let alive = 0;
      let hasStopped = false;
      for (const [pauseMs, happened] of script) {
        if (happened.kind === 'exited' && alive === 0) continue;
        if (happened.kind === 'start' && hasStopped) continue;
        nowMs += pauseMs;
        if (happened.kind === 'exited') alive--;
        if (happened.kind === 'stop') hasStopped = true;
        const next = supervision.step(state, happened, nowMs);
        state = next.state;
        for (const effect of next.effects) if (effect.kind === 'spawn') alive++;
        assert(alive === 0 || alive === 1);
        assert(!(hasStopped && next.effects.some((effect) => effect.kind === 'spawn')));
      }
    }),
  );
});
