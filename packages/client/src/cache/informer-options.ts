/** What an informer is given, and what it reports. */
import type { Client } from '../rest/client.ts';

/** What the user of an informer gives to it. */
export interface InformerHandler {
  /**
   * An object is new or changed. `bytes[start..end)` is its JSON, valid only during the call; take
   * the fields you need into columns (see `@megaplane/machinery/scan`). `isNew` tells a fresh row:
   * its columns hold whatever an earlier owner of the id left there.
   *
   * Not called when a relist or a repeated event brings a version that was already delivered.
   */
  onUpsert(id: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): void;
  /**
   * An object is gone; `id` is still valid during the call and may be reused afterwards.
   * `bytes[start..end)` is its last state, or empty (`start === end`) when its disappearance was
   * noticed by a relist.
   */
  onDelete(id: number, bytes: Uint8Array, start: number, end: number): void;
  /**
   * The rows equal the collection as it was at one revision at or after the start. Called once
   * after the start and again after each relist (when the server had forgotten our revision). A
   * watch that is merely lost and taken up again is not noticed: the rows are then an older but
   * consistent state. During a relist rows are brought up to date one by one, deletions last.
   */
  onSynced?(): void;
  /**
   * Of a collection that is polled, where both of these are there and the server knows the option
   * `unchangedSince`: most readings bring what has not changed since the reading before the last
   * (`onStill`, at a version that may not have been delivered) and what is new (`onUpsert`). Of all
   * other objects is known that they have changed (`onMoved`), their versions are not. Deletions
   * are noticed by the number of objects, and by the whole reading that follows then.
   */
  readonly onStill?:
    | ((id: number, bytes: Uint8Array, start: number, end: number) => void)
    | undefined;
  readonly onMoved?: ((id: number) => void) | undefined;
  /** The collection cannot be had just now; a text for people. The informer goes on by itself. */
  onTrouble?(message: string): void;
}

export interface InformerMetrics {
  events: number;
  bookmarks: number;
  lists: number;
  watches: number;
  expired: number;
  /** Events that brought nothing new (already delivered). */
  repeated: number;
}

export interface InformerOptions {
  readonly client: Client;
  /** Path of the collection, such as `/api/v1/pods` or `/api/v1/namespaces/x/configmaps`. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * KEP-5866 selector of a shard (`shardOf` in `@megaplane/machinery/sharding/selector` writes
   * one). Rows are those of the shard with any server; see `sharding`.
   */
  readonly shardSelector?: string;
  readonly handler: InformerHandler;
  /** For collections whose every object changes all the time; see `Polling`. */
  readonly polling?: Polling;
  /** Rows that are expected. A hint: tables grow in chunks and never copy, whatever it says. */
  readonly capacity?: number;
}

/**
 * When a collection has more than `itemsMin` objects it is read anew each `periodMs`, page by page
 * and evenly, instead of being watched. A hundred thousand leases that are renewed every ten
 * seconds are ten thousand events a second: a page of 500 costs the server what some twenty events
 * do. Changes are then seen up to a period later; `onSynced` is called after each reading. With
 * fewer than half as many objects the watch is taken up again. With more objects than can be read
 * in a period at `itemsPerSecondMax` the period is longer. Large pages of small objects save a
 * fifth of what a reading costs.
 */
export interface Polling {
  readonly itemsMin: number;
  readonly periodMs: number;
  readonly itemsPerSecondMax: number;
  readonly pageItems: number;
  /** The period of readings that leave out what has changed; see `InformerHandler.onStill`. */
  readonly restPeriodMs?: number;
}
