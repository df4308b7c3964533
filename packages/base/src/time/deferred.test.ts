import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { assertWhole, BrokenInvariant } from '../assert.ts';
import * as deferred from './deferred.ts';

const FAULT = new Error('planted');

function fail(): never {
  throw FAULT;
}

/** Runs `work` for an owner; what was told meanwhile, and what the owner heard. */
async function heard(work: () => void): Promise<{ told: unknown[]; broke: unknown[] }> {
  const told: unknown[] = [];
  const broke: unknown[] = [];
  deferred.tellErrors((error) => told.push(error));
  deferred.actFor({ broke: (error) => broke.push(error) }, work);
  await deferred.pauseMs(5);
  await deferred.turnOver();
  return { told, broke };
}

test('an error in a later turn is told, to whom the work was done for too', async () => {
  const emitter = new EventEmitter();
  const ways = [
    () => deferred.afterMs(1, fail),
    () => deferred.nextTurn(deferred.guarded(fail)),
    () => deferred.unawaited(Promise.reject(FAULT)),
    () => {
      emitter.once('event', deferred.guarded(fail));
      setImmediate(() => emitter.emit('event'));
    },
    fail,
  ];
  for (const way of ways) {
    assert.deepEqual(await heard(() => way()), { told: [FAULT], broke: [FAULT] });
  }
});

test('what is done for all belongs to nobody, whose turn it ever was', async () => {
  let timer: NodeJS.Timeout | undefined;
  const ways = [
    () => deferred.nextTurn(fail),
    () => deferred.endOfTurn(fail),
    () => deferred.nextTurn(deferred.guarded(deferred.unowned(fail))),
    () => {
      timer = deferred.everyMs(2, () => {
        clearInterval(timer);
        fail();
      });
    },
  ];
  for (const way of ways) {
    assert.deepEqual(await heard(() => way()), { told: [FAULT], broke: [] });
  }
});

test('what an owner puts off in a later turn is still its own, and nothing else is', async () => {
  const { broke } = await heard(() => {
    deferred.afterMs(0, () => void deferred.afterMs(0, fail));
  });
  // a later turn of a later turn: on a busy machine that is after any pause
  for (let tries = 0; broke.length === 0 && tries < 1000; tries++) await deferred.pauseMs(1);
  assert.deepEqual(broke, [FAULT]);
  const other = await heard(() => {});
  deferred.nextTurn(fail);
  await deferred.turnOver();
  assert.deepEqual(other.broke, []);
});

test('an owner that breaks too ends nothing', async () => {
  const told: unknown[] = [];
  deferred.tellErrors((error) => told.push(error));
  const second = new Error('second');
  deferred.actFor(
    {
      broke: () => {
        throw second;
      },
    },
    fail,
  );
  assert.deepEqual(told, [FAULT, second]);
});

test('a listener keeps its object and its arguments', async () => {
  const emitter = new EventEmitter();
  const seen: unknown[] = [];
  emitter.on(
    'event',
    deferred.guarded(function (this: unknown, ...args: unknown[]) {
      seen.push(this === emitter, ...args);
    }),
  );
  emitter.emit('event', 1, 'two');
  assert.deepEqual(seen, [true, 1, 'two']);
  const late = once(emitter, 'late');
  deferred.endOfTurn(() => void emitter.emit('late'));
  await late;
});

test('a broken invariant of the store is caught by nothing', () => {
  const broken = (): void => assertWhole(false, 'a record is where its row says');
  assert.throws(() => deferred.actFor(null, broken), BrokenInvariant);
  assert.throws(deferred.guarded(broken), BrokenInvariant);
});
