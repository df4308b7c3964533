import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '@megaplane/base/random';
import { ARENA_BYTES } from '../record/arenas.ts';
import { type OpenStore, openStore } from '../open/open.ts';
import { newPage } from './ranges.ts';
import { Store } from './store.ts';

const PREFIXES = [{ prefix: 'pods/', packAfterMs: 0 }, { prefix: 'other/' }];
const OPTIONS = { dataDir: null, durability: 'none' as const, prefixes: PREFIXES };
/** Many to an arena, and few arenas. */
const TEMPLATE = Array.from({ length: 400 }, (_, n) => `"setting-${n}":"value-${n}"`).join(',');

function valueOf(n: number, random: Random): string {
  if (n % 11 === 0) return `${n}`;
  return `{"name":"${n}","uid":"${random.below(2 ** 30)}",${TEMPLATE},"ip":"10.0.${n}"}`;
}

function put(store: Store, key: string, value: string): void {
  const bytes = Buffer.from(key + value, 'latin1');
  const done = store.putIf(bytes, 0, key.length, -1, bytes, key.length, bytes.length, 0);
  assert(done > 0);
}

function valueIn(store: Store, ref: number): string {
  if (store.unpackedSize(ref) === 0) {
    return store.record(ref).latin1Slice(store.valueAt(ref), store.valueTo(ref));
  }
  const out = Buffer.alloc(store.unpackedSize(ref));
  assert.equal(store.unpack(ref, out, 0), out.length);
  return out.latin1Slice(0, out.length);
}

function keyIn(store: Store, ref: number): string {
  return store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref));
}

function list(store: Store, revision: number): Map<string, string> {
  const page = newPage();
  const all = Buffer.from('\0\0');
  assert.equal(store.range(all, 0, 1, 1, 2, revision, 0, page), 0);
  const refs = [...page.refs.subarray(0, page.length)];
  return new Map(refs.map((ref) => [keyIn(store, ref), valueIn(store, ref)]));
}

function sorted(state: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...state.keys()].toSorted().map((key) => [key, state.get(key)!]));
}

interface Change {
  readonly key: string;
  readonly value: string | null;
  readonly before: string | null;
}

/** A store and what was done to it. */
class World {
  readonly store = new Store(OPTIONS, 5);
  readonly random: Random;
  readonly state: Map<string, string> = new Map();
  /** By revision. */
  readonly changes: (Change | null)[] = [null, null];
  nowMs = 0;
  packed = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  change(): void {
    const { store, random, state } = this;
    const key = `${random.below(5) === 0 ? 'other' : 'pods'}/${random.below(1500)}`;
    const before = state.get(key) ?? null;
    if (random.below(12) === 0) {
      if (before === null) return;
      const bytes = Buffer.from(key);
      store.deleteIf(bytes, 0, bytes.length, -1);
      state.delete(key);
    } else {
      const value = valueOf(random.below(1000), random);
      put(store, key, value);
      state.set(key, value);
    }
    this.changes.push({ key, value: state.get(key) ?? null, before });
  }

  tick(times: number): void {
    for (let i = 0; i < times; i++) this.store.tick((this.nowMs += 50));
    this.packed = Math.max(this.packed, this.store.arenas.rawBytes - this.store.arenas.liveBytes);
  }

  check(): void {
    const { store, changes } = this;
    const state = new Map(this.state);
    const oldest = Math.max(2, store.compactRevision, changes.length - 300);
    for (let revision = changes.length - 1; revision >= oldest; revision--) {
      if (revision % 150 === 0 || revision === changes.length - 1) {
        assert.deepEqual(list(store, revision), sorted(state));
      }
      const { key, before } = changes[revision]!;
      if (before === null) state.delete(key);
      else state.set(key, before);
    }
  }

  /** What a watch from the boundary on is told, with what was there before each change. */
  watch(): void {
    const { store, changes } = this;
    const from = Math.max(2, store.compactRevision);
    const all = Buffer.from('\0\0');
    const id = store.watch(all, 0, 1, 1, 2, from, { onEvents: () => {} });
    for (let revision = from; revision <= store.publishedRevision; revision++) {
      let ref = store.watchNext(id);
      for (; ref === 0; ref = store.watchNext(id)) this.tick(1);
      assert.equal(store.modRevision(ref), revision);
      const { key, value, before } = changes[revision]!;
      const previous = store.previous(ref);
      assert.equal(keyIn(store, ref), key);
      assert.equal(store.isTombstone(ref) ? null : valueIn(store, ref), value);
      // What the boundary's own revision replaced may be gone.
      if (revision > from) assert.equal(previous === 0 ? null : valueIn(store, previous), before);
    }
    store.unwatch(id);
  }
}

