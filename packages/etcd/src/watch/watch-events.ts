// data plane: encoded events, shared by all watchers of a turn
import type { Store } from '@megaplane/store/store';
import { sizeVarint, writeVarint } from '@megaplane/wire/protobuf-write';
import { keyValueSize, writeKeyValue } from '../codec/key-value.ts';
import { HEAD_ROOM_BYTES } from './watch-response.ts';

/** Encoded events kept at once; beyond it they are encoded anew. */
const CACHE_BYTES_MAX: number = 8 * 1024 * 1024;

/**
 * Events as they stand in a WatchResponse (field 11, tag and length included). An event is
 * encoded once per turn and kind (with or without prev_kv), whatever the number of watchers.
 */
export class WatchEvents {
  readonly #store: Store;
  bytes: Buffer = Buffer.alloc(256 * 1024);
  #end = 0;
  /** By ref * 2 + (1 with prev_kv): place of the event in `bytes`. */
  readonly #places: Map<number, number> = new Map();
  readonly #sizes: Map<number, number> = new Map();
  /** Where the event found last stands. */
  at = 0;
  to = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** A new turn: refs mean other records now. */
  clear(): void {
    this.#end = 0;
    this.#places.clear();
    this.#sizes.clear();
  }

  /**
   * Makes [at, to) of `bytes` the event of a record. As with etcd, which reads what was before at
   * the revision before, it has no previous value where that revision is compacted.
   */
  find(ref: number, wantsPrevious: boolean): void {
    const { compactRevision } = this.#store;
    const hasPrevious = wantsPrevious && this.#store.modRevision(ref) > compactRevision;
    const name = ref * 2 + (hasPrevious ? 1 : 0);
    const place = this.#places.get(name);
    if (place !== undefined) {
      this.at = place;
      this.to = place + this.#sizes.get(name)!;
      return;
    }
    if (this.#end > CACHE_BYTES_MAX) this.clear();
    this.#encode(ref, hasPrevious);
    this.#places.set(name, this.at);
    this.#sizes.set(name, this.to - this.at);
  }

  #encode(ref: number, hasPrevious: boolean): void {
    const store = this.#store;
    const isDelete = store.isTombstone(ref);
    const previous = hasPrevious ? store.arenas.before(ref) : 0;
    const kvSize = keyValueSize(store, ref, false);
    const previousSize = previous === 0 ? 0 : keyValueSize(store, previous, false);
    const size =
      (isDelete ? 2 : 0) +
      (1 + sizeVarint(kvSize) + kvSize) +
      (previous === 0 ? 0 : 1 + sizeVarint(previousSize) + previousSize);
    this.#room(size + HEAD_ROOM_BYTES + 16);
    const { bytes } = this;
    // So that one event is sent in place.
    let at = this.#end + HEAD_ROOM_BYTES;
    this.at = at;
    bytes[at++] = 0x5a;
    at = writeVarint(bytes, at, size);
    if (isDelete) {
      bytes[at++] = 0x08;
      bytes[at++] = 1;
    }
    at = writeKeyValue(store, ref, false, bytes, at, 2);
    if (previous !== 0) at = writeKeyValue(store, previous, false, bytes, at, 3);
    this.to = at;
    this.#end = at;
  }

  #room(size: number): void {
    if (this.#end + size <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow((this.#end + size) * 2);
    this.bytes.copy(larger, 0, 0, this.#end);
    this.bytes = larger;
  }
}
