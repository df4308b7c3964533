import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { EtcdContext } from '../call/context.ts';
import { type Fields, encode } from '../testing/peer.sim.ts';
import { ETCD_LIMITS } from '../server/run-store.ts';
import { SimulatedCall, SimulatedConnection } from '../testing/network.sim.ts';
import { WatchService } from './watch.ts';
import { type Shown, showWatch } from './watch-peer.sim.ts';

const PROGRESS: Fields = [[3, []]];
/** More than a simulated stream takes before its client reads. */
const PUTS = 8;

/** A turn of the event loop: what was written in the last one is told. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

async function putOne(opened: OpenStore): Promise<void> {
  const key = Buffer.from('k');
  opened.store.putIf(key, 0, 1, -1, key, 0, 1, 0);
  await turn();
}

/** A client that reads nothing while others write, and then all of what it was sent. */
async function readLate(
  create: Fields,
  whileFull: (service: WatchService, call: SimulatedCall) => void,
): Promise<readonly Shown[]> {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const service = new WatchService(new EtcdContext(opened.store, ETCD_LIMITS, opened, () => 0));
  const connection = new SimulatedConnection();
  const seen: Shown[] = [];
  const call = new SimulatedCall(connection, (bytes) => {
    seen.push(showWatch(bytes, 0, bytes.length));
  });
  call.accept(service.factory(call));
  try {
    call.request(encode([[1, create]]));
    for (let i = 0; i < PUTS; i++) await putOne(opened);
    assert.equal(service.slowCount, 1, 'the stream is full');
    whileFull(service, call);
    while (connection.pending > 0) {
      connection.deliver();
      await turn();
    }
    whileFull(service, call);
    while (connection.pending > 0) connection.deliver();
    return seen;
  } finally {
    call.cancel('cancelled');
    await opened.close();
  }
}

/** What was told, in order: how many events, or `to REVISION` for progress. */
function story(seen: readonly Shown[]): string {
  return seen
    .filter(({ created }) => !created)
    .map(({ events, revision }) => (events.length === 0 ? `to ${revision}` : `${events.length}`))
    .join(' ');
}

test('progress that is asked for waits until a slow client was told all events', async () => {
  const seen = await readLate([[1, 'k']], (_service, call) => call.request(encode(PROGRESS)));
  const events = seen.flatMap((shown) => shown.events).length;
  assert.equal(events, PUTS);
  assert.match(story(seen), /^[\d ]*\d to 9 to 9$/);
});

test('progress by the clock passes by a slow client', async () => {
  const create: Fields = [
    [1, 'k'],
    [4, 1],
  ];
  // Twice: the first time only notes that there were events since the last one.
  const seen = await readLate(create, (service) => {
    service.notifyProgress();
    service.notifyProgress();
  });
  assert.equal(seen.flatMap((shown) => shown.events).length, PUTS);
  assert.match(story(seen), /^[\d ]*\d to 9$/);
});
