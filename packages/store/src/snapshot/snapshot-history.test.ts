import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FAILURE } from '../contract.ts';
import { type OpenStore, openStore } from '../open/open.ts';
import { newPage } from '../mvcc/ranges.ts';
import type { Store } from '../mvcc/store.ts';

const PREFIX = '/leases/';
const BUDGET_BYTES = 400_000;
const WRITES = 6000;
const LEASES = 40_000;

function write(store: Store, index: number): void {
  const number = (index * 7919) % 50;
  const bytes = Buffer.from(`${PREFIX}${number}value ${index}`.padEnd(120, '.'), 'latin1');
  const keyTo = PREFIX.length + String(number).length;
  if (index % 9 === 0) store.deleteIf(bytes, 0, keyTo, -1);
  else store.putIf(bytes, 0, keyTo, -1, bytes, keyTo, bytes.length, 0);
}

async function published({ store }: OpenStore): Promise<void> {
  while (store.isPending) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** What the prefix held at a revision; the failure's number where that is not known any more. */
function contents({ store }: OpenStore, revision: number): string | number {
  const page = newPage();
  const range = Buffer.from(`${PREFIX}/leases0`, 'latin1');
  const to = range.length;
  const failure = store.range(range, 0, PREFIX.length, PREFIX.length, to, revision, 0, page);
  if (failure !== 0) return failure;
  const refs = [...page.refs.subarray(0, page.length)];
  return refs
    .map((ref) => store.record(ref).latin1Slice(store.keyAt(ref), store.valueTo(ref)))
    .join();
}

test('a snapshot keeps the newest part of a history that has a budget', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-history-'));
  const prefixes = [{ prefix: PREFIX, historyBytesMax: BUDGET_BYTES }];
  const open = (): OpenStore => openStore({ dataDir: dir, durability: 'buffered', prefixes });
  let opened = open();
  try {
    for (let index = 0; index < WRITES; index++) write(opened.store, index);
    await published(opened);
    opened.snapshot();
    // These may come before the snapshot begins, or stand in the log behind it.
    for (let index = 0; index < 20; index++) write(opened.store, index);
    await published(opened);
    while (!readdirSync(dir).some((name) => name.endsWith('.mps'))) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const last = opened.store.appliedRevision;
    const before = Array.from({ length: last + 1 }, (_, revision) => contents(opened, revision));
    await opened.close();
    opened = open();
    assert.equal(opened.store.appliedRevision, last);
    let known = 0;
    for (let revision = last; revision > 1; revision--) {
      const found = contents(opened, revision);
      if (found === FAILURE.compacted) break;
      assert.equal(found, before[revision], `at revision ${revision}`);
      known++;
    }
    assert(known > 300 && known < 1000, `${known} revisions are known`);
    assert.equal(contents(opened, last - known), FAILURE.compacted);
    // Nothing below the cut comes back in what is written from now on.
    opened.store.tick(performance.now());
    assert.equal(contents(opened, last), before[last]);
  } finally {
    await opened.close();
    rmSync(dir, { recursive: true });
  }
});

test('a snapshot has all leases, however many frames they take', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-leases-'));
  const open = (): OpenStore => openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  let opened = open();
  try {
    const { leases } = opened.store;
    for (let n = 1; n <= LEASES; n++) leases.grant(n, n * 3, 1000 + n, performance.now());
    for (let n = 1; n <= LEASES; n += 9) leases.revoke(leases.find(n, n * 3));
    write(opened.store, 1);
    await published(opened);
    opened.snapshot();
    while (!readdirSync(dir).some((name) => name.endsWith('.mps'))) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const late = leases.grant(LEASES + 1, 0, 500, performance.now());
    leases.keepAlive(leases.find(2, 6), performance.now());
    assert(late > 0);
    opened.store.flush();
    await published(opened);
    await opened.close();
    opened = open();
    const found = opened.store.leases;
    for (let n = 1; n <= LEASES; n++) {
      const lease = found.find(n, n * 3);
      const isGone = n % 9 === 1;
      assert.equal(lease === 0, isGone, `lease ${n}`);
      if (!isGone) assert.equal(found.ttlSeconds(lease), 1000 + n);
    }
    assert.equal(found.ttlSeconds(found.find(LEASES + 1, 0)), 500);
  } finally {
    await opened.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
