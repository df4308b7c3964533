/** Lists that were answered from memory, under upstream's names. */
import { printFamily } from '../metrics/metric-families.ts';
import type { Served } from '../storage/served.ts';

interface Counts {
  readonly prefix: string;
  readonly index: string;
  lists: number;
  fetched: number;
  returned: number;
}

export class ListCounts {
  readonly #counts = new Map<string, Counts>();

  /** `index`: what led to the objects that were looked at; '': they are all there were. */
  count(prefix: string, index: string, fetched: number, returned: number): void {
    const key = `${prefix} ${index}`;
    let own = this.#counts.get(key);
    if (own === undefined) {
      own = { prefix, index, lists: 0, fetched: 0, returned: 0 };
      this.#counts.set(key, own);
    }
    own.lists++;
    own.fetched += fetched;
    own.returned += returned;
  }

  /** `shown`: what is served, by whose names they are told. */
  print(lines: string[], shown: readonly Served[]): void {
    const names = new Map(shown.map(({ prefix, resource }) => [prefix, resource]));
    const name = 'apiserver_cache_list';
    const fetched: string[] = [];
    const totals: string[] = [];
    const returned = new Map<string, number>();
    for (const own of this.#counts.values()) {
      const known = names.get(own.prefix);
      if (known === undefined) continue;
      const { group, resource } = known;
      const labels = `group="${group}",index="${own.index}",resource="${resource}"`;
      fetched.push(`${name}_fetched_objects_total{${labels}} ${own.fetched}`);
      totals.push(`${name}_total{${labels}} ${own.lists}`);
      const all = `group="${group}",resource="${resource}"`;
      returned.set(all, (returned.get(all) ?? 0) + own.returned);
    }
    printFamily(lines, `${name}_total`);
    lines.push(...totals);
    printFamily(lines, `${name}_fetched_objects_total`);
    lines.push(...fetched);
    printFamily(lines, `${name}_returned_objects_total`);
    for (const [all, count] of returned) {
      lines.push(`${name}_returned_objects_total{${all}} ${count}`);
    }
  }
}
