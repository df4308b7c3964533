import assert from 'node:assert/strict';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { logName } from '../wal/log-files.ts';
import { openStore } from '../open/open.ts';
import { READ_AHEAD_BYTES_MIN } from './read-ahead.ts';
import { BATCH_RECORDS } from './read-batch.ts';
import type { Store } from '../mvcc/store.ts';

async function published(store: Store): Promise<void> {
  while (store.isPending) await new Promise((resolve) => setTimeout(resolve, 1));
}

const VALUE_BYTES = 60_000;
const KEYS = 400;
const PUTS = 640;
/** Beyond what a frame, and a batch of the reader, hold. */
const GROUP: number = BATCH_RECORDS + 1000;
const GRAVES = 50;

test('a log read ahead gives the same store, and its damage is found at its byte', async () => {
  const root = mkdtempSync(join(tmpdir(), 'megaplane-ahead-'));
  const options = (name: string) => ({
    dataDir: join(root, name),
    // Frames tell what was flushed before them: then the middle of the log cannot be a torn end.
    durability: 'fsync' as const,
    prefixes: [],
  });
  /** The log as a crash would leave it, in a directory of its own. */
  const copy = (name: string): string => {
    mkdirSync(join(root, name));
    const log = join(root, name, logName(0));
    copyFileSync(join(root, 'first', logName(0)), log);
    return log;
  };
  try {
    const first = openStore(options('first'));
    const bytes = Buffer.alloc(VALUE_BYTES + 16, 'v');
    for (let i = 0; i < PUTS; i++) {
      bytes.write(`/k/${String((i * 7) % KEYS).padStart(5, '0')}`, 'latin1');
      bytes.writeUInt32LE(i, 8);
      first.store.putIf(bytes, 0, 8, -1, bytes, 8, bytes.length, 0);
      if (i % 20 === 0) await published(first.store);
    }
    first.store.begin();
    for (let i = 0; i < GROUP; i++) {
      bytes.write(`/g/${String(i).padStart(6, '0')}`, 'latin1');
      first.store.put(bytes, 0, 9, bytes, 9, 24, 0);
    }
    first.store.commit();
    for (let i = 0; i < GRAVES; i++) {
      bytes.write(`/g/${String(i).padStart(6, '0')}`, 'latin1');
      first.store.deleteIf(bytes, 0, 9, -1);
    }
    await published(first.store);
    const log = copy('second');
    assert.ok(readFileSync(log).length > READ_AHEAD_BYTES_MIN);
    const second = openStore(options('second'));
    assert.equal(second.store.appliedRevision, PUTS + 2 + GRAVES);
    assert.equal(second.store.live.size, KEYS + GROUP - GRAVES);
    for (let i = PUTS - KEYS; i < PUTS; i++) {
      bytes.write(`/k/${String((i * 7) % KEYS).padStart(5, '0')}`, 'latin1');
      const ref = second.store.get(bytes, 0, 8);
      assert.equal(second.store.modRevision(ref), i + 2);
      assert.equal(second.store.record(ref).readUInt32LE(second.store.valueAt(ref)), i);
    }
    await second.close();
    const damaged = copy('third');
    const image = readFileSync(damaged);
    image[20_000_000]! ^= 1;
    writeFileSync(damaged, image);
    assert.throws(
      () => openStore(options('third')),
      /log-00000000.mpl is damaged at byte (1|2)\d{7}/,
    );
    const torn = copy('fourth');
    truncateSync(torn, image.length - 5000);
    const fourth = openStore(options('fourth'));
    assert.ok(fourth.replayed.cutBytes > 0);
    assert.ok(fourth.store.appliedRevision > PUTS - 50);
    await fourth.close();
    await first.close();
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('records that stay where they were read are found, and move to give memory back', async () => {
  const root = mkdtempSync(join(tmpdir(), 'megaplane-ahead-'));
  const options = (name: string) => ({
    dataDir: join(root, name),
    durability: 'buffered' as const,
    prefixes: [{ prefix: '/b/', historyBytesMax: 1 << 30 }],
  });
  const keyOf = (i: number): string => `/${i % 5000 < 4500 ? 'a' : 'b'}/${i % 9973}`;
  const told = new Map<string, number>();
  const check = (store: Store): void => {
    assert.equal(store.live.size, told.size);
    for (const [key, number] of told) {
      const ref = store.get(Buffer.from(key), 0, key.length);
      assert.equal(store.record(ref).readUInt32LE(store.valueAt(ref)), number, key);
      const last = store.valueAt(ref) + store.arenas.valueSize(ref) - 1;
      assert.equal(store.record(ref)[last], number & 0xff);
    }
  };
  try {
    const first = openStore(options('first'));
    const value = Buffer.alloc(16_384);
    const put = (store: Store, i: number, size: number): void => {
      value.writeUInt32LE(i, 0);
      value[size - 1] = i & 0xff;
      const key = Buffer.from(keyOf(i));
      store.putIf(key, 0, key.length, -1, value, 0, size, 0);
      told.set(keyOf(i), i);
    };
    for (let i = 0; i < 60_000; i++) {
      put(first.store, i, 5 + ((i * 7919) % (i % 100 === 0 ? 16_000 : 1900)));
      // Frames of all sizes.
      if ((i * 31) % 97 < 3) await published(first.store);
    }
    await published(first.store);
    mkdirSync(join(root, 'second'));
    copyFileSync(join(root, 'first', logName(0)), join(root, 'second', logName(0)));
    const second = openStore(options('second'));
    assert.ok(second.replayed.bytes > READ_AHEAD_BYTES_MIN);
    check(second.store);
    for (let i = 60_000; i < 63_000; i++) put(second.store, i, 300);
    await published(second.store);
    second.store.compact(second.store.appliedRevision);
    const before = second.store.arenas.allocatedBytes;
    await second.defragment();
    check(second.store);
    assert.ok(second.store.arenas.allocatedBytes < before / 2);
    await second.close();
    await first.close();
  } finally {
    rmSync(root, { recursive: true });
  }
});
