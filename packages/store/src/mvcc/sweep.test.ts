import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { ARENA_BYTES } from '../record/arenas.ts';
import { Store } from './store.ts';

const KEYS = 20_000;
const VALUE_BYTES = 200;

test('an arena is emptied in slices between which its records are replaced and deleted', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 3);
  const random = new Random(17);
  const expected = new Map<string, string>();
  const put = (key: string): void => {
    const value = String(store.appliedRevision).padEnd(VALUE_BYTES, '.');
    const bytes = Buffer.from(key + value);
    store.putIf(bytes, 0, key.length, -1, bytes, key.length, bytes.length, 0);
    expected.set(key, value);
  };
  const any = (): string => `key-${random.below(KEYS)}`;
  for (let n = 0; n < KEYS; n++) put(`key-${n}`);
  for (let n = 0; n < KEYS; n++) if (n % 3 > 0) put(`key-${n}`);
  store.flush();
  store.compact(store.publishedRevision);
  const before = store.arenas.usedBytes;
  let slices = 0;
  for (; store.sweep.hasWork || slices < 100; slices++) {
    store.tick(slices);
    if (slices > 100) continue;
    for (let n = 0; n < 50; n++) put(any());
    const gone = Buffer.from(any());
    store.deleteIf(gone, 0, gone.length, -1);
    expected.delete(gone.toString());
    store.flush();
    if (slices % 7 === 0) store.compact(store.publishedRevision);
  }
  assert(slices > 30, `${slices} slices are too few for records to change between them`);
  assert(store.arenas.usedBytes < before, 'memory was given back');
  assert.equal(store.live.size, expected.size);
  for (const [key, value] of expected) {
    const bytes = Buffer.from(key);
    const ref = store.get(bytes, 0, bytes.length);
    const at = store.arenas.valueAt(ref);
    assert.equal(store.arenas.buffer(ref).latin1Slice(at, at + VALUE_BYTES), value, key);
  }
});

test('under a budget, survivors that stay are moved after a while, and not before', () => {
  const prefixes = [{ prefix: 'key-', historyBytesMax: 1024 }];
  const store = new Store({ dataDir: null, durability: 'none', prefixes }, 3);
  const put = (n: number): void => {
    const bytes = Buffer.from(`key-${n}`.padEnd(VALUE_BYTES, '.'));
    const keyEnd = bytes.indexOf('.');
    store.putIf(bytes, 0, keyEnd, -1, bytes, keyEnd, bytes.length, 0);
  };
  // Arenas fill, then two of three records in each of them are replaced.
  for (let n = 0; n < 3 * KEYS; n++) put(n);
  for (let n = 0; n < 3 * KEYS; n++) if (n % 3 > 0) put(n);
  store.flush();
  let nowMs = 0;
  const sweep = (): number => {
    for (let slices = 0; store.sweep.hasWork || slices < 100; slices++) store.tick(nowMs);
    return store.arenas.usedBytes / store.arenas.liveBytes;
  };
  nowMs = 1000;
  const early = sweep();
  assert(early > 1.4, `used is ${early} times what is alive: moved too early`);
  nowMs = 25_000;
  const soon = sweep();
  assert(soon > 1.3, `used is ${soon} times what is alive: all moved at once`);
  for (; nowMs < 200_000; nowMs += 1000) sweep();
  const late = sweep();
  assert(late < 1.2, `used is ${late} times what is alive: not moved`);
});

test('survivors that stay are moved though others come and go all the time', () => {
  const prefixes = [
    { prefix: 'key-', historyBytesMax: 1024 },
    { prefix: 'lease-', historyBytesMax: 1024 },
  ];
  const store = new Store({ dataDir: null, durability: 'none', prefixes }, 3);
  const put = (key: string, size: number): void => {
    const bytes = Buffer.from(key.padEnd(size, '.'));
    store.putIf(bytes, 0, key.length, -1, bytes, key.length, bytes.length, 0);
  };
  for (let n = 0; n < 3 * KEYS; n++) put(`key-${n}`, VALUE_BYTES);
  for (let n = 0; n < 3 * KEYS; n++) if (n % 3 > 0) put(`key-${n}`, VALUE_BYTES);
  const random = new Random(5);
  let before = 0;
  for (let nowMs = 0; nowMs < 200_000; nowMs += 500) {
    // Arenas of leases are emptied at 80 % each half a second, one in eight of them stays longer.
    for (let n = 0; n < 100; n++) put(`lease-${random.below(700)}`, 30_000);
    store.flush();
    for (let slices = 0; store.sweep.hasWork || slices < 10; slices++) store.tick(nowMs);
    if (nowMs === 15_000) before = store.arenas.usedBytes;
  }
  const gone = before - store.arenas.usedBytes;
  assert(gone > 6 * 1024 * 1024, `${gone} of ${before} bytes were given back`);
});

test('what became garbage in an arena before it was full is given back after', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 3);
  const put = (key: string): void => {
    const bytes = Buffer.from(key.padEnd(VALUE_BYTES, '.'));
    store.putIf(bytes, 0, key.length, -1, bytes, key.length, bytes.length, 0);
  };
  let nowMs = 0;
  const ROUNDS = 12;
  for (let round = 0; round < ROUNDS; round++) {
    // Three quarters of an arena die while it is open; what fills it up is never touched again.
    const before = store.arenas.usedBytes;
    for (let n = 0; store.arenas.usedBytes - before < 0.75 * ARENA_BYTES; n++) put(`hot-${round}`);
    store.flush();
    store.compact(store.publishedRevision);
    for (let n = 0; n < 50; n++) store.tick(nowMs++);
    for (let n = 0; n < 6000; n++) put(`cold-${round}-${n}`);
    store.flush();
  }
  for (; store.sweep.hasWork; nowMs++) store.tick(nowMs);
  const { usedBytes, liveBytes } = store.arenas;
  assert(usedBytes < liveBytes * 1.5, `${usedBytes} bytes for ${liveBytes}`);
  assert.equal(store.sweep.compactions.count, ROUNDS);
  assert.equal(store.sweep.dropped, store.puts - store.live.size);
});

test('a compaction at a revision of very many deletes gives back what they replaced', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 3);
  const value = Buffer.alloc(VALUE_BYTES, '.');
  for (let n = 0; n < KEYS; n++) {
    const key = Buffer.from(`key-${n}`);
    store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
  }
  store.begin();
  for (let n = 0; n < KEYS; n++) {
    const key = Buffer.from(`key-${n}`);
    store.delete(key, 0, key.length);
  }
  store.commit();
  store.flush();
  const before = store.arenas.liveBytes;
  assert.equal(store.compact(store.publishedRevision), 0);
  let slices = 0;
  for (; store.sweep.hasWork && slices < KEYS; slices++) store.tick(slices);
  assert(!store.sweep.isBehind, `not done after ${slices} slices`);
  assert(slices < KEYS / 100, `${slices} slices`);
  assert(store.arenas.liveBytes < before / 3, `${store.arenas.liveBytes} of ${before} are left`);
});
