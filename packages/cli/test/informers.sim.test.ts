/**
 * An API server, its store and hundreds of informers (a thousand with MEGAPLANE_LONG) in one
 * process, under one seeded clock: writes go on while streams stall and are cut, history is forgotten
 * and the server is started anew. At the end each informer must hold exactly what a list of the same
 * selection shows.
 *
 * A failure prints its seed; `MEGAPLANE_SEED=n` plays it again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiServer } from '@megaplane/apiserver/assembly';
import { EmbeddedStorage } from '@megaplane/apiserver/embedded-storage';
import { ExchangeModel } from '@megaplane/apiserver/exchange-model.sim';
import type { ApiServer } from '@megaplane/apiserver/server';
import { Random } from '@megaplane/base/random';
import type { Client, ClientMetrics, StreamHandle, StreamSink } from '@megaplane/client/client';
import { createInformer, type Informer } from '@megaplane/client/informer';
import { shardOf } from '@megaplane/machinery/sharding/selector';
import { Store } from '@megaplane/store/store';
import { FakeTimers } from '../../client/test/fake-timers.ts';
import { SimulatedLine } from './simulated-line.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const INFORMERS = IS_LONG ? 1000 : 250;
const ROUNDS = IS_LONG ? 100 : 15;
const RUNS = IS_LONG ? 3 : 1;
const WINDOW_BYTES: number = 16 * 1024;
const MERGE = { 'content-type': 'application/merge-patch+json' };

class Simulation implements Client {
  readonly timers: FakeTimers = new FakeTimers();
  readonly metrics: ClientMetrics = undefined as unknown as ClientMetrics;
  readonly retryAfterSeconds = 0;
  readonly store: Store;
  readonly lines: Set<SimulatedLine> = new Set();
  readonly #random: Random;
  readonly #later: (() => void)[] = [];
  #server: ApiServer;
  #uuids = 0;
  isDown = false;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
    this.#server = this.#start();
  }

  #start(): ApiServer {
    const storage = new EmbeddedStorage(this.store, () => Promise.resolve());
    const edge = {
      nowMs: () => this.timers.nowMs(),
      below: (count: number) => this.below(count),
      uuid: () => this.#uuid(),
      defer: (work: () => void) => void this.#later.push(work),
      deferPiece: (work: () => void) => void this.#later.push(work),
    };
    return createApiServer({ storage, edge, address: '127.0.0.1:6443' });
  }

  #uuid(): string {
    const head = (this.#random.int32() >>> 0).toString(16).padStart(8, '0');
    return `${head}-0000-4000-8000-${String(++this.#uuids).padStart(12, '0')}`;
  }

  random(): number {
    return this.#random.next();
  }

  below(count: number): number {
    return this.#random.below(count);
  }

  ask(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): ExchangeModel {
    const exchange = new ExchangeModel(method, path, body, headers);
    this.#server.handle(exchange);
    return exchange;
  }

  stream(path: string, sink: StreamSink): StreamHandle {
    const line = new SimulatedLine(path, sink, {}, WINDOW_BYTES);
    if (this.isDown) {
      line.isOver = true;
      this.#later.push(() => sink.onEnd('cannot reach the server'));
      return line;
    }
    this.lines.add(line);
    this.#server.handle(line);
    return line;
  }

  /** The end of a turn: the store tells its news, and what was put off happens. */
  settle(): void {
    this.store.flush();
    for (let turns = this.#later.length; turns > 0; turns--) this.#later.shift()?.();
  }

  get isBusy(): boolean {
    return this.#later.length > 0;
  }

  pass(ms: number): void {
    this.timers.advance(ms);
    this.#server.tick(this.timers.nowMs());
    this.store.tick(this.timers.nowMs());
    this.settle();
  }

  /** Moves bytes on each line, each as much as `room` says. */
  pump(room: (line: SimulatedLine) => number): boolean {
    let hasMoved = false;
    for (const line of Array.from(this.lines)) {
      if (line.isOver) this.lines.delete(line);
      else hasMoved = line.pump(room(line)) || hasMoved;
    }
    return hasMoved;
  }

  cutAll(): void {
    for (const line of Array.from(this.lines)) line.cut();
    this.lines.clear();
  }

  /** Everything is cut; the objects are those of before, the server knows nothing else. */
  restart(): void {
    this.cutAll();
    this.#server.drain();
    this.#server = this.#start();
  }

  send(): boolean {
    throw new Error('informers only stream');
  }
  request(): never {
    throw new Error('informers only stream');
  }
  room(): number {
    return 0;
  }
  onRoom(): void {}
  close(): void {}
}

const NAMESPACES = ['a', 'b', 'c'] as const;
const pathOf = (namespace: string): string =>
  namespace === '' ? '/api/v1/configmaps' : `/api/v1/namespaces/${namespace}/configmaps`;

interface Follower {
  readonly path: string;
  readonly selection: Readonly<Record<string, string>>;
  readonly informer: Informer;
}

