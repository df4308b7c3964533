/** Objects of one kind in one namespace, decoded once for as long as they do not change. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decodeRow } from '../serializer/encoder.ts';
import { followChanges } from '../storage/follow.ts';
import { findServed, rangeOf, type KeyRange, type Served } from '../storage/served.ts';
import type { World } from './world.ts';

/** Decoded objects that are kept for each kind; the oldest goes first. */
const OBJECTS_MAX = 4096;

export interface Versioned {
  readonly object: JsonObject;
  readonly revision: number;
  /** Key in storage. */
  readonly key: Buffer;
}

/** Reads limit ranges, quotas and the like; callers do not change what they get. */
export class NamespacedObjects {
  readonly #group: string;
  readonly #plural: string;
  readonly #kept = new WeakMap<World, Map<string, Versioned>>();
  readonly #totals = new WeakMap<World, FollowedCount>();
  #served: Served | undefined;

  constructor(group: string, plural: string) {
    this.#group = group;
    this.#plural = plural;
  }

  /** Whether the namespace has none. Costs next to nothing where the cluster has none. */
  isEmpty(world: World, namespace: string): boolean {
    this.#served ??= findServed(this.#group, 'v1', this.#plural);
    const served = this.#served;
    if (served === undefined || namespace === '') return true;
    let total = this.#totals.get(world);
    if (total === undefined) this.#totals.set(world, (total = new FollowedCount(world, served)));
    if (total.value === 0) return true;
    const { start, end } = rangeOf(served, namespace);
    return world.storage.count(start, end) === 0;
  }

  /** All of the namespace in the order of their names; costs a look into the index when none. */
  of(world: World, namespace: string): readonly Versioned[] {
    if (this.isEmpty(world, namespace)) return NONE;
    const served = this.#served;
    if (served === undefined) return NONE;
    const { start, end } = rangeOf(served, namespace);
    let kept = this.#kept.get(world);
    if (kept === undefined) this.#kept.set(world, (kept = new Map()));
    const known = kept;
    const found: Versioned[] = [];
    world.storage.page(start, end, 0, (row) => {
      const text = row.key.toString('utf8', row.keyStart, row.keyEnd);
      let own = known.get(text);
      if (own?.revision !== row.modRevision) {
        const object = decodeRow(served, row, row.modRevision);
        own = { object, revision: row.modRevision, key: Buffer.from(text) };
        if (known.size >= OBJECTS_MAX) known.delete(known.keys().next().value ?? '');
        known.set(text, own);
      }
      found.push(own);
      return true;
    });
    return found;
  }
}

const NONE: readonly Versioned[] = [];

/** How many objects of a kind there are, counted again when they have changed. */
class FollowedCount {
  readonly #world: World;
  readonly #range: KeyRange;
  #count = 0;
  #isFresh = false;

  constructor(world: World, served: Served) {
    this.#world = world;
    this.#range = rangeOf(served, '');
    followChanges(world.storage, this.#range, () => {
      this.#isFresh = false;
    });
  }

  get value(): number {
    if (this.#isFresh) return this.#count;
    this.#count = this.#world.storage.count(this.#range.start, this.#range.end);
    this.#isFresh = true;
    return this.#count;
  }
}
