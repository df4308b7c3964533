/** What somebody reads over several turns stays, and nothing stays for longer than that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { FAILURE, type Page } from '../contract.ts';
import { Store } from '../mvcc/store.ts';

const BUDGET_BYTES = 20_000;
const VALUE_BYTES = 100;
const KEYS = 200;
const RANGE = Buffer.from('/a//a0');
const PREFIX_BYTES = 3;

function open(memoryBytesMax?: number): Store {
  const prefixes = [{ prefix: '/a/', historyBytesMax: BUDGET_BYTES }];
  const memory = memoryBytesMax === undefined ? {} : { memoryBytesMax };
  return new Store({ dataDir: null, durability: 'none', prefixes, ...memory }, 1);
}

function put(store: Store, key: string, text: string): void {
  const bytes = Buffer.from(key + text.padEnd(VALUE_BYTES, '.'));
  const revision = store.putIf(bytes, 0, key.length, -1, bytes, key.length, bytes.length, 0);
  assert(revision > 0, `${revision}`);
}

/** The state of the range at a revision; null where it is no longer known. */
function stateAt(store: Store, revision: number): Map<string, string> | null {
  const page: Page = { refs: new Uint32Array(KEYS), length: 0, count: 0, more: false };
  const found = new Map<string, string>();
  const end = RANGE.length;
  const outcome = store.range(RANGE, 0, PREFIX_BYTES, PREFIX_BYTES, end, revision, 0, page);
  if (outcome === FAILURE.compacted) return null;
  assert(outcome >= 0, `${outcome}`);
  for (const ref of page.refs.slice(0, page.length)) {
    const key = store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref));
    const value = store.record(ref).latin1Slice(store.valueAt(ref), store.valueTo(ref));
    found.set(key, value.replaceAll('.', ''));
  }
  return found;
}

function hold(store: Store, revision: number): () => void {
  return store.holdHistory(RANGE, 0, PREFIX_BYTES, PREFIX_BYTES, RANGE.length, revision);
}

/** Lets the store cut and sweep all it may. */
function settle(store: Store): void {
  store.flush();
  for (let turn = 0; store.sweep.hasWork && turn < 10_000; turn++) store.tick(turn);
  assert(!store.sweep.hasWork, 'the sweep comes to an end, whatever is held');
}

test('whatever is held can be read, and what nobody holds is cut to its budget', () => {
  const random = new Random(5);
  const store = open();
  const state = new Map<string, string>();
  const held: { revision: number; state: Map<string, string>; release: () => void }[] = [];
  for (let step = 0; step < 1500; step++) {
    const key = `/a/${random.below(KEYS)}`;
    if (random.below(4) > 0) {
      put(store, key, `v${step}`);
      state.set(key, `v${step}`);
    } else {
      const bytes = Buffer.from(key);
      store.deleteIf(bytes, 0, bytes.length, -1);
      state.delete(key);
    }
    if (random.below(40) === 0) {
      const revision = store.appliedRevision;
      held.push({ revision, state: new Map(state), release: hold(store, revision) });
    }
    if (random.below(30) === 0) settle(store);
    if (held.length > 0 && random.below(45) === 0) {
      const [one] = held.splice(random.below(held.length), 1);
      assert(one !== undefined);
      assert.deepEqual(stateAt(store, one.revision), one.state);
      one.release();
      // a second call is harmless
      one.release();
    }
  }
  assert(store.heldRevision < Infinity, 'some are held at the end');
  for (const { revision, state: then, release } of held) {
    assert.deepEqual(stateAt(store, revision), then);
    release();
  }
  settle(store);
  assert.equal(store.heldRevision, Infinity);
  const klass = store.classes.all[1];
  assert(klass !== undefined && klass.historyBytes <= BUDGET_BYTES, `${klass?.historyBytes}`);
});

test('a compaction ends what is held', () => {
  const store = open();
  put(store, '/a/1', 'one');
  const release = hold(store, store.appliedRevision);
  const then = store.appliedRevision;
  put(store, '/a/1', 'two');
  store.flush();
  store.compact(store.publishedRevision);
  assert.equal(stateAt(store, then), null);
  release();
  settle(store);
});

test('where memory is short, nothing is held', () => {
  const store = open(64 * 1024 * 1024);
  put(store, '/a/1', 'one');
  const then = store.appliedRevision;
  hold(store, then);
  const value = 'x'.repeat(100_000);
  let full = 0;
  for (let n = 0; n < 900; n++) {
    const bytes = Buffer.from(`/a/${n % 10}${value}`);
    if (store.putIf(bytes, 0, 4, -1, bytes, 4, bytes.length, 0) === FAILURE.noSpace) full++;
    if (n % 20 === 0) settle(store);
  }
  assert.equal(full, 0, 'no write is refused for what somebody reads');
  assert.equal(stateAt(store, then), null);
});
