/** All objects of a cluster's small kinds, read again when one of them has changed. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decodeRow } from '../serializer/encoder.ts';
import { followChanges } from '../storage/follow.ts';
import { findServed, rangeOf } from '../storage/served.ts';
import type { World } from './world.ts';

/** Webhook configurations, policies and bindings: what `read` made of each, by name. */
export class FollowedObjects<T> {
  readonly #world: World;
  readonly #group: string;
  readonly #plural: string;
  readonly #read: (object: JsonObject) => T;
  #found: readonly T[] = [];
  #isFollowed = false;
  #isFresh = false;
  /** Counts up whenever the objects were read again. */
  generation = 0;

  constructor(world: World, group: string, plural: string, read: (object: JsonObject) => T) {
    this.#world = world;
    this.#group = group;
    this.#plural = plural;
    this.#read = read;
  }

  /** In the order of their names. Costs nothing while they do not change. */
  all(): readonly T[] {
    if (this.#isFresh) return this.#found;
    const served = findServed(this.#group, 'v1', this.#plural);
    if (served === undefined) return this.#found;
    const { storage } = this.#world;
    const range = rangeOf(served, '');
    if (!this.#isFollowed) {
      this.#isFollowed = true;
      followChanges(storage, range, () => {
        this.#isFresh = false;
      });
    }
    const found: T[] = [];
    storage.page(range.start, range.end, 0, (row) => {
      found.push(this.#read(decodeRow(served, row, row.modRevision)));
      return true;
    });
    this.#found = found;
    this.#isFresh = true;
    this.generation++;
    return found;
  }
}
