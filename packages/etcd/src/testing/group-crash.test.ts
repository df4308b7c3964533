/** Three members on a real engine, both killed and stopped under clients at all of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { connect } from '@megaplane/wire/connect';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { showWatch } from '../watch/watch-peer.sim.ts';
import { readAnswer } from './answer.sim.ts';
import { ENGINES, type Engine } from './engines.sim.ts';
import { type Event, type Operation, assertLinearizable, assertWatched } from './history.sim.ts';
import { MemberProcess } from './member-processes.sim.ts';
import { type Fields, encode } from './peer.sim.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const FAULTS = Number(process.env['MEGAPLANE_FAULTS'] ?? (IS_LONG ? 400 : 3));
const LEASE_MS = 1000;
const CALL_MS = 8000;
const KEYS = ['k1', 'k2', 'k3', 'k4'] as const;
const CLIENTS_EACH = 2;
const PATIENCE_MS = 60_000;

/** A client of one member, which comes back as often as it is cut off. */
class Client {
  readonly #port: number;
  readonly #scene: Scene;
  #client: GrpcClient;
  isOver = false;

  constructor(port: number, scene: Scene) {
    this.#port = port;
    this.#scene = scene;
    this.#client = this.#connect();
  }

  #connect(): GrpcClient {
    return grpcClient(connect({ port: this.#port }));
  }

  async run(): Promise<void> {
    while (!this.isOver) {
      const isUp = await this.#operate();
      if (isUp) continue;
      this.#client.connection.destroy();
      await new Promise((resolve) => setTimeout(resolve, 50));
      this.#client = this.#connect();
    }
    this.#client.connection.destroy();
  }

  /** False after a failure. */
  #operate(): Promise<boolean> {
    const { random, operations } = this.#scene;
    const key = KEYS[random.below(KEYS.length)] ?? '';
    const isWrite = random.below(3) > 0;
    const value = `v${++this.#scene.attempts}`;
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
      const sink = {
        onMessage: (_: unknown, bytes: Buffer, start: number, end: number): void => {
          response = Buffer.from(bytes.subarray(start, end));
        },
        onStatus: (_: unknown, { code }: { readonly code: number }): void => {
          const endMs = performance.now();
          const answer = code === 0 ? readAnswer(response) : null;
          if (isWrite) {
            const revision = answer?.revision ?? null;
            operations.push({ kind: 'write', key, value, startMs, endMs, revision });
          } else if (answer !== null) {
            const found = answer.kvs[0]?.split('=')[1] ?? null;
            const { revision } = answer;
            operations.push({ kind: 'read', key, value: found, startMs, endMs, revision });
          }
          resolve(code === 0);
        },
      };
      this.#client.unary(path, encode(fields), sink, { timeoutMs: CALL_MS });
    });
  }
}

/** A watch that goes on at the next member whenever it ends. */
class Watch {
  readonly seen: Event[] = [];
  next = 2;
  #at: number;
  readonly #ports: readonly number[];
  #client: GrpcClient | null = null;
  isOver = false;

  constructor(ports: readonly number[], at: number) {
    this.#ports = ports;
    this.#at = at;
    this.#begin();
  }

  #begin(): void {
    if (this.isOver) return;
    const port = this.#ports[this.#at++ % this.#ports.length] ?? 0;
    const client = grpcClient(connect({ port }));
    this.#client = client;
    const call = client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, end) => {
        const shown = showWatch(bytes, start, end);
        assert(!shown.canceled, 'nothing was compacted');
        for (const event of shown.events.map(eventOf)) {
          this.seen.push(event);
          this.next = event.revision + 1;
        }
        const isProgress = shown.events.length === 0 && !shown.created;
        if (isProgress) this.next = Math.max(this.next, shown.revision + 1);
      },
      onStatus: () => {
        client.connection.destroy();
        setTimeout(() => this.#begin(), 50).unref();
      },
    });
    call.send(encode([[1, watchFields(this.next)]]));
  }

  /** Leaves its member for the next one. */
  move(): void {
    this.#client?.connection.destroy();
  }

  end(): void {
    this.isOver = true;
    this.#client?.connection.destroy();
  }
}

function watchFields(from: number): Fields {
  return [
    [1, '\0'],
    [2, '\0'],
    [3, from],
    [4, 1],
  ];
}

/** `PUT key mod create/version/lease=value`. */
function eventOf(text: string): Event {
  const [, type, key = '', mod = '', value = ''] =
    /^(\w+) (\S+) (\d+) [^=]*=(.*)$/.exec(text) ?? [];
  return { revision: Number(mod), key, value: type === 'DELETE' ? null : value };
}

class Scene {
  readonly random: Random;
  readonly operations: Operation[] = [];
  attempts = 0;
  readonly members: MemberProcess[];
  readonly #engine: Engine;
  readonly faults: Map<string, number> = new Map();

