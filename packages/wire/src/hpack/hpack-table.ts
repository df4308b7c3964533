// data plane
/** The static table of RFC 7541 appendix A and a dynamic table as a ring. */

const STATIC: readonly string[] = `:authority||:method|GET|:method|POST|:path|/|:path|/index.html|
:scheme|http|:scheme|https|:status|200|:status|204|:status|206|:status|304|:status|400|:status|404|
:status|500|accept-charset||accept-encoding|gzip, deflate|accept-language||accept-ranges||accept||
access-control-allow-origin||age||allow||authorization||cache-control||content-disposition||
content-encoding||content-language||content-length||content-location||content-range||content-type||
cookie||date||etag||expect||expires||from||host||if-match||if-modified-since||if-none-match||
if-range||if-unmodified-since||last-modified||link||location||max-forwards||proxy-authenticate||
proxy-authorization||range||referer||refresh||retry-after||server||set-cookie||
strict-transport-security||transfer-encoding||user-agent||vary||via||www-authenticate|`
  .replaceAll('\n', '')
  .split('|');

export const STATIC_LENGTH = 61;
/** Static entries by index 1..61. */
export const STATIC_NAMES: readonly string[] = ['', ...STATIC.filter((_, i) => i % 2 === 0)];
export const STATIC_VALUES: readonly string[] = ['', ...STATIC.filter((_, i) => i % 2 === 1)];
/** Lowest static index of a name. */
export const STATIC_BY_NAME: ReadonlyMap<string, number> = new Map(
  STATIC_NAMES.map((name, index) => [name, index] as const).reverse(),
);
/** Static index of a name with a value, by `name + '\0' + value`. */
export const STATIC_BY_FIELD: ReadonlyMap<string, number> = new Map(
  STATIC_NAMES.map((name, i) => [`${name}\0${STATIC_VALUES[i]!}`, i] as const),
);

/** What an entry costs beyond its octets (RFC 7541 4.1). */
export const ENTRY_OVERHEAD_BYTES = 32;

/**
 *   ring     names[] values[] flaws[]     slot = insertions & mask, newest last
 *   index 1  is the newest entry; entry i lives in slot (inserted - i) & mask
 */
export class DynamicTable {
  /** Octets allowed now, and used. */
  sizeMax: number;
  size = 0;
  count = 0;
  /** Entries inserted in the table's life: changes whenever an index changes its meaning. */
  inserted = 0;
  /** Evictions and resizes, so that caches of decoded blocks notice every change. */
  epoch = 0;
  #mask = -1;
  #names: string[] = [];
  #values: string[] = [];
  #flaws: boolean[] = [];

  constructor(sizeMax: number) {
    this.sizeMax = sizeMax;
  }

  name(index: number): string {
    return this.#names[(this.inserted - index) & this.#mask]!;
  }

  value(index: number): string {
    return this.#values[(this.inserted - index) & this.#mask]!;
  }

  /** True if the entry was not a valid field (RFC 9113 8.2.1): using it taints the message. */
  flawed(index: number): boolean {
    return this.#flaws[(this.inserted - index) & this.#mask]!;
  }

  insert(name: string, value: string, flawed: boolean): void {
    const size = name.length + value.length + ENTRY_OVERHEAD_BYTES;
    this.epoch++;
    this.#evictTo(this.sizeMax - size);
    if (size > this.sizeMax) return;
    if (this.count > this.#mask) this.#grow();
    const slot = this.inserted & this.#mask;
    this.#names[slot] = name;
    this.#values[slot] = value;
    this.#flaws[slot] = flawed;
    this.inserted++;
    this.count++;
    this.size += size;
  }

  resize(sizeMax: number): void {
    this.epoch++;
    this.sizeMax = sizeMax;
    this.#evictTo(sizeMax);
  }

  #evictTo(size: number): void {
    while (this.count > 0 && this.size > size) {
      const slot = (this.inserted - this.count) & this.#mask;
      this.size -= this.#names[slot]!.length + this.#values[slot]!.length + ENTRY_OVERHEAD_BYTES;
      this.#names[slot] = '';
      this.#values[slot] = '';
      this.count--;
    }
  }

  #grow(): void {
    const oldMask = this.#mask;
    const mask = oldMask < 0 ? 7 : oldMask * 2 + 1;
    const names = Array.from({ length: mask + 1 }, () => '');
    const values = names.slice();
    const flaws = names.map(() => false);
    for (let i = 1; i <= this.count; i++) {
      const to = (this.inserted - i) & mask;
      const from = (this.inserted - i) & oldMask;
      names[to] = this.#names[from]!;
      values[to] = this.#values[from]!;
      flaws[to] = this.#flaws[from]!;
    }
    this.#mask = mask;
    this.#names = names;
    this.#values = values;
    this.#flaws = flaws;
  }
}
