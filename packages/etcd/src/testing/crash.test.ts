import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { Durability } from '@megaplane/store/contract';
import { connect } from '@megaplane/wire/connect';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { type Fields, encode } from './peer.sim.ts';
import { readAnswer } from './answer.sim.ts';
import { showWatch } from '../watch/watch-peer.sim.ts';
import { type Event, type Operation, assertLinearizable, assertWatched } from './history.sim.ts';

const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
/** Of each mode; a long run in pieces says how many a piece has. */
const ROUNDS = Number(process.env['MEGAPLANE_CRASH_ROUNDS'] ?? (isLong ? 340 : 7));
const CLIENTS = 6;
/** Answers that a round waits for before it kills, and as many more at most. */
const OPERATIONS_MIN = 50;
const KEYS = ['k1', 'k2', 'k3', 'k4'] as const;
const CHILD = join(import.meta.dirname, 'store-child.sim.ts');

/** One process after the other on one directory and port, and what clients saw of them. */
class Scene {
  readonly #dir = mkdtempSync(join(tmpdir(), 'megaplane-crash-'));
  readonly #mode: Durability;
  readonly #random: Random;
  #port = 0;
  #child: ChildProcess | null = null;
  readonly operations: Operation[] = [];
  /** By watch: where it began, what it saw. */
  readonly watched: { readonly from: number; readonly seen: Event[]; next: number }[] = [];
  #attempts = 0;
  /** Snapshots that were made while clients wrote. */
  defragmented = 0;

  constructor(mode: Durability, seed: number) {
    this.#mode = mode;
    this.#random = new Random(seed);
  }

