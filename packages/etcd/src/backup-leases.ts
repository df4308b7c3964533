// data plane: the leases of a backup in the order of their ids, found in slices
/**
 * The rows are copied at once, since leases that go while the backup is made must be in it as long
 * as its keys name them. Then they are sorted by the four digits of 16 bits of their ids, the
 * lowest first: every pass is a walk that can stop anywhere, which no other sort of a million is.
 */
import type { LeaseRows } from '@megaplane/store/lease-table';
import {
  sizeInt64,
  sizeVarint64,
  writeInt64Field,
  writeVarint64Field,
} from '@megaplane/wire/protobuf-write';
import type { EntrySource } from './bbolt/tree.ts';

const DIGITS = 4;
const DIGIT_VALUES = 65_536;
/** Some tenths of a millisecond. */
const STEP_ROWS = 16_384;

type Phase = 'gather' | 'count' | 'place';

export class BackupLeases implements EntrySource {
  readonly #rows: LeaseRows;
  readonly #nowMs: number;
  /** Lease numbers, in order once all digits are done, and where the next pass puts them. */
  #order: Uint32Array;
  #next: Uint32Array;
  /** Of a digit: how often each value is there, then where the next row with it goes. */
  readonly #places = new Uint32Array(DIGIT_VALUES);
  #phase: Phase = 'gather';
  #digit = 0;
  #at = 0;
  #count = 0;

  constructor(rows: LeaseRows, nowMs: number) {
    this.#rows = rows;
    this.#nowMs = nowMs;
    this.#order = new Uint32Array(rows.count);
    this.#next = new Uint32Array(rows.count);
  }

  get count(): number {
    return this.#rows.count;
  }

  /** One slice of work; true when all leases are in order. */
  step(): boolean {
    if (this.count === 0 || this.#digit === DIGITS) return true;
    const end = this.#phase === 'gather' ? this.#rows.used.length : this.count;
    const to = Math.min(end, this.#at + STEP_ROWS);
    if (this.#phase === 'gather') this.#gather(to);
    else if (this.#phase === 'count') this.#countValues(to);
    else this.#place(to);
    this.#at = to;
    if (to === end) this.#endPhase();
    return this.#digit === DIGITS;
  }

  #gather(to: number): void {
    const { used } = this.#rows;
    for (let lease = this.#at; lease < to; lease++) {
      if (used[lease] === 1) this.#order[this.#count++] = lease;
    }
  }

  #countValues(to: number): void {
    for (let i = this.#at; i < to; i++) this.#places[this.#valueOf(this.#order[i]!)]!++;
  }

  #place(to: number): void {
    for (let i = this.#at; i < to; i++) {
      const lease = this.#order[i]!;
      this.#next[this.#places[this.#valueOf(lease)]!++] = lease;
    }
  }

  #valueOf(lease: number): number {
    const { high, low } = this.#rows;
    const half = this.#digit < 2 ? low[lease]! : high[lease]!;
    return this.#digit % 2 === 0 ? half & 0xffff : half >>> 16;
  }

  #endPhase(): void {
    this.#at = 0;
    if (this.#phase === 'gather') this.#phase = 'count';
    else if (this.#phase === 'count') {
      this.#phase = 'place';
      let sum = 0;
      for (let value = 0; value < DIGIT_VALUES; value++) {
        const found = this.#places[value]!;
        this.#places[value] = sum;
        sum += found;
      }
    } else {
      [this.#order, this.#next] = [this.#next, this.#order];
      this.#places.fill(0);
      this.#phase = 'count';
      this.#digit++;
    }
  }

  keySize(): number {
    return 8;
  }

  valueSize(index: number): number {
    const { high, low } = this.#rows;
    const lease = this.#order[index]!;
    const left = this.#left(lease);
    const id = 1 + sizeVarint64(low[lease]!, high[lease]!);
    return id + 1 + sizeInt64(this.#ttl(lease)) + (left === 0 ? 0 : 1 + sizeInt64(left));
  }

  writeKey(index: number, out: Buffer, at: number): number {
    const lease = this.#order[index]!;
    out.writeUInt32BE(this.#rows.high[lease]!, at);
    return out.writeUInt32BE(this.#rows.low[lease]!, at + 4);
  }

  /** `leasepb.Lease`: ID, TTL and what remains of it, in seconds. */
  writeValue(index: number, out: Buffer, start: number): number {
    const { high, low } = this.#rows;
    const lease = this.#order[index]!;
    const left = this.#left(lease);
    const at = writeVarint64Field(out, start, 1, low[lease]!, high[lease]!);
    const end = writeInt64Field(out, at, 2, this.#ttl(lease));
    return left === 0 ? end : writeInt64Field(out, end, 3, left);
  }

  #ttl(lease: number): number {
    return this.#rows.ttlSeconds[lease]!;
  }

  /** 0 where all of it is left. */
  #left(lease: number): number {
    const leftMs = this.#rows.deadlineMs[lease]! - this.#nowMs;
    const left = Math.max(1, Math.ceil(leftMs / 1000));
    return left < this.#ttl(lease) ? left : 0;
  }
}
