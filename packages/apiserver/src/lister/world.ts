/** What every part of the server shares: storage, time, chance, and who is waiting for what. */
import type { Storage } from '../storage/storage.ts';
import type { Served } from '../storage/served.ts';
import { rangeOf } from '../storage/served.ts';
import { Kinds } from '../apiextensions/schema/kind-registry.ts';
import { KeptEncodings, type KeptSpace } from '../serializer/kept-encodings.ts';
import { ListCounts } from '../watchcache/list-counts.ts';
import { WatchHub } from '../watchcache/watch-hub.ts';
import type { YamlOutcome, YamlSender } from '../request/yaml/yaml-thread.ts';

/** How long a read waits for a revision that does not exist yet (upstream's 3 s). */
export const FRESH_WAIT_MS = 3000;

/** The edge to the machine, given by the shell. */
export interface Edge {
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** A uniform integer in `[0, n)`. */
  below(n: number): number;
  /** A random UUID, version 4. */
  uuid(): string;
  /** Runs `work` in a later turn, after sockets had theirs. */
  defer(work: () => void): void;
  /** Runs a piece of long work in a later turn; pieces leave room for what is short. */
  deferPiece(work: () => void): void;
  /**
   * Runs a piece at once if the turn has room for it; otherwise calls `waits`, and runs it in a
   * later turn. Absent: there is always room.
   */
  runPiece?(work: () => void, waits: () => void): void;
  /**
   * Takes the steps of long work in as many turns as they need, then calls `done`; `waits` is
   * called where that is a later turn. Absent: there is always room.
   */
  walk?(steps: Iterator<void>, waits: () => void, done: () => void): void;
  /**
   * Reads a long document beside what this thread does, and tells of it in a later turn: null where
   * it took too long. Absent: documents are read at once.
   */
  readYaml?(body: Uint8Array, sender: YamlSender, done: (outcome: YamlOutcome) => void): void;
}

interface Waiter {
  readonly revision: number;
  readonly deadlineMs: number;
  readonly done: (reached: boolean) => void;
}

export class World {
  /** Others only while `staged` runs. */
  storage: Storage;
  edge: Edge;
  /** What is served; the same however one looks at the world. */
  readonly kinds: Kinds;
  readonly #hubs = new Map<string, WatchHub>();
  /** One budget for this world and all views of it; each has spaces of its own. */
  #encodings = new KeptEncodings();
  readonly #spaces = new Map<string, KeptSpace | null>();
  /** What lists were answered, here and elsewhere. */
  lists: ListCounts = new ListCounts();
  #waiters: Waiter[] = [];
  #unpublished: { readonly revision: number; readonly done: () => void }[] = [];
  /** Of resources that are kept elsewhere, by prefix: the same world on another storage. */
  readonly #elsewhere = new Map<string, World>();

