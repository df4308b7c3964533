/** Keys here begin with `/registry/`; in etcd they begin with `--etcd-prefix`. */
const OWN_PREFIX = '/registry';

/** The key by which old etcd is asked how far it is; see `feed.ts`. Upstream never looks there. */
const MARKER = '/megaplane/freshness';

export class KeyMap {
  /** Without a slash at its end. */
  readonly prefix: string;
  readonly #own: Buffer = Buffer.from(OWN_PREFIX);
  readonly #theirs: Buffer;
  readonly isSame: boolean;
  /** All of our keys in etcd, `[start, end)`. */
  readonly start: Buffer;
  readonly end: Buffer;
  readonly marker: Buffer;

  /** `prefix` as given by the flag: a slash in front is added, those behind are taken off. */
  constructor(prefix: string) {
    const trimmed = prefix.replace(/\/+$/, '');
    this.prefix = trimmed.startsWith('/') || trimmed === '' ? trimmed : `/${trimmed}`;
    this.isSame = this.prefix === OWN_PREFIX;
    this.#theirs = Buffer.from(this.prefix);
    this.start = Buffer.from(`${this.prefix}/`);
    // '0' is the byte after '/'
    this.end = Buffer.from(`${this.prefix}0`);
    this.marker = Buffer.from(this.prefix + MARKER);
  }

  /** Our key as etcd has it. */
  outward(key: Buffer): Buffer {
    if (this.isSame) return key;
    return Buffer.concat([this.#theirs, key.subarray(this.#own.length)]);
  }

  /** A key of etcd as we have it. */
  inward(key: Buffer): Buffer {
    if (this.isSame) return key;
    return Buffer.concat([this.#own, key.subarray(this.#theirs.length)]);
  }

  isMarker(key: Buffer): boolean {
    return key.equals(this.marker);
  }
}
