import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVERY_FIELD } from '@megaplane/machinery/fieldselectors';
import { EVERYTHING } from '@megaplane/machinery/selectors';
import { JsonEncoder } from './encoder.ts';
import { Filter } from '../request/filter.ts';
import { RowStream } from './list-stream.ts';
import { findServed, keyOf, rangeOf } from '../storage/served.ts';
import { EXPECT_ABSENT } from '../storage/storage.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const served = configMaps();
function configMaps() {
  const found = findServed('', 'v1', 'configmaps');
  assert.ok(found !== undefined);
  return found;
}

/** A peer that takes `room` bytes at a time. */
class SlowPeer {
  room: number;
  bytes = 0;
  text = '';

  constructor(room: number) {
    this.room = room;
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.text += Buffer.from(bytes.subarray(start, end)).toString();
    this.bytes += end - start;
    this.room -= end - start;
  }

  writable(): number {
    return Math.max(0, this.room);
  }
}

function filled(count: number): StorageModel {
  const storage = new StorageModel();
  for (let index = 0; index < count; index++) {
    const name = `m-${String(index).padStart(4, '0')}`;
    const value = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"${name}"},"data":{}}`;
    storage.put(keyOf(served, 'a', name), Buffer.from(value), EXPECT_ABSENT, () => undefined);
  }
  return storage;
}

function stream(storage: StorageModel): RowStream {
  const filter = new Filter(EVERYTHING, EVERY_FIELD, served.prefix.length, true);
  const range = rangeOf(served, '');
  return new RowStream(
    storage,
    range,
    storage.appliedRevision,
    filter,
    new JsonEncoder(served),
    null,
  );
}

test('a list goes on where a slow peer stopped it, and shows one revision throughout', () => {
  const storage = filled(3000);
  const rows = stream(storage);
  const peer = new SlowPeer(1);
  assert.equal(rows.pull(peer), 'full');
  const first = peer.bytes;
  assert.ok(first < 128 * 1024, `one pull gave ${first} bytes`);
  storage.put(keyOf(served, 'a', 'm-9999'), Buffer.from('{}'), EXPECT_ABSENT, () => undefined);
  storage.delete(keyOf(served, 'a', 'm-2999'), -1, () => undefined);
  let pulls = 1;
  for (peer.room = 1; rows.pull(peer) === 'full'; pulls++) peer.room = 1;
  assert.ok(pulls > 1);
  const items = JSON.parse(`[${peer.text}]`) as { metadata: { name: string } }[];
  assert.equal(items.length, 3000);
  assert.equal(items.at(-1)?.metadata.name, 'm-2999');
});

test('a list whose revision is forgotten says so instead of ending', () => {
  const storage = filled(10);
  const rows = stream(storage);
  storage.put(keyOf(served, 'a', 'x'), Buffer.from('{}'), EXPECT_ABSENT, () => undefined);
  storage.compact(storage.appliedRevision);
  assert.equal(rows.pull(new SlowPeer(Infinity)), 'compacted');
});