  constructor(storage: Storage, edge: Edge, kinds: Kinds = new Kinds()) {
    this.storage = storage;
    this.edge = edge;
    this.kinds = kinds;
    storage.onPublish(() => this.#checkWaiters(edge.nowMs()));
  }

  /** Runs `work`, which must end in this turn, with another storage and edge; see `repeat/`. */
  staged(storage: Storage, edge: Edge, work: () => void): void {
    const own = { storage: this.storage, edge: this.edge };
    this.storage = storage;
    this.edge = edge;
    try {
      work();
    } finally {
      this.storage = own.storage;
      this.edge = own.edge;
    }
  }

  /** The hub of all watches of the objects that `served` shows. */
  hubOf(served: Served): WatchHub {
    const { prefix } = served;
    let hub = this.#hubs.get(prefix);
    if (hub === undefined) {
      const range = rangeOf(served, '');
      hub = new WatchHub(
        this.storage,
        range,
        prefix.length,
        (work) => this.edge.deferPiece(work),
        () => this.edge.below(2 ** 32),
      );
      this.#hubs.set(prefix, hub);
    }
    return hub;
  }

  /** Watches that may be shown a change of this object. */
  watchesOf({ prefix }: Served, namespace: string, name: string): number {
    return this.#hubs.get(prefix)?.countFor(namespace, name) ?? 0;
  }

  get hubs(): ReadonlyMap<string, WatchHub> {
    const views = [...this.#elsewhere.values()].flatMap((world) => [...world.#hubs]);
    return views.length === 0 ? this.#hubs : new Map([...this.#hubs, ...views]);
  }

  /**
   * The world as requests for `served` see it: revisions are those of the storage that keeps it.
   * Objects of other kinds are read where they are kept, whichever world one looks through.
   */
  at(served: Served): World {
    const { prefix } = served;
    const shown = this.kinds.viewOf(served);
    const home = shown ?? this.storageOf(prefix);
    if (home === this.storage) return this;
    // versions that are made of others are worlds of their own, with watches of their own
    const place = shown === null ? prefix : `${prefix} ${served.resource.version}`;
    let view = this.#elsewhere.get(place);
    if (view?.storage !== home) {
      this.#elsewhere.set(place, (view = new World(home, this.edge, this.kinds)));
      view.#encodings = this.#encodings;
      view.lists = this.lists;
    }
    return view;
  }

  /** Encodings of the kind's objects in a representation, where there is room for another one. */
  keptOf(served: Served, representation: string): KeptSpace | null {
    const id = `${served.prefix} ${representation}`;
    let space = this.#spaces.get(id);
    if (space === undefined) this.#spaces.set(id, (space = this.#encodings.space()));
    return space;
  }

  /** What keeps the keys under a prefix. */
  storageOf(prefix: string): Storage {
    return this.storage.homeOf?.(prefix) ?? this.storage;
  }

  /**
   * Ends the watches of a kind that is no longer served as it was, and forgets its hub. What they
   * show is up to `lastRevision`, or to now.
   */
  dropHub(prefix: string, lastRevision?: number): void {
    this.#dropOwnHub(prefix, lastRevision);
    for (const [place, world] of this.#elsewhere) {
      if (place !== prefix && !place.startsWith(`${prefix} `)) continue;
      world.#dropOwnHub(prefix, lastRevision);
      this.#elsewhere.delete(place);
    }
  }

  #dropOwnHub(prefix: string, lastRevision: number = this.storage.publishedRevision): void {
    const hub = this.#hubs.get(prefix);
    // what happened to the last objects comes before the end
    hub?.endAt(lastRevision);
    this.#hubs.delete(prefix);
  }

  /** Ends all watches cleanly. */
  endWatches(): void {
    for (const world of [this, ...this.#elsewhere.values()]) {
      for (const hub of world.#hubs.values()) hub.endAll();
    }
  }

  /** Calls `done(true)` once `revision` exists, at once if it does, or `done(false)` after 3 s. */
  whenFresh(revision: number, done: (reached: boolean) => void): void {
    if (revision <= this.storage.appliedRevision) {
      done(true);
      return;
    }
    this.#waiters.push({ revision, deadlineMs: this.edge.nowMs() + FRESH_WAIT_MS, done });
    // another server has shown it: what is followed may be quiet, and has to be asked how far it is
    if (this.storage.isShared) {
      this.storage.refresh(null, () => this.#checkWaiters(this.edge.nowMs()));
    }
  }

  /** Calls `done` once `revision` is published: at once if it is, else in a turn after that. */
  whenPublished(revision: number, done: () => void): void {
    if (revision <= this.storage.publishedRevision) done();
    else this.#unpublished.push({ revision, done });
  }

  #checkWaiters(nowMs: number): void {
    this.#checkUnpublished();
    if (this.#waiters.length === 0) return;
    const applied = this.storage.appliedRevision;
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiting) {
      if (waiter.revision <= applied) waiter.done(true);
      else if (nowMs >= waiter.deadlineMs) waiter.done(false);
      else this.#waiters.push(waiter);
    }
  }

  /** Watches are told after this was called, so who waited goes on in another turn. */
  #checkUnpublished(): void {
    if (this.#unpublished.length === 0) return;
    const published = this.storage.publishedRevision;
    const waiting = this.#unpublished;
    this.#unpublished = [];
    for (const waiter of waiting) {
      if (waiter.revision <= published) this.edge.defer(waiter.done);
      else this.#unpublished.push(waiter);
    }
  }

  /** About once a second. */
  tick(nowMs: number): void {
    this.#encodings.tick();
    this.#tickHubs(nowMs);
  }

  #tickHubs(nowMs: number): void {
    this.#checkWaiters(nowMs);
    for (const hub of this.#hubs.values()) hub.tick(nowMs);
    for (const world of this.#elsewhere.values()) world.#tickHubs(nowMs);
  }
}
