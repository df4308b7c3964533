// data plane
/** What an informer needs of an object: its key, its version, and whether it ends the beginning. */
import { findPath, integerAt, MemberCursor, pathOf, skipSpace } from '@megaplane/machinery/scan';

const METADATA = Buffer.from('metadata');
const NAME = Buffer.from('name');
const NAMESPACE = Buffer.from('namespace');
const RESOURCE_VERSION = Buffer.from('resourceVersion');
const INITIAL_EVENTS_END = pathOf('metadata', 'annotations', 'k8s.io/initial-events-end');
const SLASH = 47;

/** Reads one object at a time; the key lies in `key[0..keyLength)` until the next. */
export class ObjectKey {
  key: Buffer = Buffer.alloc(512);
  keyLength = 0;
  /** -1 without one. */
  resourceVersion = -1;
  #nameStart = 0;
  #nameEnd = 0;
  #namespaceStart = 0;
  #namespaceEnd = 0;
  readonly #top = new MemberCursor();
  readonly #inner = new MemberCursor();

  /** False where there is no object with metadata. */
  read(bytes: Buffer, start: number, end: number): boolean {
    this.#nameStart = this.#nameEnd = 0;
    this.#namespaceStart = this.#namespaceEnd = 0;
    this.resourceVersion = -1;
    this.keyLength = 0;
    const top = this.#top;
    if (!top.open(bytes, skipSpace(bytes, start, end), end)) return false;
    while (top.nextKey()) {
      if (top.is(METADATA)) {
        if (!this.#readMetadata(bytes, top.valueStart, end)) return false;
        this.#join(bytes);
        return true;
      }
      if (!top.skip()) return false;
    }
    return false;
  }

  #readMetadata(bytes: Buffer, start: number, end: number): boolean {
    const inner = this.#inner;
    if (!inner.open(bytes, start, end)) return false;
    let found = 0;
    while (found < 3 && inner.next()) {
      const length = inner.keyEnd - inner.keyStart;
      if (length === 4 && inner.is(NAME)) {
        this.#nameStart = inner.valueStart + 1;
        this.#nameEnd = inner.valueEnd - 1;
        found++;
      } else if (length === 9 && inner.is(NAMESPACE)) {
        this.#namespaceStart = inner.valueStart + 1;
        this.#namespaceEnd = inner.valueEnd - 1;
        found++;
      } else if (length === 15 && inner.is(RESOURCE_VERSION)) {
        this.resourceVersion = integerAt(bytes, inner.valueStart, inner.valueEnd);
        found++;
      }
    }
    return found === 3 || inner.isClosed;
  }

  /** `namespace/name`, or `name`. */
  #join(bytes: Buffer): void {
    const namespaceLength = this.#namespaceEnd - this.#namespaceStart;
    const length = namespaceLength + 1 + this.#nameEnd - this.#nameStart;
    if (length > this.key.length) this.key = Buffer.alloc(2 * length);
    const key = this.key;
    let at = 0;
    if (namespaceLength > 0) {
      for (let from = this.#namespaceStart; from < this.#namespaceEnd; from++) {
        key[at++] = bytes[from]!;
      }
      key[at++] = SLASH;
    }
    for (let from = this.#nameStart; from < this.#nameEnd; from++) key[at++] = bytes[from]!;
    this.keyLength = this.#nameEnd > this.#nameStart ? at : 0;
  }

  /** Makes `key` of a name as programs write it. */
  set(namespace: string, name: string): void {
    const text = namespace === '' ? name : `${namespace}/${name}`;
    if (3 * text.length > this.key.length) this.key = Buffer.alloc(6 * text.length);
    this.keyLength = this.key.write(text);
  }
}

/** Whether a bookmark says that the objects which existed at the start have all been sent. */
export function isInitialEventsEnd(bytes: Uint8Array, start: number, end: number): boolean {
  return findPath(bytes, start, end, INITIAL_EVENTS_END) >= 0;
}
