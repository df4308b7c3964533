// data plane: the leases of a backup in the order of their ids, found in slices
/**
 * The rows are those of the moment at which the backup begins: leases that go while it is made must
 * be in it as long as its keys name them.
 */
import type { LeaseRows } from '@megaplane/store/lease-rows';
import {
  sizeInt64,
  sizeVarint64,
  writeInt64Field,
  writeVarint64Field,
} from '@megaplane/wire/protobuf-write';
import type { EntrySource } from '../bbolt/tree.ts';
import { LeaseOrder } from '../lease/lease-order.ts';

/** Of 16 bits, in an id. */
const ID_DIGITS = 4;

export class BackupLeases extends LeaseOrder implements EntrySource {
  readonly #nowMs: number;
  /** Seconds left, by lease: the same when sizes are planned and when values are written. */
  readonly #leftSeconds: Float64Array;

  constructor(rows: LeaseRows, nowMs: number) {
    super(rows, ID_DIGITS);
    this.#nowMs = nowMs;
    this.#leftSeconds = new Float64Array(rows.end);
  }

  protected gather(lease: number): void {
    const leftMs = this.rows.deadlineMs(lease) - this.#nowMs;
    this.#leftSeconds[lease] = Math.max(1, Math.ceil(leftMs / 1000));
  }

  protected digitOf(lease: number, digit: number): number {
    const half = digit < 2 ? this.rows.low(lease) : this.rows.high(lease);
    return digit % 2 === 0 ? half & 0xffff : half >>> 16;
  }

  keySize(): number {
    return 8;
  }

  valueSize(index: number): number {
    const { rows } = this;
    const lease = this.at(index);
    const left = this.#left(lease);
    const id = 1 + sizeVarint64(rows.low(lease), rows.high(lease));
    return id + 1 + sizeInt64(rows.ttlSeconds(lease)) + (left === 0 ? 0 : 1 + sizeInt64(left));
  }

  writeKey(index: number, out: Buffer, at: number): number {
    const lease = this.at(index);
    out.writeUInt32BE(this.rows.high(lease), at);
    return out.writeUInt32BE(this.rows.low(lease), at + 4);
  }

  /** `leasepb.Lease`: ID, TTL and what remains of it, in seconds. */
  writeValue(index: number, out: Buffer, start: number): number {
    const { rows } = this;
    const lease = this.at(index);
    const left = this.#left(lease);
    const at = writeVarint64Field(out, start, 1, rows.low(lease), rows.high(lease));
    const end = writeInt64Field(out, at, 2, rows.ttlSeconds(lease));
    return left === 0 ? end : writeInt64Field(out, end, 3, left);
  }

  /** 0 where all of it is left. */
  #left(lease: number): number {
    const left = this.#leftSeconds[lease]!;
    return left < this.rows.ttlSeconds(lease) ? left : 0;
  }
}
