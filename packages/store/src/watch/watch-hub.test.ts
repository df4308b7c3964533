import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OpenStore, openStore } from '../open/open.ts';
import type { Store } from '../mvcc/store.ts';

const WATCHES = 20;

function open(): OpenStore {
  return openStore({ dataDir: null, durability: 'none', prefixes: [] });
}

function put(store: Store, ...names: readonly string[]): void {
  store.begin();
  for (const name of names) {
    const key = Buffer.from(name);
    store.put(key, 0, key.length, key, 0, 0, 0);
  }
  store.commit();
}

function watch(store: Store, start: string, end: string, from: number): number {
  const both = Buffer.from(start + end);
  const to = start.length;
  return store.watch(both, 0, to, to, both.length, from, { onEvents: () => {} });
}

test('a watch of a key walks over its versions a few times, not once for each', async () => {
  const opened = open();
  const { store } = opened;
  const versions = 10_000;
  for (let i = 0; i < versions; i++) put(store, 'k');
  store.flush();
  let steps = 0;
  const previous = store.arenas.previous.bind(store.arenas);
  store.arenas.previous = (ref) => {
    steps++;
    return previous(ref);
  };
  const cursor = watch(store, 'k', '', 2);
  for (let revision = 2; revision < versions + 2; revision++) {
    const ref = store.watchNext(cursor);
    assert.equal(store.modRevision(ref), revision);
    // As who sends does, now and then.
    if (revision % 100 === 0) {
      store.watchPutBack(cursor);
      assert.equal(store.watchNext(cursor), ref);
    }
  }
  assert.equal(store.watchNext(cursor), 0);
  assert(store.watchIsCurrent(cursor));
  assert(steps < versions * 50, `${steps} steps`);
  await opened.close();
});

for (const isDisturbed of [false, true]) {
  const how = isDisturbed ? ', though something else is written meanwhile' : '';
  test(`history is put off between revisions, never inside one that was begun${how}`, () =>
    readsWholeRevisions(isDisturbed));
}

async function readsWholeRevisions(isDisturbed: boolean): Promise<void> {
  const opened = open();
  const { store } = opened;
  const others = Array.from({ length: 10_000 }, (_, i) => `x${i}`);
  put(store, 'a1', ...others, 'a2');
  for (const one of others) put(store, one);
  put(store, 'a3');
  store.flush();
  const cursor = watch(store, 'a', 'b', 2);
  const seen: string[] = [];
  let pauses = 0;
  for (let revision = 0; seen.length < 3;) {
    const ref = store.watchNext(cursor);
    if (ref === 0) {
      pauses++;
      assert.notEqual(seen.length, 1, `put off inside revision ${revision}`);
      continue;
    }
    revision = store.modRevision(ref);
    seen.push(store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref)));
    if (!isDisturbed) continue;
    put(store, 'z');
    store.flush();
  }
  assert.deepEqual(seen, ['a1', 'a2', 'a3']);
  assert(pauses > 0);
  await opened.close();
}

test('watches resumed at once read history in turns, without a write to wake them', async () => {
  const opened = open();
  const { store } = opened;
  for (let i = 0; i < 100_000; i++) put(store, `x${i % 10}`);
  put(store, 'a1');
  store.flush();
  let turn = 0;
  let told = 0;
  const turns = new Map<number, number>();
  for (let i = 0; i < WATCHES; i++) {
    const both = Buffer.from('ab');
    const cursor: number = store.watch(both, 0, 1, 1, 2, 2, {
      onEvents: () => {
        turns.set(turn, (turns.get(turn) ?? 0) + 1);
        while (store.watchNext(cursor) !== 0) told++;
      },
    });
  }
  // Each look takes 4096 events of the 100,000, four of them make a turn: 125 turns for all, or a
  // few less where the hub had two between two of ours. All watches in each turn would take 25.
  for (; told < WATCHES && turn < 10_000; turn++)
    await new Promise((resolve) => setImmediate(resolve));
  assert.equal(told, WATCHES);
  assert(turns.size > 60, `${[...turns.values()].join(' ')} watches in a turn`);
  await opened.close();
});
