/**
 * The shard of an informer (KEP-5866): which objects it keeps, and who leaves out the others.
 *
 * A server that does not know `shardSelector` ignores it and sends the whole collection; a watch
 * does not tell. So every object is looked at here as well (a hash of 36 bytes), which is right
 * with any server and with several of different versions behind one address. Whether the server
 * saves us the rest is asked once per reading, by a list of one object: only a server that knows
 * shards answers with `shardInfo`.
 */
import { ObjectHash } from '@megaplane/machinery/sharding/object-hash';
import {
  parseShardSelector,
  selectsHash,
  type ShardSelector,
} from '@megaplane/machinery/sharding/selector';
import type { Client, StreamHandle, StreamSink } from '../rest/client.ts';
import { withQuery } from '../rest/list-query.ts';
import { Page } from './page.ts';

/**
 * `unknown`: not told yet. `server`: only objects of the shard are sent. `client`: the server sends
 * everything, and what is not of the shard is dropped here, at the cost of the whole collection.
 */
export type Sharding = 'unknown' | 'server' | 'client';

/** Largest answer of a probe that is collected: one object and what stands around it. */
const PROBE_BYTES_MAX: number = 4 * 1024 * 1024;

export class Shard {
  sharding: Sharding = 'unknown';
  /** Objects of other shards that were dropped. */
  dropped = 0;
  #wasToldIgnored = false;
  readonly #selector: ShardSelector;
  readonly #hash: ObjectHash;

  /** Throws an Error that says what is wrong with the selector. */
  constructor(text: string) {
    const parsed = parseShardSelector(text);
    if (!parsed.ok) throw new Error(`shardSelector ${JSON.stringify(text)}: ${parsed.error}`);
    this.#selector = parsed.selector;
    this.#hash = new ObjectHash(parsed.selector.field);
  }

  /** The selector as servers repeat it. */
  get text(): string {
    return this.#selector.text;
  }

  /** True where the object in `bytes[start, end)` is of the shard. */
  holds(bytes: Buffer, start: number, end: number): boolean {
    const hash = this.#hash;
    hash.read(bytes, start, end);
    if (selectsHash(this.#selector, hash.high, hash.low)) return true;
    this.dropped++;
    this.sharding = 'client';
    return false;
  }

  /**
   * Asks the server; the handle cancels. A probe that fails leaves what was known. `onIgnored` is
   * called when it turns out that the server ignores shards, not each time it still does.
   */
  probe(client: Client, path: string, onIgnored: () => void): StreamHandle {
    const query = withQuery(path, { limit: '1', shardSelector: this.text });
    const probe = new Probe((shardInfo) => {
      const isServed = shardInfo === this.text;
      this.sharding = isServed && this.dropped === 0 ? 'server' : 'client';
      if (!isServed && !this.#wasToldIgnored) onIgnored();
      this.#wasToldIgnored = !isServed;
    });
    return client.stream(query, probe);
  }
}

/** Reads `metadata.shardInfo.selector` of a list; '' where there is none. */
class Probe implements StreamSink {
  readonly #onResult: (shardInfo: string) => void;
  #status = 0;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(onResult: (shardInfo: string) => void) {
    this.#onResult = onResult;
  }

  onHead(status: number): void {
    this.#status = status;
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    this.#length += end - start;
    if (this.#length <= PROBE_BYTES_MAX) this.#parts.push(Buffer.from(bytes.subarray(start, end)));
  }

  onEnd(error: string | null): void {
    const parts = this.#parts;
    this.#parts = [];
    if (error !== null || this.#status !== 200 || this.#length > PROBE_BYTES_MAX) return;
    const page = new Page();
    if (page.read(Buffer.concat(parts), this.#length)) this.#onResult(page.shardSelector);
  }
}
