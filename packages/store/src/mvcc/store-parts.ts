/** The parts of a store that its readers, its compaction and its mover work on. */
import type { Arenas } from '../record/arenas.ts';
import type { KeyClasses } from '../record/classes.ts';
import type { KeyIndex } from '../record/key-index.ts';
import type { KeyOrder } from '../record/key-order.ts';
import type { WatchHub } from '../watch/watch-hub.ts';

/** What `Store` is to the files beside it; see contract.ts for the revisions. */
export interface StoreParts {
  readonly arenas: Arenas;
  readonly keys: KeyIndex;
  /** Keys whose newest record is a put, in order. */
  readonly live: KeyOrder;
  /** Keys whose newest record is a tombstone, in order. */
  readonly graves: KeyOrder;
  readonly classes: KeyClasses;
  readonly hub: WatchHub;
  readonly appliedRevision: number;
  readonly publishedRevision: number;
  readonly compactRevision: number;
  /** True between `begin` and `commit` once something has changed. */
  readonly hasUncommitted: boolean;
  /** Counted since the start. */
  readonly puts: number;
  readonly deletes: number;
  /** The newest record of a key, 0 where there is none or a tombstone. */
  get(bytes: Buffer, startAt: number, startTo: number): number;
}
