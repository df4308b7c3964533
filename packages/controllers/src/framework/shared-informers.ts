/** What controllers share: one informer per collection, and a board of their work queues. */
import { assert } from '@megaplane/base/assert';
import { ownMember } from '@megaplane/base/members';
import type { Client } from '@megaplane/client/client';
import { createInformer, type Informer } from '@megaplane/client/informer';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { MetricsRegistry } from './metrics-registry.ts';
import { QueueBoard } from './queue-metrics.ts';
import type { Polling } from '@megaplane/client/informer-options';

/**
 * Leases of more nodes than stock Kubernetes supports three times over are read every twenty
 * seconds, two fifths of the grace that a silent node has, instead of being watched; those of a
 * million nodes every twenty-five. Four fifths are where readings would tell nothing any more (see
 * node-part.ts). From a server that can leave out what has changed only the silent ones are read.
 */
const POLLED: Readonly<Record<string, Polling>> = {
  '/apis/coordination.k8s.io/v1/leases': {
    itemsMin: 15_000,
    periodMs: 20_000,
    itemsPerSecondMax: 40_000,
    pageItems: 2_000,
    // what was not renewed in two of these may be silent: kubelets renew as often
    restPeriodMs: 10_000,
  },
};

/** Queries narrow a collection; two of the same collection are two informers. */
export interface Collection {
  readonly path: string;
  readonly fieldSelector?: string;
}

/**
 * What a controller wants of a collection. As `InformerHandler`, but with the object's fields
 * already found: it is scanned once for all controllers that watch the collection.
 */
export interface CollectionHandler {
  onUpsert(
    id: number,
    isNew: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
    scan: ObjectScan,
  ): void;
  onDelete(id: number, bytes: Uint8Array, start: number, end: number): void;
  onSynced?(): void;
  onTrouble?(message: string): void;
  /** As of `InformerHandler`: called if all that share the collection have them. */
  readonly onStill?:
    | ((id: number, bytes: Uint8Array, start: number, end: number) => void)
    | undefined;
  readonly onMoved?: ((id: number) => void) | undefined;
}

class Shared {
  readonly informer: Informer;
  readonly handlers: CollectionHandler[] = [];

  constructor(client: Client, collection: Collection, onTrouble: (message: string) => void) {
    const handlers = this.handlers;
    const scan = new ObjectScan();
    const polling = ownMember(POLLED, collection.path);
    const onStill = (id: number, bytes: Uint8Array, start: number, end: number): void => {
      for (const one of handlers) one.onStill?.(id, bytes, start, end);
    };
    const onMoved = (id: number): void => {
      for (const one of handlers) one.onMoved?.(id);
    };
    this.informer = createInformer({
      client,
      ...collection,
      ...(polling === undefined ? {} : { polling }),
      handler: {
        onUpsert(id, isNew, bytes, start, end) {
          if (!scan.scan(bytes, start, end)) return onTrouble(`${collection.path}: no object`);
          for (const one of handlers) one.onUpsert(id, isNew, bytes, start, end, scan);
        },
        onDelete(id, bytes, start, end) {
          for (const one of handlers) one.onDelete(id, bytes, start, end);
        },
        get onStill() {
          return handlers.every((one) => one.onStill !== undefined) ? onStill : undefined;
        },
        get onMoved() {
          return handlers.every((one) => one.onMoved !== undefined) ? onMoved : undefined;
        },
        onSynced() {
          for (const one of handlers) one.onSynced?.();
        },
        onTrouble(message) {
          for (const one of handlers) one.onTrouble?.(message);
          onTrouble(`${collection.path}: ${message}`);
        },
      },
    });
  }
}

/** Ends the key of a further watch of a collection; in no path. */
const LATE = ' +';

function keyOf({ path, fieldSelector }: Collection): string {
  return `${path}?${fieldSelector ?? ''}`;
}

export class SharedInformers {
  readonly #client: Client;
  readonly #onTrouble: (message: string) => void;
  readonly #shared: Map<string, Shared> = new Map();
  readonly #started: Set<string> = new Set();
  /** The work queues of those that share: what each tells of itself. */
  readonly queues: QueueBoard = new QueueBoard();
  /** What they tell besides. */
  readonly metrics: MetricsRegistry = new MetricsRegistry();

  constructor(client: Client, onTrouble: (message: string) => void) {
    this.#client = client;
    this.#onTrouble = onTrouble;
  }

  /**
   * Adds a handler, which hears of all objects; handlers are called in order. One that comes after
   * the collection was started gets a watch of its own: the objects have passed by already.
   */
  subscribe(collection: Collection, handler: CollectionHandler): Informer {
    let key = keyOf(collection);
    while (this.#started.has(key)) key += LATE;
    return this.#attach(key, collection, handler);
  }

  #attach(key: string, collection: Collection, handler: CollectionHandler): Informer {
    let shared = this.#shared.get(key);
    if (shared === undefined) {
      shared = new Shared(this.#client, collection, this.#onTrouble);
      this.#shared.set(key, shared);
    }
    const isDouble = shared.handlers.includes(handler);
    assert(!isDouble, 'a handler hears of each object once');
    shared.handlers.push(handler);
    return shared.informer;
  }

  /**
   * Calls `gone` for each object that goes from now on, whether the collection is read already or
   * begins to be with this. Those of one collection should be few: all of its changes pass by.
   */
  hearDeletions(collection: Collection, gone: (key: string) => void): void {
    const informer = this.#attach(keyOf(collection), collection, {
      onUpsert: () => {},
      onDelete: (row) => gone(informer.keyOf(row)),
    });
  }

  /** Ends a collection for all of its handlers: the server has it no more. */
  drop(collection: Collection): void {
    for (let key = keyOf(collection); ; key += LATE) {
      const shared = this.#shared.get(key);
      if (shared === undefined) break;
      shared.informer.stop();
      this.#shared.delete(key);
      this.#started.delete(key);
    }
  }

  /** Starts what is not started yet. */
  start(): void {
    for (const [key, { informer }] of this.#shared) {
      if (this.#started.has(key)) continue;
      this.#started.add(key);
      informer.start();
    }
  }

  get isSynced(): boolean {
    return [...this.#shared.values()].every(({ informer }) => informer.isSynced);
  }

  stop(): void {
    for (const { informer } of this.#shared.values()) informer.stop();
  }
}