test('what rests is packed, and reads, past states and watches show it as it was put', () => {
  for (let seed = 1; seed <= 2; seed++) {
    const world = new World(seed);
    const { store, random } = world;
    for (let turn = 0; turn < 40; turn++) {
      for (let n = random.below(250); n > 0; n--) world.change();
      store.flush();
      world.tick(random.below(60));
      if (random.below(6) === 0) store.compact(store.publishedRevision - random.below(200));
      if (random.below(4) === 0) world.check();
      if (random.below(9) === 0) world.watch();
    }
    world.tick(2000);
    world.check();
    world.watch();
    assert(world.packed > ARENA_BYTES, `${world.packed} bytes were saved`);
    const { arenas, classes } = store;
    const { number, historyBytes } = classes.all[2]!;
    assert.equal(arenas.classSaved[number], 0, 'a prefix that says nothing is left alone');
    assert(historyBytes >= 0);
    store.compact(store.publishedRevision);
    world.tick(1000);
    for (const klass of classes.all) assert.equal(klass.historyBytes, 0);
    world.check();
  }
});

test('what is put and left takes a small part of its memory, and none once it is deleted', () => {
  const store = new Store(OPTIONS, 5);
  const random = new Random(1);
  for (let n = 0; n < 4000; n++) put(store, `pods/${n}`, valueOf(n, random));
  store.flush();
  const before = store.arenas.allocatedBytes;
  let nowMs = 0;
  const rest = (): void => {
    for (let i = 0; i < 1000; i++) store.tick((nowMs += 50));
  };
  rest();
  assert(store.arenas.allocatedBytes < before / 3, `${store.arenas.allocatedBytes} of ${before}`);
  const budget = store.classes.all[1]!;
  for (let n = 0; n < 4000; n++) {
    const key = Buffer.from(`pods/${n}`);
    store.deleteIf(key, 0, key.length, -1);
  }
  store.flush();
  assert(budget.historyBytes > before / 2, 'history counts what was put, packed or not');
  store.compact(store.publishedRevision);
  rest();
  assert(store.arenas.liveBytes < 1000, `${store.arenas.liveBytes} bytes are left`);
  assert.equal(store.arenas.rawBytes, store.arenas.liveBytes);
});

test('arenas whose records are replaced all the time are not packed', () => {
  const store = new Store(OPTIONS, 5);
  const random = new Random(1);
  for (let round = 0; round < 4; round++) {
    for (let n = 0; n < 1500; n++) put(store, `pods/${n}`, valueOf(n, random));
    store.flush();
    if (round < 3) continue;
    for (let i = 0; i < 500; i++) store.tick(i * 50);
  }
  const raw = store.arenas.rawBytes;
  const saved = raw - store.arenas.liveBytes;
  assert(saved > 0 && saved < raw / 3, `${saved} of ${raw} bytes were saved`);
});

async function untilPacked({ store }: OpenStore): Promise<void> {
  for (let saved = -1; saved !== store.arenas.rawBytes - store.arenas.liveBytes || saved === 0;) {
    saved = store.arenas.rawBytes - store.arenas.liveBytes;
    await pause(300);
  }
}

test('snapshots have what was put, so that any start reads it', { timeout: 60_000 }, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'mpl-rest-'));
  const random = new Random(9);
  const options = { ...OPTIONS, dataDir, durability: 'buffered' as const };
  let opened = openStore(options);
  const wanted = new Map<string, string>();
  for (let n = 0; n < 2000; n++) {
    wanted.set(`pods/${n}`, valueOf(n, random));
    put(opened.store, `pods/${n}`, wanted.get(`pods/${n}`)!);
  }
  await untilPacked(opened);
  opened.snapshot();
  while (opened.log!.snapshotBytes === 0) await pause(20);
  put(opened.store, 'pods/7', 'replaced');
  wanted.set('pods/7', 'replaced');
  await opened.close();
  opened = openStore({ ...options, prefixes: [] });
  assert.equal(opened.store.arenas.rawBytes, opened.store.arenas.liveBytes);
  assert.deepEqual(list(opened.store, 0), sorted(wanted));
  await opened.close();
  rmSync(dataDir, { recursive: true, force: true });
});
