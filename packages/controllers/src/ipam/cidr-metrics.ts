/** How much of the blocks is given to nodes, under upstream's names. */
import type { Counter, MetricBoard } from '../metric-board.ts';
import { blockText, type CidrPool } from './cidr-pool.ts';

const SUBSYSTEM = 'node_ipam_controller';
const LABELS: readonly string[] = ['clusterCIDR'];

export class CidrMetrics {
  readonly #given: Counter;
  readonly #freed: Counter;

  constructor(board: MetricBoard, pools: readonly CidrPool[]) {
    const counter = (what: string): Counter =>
      board.counter(
        `${SUBSYSTEM}_cidrset_cidrs_${what}_total`,
        `Counter measuring total number of CIDR ${what}.`,
        LABELS,
      );
    this.#given = counter('allocations');
    this.#freed = counter('releases');
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

  gave(pool: CidrPool): void {
    this.#given.add([blockText(pool.block)]);
  }

  freed(pool: CidrPool): void {
    this.#freed.add([blockText(pool.block)]);
  }
}