function follow(simulation: Simulation, index: number): Follower {
  const path = pathOf(index % 4 === 0 ? '' : (NAMESPACES[index % 3] ?? 'a'));
  const selections: readonly Readonly<Record<string, string>>[] = [
    {},
    { labelSelector: `x=${index % 5}` },
    { labelSelector: `x in (${index % 5},${index % 3}),y` },
    { fieldSelector: `metadata.name=m-${index % 40}` },
    { shardSelector: shardOf(index % 3, 3) },
    { shardSelector: shardOf(index % 40, 40) },
    { shardSelector: shardOf(index % 2, 2, 'namespace'), labelSelector: '!y' },
  ];
  const selection = selections[index % selections.length] ?? {};
  const handler = { onUpsert: () => undefined, onDelete: () => undefined };
  const informer = createInformer({ client: simulation, path, ...selection, handler });
  informer.start();
  return { path, selection, informer };
}

function write(simulation: Simulation): void {
  const namespace = NAMESPACES[simulation.below(3)] ?? 'a';
  const name = `m-${simulation.below(40)}`;
  const path = `${pathOf(namespace)}/${name}`;
  if (simulation.below(4) === 0) {
    simulation.ask('DELETE', path);
    return;
  }
  const labels = { x: String(simulation.below(5)), y: simulation.below(2) === 0 ? null : '1' };
  const data = { k: 'v'.repeat(simulation.below(300)) };
  const patched = simulation.ask('PATCH', path, { metadata: { labels }, data }, MERGE);
  if (patched.status !== 404) return;
  const own = labels.y === null ? { x: labels.x } : labels;
  const made = simulation.ask('POST', pathOf(namespace), { metadata: { name, labels: own }, data });
  assert.equal(made.status, 201, made.text);
}

/** One round of writes, and of what goes wrong meanwhile. */
function play(simulation: Simulation): void {
  for (let count = simulation.below(12); count > 0; count--) write(simulation);
  simulation.settle();
  for (const line of simulation.lines) {
    if (simulation.below(60) === 0) line.stalledRounds = simulation.below(20);
    if (simulation.below(150) === 0) line.cut();
  }
  simulation.isDown = simulation.below(15) === 0;
  const trouble = simulation.below(12);
  if (trouble === 0) simulation.restart();
  if (trouble === 1) simulation.cutAll();
  if (trouble === 2) simulation.store.compact(simulation.store.publishedRevision);
  simulation.pump((line) => {
    if (line.stalledRounds > 0) line.stalledRounds--;
    return line.stalledRounds > 0 ? 0 : simulation.below(8000);
  });
  simulation.pass(1 + simulation.below(trouble === 3 ? 90_000 : 3000));
}

/** Cuts everybody, goes on, and forgets what came before: all must begin anew. */
function forgetAll(simulation: Simulation): void {
  simulation.cutAll();
  for (let count = 0; count < 10; count++) write(simulation);
  simulation.settle();
  simulation.store.compact(simulation.store.publishedRevision);
}

/** All is well again, for as long as pauses after failures may be. */
function heal(simulation: Simulation): void {
  simulation.isDown = false;
  for (let step = 0; step < 50; step++) {
    simulation.settle();
    while (simulation.pump(() => Infinity) || simulation.isBusy) simulation.settle();
    simulation.pass(3000);
  }
}

function check(simulation: Simulation, { path, selection, informer }: Follower): void {
  const query = new URLSearchParams(selection).toString();
  const answer = simulation.ask('GET', `${path}?${query}`);
  simulation.settle();
  const list = JSON.parse(answer.text) as {
    items: { metadata: { namespace: string; name: string; resourceVersion: string } }[];
  };
  const wanted = list.items.map(
    ({ metadata }) => `${metadata.namespace}/${metadata.name}@${metadata.resourceVersion}`,
  );
  const held: string[] = [];
  for (let id = 0; id < informer.idLimit; id++) {
    if (informer.has(id)) held.push(`${informer.keyOf(id)}@${informer.resourceVersionOf(id)}`);
  }
  assert.deepEqual(held.sort(), wanted.sort(), `${path}?${query}`);
}

function simulate(seed: number): void {
  const simulation = new Simulation(seed);
  for (const name of NAMESPACES) {
    assert.equal(simulation.ask('POST', '/api/v1/namespaces', { metadata: { name } }).status, 201);
  }
  for (let count = 0; count < 60; count++) write(simulation);
  const followers = Array.from({ length: INFORMERS }, (_, index) => follow(simulation, index));
  for (let round = 0; round < ROUNDS; round++) {
    if (round === ROUNDS >> 1) forgetAll(simulation);
    play(simulation);
  }
  heal(simulation);
  for (const follower of followers) check(simulation, follower);
  const sum = (name: 'events' | 'expired' | 'lists'): number =>
    followers.reduce((total, { informer }) => total + informer.metrics[name], 0);
  assert.ok(sum('expired') > 0, 'history was forgotten under somebody');
  assert.ok(sum('events') > INFORMERS, 'events were told');
  for (const { informer } of followers) informer.stop();
}

test('informers end with the state of the store, whatever happened to them', () => {
  const given = process.env['MEGAPLANE_SEED'];
  const first = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  const runs = given === undefined ? RUNS : 1;
  for (let run = 0; run < runs; run++) {
    try {
      simulate(first + run);
    } catch (error) {
      throw new Error(`MEGAPLANE_SEED=${first + run} plays this again`, { cause: error });
    }
  }
});
