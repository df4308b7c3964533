/**
 * The live watches of one namespace, or of all of them, by what each asks for: one object, the pods
 * of one node, a shard, a label, or everything. Each watch stands in one table, the narrowest that
 * its request allows, so an event costs those that it may concern.
 */
import { nodeNameOf, shardHashOf } from '../request/filter.ts';
import type { StorageEvent } from '../storage/storage.ts';
import type { Watcher } from './watcher.ts';
import type { FrameCache } from './frame-cache.ts';
import { LabelBuckets, labelPlaceOf } from './label-buckets.ts';
import { ShardBuckets } from './shard-buckets.ts';

const SHARD_FIELDS = ['uid', 'namespace'] as const;

/** One watch, which is the rule for names and nodes, or several. */
type Watchers = Watcher | Set<Watcher>;

/** Who is to be shown an event; emptied after each. */
const found = new Set<Watcher>();

export class Scope {
  readonly #everything = new Set<Watcher>();
  readonly #byName = new Map<string, Watchers>();
  readonly #byNode = new Map<string, Watchers>();
  readonly #byShard = {
    uid: new ShardBuckets<Watcher>(),
    namespace: new ShardBuckets<Watcher>(),
  } as const;
  readonly #byLabel = new LabelBuckets<Watcher>();
  size = 0;
  /** Those of one object each. */
  #named = 0;
  /** States of objects that shard selectors kept from a watch (upstream's metric). */
  filtered = 0;

  add(watcher: Watcher): void {
    const { name, filter } = watcher.request;
    this.size++;
    if (name !== '') {
      this.#named++;
      addTo(this.#byName, name, watcher);
      return;
    }
    if (filter.nodeName !== null) {
      addTo(this.#byNode, filter.nodeName, watcher);
      return;
    }
    if (filter.shard !== null) {
      this.#byShard[filter.shard.field].add(watcher, filter.shard);
      return;
    }
    const place = labelPlaceOf(filter.labels);
    if (place === null) this.#everything.add(watcher);
    else this.#byLabel.add(watcher, place);
  }

  delete(watcher: Watcher): void {
    const { name, filter } = watcher.request;
    this.size--;
    if (name !== '') {
      this.#named--;
      removeFrom(this.#byName, name, watcher);
      return;
    }
    if (filter.nodeName !== null) {
      removeFrom(this.#byNode, filter.nodeName, watcher);
      return;
    }
    if (filter.shard !== null) {
      this.#byShard[filter.shard.field].delete(watcher, filter.shard);
      return;
    }
    const place = labelPlaceOf(filter.labels);
    if (place === null) this.#everything.delete(watcher);
    else this.#byLabel.delete(watcher, place);
  }

  /** Watches of everything, and of the object of this name. */
  countFor(name: string): number {
    // a name that was cut from a path is hashed for each look
    if (this.#named === 0) return this.size;
    const found = this.#byName.get(name);
    const own = found === undefined ? 0 : found instanceof Set ? found.size : 1;
    return this.size - this.#named + own;
  }

  /** True where the tables by name are in use, which need the event's name. */
  get hasNames(): boolean {
    return this.#byName.size > 0;
  }

  /** True where somebody watches what is on a node. */
  get hasNodes(): boolean {
    return this.#byNode.size > 0;
  }

  /** Shows the event to whom it may concern. `name` is empty where `hasNames` is false. */
  offer(event: StorageEvent, name: string, frames: FrameCache): void {
    const sharers = this.#everything.size;
    for (const watcher of this.#everything) watcher.offer(event, frames, sharers);
    if (name !== '') offerAll(this.#byName.get(name), event, frames);
    if (this.#byNode.size > 0) {
      const now = nodeNameOf(event.value);
      const before = nodeNameOf(event.previous);
      offerAll(this.#byNode.get(now), event, frames);
      if (before !== now) offerAll(this.#byNode.get(before), event, frames);
    }
    for (const field of SHARD_FIELDS) {
      if (this.#byShard[field].size > 0)
        this.#offerShards(this.#byShard[field], field, event, frames);
    }
    if (this.#byLabel.size > 0) {
      this.#byLabel.find(event.value, found);
      this.#byLabel.find(event.previous, found);
      for (const watcher of found) watcher.offer(event, frames);
      found.clear();
    }
  }

  #offerShards(
    shards: ShardBuckets<Watcher>,
    field: (typeof SHARD_FIELDS)[number],
    event: StorageEvent,
    frames: FrameCache,
  ): void {
    let sides = 0;
    for (const row of [event.value, event.previous]) {
      if (row.start === row.end) continue;
      sides++;
      const { high, low } = shardHashOf(row, field);
      shards.find(high, low, found);
    }
    this.filtered += sides * (shards.size - found.size);
    for (const watcher of found) watcher.offer(event, frames);
    found.clear();
  }
}

function offerAll(watchers: Watchers | undefined, event: StorageEvent, frames: FrameCache): void {
  if (watchers === undefined) return;
  if (watchers instanceof Set) for (const watcher of watchers) watcher.offer(event, frames);
  else watchers.offer(event, frames);
}

function addTo(buckets: Map<string, Watchers>, key: string, watcher: Watcher): void {
  const found = buckets.get(key);
  if (found === undefined) buckets.set(key, watcher);
  else if (found instanceof Set) found.add(watcher);
  else buckets.set(key, new Set([found, watcher]));
}

function removeFrom(buckets: Map<string, Watchers>, key: string, watcher: Watcher): void {
  const found = buckets.get(key);
  if (found instanceof Set) {
    found.delete(watcher);
    if (found.size === 0) buckets.delete(key);
  } else if (found === watcher) buckets.delete(key);
}
