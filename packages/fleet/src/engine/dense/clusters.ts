// data plane: the demand of clusters as columns, and what the last cycle credited to it
import { doubled } from './interned.ts';
import type { Row } from '../row.ts';

/** Rows of one cluster, a column each. */
export interface Rows {
  readonly count: number;
  readonly profile: Int32Array<ArrayBuffer>;
  readonly group: Int32Array<ArrayBuffer>;
  /** Numbers of vectors. */
  readonly aggregate: Int32Array<ArrayBuffer>;
  readonly minUnit: Int32Array<ArrayBuffer>;
}

export const NO_ROWS: Rows = rowsOf(0);

export function rowsOf(count: number): Rows {
  return {
    count,
    profile: new Int32Array(count),
    group: new Int32Array(count),
    aggregate: new Int32Array(count),
    minUnit: new Int32Array(count),
  };
}

/** Rows as the phases take them: kept ones in their order, then folded ones. */
export interface NormalRows extends Rows {
  /** Those from here on are folded. */
  readonly keptCount: number;
  /** Positions by priority, kept ones before folded ones of the same. */
  readonly order: Int32Array<ArrayBuffer>;
  /** Earliest arrival of folded rows is the cluster's. */
  readonly hasGangs: boolean;
}

export const NO_DOMAIN = -1;

export class ClusterDemand {
  readonly id: number;
  readonly name: string;
  hasReported = false;
  /** Some roll-up of it was accepted. */
  hasRows = false;
  arrival = 0;
  rows: Rows = NO_ROWS;
  /** Rows with amounts that columns do not hold exactly; all rows are then here as they came. */
  exact: readonly Row[] | undefined;
  hasOddProfiles = false;
  /** The raw rows have gangs. */
  hasGangs = false;
  normal: NormalRows = { ...NO_ROWS, keptCount: 0, order: new Int32Array(0), hasGangs: false };
  /** Gangs by class (profile and size), and whether one machine could hold them. */
  classes: ReadonlyMap<number, boolean> = new Map();
  /** Groups of gangs that stay as they are though one machine could hold them, by class. */
  spans: ReadonlyMap<number, ReadonlySet<number>> = new Map();
  /** Rows that `normal` was made of, while others have come: its numbers are held by them. */
  former: Rows | undefined;
  /** The rows are to be folded anew. */
  isRaw = true;
  /** The credits are to be worked out anew. */
  isDirty = true;
  /** What its rows get depends on more than what is its own. */
  isShared = false;

  // What was credited: claims of position p are claims[starts[p]] to claims[ends[p]].
  starts: Int32Array<ArrayBuffer> = new Int32Array(0);
  ends: Int32Array<ArrayBuffer> = new Int32Array(0);
  claims: Int32Array<ArrayBuffer> = new Int32Array(4);
  claimsCount = 0;
  /** Of gangs: the number of the domain's value. */
  domain: Int32Array<ArrayBuffer> = new Int32Array(0);
  isSatisfiable: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** Bound machines that are not claimed yet, in keep order; what remains is surplus. */
  live: Int32Array<ArrayBuffer> = new Int32Array(0);
  liveCount = 0;

  constructor(id: number, name: string) {
    this.id = id;
    this.name = name;
  }

  begin(bound: Int32Array, boundCount: number): void {
    const { count } = this.normal;
    if (this.starts.length !== count) {
      this.starts = new Int32Array(count);
      this.ends = new Int32Array(count);
      this.domain = new Int32Array(count);
      this.isSatisfiable = new Uint8Array(count);
    }
    this.domain.fill(NO_DOMAIN);
    this.isSatisfiable.fill(0);
    if (this.live.length < boundCount) this.live = new Int32Array(Math.ceil(boundCount * 1.25));
    this.live.set(bound.subarray(0, boundCount));
    this.liveCount = boundCount;
    this.claimsCount = 0;
    this.isShared = false;
  }

  claim(slot: number): void {
    if (this.claimsCount === this.claims.length) this.claims = doubled(this.claims);
    this.claims[this.claimsCount++] = slot;
  }

  /** Takes out of `live` what was set to -1 from `from` on. */
  compact(from: number): void {
    let kept = from;
    for (let at = from; at < this.liveCount; at++) {
      const slot = this.live[at]!;
      if (slot >= 0) this.live[kept++] = slot;
    }
    this.liveCount = kept;
  }
}
