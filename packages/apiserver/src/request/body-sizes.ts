/** How large the bodies of writes are: `apiserver_request_body_size_bytes`. */
import type { Call } from './call.ts';
import { Histogram } from '../metrics/histogram.ts';
import { printFamily } from '../metrics/metric-families.ts';
import type { RequestInfo } from './request-info.ts';

/** Upstream's: from 50,000 bytes to its limit, in steps of 100,000. */
const BOUNDS: readonly number[] = Array.from({ length: 31 }, (_, index) => 50_000 + index * 1e5);

const VERBS: ReadonlyMap<string, string> = new Map([
  ['create', 'create'],
  ['update', 'update'],
  ['patch', 'patch'],
  ['delete', 'delete'],
  ['deletecollection', 'delete_collection'],
]);
/** Bodies above the limit are not read. */
const TOO_LARGE = 413;
/** Paths come from clients, but only those of resources that are served are counted. */
const SERIES_MAX = 4096;

export type BodySize = Pick<Histogram, 'observe' | 'observeSmall'>;

export class BodySizes {
  readonly #sizes = new Map<string, Histogram>();

  /** Whether the request is a write whose body was read. */
  counts({ info, code }: Call): boolean {
    return info.isResource && VERBS.has(info.verb) && code !== TOO_LARGE;
  }

  of({ group, resource, verb }: Pick<RequestInfo, 'group' | 'resource' | 'verb'>): BodySize {
    const labels = `group="${group}",resource="${resource}",verb="${VERBS.get(verb) ?? verb}"`;
    const key = this.#sizes.size < SERIES_MAX || this.#sizes.has(labels) ? labels : OTHERS;
    let own = this.#sizes.get(key);
    if (own === undefined) this.#sizes.set(key, (own = new Histogram(BOUNDS)));
    return own;
  }

  reset(): void {
    this.#sizes.clear();
  }

  print(lines: string[]): void {
    const name = 'apiserver_request_body_size_bytes';
    printFamily(lines, name);
    for (const [labels, own] of this.#sizes) own.print(lines, name, labels);
  }
}

const OTHERS = 'group="",resource="other",verb="other"';
