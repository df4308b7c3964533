import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import type { Rest } from '../http/exchange.ts';
import { ReadRounds, type RestingReader } from './read-rounds.ts';
import { readInPlace, readRounds } from './socket-read.ts';

const MIB = 1024 * 1024;
const READ_MS_MAX = 4;

class Reader implements RestingReader {
  loudRound = 0;
  readRound = 0;
  readBytes = 0;
  readMs = 0;
  readCycle = 0;
  isResting = false;
  own: Rest = 'late';
  rests = 0;
  wakes = 0;

  restOf(): Rest {
    return this.own;
  }

  rest(): void {
    this.rests++;
  }

  wake(): void {
    this.wakes++;
  }
}

class World {
  ms = 0;
  ended: (() => void)[] = [];
  readonly rounds: ReadRounds = new ReadRounds(
    { nowMs: () => this.ms, afterRound: (callback) => this.ended.push(callback) },
    READ_MS_MAX,
  );

  /** One read that takes a while. */
  read(reader: Reader, count: number, tookMs: number): boolean {
    this.rounds.begin();
    this.ms += tookMs;
    return this.rounds.goesOn(reader, count);
  }

  end(): void {
    const ended = this.ended;
    this.ended = [];
    for (const callback of ended) callback();
  }
}

test('short rounds let every socket read as much as it has', () => {
  const world = new World();
  const reader = new Reader();
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 3; i++) assert.ok(world.read(reader, MIB, 1));
    assert.equal(world.ended.length, 1, 'the end of a round is asked for once');
    world.end();
  }
  assert.equal(reader.rests, 0);
});

test('a long round stops those that may have more, also before they were read', () => {
  const world = new World();
  const [first, second, quiet] = [new Reader(), new Reader(), new Reader()];
  world.read(second, MIB, 0);
  world.read(quiet, 100, 0);
  world.end();
  assert.equal(world.read(first, MIB, 5), false);
  assert.deepEqual([first.rests, second.rests, quiet.rests], [1, 1, 0]);
  assert.ok(world.read(quiet, 100, 0), 'that was all it had');
  for (let octets = 100; octets < MIB; octets += 1000) world.read(quiet, 1000, 0);
  assert.equal(quiet.rests, 1, 'pieces of a TLS socket add up');
  // What the kernel had told before is read all the same, and no more of it.
  assert.equal(world.read(second, MIB, 0), false);
  world.end();
  assert.deepEqual([first.wakes, second.wakes, quiet.wakes], [1, 1, 1]);
  assert.ok(world.read(quiet, 100, 1), 'the next round has its own time');
});

test('all get the same, though the kernel names them in the same order each time', () => {
  const world = new World();
  const readers = Array.from({ length: 7 }, () => new Reader());
  const reads = readers.map(() => 0);
  for (let round = 0; round < 1000; round++) {
    for (const [index, reader] of readers.entries()) {
      if (reader.isResting || (index === 6 && round % 2 === 0)) continue;
      reads[index] = (reads[index] ?? 0) + 1;
      world.read(reader, MIB, 2);
    }
    world.end();
  }
  assert.ok(Math.max(...reads) <= Math.min(...reads) + 1, String(reads));
  for (const reader of readers) reader.loudRound = 0;
  world.end();
  world.end();
  assert.ok(
    readers.every((reader) => !reader.isResting),
    'they wake when nobody has anything',
  );
});

test('who must be read is read, however long the round has lasted', () => {
  const world = new World();
  const [patient, urgent] = [new Reader(), new Reader()];
  urgent.own = 'never';
  world.read(patient, MIB, 1);
  assert.ok(world.read(urgent, MIB, 9));
  assert.deepEqual([patient.rests, urgent.rests], [1, 0]);
  assert.ok(world.read(urgent, MIB, 9));
  urgent.own = 'late';
  assert.equal(world.read(urgent, MIB, 1), false);
  world.end();
  assert.deepEqual([patient.wakes, urgent.wakes], [1, 1]);
  patient.own = 'now';
  assert.ok(world.read(patient, 100, 0), 'there was nothing more');
  assert.equal(world.read(patient, MIB, 0), false);
  assert.ok(world.read(urgent, MIB, 1), 'the round is not over for others');
});

test('few octets that take long stop their socket, too', () => {
  const world = new World();
  const [first, second, swift] = [new Reader(), new Reader(), new Reader()];
  assert.ok(world.read(first, 2000, 3), 'the round has time');
  assert.equal(world.read(second, 2000, 3), false);
  assert.deepEqual([first.isResting, second.isResting], [true, true]);
  assert.ok(world.read(swift, 2000, 0.1), 'so little takes no time');
  world.end();
  assert.deepEqual([first.wakes, second.wakes, swift.rests], [1, 1, 0]);
  assert.ok(world.read(second, 100, 0.1), 'in the next round it begins anew');
});

test('who was loud long ago is not stopped for others', () => {
  const world = new World();
  const [busy, former] = [new Reader(), new Reader()];
  world.read(former, MIB, 0);
  world.end();
  for (let round = 0; round < 200; round++) {
    world.read(busy, 100, 0);
    world.end();
  }
  world.read(busy, MIB, 9);
  assert.deepEqual([busy.rests, former.rests], [1, 0]);
});

/** Keeps the thread busy, as requests do. */
function burn(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test('sockets that rest lose nothing, stay paused if they were, and let timers run', async (t) => {
  const rounds = readRounds(READ_MS_MAX);
  const got = new Map<number, number>();
  let paused: Socket | null = null;
  let isPausing = true;
  let longestRead = 0;
  let readInRound = 0;
  const server = createServer((socket) => {
    const port = socket.remotePort ?? 0;
    got.set(port, 0);
    t.after(() => socket.destroy());
    paused ??= socket;
    readInPlace(socket, rounds, (bytes, count) => {
      const before = got.get(port) ?? 0;
      // Octets of a stream tell their place, so none is lost, doubled or swapped.
      assert.equal(bytes[0], (before >> 16) & 0xff);
      got.set(port, before + count);
      burn(2);
      readInRound += count;
      if (socket === paused && isPausing) socket.pause();
    });
    socket.resume();
  });
  const ticker = setInterval(() => {
    longestRead = Math.max(longestRead, readInRound);
    readInRound = 0;
  }, 0);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const whole = Buffer.alloc(4 * MIB);
  for (let at = 0; at < whole.length; at++) whole[at] = (at >> 16) & 0xff;
  t.after(() => {
    clearInterval(ticker);
    for (const client of clients) client.destroy();
    server.close();
  });
  const clients = Array.from({ length: 8 }, () => connect(port, '127.0.0.1'));
  await Promise.all(clients.map((client) => once(client, 'connect')));
  for (const client of clients) client.end(whole);
  const sum = (): number => [...got.values()].reduce((all, one) => all + one, 0);
  while (sum() < 7 * whole.length) await new Promise((resolve) => setTimeout(resolve, 5));
  const halted = paused as unknown as Socket;
  const stoppedAt = got.get(halted.remotePort ?? 0) ?? 0;
  assert.ok(stoppedAt < whole.length, 'a socket that was paused is read no further');
  assert.ok(longestRead < 3 * MIB, `a round read ${longestRead} octets`);
  isPausing = false;
  halted.resume();
  while (sum() < 8 * whole.length) await new Promise((resolve) => setTimeout(resolve, 5));
});
