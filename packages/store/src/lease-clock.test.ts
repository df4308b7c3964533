import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LeaseClock } from './lease-clock.ts';
import { openStore } from './open.ts';
import { Store } from './store.ts';

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
