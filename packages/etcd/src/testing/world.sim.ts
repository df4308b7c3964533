/**
 * The whole server in one thread under a seed: clients, network, clock, disk and the log's thread
 * move by random steps; faults of all of them are steps too. Every answer is compared with a naive
 * model as it is made, every arrival is held against what a crash leaves.
 */
import assert from 'node:assert/strict';
import { Random } from '@megaplane/base/random';
import { type Change, Model, type Version } from '@megaplane/store/model.sim';
import { type SimulatedOptions, SimulatedStore } from '@megaplane/store/simulated-store.sim';
import type { Durability } from '@megaplane/store/contract';
import type { InPlaceHandler } from '@megaplane/wire/grpc';
import { EtcdContext } from '../call/context.ts';
import { type Fields, encode } from './peer.sim.ts';
import { registerLease } from '../lease/lease.ts';
import { deleteHandler, putHandler } from '../kv/put.ts';
import { rangeHandler } from '../kv/range.ts';
import { txnHandler } from '../kv/txn.ts';
import { showWatch } from '../watch/watch-peer.sim.ts';
import { WatchService } from '../watch/watch.ts';
import { type Answer, readAnswer } from './answer.sim.ts';
import { SimulatedCall, SimulatedConnection, runUnary } from './network.sim.ts';
import { Watcher } from './watcher.sim.ts';

const CLIENTS = 3;
const KEYS = ['/f/a', '/f/b', '/b/a', '/b/b', '/n/a', '/n/b', '/x/a', '/x/b'] as const;
const RANGES = ['/f/', '/b/', '/n/', '/x/', '/', '\0'] as const;
const MODES: readonly Durability[] = ['none', 'buffered', 'fsync'];
const LEASES = [1, 2, 3] as const;
/** Longer than any run: none ends by itself. */
const LEASE_TTL_S = 1_000_000;
const LIMITS = { txnOpsMax: 128, requestBytesMax: 1_572_864, quotaBytes: 0 };

interface Stream {
  readonly call: SimulatedCall;
  readonly watchers: Map<string, Watcher>;
}

interface Client {
  connection: SimulatedConnection;
  stream: Stream | null;
}

interface Server {
  readonly sim: SimulatedStore;
  readonly watches: WatchService;
  readonly range: InPlaceHandler;
  readonly put: InPlaceHandler;
  readonly remove: InPlaceHandler;
  readonly txn: InPlaceHandler;
  readonly grant: InPlaceHandler;
  readonly revoke: InPlaceHandler;
}

