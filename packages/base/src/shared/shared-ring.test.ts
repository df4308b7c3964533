import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { trials } from '../testing/trials.sim.ts';
import { Interleavings, type Participant, type Steps } from './interleavings.sim.ts';
import { RingPost } from './ring-post.ts';
import { messageBytesMax, ringMemory, RingReader, RingWriter } from './shared-ring.ts';

const RING_BYTES = 128;
const WORDS_BYTES = 256;
/** A put is two steps: the message, and whether its reader sleeps. */
const PUT_STEPS = 2;
/** Messages that such a ring has room for. */
const ROOM = 5;

/** Sends numbers, and waits for room where there is none. */
const sends =
  (messages: number): Participant =>
  (memory, steps) => {
    const ring = new RingWriter(memory);
    const bytes = Buffer.alloc(8);
    for (let message = 1; message <= messages; message++) {
      bytes.fill(message);
      while (!ring.put(message, message, bytes, 0, bytes.length)) {
        if (ring.waitsForRoom()) steps.waitForBell();
      }
      if (ring.mustRing()) steps.ring();
    }
  };

/** Takes all numbers, looks at them as late as it may, and sleeps where there is none. */
function takes(messages: number, sleeps: (ring: RingReader, steps: Steps) => boolean): Participant {
  return (memory, steps) => {
    const ring = new RingReader(memory);
    for (let message = 1; message <= messages;) {
      let count = 0;
      while (ring.next()) {
        count++;
        steps.pause();
        assert.deepEqual([ring.kind, ring.slot, ring.end - ring.start], [message, message, 8]);
        assert(ring.bytes.subarray(ring.start, ring.end).every((byte) => byte === message));
        ring.done();
        message++;
      }
      if (ring.mustRing()) steps.ring();
      if (message <= messages && count === 0 && sleeps(ring, steps)) steps.waitForBell();
    }
  };
}

function search(messages: number, reader: Participant): Interleavings {
  return new Interleavings(WORDS_BYTES + RING_BYTES, [sends(messages), reader]);
}

test('in no order of their steps a message is lost, torn, or slept through', () => {
  // on an empty ring, and on a full one, whose next message lies across the end
  for (const [messages, ahead] of [
    [3, 0],
    [ROOM + 1, ROOM * PUT_STEPS],
  ] as const) {
    const orders = search(
      messages,
      takes(messages, (ring) => ring.sleeps()),
    );
    let ends = 0;
    orders.search(ahead, (over, path) => {
      ends++;
      assert.deepEqual(over, [true, true], `somebody waits for ever after ${path}`);
    });
    assert(ends > 100 && orders.states > 2000, `${ends} ends, ${orders.states} states`);
  }
});

test('the search finds who goes to sleep without a second look', () => {
  // HEAD was looked at before the writer could know that a bell is awaited
  const careless = takes(2, (ring) => {
    ring.sleeps();
    return true;
  });
  let lost = 0;
  search(2, careless).search(0, (over) => {
    if (over.includes(false)) lost++;
  });
  assert(lost > 0);
});

test('the search finds who gives memory back before the last look', () => {
  const hasty: Participant = (memory, steps) => {
    const ring = new RingReader(memory);
    for (let message = 1; message <= ROOM + 1;) {
      if (!ring.next()) {
        if (ring.mustRing()) steps.ring();
        if (ring.sleeps()) steps.waitForBell();
        continue;
      }
      ring.done();
      steps.pause();
      assert.equal(ring.bytes[ring.start], message);
      message++;
    }
  };
  const orders = search(ROOM + 1, hasty);
  assert.throws(() => orders.search(ROOM * PUT_STEPS, () => undefined), assert.AssertionError);
});

test('what is sent arrives in order, whatever its length and however slowly it is taken', () => {
  const lengths = fc.array(fc.nat({ max: messageBytesMax(ringMemory(512)) }), { maxLength: 80 });
  const turns = fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 80 });
  const arrives = (sent: readonly number[], taken: readonly number[]): void => {
    const memory = ringMemory(512);
    const post = new RingPost(memory, () => undefined);
    const reader = new RingReader(memory);
    const expected: number[] = [];
    const arrived: number[] = [];
    const take = (most: number): void => {
      for (let count = 0; count < most && reader.next(); count++) {
        const bytes = reader.bytes.subarray(reader.start, reader.end);
        assert(bytes.every((byte) => byte === (reader.slot & 255)));
        arrived.push(reader.slot, bytes.length);
        reader.done();
      }
      if (reader.mustRing()) post.pump();
    };
    for (const [index, length] of sent.entries()) {
      post.send(1, index, Buffer.alloc(length + 2, index & 255), 1, length + 1);
      expected.push(index, length);
      take(taken[index % taken.length] ?? 0);
    }
    for (let left = -1; left !== arrived.length;) {
      left = arrived.length;
      take(Infinity);
    }
    assert.deepEqual(arrived, expected);
    assert.equal(post.isBehind, false);
    assert.equal(post.waitingBytes, 0);
  };
  fc.assert(fc.property(lengths, turns, arrives), trials(300));
});

const WRITER = `
import { parentPort, workerData } from 'node:worker_threads';
const { RingPost } = await import(workerData.module);
const post = new RingPost(workerData.memory, () => parentPort.postMessage(null));
const bytes = Buffer.alloc(4096);
let sent = 0;
const turn = () => {
  for (let count = 0; count < 200 && sent < workerData.count && !post.isBehind; count++, sent++) {
    const length = (sent * 7919) % 4096;
    bytes.fill(sent & 255, 0, length);
    post.send(3, sent, bytes, 0, length);
  }
  if (sent < workerData.count && !post.isBehind) setImmediate(turn);
};
post.onRoom = () => setImmediate(turn);
parentPort.on('message', (end) => (end === 'end' ? process.exit() : post.pump()));
turn();
`;

test('between two real threads nothing is torn or lost', async () => {
  const count = process.env['MEGAPLANE_LONG'] === '1' ? 20_000_000 : 40_000;
  const memory = ringMemory(64 * 1024);
  const reader = new RingReader(memory);
  const module = new URL('./ring-post.ts', import.meta.url).href;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(WRITER)}`), {
    workerData: { memory, module, count },
  });
  let next = 0;
  await new Promise<void>((resolve, reject) => {
    const turn = (): void => {
      reader.wakes();
      let taken = 0;
      for (; taken < 500 && reader.next(); taken++, next++) {
        const bytes = reader.bytes.subarray(reader.start, reader.end);
        const isWhole = reader.slot === next && bytes.length === (next * 7919) % 4096;
        if (!isWhole || !bytes.every((byte) => byte === (next & 255))) {
          reject(new Error(`message ${next} is torn: ${reader.slot}, ${bytes.length} bytes`));
          return;
        }
        reader.done();
      }
      if (reader.mustRing()) worker.postMessage('room');
      if (next === count) resolve();
      else if (taken > 0 || !reader.sleeps()) setImmediate(turn);
    };
    worker.on('message', turn);
    worker.once('error', reject);
    turn();
  });
  worker.postMessage('end');
  await once(worker, 'exit');
});
