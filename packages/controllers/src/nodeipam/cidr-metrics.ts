/** How much of the blocks is given to nodes, under upstream's names. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { Counter, Histogram, MetricsRegistry } from '../framework/metrics-registry.ts';
import { blockText, type CidrPool } from './cidr-pool.ts';

const SUBSYSTEM = 'node_ipam_controller';
const LABELS: readonly string[] = ['clusterCIDR'];

export class CidrMetrics {
  readonly #given: Counter;
  readonly #freed: Counter;
  readonly #tries: Histogram;

  constructor(board: MetricsRegistry, pools: readonly CidrPool[]) {
    const counter = (what: string): Counter =>
      board.counter(
        `${SUBSYSTEM}_cidrset_cidrs_${what}_total`,
        `Counter measuring total number of CIDR ${what}.`,
        LABELS,
      );
    this.#given = counter('allocations');
    this.#freed = counter('releases');
    this.#tries = board.histogram(
      `${SUBSYSTEM}_cidrset_allocation_tries_per_request`,
      'Number of CIDRs that were found taken on each request.',
      exponential(1, 5, 5),
      LABELS,
    );
    const each = (value: (pool: CidrPool) => number) => () =>
      pools.map((pool) => [[blockText(pool.block)], value(pool)] as const);
    // Upstream's name has its letters so.
    const most = 'Maximum number of CIDRs that can be allocated.';
    const max = each((pool) => pool.size);
    board.reading(`${SUBSYSTEM}_cirdset_max_cidrs`, most, LABELS, max);
    const usage = 'Gauge measuring percentage of allocated CIDRs.';
    const share = each((pool) => pool.count / pool.size);
    board.reading(`${SUBSYSTEM}_cidrset_usage_cidrs`, usage, LABELS, share);
  }

  /** A piece is taken; found after so many others where it was looked for. */
  gave(pool: CidrPool, tries?: number): void {
    const labels = [blockText(pool.block)];
    this.#given.add(labels);
    if (tries !== undefined) this.#tries.record(tries, labels);
  }

  freed(pool: CidrPool): void {
    this.#freed.add([blockText(pool.block)]);
  }
}