  constructor(seed: number, members: MemberProcess[], engine: Engine) {
    this.random = new Random(seed);
    this.members = members;
    this.#engine = engine;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** Until so many more operations were answered. */
  async progress(count: number): Promise<void> {
    const done = (): number => this.operations.filter(({ revision }) => revision !== null).length;
    const enough = done() + count;
    const endMs = performance.now() + PATIENCE_MS;
    while (done() < enough) {
      assert(performance.now() < endMs, 'the group does not go on');
      await this.#pause(20);
    }
  }

  async #leader(): Promise<MemberProcess | undefined> {
    for (const member of this.members) {
      const answer = await fetch(`http://127.0.0.1:${member.port}/metrics`).catch(() => null);
      const text = (await answer?.text()) ?? '';
      if (/^etcd_server_is_leader 1$/m.test(text)) return member;
    }
    return undefined;
  }

  async fault(): Promise<void> {
    // Mostly of the one that leads.
    const leader = this.random.below(3) > 0 ? await this.#leader() : undefined;
    const member = leader ?? this.members[this.random.below(this.members.length)];
    const { signal } = this.#engine;
    const drawn = this.random.below(signal === null ? 6 : 8);
    assert(member !== undefined);
    const note = (what: string): void => {
      const isLeader = member === leader ? ', which leads' : '';
      if (process.env['MEGAPLANE_VERBOSE'] === '1')
        console.error(`${what} ${member.name}${isLeader}`);
      this.faults.set(what, (this.faults.get(what) ?? 0) + 1);
    };
    if (drawn < 3) {
      note('kill');
      await member.end('SIGKILL');
      await this.#pause(this.random.below(2 * LEASE_MS));
      assert(await member.begin(), 'a member does not start again');
    } else if (drawn < 5) {
      note('stop');
      member.pause();
      await this.#pause(this.random.below(3 * LEASE_MS));
      member.goOn();
    } else if (drawn < 6) {
      note('leave');
      await member.end('SIGTERM');
      assert(await member.begin(), 'a member does not start again');
    } else if (drawn < 7) {
      note('stop the engine');
      signal?.('SIGSTOP');
      await this.#pause(this.random.below(2 * LEASE_MS));
      signal?.('SIGCONT');
    } else {
      note('kill the engine');
      signal?.('SIGKILL');
      await this.#pause(this.random.below(500));
      await this.#engine.restart();
    }
  }

  /** Everything that ever happened; a member that has just lost its lead is away for a moment. */
  async history(port: number): Promise<Event[]> {
    const endMs = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.#history(port);
      } catch (error) {
        if (performance.now() > endMs) throw error;
        await this.#pause(100);
      }
    }
  }

  async #history(port: number): Promise<Event[]> {
    const top = Math.max(...this.operations.map(({ revision }) => revision ?? 0));
    const events: Event[] = [];
    const client = grpcClient(connect({ port }));
    await new Promise<void>((resolve, reject) => {
      const call = client.open('/etcdserverpb.Watch/Watch', {
        onMessage: (_call, bytes, start, end) => {
          const shown = showWatch(bytes, start, end);
          events.push(...shown.events.map(eventOf));
          if (shown.events.length === 0 && !shown.created && shown.revision >= top) resolve();
        },
        onStatus: (_call, status) => reject(new Error(status.message)),
      });
      call.send(encode([[1, watchFields(2)]]));
    });
    client.connection.destroy();
    return events;
  }
}

for (const kind of ENGINES.filter(({ name }) => name !== 'simulated')) {
  void test(
    `three members on ${kind.name}, killed and stopped, lose nothing and contradict nothing`,
    { skip: kind.missing },
    async (t) => {
      const engine = await kind.start();
      const members = await Promise.all(
        ['a', 'b', 'c'].map((name) => MemberProcess.start(name, engine.url, LEASE_MS)),
      );
      const seed = Number(process.env['MEGAPLANE_SEED'] ?? 3);
      const scene = new Scene(seed, members, engine);
      const ports = members.map(({ port }) => port);
      const clients = ports.flatMap((port) =>
        Array.from({ length: CLIENTS_EACH }, () => new Client(port, scene)),
      );
      const watches = ports.map((_, at) => new Watch(ports, at));
      const running = clients.map((client) => client.run());
      try {
        await scene.progress(100);
        for (let i = 0; i < FAULTS; i++) {
          await scene.fault();
          await scene.progress(30);
          watches[scene.random.below(watches.length)]?.move();
        }
        for (const client of clients) client.isOver = true;
        await Promise.all(running);
        const histories = await Promise.all(ports.map((port) => scene.history(port)));
        const [events = []] = histories;
        for (const other of histories) assert.deepEqual(other, events);
        assertLinearizable(scene.operations, events);
        for (const { seen } of watches) {
          assert(seen.length > 0, 'a watch saw nothing');
          assertWatched(seen, events, 2);
        }
        const faults = [...scene.faults].map(([what, count]) => `${what} ${count}`).join(', ');
        t.diagnostic(`${scene.operations.length} operations; ${faults}`);
      } finally {
        for (const watch of watches) watch.end();
        for (const client of clients) client.isOver = true;
        for (const member of members) await member.end('SIGKILL');
        await engine.stop();
      }
    },
  );
}