  async start(): Promise<void> {
    const args = [CHILD, this.#dir, `${this.#port}`, this.#mode];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    this.#port = Number(/ready (\d+)/.exec(line.toString())?.[1]);
    assert(this.#port > 0);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  remove(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }

  connect(): GrpcClient {
    return grpcClient(connect({ port: this.#port }));
  }

  /** Clients write and read, watches watch, until the process is killed under them. */
  async round(watches = true): Promise<void> {
    await this.start();
    const clients = Array.from({ length: CLIENTS }, () => this.connect());
    const ends = clients.map((client) => this.#load(client));
    const [first] = clients;
    if (first !== undefined) ends.push(this.#defragment(first));
    if (watches && this.watched.length < 4) this.watched.push({ from: 2, seen: [], next: 2 });
    for (const watch of this.watched) this.#watch(clients[0], watch);
    const enough = this.operations.length + OPERATIONS_MIN + this.#random.below(OPERATIONS_MIN);
    const before = this.defragmented;
    const isEarly = (): boolean => this.operations.length < enough || this.defragmented === before;
    for (let i = 0; isEarly() && i < 2000; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await this.kill();
    await Promise.all(ends);
    for (const client of clients) client.connection.drain();
  }

  async #load(client: GrpcClient): Promise<void> {
    for (let isUp = true; isUp;) isUp = await this.#operate(client);
  }

  /** Again and again: it replaces the log by a snapshot, so that some kills come amid of one. */
  async #defragment(client: GrpcClient): Promise<void> {
    for (let isUp = true; isUp;) {
      isUp = await new Promise((resolve) => {
        client.unary('/etcdserverpb.Maintenance/Defragment', Buffer.alloc(0), {
          onMessage: () => {},
          onStatus: (_call, { code }) => resolve(code === 0),
        });
      });
      if (isUp) this.defragmented++;
    }
  }

  /** False once the connection is lost. */
  #operate(client: GrpcClient): Promise<boolean> {
    const key = KEYS[this.#random.below(KEYS.length)] ?? '';
    const isWrite = this.#random.below(4) > 0;
    const value = `v${++this.#attempts}`;
    const startMs = performance.now();
    const fields: Fields = isWrite
      ? [
          [1, key],
          [2, value],
        ]
      : [[1, key]];
    const path = `/etcdserverpb.KV/${isWrite ? 'Put' : 'Range'}`;
    return new Promise((resolve) => {
      let response = Buffer.alloc(0);
      client.unary(path, encode(fields), {
        onMessage: (_call, bytes, start, end) => {
          response = Buffer.from(bytes.subarray(start, end));
        },
        onStatus: (_call, { code }) => {
          const endMs = performance.now();
          const isUp = code === 0;
          const answer = isUp ? readAnswer(response) : null;
          if (isWrite) {
            const revision = answer?.revision ?? null;
            this.operations.push({ kind: 'write', key, value, startMs, endMs, revision });
          } else if (answer !== null) {
            const found = answer.kvs[0]?.split('=')[1] ?? null;
            const { revision } = answer;
            this.operations.push({ kind: 'read', key, value: found, startMs, endMs, revision });
          }
          resolve(isUp);
        },
      });
    });
  }

  #watch(client: GrpcClient | undefined, watch: { readonly seen: Event[]; next: number }): void {
    const call = client?.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, end) => {
        const shown = showWatch(bytes, start, end);
        assert(!shown.canceled, 'nothing was compacted');
        for (const event of shown.events.map(eventOf)) {
          watch.seen.push(event);
          watch.next = event.revision + 1;
        }
        const isProgress = shown.events.length === 0 && !shown.created;
        if (isProgress) watch.next = Math.max(watch.next, shown.revision + 1);
      },
      onStatus: () => {},
    });
    call?.send(
      encode([
        [
          1,
          [
            [1, '\0'],
            [2, '\0'],
            [3, watch.next],
            [4, 1],
          ],
        ],
      ]),
    );
  }

  /** Everything that ever happened, as the store tells it now. */
  async history(): Promise<Event[]> {
    await this.start();
    const client = this.connect();
    const events: Event[] = [];
    await new Promise<void>((resolve) => {
      const call = client.open('/etcdserverpb.Watch/Watch', {
        onMessage: (_call, bytes, start, end) => {
          const shown = showWatch(bytes, start, end);
          events.push(...shown.events.map(eventOf));
          if (shown.id === '-1') resolve();
        },
        onStatus: () => {},
      });
      call.send(
        encode([
          [
            1,
            [
              [1, '\0'],
              [2, '\0'],
              [3, 2],
            ],
          ],
        ]),
      );
      call.send(encode([[3, []]]));
    });
    client.connection.drain();
    await this.kill();
    return events;
  }
}

/** `PUT key mod create/version/lease=value`. */
function eventOf(text: string): Event {
  const [, type, key = '', mod = '', value = ''] =
    /^(\w+) (\S+) (\d+) [^=]*=(.*)$/.exec(text) ?? [];
  return { revision: Number(mod), key, value: type === 'DELETE' ? null : value };
}

for (const mode of ['fsync', 'buffered'] as const) {
  test(`kill -9 under load keeps what ${mode} promised to writes, reads, watches`, async () => {
    const scene = new Scene(mode, 11);
    try {
      for (let round = 0; round < ROUNDS; round++) await scene.round();
      const events = await scene.history();
      assertLinearizable(scene.operations, events);
      for (const { from, seen } of scene.watched) assertWatched(seen, events, from);
      const acknowledged = scene.operations.filter(({ revision }) => revision !== null).length;
      assert(acknowledged > ROUNDS * 10, `${acknowledged} operations are no load`);
      assert(scene.defragmented > 0, 'no snapshot was made');
    } finally {
      await scene.kill();
      scene.remove();
    }
  });
}

test('kill -9 without a log loses all keys, and no revision comes twice', async () => {
  const scene = new Scene('none', 12);
  try {
    const writes = new Map<number, string>();
    for (let round = 0; round < ROUNDS; round++) {
      await scene.round(false);
      for (const one of scene.operations) {
        if (one.kind !== 'write' || one.revision === null) continue;
        const before = writes.get(one.revision) ?? one.value;
        assert.equal(one.value, before, `revision ${one.revision} was given out twice`);
        writes.set(one.revision, one.value);
      }
    }
    assert(writes.size > 10);
  } finally {
    await scene.kill();
    scene.remove();
  }
});
