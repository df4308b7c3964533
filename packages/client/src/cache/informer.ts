/**
 * An informer keeps one collection of the API server present in this process, as rows: a dense id
 * per object, the user's typed-array columns hanging on the id. The informer itself holds the key
 * (`namespace/name`), the resourceVersion and nothing else; no JavaScript object per item.
 */
import { Reflector } from './reflector.ts';
import { InformerStore } from './informer-store.ts';
import { Shard, type Sharding } from './shard.ts';
import type { InformerMetrics, InformerOptions } from './informer-options.ts';

export interface Informer {
  /** Begins; nothing is delivered before. */
  start(): void;
  /** Ends; nothing is delivered afterwards. Rows stay readable. */
  stop(): void;
  /** Row of an object, or -1. `namespace` is empty for cluster-scoped kinds. */
  find(namespace: string, name: string): number;
  /** `namespace/name`, or `name` for cluster-scoped kinds. */
  keyOf(id: number): string;
  /** As a Number: revisions stay below 2^53. */
  resourceVersionOf(id: number): number;
  /** Number of objects. */
  readonly size: number;
  /** All ids are below this. */
  readonly idLimit: number;
  /** Whether `id` is a row now. Loop over `0..idLimit` with it to see all objects. */
  has(id: number): boolean;
  /** False until the first `onSynced`. */
  readonly isSynced: boolean;
  /** The collection is too large to be watched just now; see `Polling`. */
  readonly isPolling: boolean;
  /**
   * The revision up to which events have been delivered, the one at hand included; 0 before and
   * during a relist.
   */
  readonly revision: number;
  readonly metrics: InformerMetrics;
  /** Who leaves out objects of other shards; null without a shard selector. */
  readonly sharding: Sharding | null;
}

/**
 * An informer that is not started yet. Its handler is called in the turns of the client. Throws an
 * Error where `shardSelector` is none.
 */
export function createInformer(options: InformerOptions): Informer {
  const shard = options.shardSelector === undefined ? null : new Shard(options.shardSelector);
  const rows = new InformerStore(options.handler, () => options.client.random(), shard);
  const reflector = new Reflector(options, rows, shard);
  return {
    start: () => reflector.start(),
    stop: () => reflector.stop(),
    find: (namespace, name) => rows.find(namespace, name),
    keyOf: (id) => rows.keyOf(id),
    resourceVersionOf: (id) => rows.versionOf(id),
    has: (id) => rows.has(id),
    get size() {
      return rows.size;
    },
    get idLimit() {
      return rows.idLimit;
    },
    get isSynced() {
      return reflector.isSynced;
    },
    get isPolling() {
      return reflector.isPolling;
    },
    get revision() {
      return reflector.revision;
    },
    metrics: reflector.metrics,
    get sharding() {
      return shard?.sharding ?? null;
    },
  };
}
