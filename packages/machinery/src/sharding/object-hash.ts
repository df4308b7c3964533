// data plane
/** The hash of an object's shard field, found in its JSON without parsing it. */
import { MemberCursor, stringValue } from '../json/scan.ts';
import { ShardHash } from './hash.ts';
import type { ShardField } from './selector.ts';

const METADATA = Buffer.from('metadata');
const UID = Buffer.from('uid');
const NAMESPACE = Buffer.from('namespace');
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The hash of the object read last; reuse it. */
export class ObjectHash extends ShardHash {
  readonly #field: Uint8Array;
  readonly #top = new MemberCursor();
  readonly #inner = new MemberCursor();

  constructor(field: ShardField) {
    super();
    this.#field = field === 'uid' ? UID : NAMESPACE;
  }

  /** Hashes the field of the object in `bytes[start, end)`; an absent one counts as empty. */
  read(bytes: Buffer, start: number, end: number): void {
    const top = this.#top;
    if (top.open(bytes, start, end)) {
      while (top.nextKey()) {
        if (top.is(METADATA)) {
          this.#metadata(bytes, top.valueStart, end);
          return;
        }
        if (!top.skip()) break;
      }
    }
    this.of(bytes, 0, 0);
  }

  #metadata(bytes: Buffer, start: number, end: number): void {
    const inner = this.#inner;
    if (inner.open(bytes, start, end)) {
      while (inner.next()) {
        if (!inner.is(this.#field)) continue;
        this.#value(bytes, inner.valueStart, inner.valueEnd);
        return;
      }
    }
    this.of(bytes, 0, 0);
  }

  #value(bytes: Buffer, start: number, end: number): void {
    if (bytes[start] !== QUOTE) {
      this.of(bytes, 0, 0);
      return;
    }
    for (let at = start + 1; at < end - 1; at++) {
      if (bytes[at] !== BACKSLASH) continue;
      const text = Buffer.from(stringValue(bytes, start, end));
      this.of(text, 0, text.length);
      return;
    }
    this.of(bytes, start + 1, end - 1);
  }
}
