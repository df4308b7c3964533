import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Store } from '@megaplane/store/store';
import { EmbeddedStorage } from './embedded/embedded-storage.ts';
import { EventLeases } from './event-leases.ts';

test('events of the embedded store end by leases that they share, other objects stay', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  let nowMs = 0;
  let draws = 0;
  const leases = new EventLeases(
    store.leases,
    100,
    () => nowMs,
    () => draws++,
  );
  const storage = new EmbeddedStorage(store, () => Promise.resolve(), leases);
  const put = (key: string): void => {
    storage.put(Buffer.from(key), Buffer.from('{}'), 0, ({ kind }) => assert.equal(kind, 'done'));
  };
  const count = (prefix: string): number =>
    storage.count(Buffer.from(`/registry/${prefix}/`), Buffer.from(`/registry/${prefix}0`));
  put('/registry/events/default/a');
  nowMs = 4999;
  put('/registry/events/default/b');
  assert.equal(store.leases.size, 1);
  nowMs = 5000;
  put('/registry/events/default/c');
  put('/registry/configmaps/default/a');
  assert.equal(store.leases.size, 2);
  for (const [at, events] of [
    [104_999, 3],
    [105_000, 1],
    [109_999, 1],
    [110_000, 0],
  ] as const) {
    nowMs = at;
    store.tick(nowMs);
    assert.equal(count('events'), events, `at ${at}`);
  }
  assert.equal(count('configmaps'), 1);
});
