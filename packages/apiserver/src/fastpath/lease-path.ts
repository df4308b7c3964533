// data plane
/** Which lease a path names, and under which key that one is stored. */

const START = '/apis/coordination.k8s.io/v1/namespaces/';
const MIDDLE = '/leases/';
const KEY_START = '/registry/leases/';
const NAME_LENGTH_MAX = 253;
const SLASH = 0x2f;
/** A namespace and a name of 253 characters each fit. */
const KEY_BYTES_MAX = 1024;
/** The one query that says nothing of what is asked; client-go sends it: `?timeout=10s`. */
const TIMEOUT_ALONE = /^\?timeout=[1-9]\d{0,3}s$/;

/** The path that was read last. Most leases are of one namespace, whose part is read once. */
export class LeasePath {
  /** Of the path that was read; the same string for paths in a row with the same one. */
  namespace = '';
  /** In the store; valid until the next path is read. */
  key: Buffer;
  #path = '';
  #start = '\0';
  #nameAt = 0;
  #end = 0;
  /** Where the name begins in the key. */
  #keyNameAt = 0;
  readonly #bytes: Buffer = Buffer.alloc(KEY_BYTES_MAX, KEY_START);
  /** Views of `#bytes` by their lengths. */
  readonly #keys: (Buffer | undefined)[] = [];

  constructor() {
    this.key = this.#bytes;
  }

  readonly subresource: string = '';

  /** Name of the lease. */
  get name(): string {
    return this.#path.slice(this.#nameAt, this.#end);
  }

  /** False where the path is none of a lease alone, in plain characters. */
  read(path: string): boolean {
    if (path === this.#path) return true;
    this.#path = '';
    if (!path.startsWith(this.#start) && !this.#readNamespace(path)) return false;
    const nameAt = this.#start.length;
    const bytes = this.#bytes;
    const limit = Math.min(path.length, nameAt + NAME_LENGTH_MAX);
    let length = this.#keyNameAt;
    let end = nameAt;
    for (; end < limit; end++) {
      const code = path.charCodeAt(end);
      if (!isPlain(code)) break;
      bytes[length++] = code;
    }
    if (end === nameAt || (end < path.length && !TIMEOUT_ALONE.test(path.slice(end)))) return false;
    this.key = this.#keys[length] ??= bytes.subarray(0, length);
    this.#nameAt = nameAt;
    this.#end = end;
    this.#path = path;
    return true;
  }

  #readNamespace(path: string): boolean {
    const middle = path.indexOf(MIDDLE, START.length);
    if (!path.startsWith(START) || middle <= START.length) return false;
    if (middle - START.length > NAME_LENGTH_MAX) return false;
    this.#start = '\0';
    const bytes = this.#bytes;
    let length = KEY_START.length;
    for (let at = START.length; at < middle; at++) {
      const code = path.charCodeAt(at);
      if (!isPlain(code)) return false;
      bytes[length++] = code;
    }
    bytes[length++] = SLASH;
    this.#keyNameAt = length;
    this.namespace = path.slice(START.length, middle);
    this.#start = path.slice(0, middle + MIDDLE.length);
    return true;
  }
}

function isPlain(code: number): boolean {
  const isLetter = code >= 0x61 && code <= 0x7a;
  const isDigit = code >= 0x30 && code <= 0x39;
  return isLetter || isDigit || code === 0x2d || code === 0x2e;
}
