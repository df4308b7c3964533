/** Which uids a shard selector takes. */
import { ShardHash } from '@megaplane/machinery/sharding/hash';
import {
  parseShardSelector,
  selectsHash,
  type ShardSelector,
} from '@megaplane/machinery/sharding/selector';

export class UidShard {
  readonly #selector: ShardSelector;
  readonly #hash: ShardHash = new ShardHash();

  /** Throws an Error that says what is wrong with the selector. */
  constructor(text: string) {
    const parsed = parseShardSelector(text);
    if (!parsed.ok) throw new Error(`shardSelector ${JSON.stringify(text)}: ${parsed.error}`);
    this.#selector = parsed.selector;
  }

  holds(uid: string): boolean {
    const bytes = Buffer.from(uid);
    this.#hash.of(bytes, 0, bytes.length);
    return selectsHash(this.#selector, this.#hash.high, this.#hash.low);
  }
}