export class World {
  readonly #random: Random;
  readonly #options: SimulatedOptions;
  readonly #clock = { nowMs: 1000 };
  #boot = 1;
  #model = new Model();
  #server: Server;
  readonly #clients: Client[];
  /** Watches that lost their connection and will be made again. */
  #orphans: Watcher[] = [];
  #nextId = 1;
  #counter = 0;
  /** The highest revision that any client was told. */
  #told = 1;
  /** Records that clients were told of: acknowledged, read or watched. */
  readonly #shown: Map<string, Version> = new Map();
  #crashes = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    const base = this.#one(MODES);
    this.#options = {
      durability: base,
      prefixes: [
        { prefix: '/f/', durability: 'fsync' },
        { prefix: '/b/', durability: 'buffered' },
        { prefix: '/n/', durability: 'none' },
      ],
    };
    this.#server = this.#start(new Map());
    this.#clients = Array.from({ length: CLIENTS }, () => this.#newClient());
  }

  get crashes(): number {
    return this.#crashes;
  }

  #one<T>(all: readonly T[]): T {
    const found = all[this.#random.below(all.length)];
    assert(found !== undefined);
    return found;
  }

  #newClient(): Client {
    return { connection: new SimulatedConnection(), stream: null };
  }

  #start(files: ReadonlyMap<string, Buffer>): Server {
    const random = this.#random.fork(`disk ${this.#boot} ${this.#crashes}`);
    const sim = new SimulatedStore(this.#options, files, random, this.#clock, this.#boot);
    const context = new EtcdContext(sim.store, LIMITS, sim, () => this.#clock.nowMs);
    return {
      sim,
      watches: new WatchService(context),
      range: rangeHandler(context),
      put: putHandler(context),
      remove: deleteHandler(context),
      txn: txnHandler(context),
      ...leaseHandlers(context),
    };
  }

  /** One step of anything. */
  step(): void {
    const steps: readonly (readonly [number, () => void])[] = [
      [10, () => this.#write()],
      [1, () => this.#grant()],
      [1, () => this.#revoke()],
      [4, () => this.#read()],
      [3, () => this.#watch()],
      [1, () => this.#compact()],
      [8, () => this.#server.sim.endTurn()],
      [10, () => this.#server.sim.thread.step()],
      [8, () => this.#server.sim.thread.hear()],
      [14, () => this.#one(this.#clients).connection.deliver()],
      [4, () => this.#tick()],
      [1, () => this.#server.sim.snapshot()],
      [1, () => this.#cutConnection(this.#one(this.#clients))],
      [1, () => this.#askProgress()],
    ];
    const total = steps.reduce((sum, [weight]) => sum + weight, 0);
    let drawn = this.#random.below(total);
    for (const [weight, run] of steps) {
      drawn -= weight;
      if (drawn >= 0) continue;
      run();
      break;
    }
    this.#maybeFault();
  }

  #maybeFault(): void {
    const { disk } = this.#server.sim;
    const drawn = this.#random.below(400);
    if (drawn === 0) disk.faults.failsFlush = true;
    if (drawn === 1) disk.faults.spaceBytes = this.#random.below(3000);
    const hasFailed = this.#server.sim.failure !== null;
    // A process that says its log has failed ends, be it killed or cut off.
    if (drawn < 8 || (hasFailed && this.#random.below(10) === 0)) this.crash();
  }

  /**
   * The process is asked to end while clients go on, and is killed or cut off at any point of that.
   * What was shown before, or is shown on the way, must be there afterwards.
   */
  async stop(): Promise<void> {
    const { sim } = this.#server;
    const { faults } = sim.disk;
    const isOver = { value: false };
    void sim.close().then(() => (isOver.value = true));
    const end = this.#random.below(120);
    for (let i = 0; i < end; i++) {
      const steps: readonly (() => void)[] = [
        () => sim.thread.step(),
        () => sim.thread.hear(),
        () => sim.thread.goOn(),
        () => sim.tick((this.#clock.nowMs += this.#random.below(80))),
        () => this.#one(this.#clients).connection.deliver(),
        () => this.#read(),
        () => this.#watch(),
        () => (isOver.value ? undefined : this.#write()),
      ];
      this.#one(steps)();
      const drawn = this.#random.below(40);
      if (drawn === 0) faults.failsFlush = true;
      if (drawn === 1) faults.spaceBytes = this.#random.below(3000);
      // What the step let go on.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.crash();
  }

  #tick(): void {
    this.#clock.nowMs += this.#random.below(80);
    this.#server.sim.tick(this.#clock.nowMs);
    if (this.#random.below(3) === 0) this.#server.watches.notifyProgress();
    this.#server.watches.retryProgress();
  }

  #modeOf(key: string): Durability {
    const found = this.#options.prefixes.find(({ prefix }) => key.startsWith(prefix));
    return found?.durability ?? this.#options.durability;
  }

  #changes(): Change[] {
    const count = 1 + this.#random.below(3);
    const keys = new Set(Array.from({ length: count }, () => this.#one(KEYS)));
    return [...keys].map((key) =>
      this.#random.below(4) === 0
        ? { kind: 'delete', key }
        : { kind: 'put', key, value: this.#value(), lease: this.#lease() },
    );
  }

  /** One that is granted, or none. */
  #lease(): number {
    const id = this.#random.below(8);
    return this.#model.leases.has(id) ? id : 0;
  }

  #grant(): void {
    const id = this.#one(LEASES);
    if (this.#model.leases.has(id)) return;
    const fields: Fields = [
      [1, LEASE_TTL_S],
      [2, id],
    ];
    const outcome = runUnary(
      this.#one(this.#clients).connection,
      this.#server.grant,
      encode(fields),
    );
    if (outcome.kind === 'ok') this.#model.leases.add(id);
    else assert(this.#server.sim.failure !== null, `not granted: ${outcome.text}`);
  }

  #revoke(): void {
    const id = this.#one(LEASES);
    if (!this.#model.leases.has(id) || this.#server.sim.failure !== null) return;
    const before = this.#model.revision;
    const { connection } = this.#one(this.#clients);
    const outcome = runUnary(connection, this.#server.revoke, encode([[1, id]]));
    assert.equal(outcome.kind, 'ok');
    const revision = this.#model.revoke(id);
    assert.equal(this.#server.sim.store.appliedRevision, revision, 'the revision of a revocation');
    const made = this.#model.history.filter(({ mod }) => mod > before);
    connection.send(() => this.#arrived(revision, made));
  }

  #value(): string {
    const size = this.#random.below(20) === 0 ? 3000 : this.#random.below(12);
    return `${++this.#counter}`.padEnd(size, 'v');
  }

  #write(): void {
    const changes = this.#changes();
    const single = changes.length === 1 ? changes[0] : undefined;
    if (single !== undefined && this.#random.below(2) === 0) {
      this.#run(...this.#plain(single), changes);
      return;
    }
    const compared = this.#one(KEYS);
    const found = this.#model.live(compared)?.mod ?? 0;
    const expected = this.#random.below(4) === 0 ? found + 1 : found;
    const compare: Fields = [
      [2, 2],
      [3, compared],
      [6, expected],
    ];
    const ops = changes.map((change) => [2, this.#op(change)] as const);
    const fields: Fields = [[1, compare], ...ops];
    this.#run(this.#server.txn, fields, expected === found ? changes : []);
  }

  #plain(change: Change): [InPlaceHandler, Fields] {
    if (change.kind === 'delete') return [this.#server.remove, [[1, change.key]]];
    return [this.#server.put, putFields(change)];
  }

  #op(change: Change): Fields {
    if (change.kind === 'delete') return [[3, [[1, change.key]]]];
    return [[2, putFields(change)]];
  }

  /** A write, its effect on the model, and its answer on the way. */
  #run(handler: InPlaceHandler, fields: Fields, changes: readonly Change[]): void {
    const { connection } = this.#one(this.#clients);
    const before = this.#server.sim.store.appliedRevision;
    const outcome = runUnary(connection, handler, encode(fields));
    if (outcome.kind === 'failed') {
      assert.equal(
        this.#server.sim.store.appliedRevision,
        before,
        'a refused write changed something',
      );
      assert(this.#server.sim.failure !== null, `refused: ${outcome.text}`);
      return;
    }
    const revision = this.#model.apply(changes);
    const answer = readAnswer(outcome.bytes);
    assert.equal(answer.revision, revision, 'the revision of a write');
    const made = this.#model.history.filter(({ mod }) => mod > before);
    connection.send(() => this.#arrived(answer.revision, made));
  }

  #arrived(revision: number, versions: readonly Version[]): void {
    this.#told = Math.max(this.#told, revision);
    for (const version of versions) this.#shown.set(`${version.mod} ${version.key}`, version);
  }

  #read(): void {
    const { connection } = this.#one(this.#clients);
    const start = this.#one(RANGES);
    const end = start === '\0' ? '\0' : endOf(start);
    const { store } = this.#server.sim;
    const back = this.#random.below(3) === 0 ? this.#random.below(10) : 0;
    const revision = back === 0 ? 0 : Math.max(1, store.appliedRevision - back);
    const both = Buffer.from(start + end, 'latin1');
    const bounds = [start.length, start.length, both.length] as const;
    const boundary = store.compactRevisionOf(both, 0, ...bounds);
    const fields: Fields = [
      [1, start],
      [2, end],
      [4, revision],
    ];
    const outcome = runUnary(connection, this.#server.range, encode(fields));
    if (revision > 0 && revision < boundary) {
      assert.equal(outcome.kind, 'failed');
      return;
    }
    assert.equal(outcome.kind, 'ok');
    const answer = outcome.kind === 'ok' ? readAnswer(outcome.bytes) : NOTHING;
    const expected = this.#model.range(start, end, revision === 0 ? undefined : revision);
    assert.deepEqual(answer.kvs, expected.map(shownVersion), `range ${start} at ${revision}`);
    assert.equal(answer.revision, this.#model.revision);
    connection.send(() => this.#arrived(answer.revision, expected));
  }

  #compact(): void {
    const { store } = this.#server.sim;
    const revision = store.appliedRevision - this.#random.below(15);
    if (revision > store.compactRevision && revision > 1) store.compact(revision);
  }

  #streamOf(client: Client): Stream {
    if (client.stream !== null) return client.stream;
    const watchers = new Map<string, Watcher>();
    const call = new SimulatedCall(client.connection, (bytes) => this.#heard(watchers, bytes));
    call.accept(this.#server.watches.factory(call));
    client.stream = { call, watchers };
    return client.stream;
  }

  #heard(watchers: Map<string, Watcher>, bytes: Buffer): void {
    const shown = showWatch(bytes, 0, bytes.length);
    this.#told = Math.max(this.#told, shown.revision);
    if (shown.id === '-1') {
      for (const watcher of watchers.values()) {
        if (watcher.isCreated && !watcher.isOver) watcher.progress(shown.revision, this.#model);
      }
      return;
    }
    const watcher = watchers.get(shown.id);
    assert(watcher !== undefined, `nobody watches ${shown.id}`);
    const before = watcher.seen.length;
    if (!shown.created && !shown.canceled) this.#assertAllSeenExists(watcher);
    watcher.take(shown, this.#model);
    this.#arrived(shown.revision, watcher.seen.slice(before));
    if (watcher.isOver) watchers.delete(shown.id);
  }

  /** A watch that goes on must not have been told what never happened. */
  #assertAllSeenExists(watcher: Watcher): void {
    const isGone = ({ mod, key }: Version): boolean =>
      mod > this.#model.compacted &&
      !this.#model.history.some((version) => version.mod === mod && version.key === key);
    assert.deepEqual(watcher.seen.filter(isGone), [], 'a watch goes on though its past is lost');
  }

  #watch(): void {
    const { call, watchers } = this.#streamOf(this.#one(this.#clients));
    const orphan = this.#orphans.shift();
    const start = this.#one(RANGES);
    const revision = this.#server.sim.store.appliedRevision;
    const from = this.#random.below(2) === 0 ? 0 : Math.max(1, revision - this.#random.below(12));
    const watcher = orphan ?? new Watcher(start, start === '\0' ? '\0' : endOf(start), from);
    const id = this.#nextId++;
    watchers.set(`${id}`, watcher);
    watcher.isCreated = false;
    const notify = this.#random.below(2);
    const { start: key, end, next } = watcher;
    call.request(
      encode([
        [
          1,
          [
            [1, key],
            [2, end],
            [3, next],
            [4, notify],
            [7, id],
          ],
        ],
      ]),
    );
  }

  /** Often of the client for whom most waits: there progress is ahead of events most easily. */
  #askProgress(): void {
    const byWaiting = this.#clients.toSorted((a, b) => b.connection.pending - a.connection.pending);
    const isAny = this.#random.below(2) === 0;
    const { stream } = this.#one(isAny ? byWaiting : byWaiting.slice(0, 1));
    stream?.call.request(encode([[3, []]]));
  }

  #cutConnection(client: Client): void {
    client.connection.cut();
    client.stream?.call.cancel('disconnected');
    for (const watcher of client.stream?.watchers.values() ?? []) {
      if (!watcher.isOver && watcher.next > 0) this.#orphans.push(watcher);
    }
    client.connection = new SimulatedConnection();
    client.stream = null;
  }

  /** The process is killed, or the machine goes down, and starts again. */
  crash(): void {
    const isPowerCut = this.#random.below(2) === 0;
    this.#crashes++;
    if (isPowerCut) this.#boot++;
    for (const client of this.#clients) this.#cutConnection(client);
    const files = this.#server.sim.disk.survivors(isPowerCut);
    this.#server = this.#start(files);
    const { store } = this.#server.sim;
    const kept = this.#server.sim.lastRevision;
    for (const { key, mod } of this.#shown.values()) {
      const mode = this.#modeOf(key);
      const isPromised = mode === 'fsync' || (mode === 'buffered' && !isPowerCut);
      const what = isPowerCut ? 'a power cut' : 'a kill';
      assert(
        !isPromised || mod <= kept,
        `${mode} ${key} at ${mod} is lost by ${what}; ${kept} is left`,
      );
    }
    const revision = store.appliedRevision;
    assert(revision >= this.#told, `${this.#told} was told, ${revision} comes again`);
    const model = new Model();
    model.revision = revision;
    model.compacted = store.compactRevision;
    const isKept = ({ key, mod }: Version): boolean => mod <= kept && this.#modeOf(key) !== 'none';
    model.history.push(...this.#model.history.filter(isKept));
    for (const id of LEASES) if (store.leases.find(0, id) !== 0) model.leases.add(id);
    const orphans = model.range('\0', '\0').filter(({ lease }) => !isHeld(lease, model));
    assert.deepEqual(orphans, [], 'a key has a lease that will never end');
    this.#model = model;
    this.#shown.clear();
    this.#compareAll();
  }

  /** The store holds exactly what the model says. */
  #compareAll(): void {
    const connection = new SimulatedConnection();
    const outcome = runUnary(
      connection,
      this.#server.range,
      encode([
        [1, '\0'],
        [2, '\0'],
      ]),
    );
    const found = outcome.kind === 'ok' ? readAnswer(outcome.bytes).kvs : [];
    assert.deepEqual(found, this.#model.range('\0', '\0').map(shownVersion), 'after a restart');
  }
}

function isHeld(lease: number, model: Model): boolean {
  return lease === 0 || model.leases.has(lease);
}

function putFields({ key, value, lease }: Extract<Change, { kind: 'put' }>): Fields {
  return [
    [1, key],
    [2, value],
    [3, lease],
  ];
}

/** The two handlers of leases that the world calls. */
function leaseHandlers(context: EtcdContext): Pick<Server, 'grant' | 'revoke'> {
  const handlers = new Map<string, InPlaceHandler>();
  const methods = {
    unary: (path: string, handler: InPlaceHandler) => void handlers.set(path, handler),
    call: () => {},
  };
  registerLease(methods, context, () => ({ high: 0, low: 99 }));
  const named = (name: string): InPlaceHandler => {
    const found = handlers.get(`/etcdserverpb.Lease/${name}`);
    assert(found !== undefined);
    return found;
  };
  return { grant: named('LeaseGrant'), revoke: named('LeaseRevoke') };
}

const NOTHING: Answer = { revision: 0, kvs: [] };

function endOf(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

function shownVersion({ key, mod, create, version, value }: Version): string {
  return `${key} ${mod} ${create}/${version}=${value}`;
}
