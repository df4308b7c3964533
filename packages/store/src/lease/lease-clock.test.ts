import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LeaseClock } from './lease-clock.ts';
import { openStore } from '../open/open.ts';
import { Store } from '../mvcc/store.ts';

function leftAfter(script: (clock: LeaseClock, lease: number) => void): number {
  const { leases } = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  const lease = leases.add(0, 1, 100, 60_000);
  const clock = new LeaseClock();
  script(clock, lease);
  clock.settle(leases);
  return leases.remainingMs(lease, 0);
}

test('time between frames counts since a checkpoint, time across restarts does not', () => {
  const left = leftAfter((clock, lease) => {
    clock.frame(1000, true);
    clock.frame(5000, false);
    clock.checkpoint(lease);
    clock.frame(12_000, false);
    clock.frame(900_000, true);
    clock.frame(903_000, false);
  });
  assert.equal(left, 60_000 - 7000 - 3000);
});

test('a lease told whole begins anew, and a clock set back takes nothing', () => {
  const anew = leftAfter((clock, lease) => {
    clock.checkpoint(lease);
    clock.frame(1000, true);
    clock.frame(9000, false);
    clock.forget(lease);
  });
  assert.equal(anew, 60_000);
  const back = leftAfter((clock, lease) => {
    clock.frame(9000, true);
    clock.checkpoint(lease);
    clock.frame(1000, false);
    clock.frame(9500, false);
  });
  assert.equal(back, 59_500);
});

test('a restart neither prolongs a lease that aged nor cuts one that was renewed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-lease-'));
  const open = () => openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  let opened = open();
  const nowMs = performance.now();
  try {
    // Granted, as far as the store can tell, half a minute ago.
    const { leases } = opened.store;
    const aged = leases.grant(0, 1, 100, nowMs - 30_000);
    const renewed = leases.grant(0, 2, 100, nowMs - 30_000);
    leases.note(nowMs);
    leases.keepAlive(renewed, nowMs);
    assert.equal(Math.round(leases.remainingMs(aged, nowMs)), 70_000);
    await opened.close();
    opened = open();
    const left = [1, 2].map((id) => {
      const { leases: after } = opened.store;
      return after.remainingMs(after.find(0, id), performance.now());
    });
    assert.ok((left[0] ?? 0) <= 70_000 && (left[0] ?? 0) > 66_000, `aged: ${left[0]}`);
    assert.ok((left[1] ?? 0) > 97_000, `renewed: ${left[1]}`);
  } finally {
    await opened.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test('setting the clock of the machine neither cuts nor prolongs leases', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-lease-'));
  const open = () => openStore({ dataDir: dir, durability: 'fsync', prefixes: [] });
  const real = Date.now.bind(Date);
  let aheadMs = 0;
  context.mock.method(Date, 'now', () => real() + aheadMs);
  let opened = open();
  const write = async (): Promise<void> => {
    const { store } = opened;
    const revision = store.putIf(Buffer.from('kv'), 0, 1, -1, Buffer.from('kv'), 1, 2, 0);
    while (store.publishedRevision < revision) await new Promise((done) => setTimeout(done, 1));
  };
  try {
    const nowMs = performance.now();
    opened.store.leases.grant(0, 1, 1000, nowMs - 300_000);
    opened.store.leases.note(nowMs);
    for (const hours of [0, 5, -5, 24, -24]) {
      for (const ahead of [0, hours]) {
        aheadMs = ahead * 3_600_000;
        await write();
      }
      // No more is noted of the lease at the end, as after a kill.
      await opened.close();
      opened = open();
      const { leases } = opened.store;
      const left = leases.remainingMs(leases.find(0, 1), performance.now());
      assert.ok(left <= 700_000 && left > 690_000, `${hours} hours: ${left}`);
    }
  } finally {
    await opened.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
