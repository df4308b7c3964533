/**
 * Whom a replica follows and asks to write: a cluster of etcd, or the group of a journal. Keys are
 * ours, `/registry/...`.
 */
import type { EtcdClient, EtcdResult } from '@megaplane/etcd/client/client';
import type { ConditionalWrite, LeaseId, WriteAnswer } from '@megaplane/etcd/client/messages';
import type { Feed } from './feed.ts';
import type { KeyMap } from './key-map.ts';

const MARKER_VALUE = Buffer.from('{}');

export interface Origin {
  /** Why the replica falls behind; null while it follows. */
  readonly fault: string | null;
  /** A failure may have been written all the same. */
  write(write: ConditionalWrite): Promise<EtcdResult<WriteAnswer>>;
  grantLease(ttlSeconds: number): Promise<EtcdResult<LeaseId>>;
  /** The newest revision that anybody was told of before this was called. */
  newest(): Promise<EtcdResult<number>>;
  /**
   * Revision of the newest state of `key`, 0 where it is absent. Not there where `newest` is as
   * cheap.
   */
  readonly revisionOf?: (key: Buffer) => Promise<EtcdResult<number>>;
  /** Asks to be told how far it is; null where that comes by itself. */
  readonly nudge: (() => void) | null;
}

/** A cluster of etcd, whose watch the feed follows. */
export class EtcdOrigin implements Origin {
  readonly #client: EtcdClient;
  readonly #feed: Feed;
  readonly #keys: KeyMap;

  constructor(client: EtcdClient, feed: Feed, keys: KeyMap) {
    this.#client = client;
    this.#feed = feed;
    this.#keys = keys;
  }

  get fault(): string | null {
    return this.#feed.fault;
  }

  write(write: ConditionalWrite): Promise<EtcdResult<WriteAnswer>> {
    return this.#client.write({ ...write, key: this.#keys.outward(write.key) });
  }

  grantLease(ttlSeconds: number): Promise<EtcdResult<LeaseId>> {
    return this.#client.grantLease(ttlSeconds);
  }

  async newest(): Promise<EtcdResult<number>> {
    const { marker } = this.#keys;
    // old versions cannot say how far a watch is, but they send the event of a put in its order
    if (!this.#feed.tellsProgress) return this.#client.put(marker, MARKER_VALUE);
    const result = await this.#client.range({ key: marker, countOnly: true });
    return result.ok ? { ok: true, value: result.value.revision } : result;
  }

  readonly revisionOf = async (key: Buffer): Promise<EtcdResult<number>> => {
    const result = await this.#client.range({ key: this.#keys.outward(key), keysOnly: true });
    return result.ok ? { ok: true, value: result.value.kvs[0]?.modRevision ?? 0 } : result;
  };

  readonly #nudgeFeed = (): void => this.#feed.nudge();

  get nudge(): (() => void) | null {
    return this.#feed.tellsProgress ? this.#nudgeFeed : null;
  }
}
