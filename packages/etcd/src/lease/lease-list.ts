// data plane: LeaseLeases: all leases by when they end, in slices where they are many
import type { LeaseRows } from '@megaplane/store/lease-rows';
import type { InPlaceHandler } from '@megaplane/wire/grpc';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { sizeVarint64, writeVarint64Field } from '@megaplane/wire/protobuf-write';
import type { EtcdContext } from '../call/context.ts';
import { ETCD } from '../codec/failures.ts';
import { LEASES_AT_ONCE_MAX, LeaseOrder } from './lease-order.ts';
import { answer } from '../kv/put.ts';
import { LONG_WORK_MAX, runInSlices } from '../call/slices.ts';

/** Of 16 bits, in the milliseconds of any deadline. */
const DEADLINE_DIGITS = 3;
const DIGIT_VALUES = 65_536;
/** A lease of the answer: two heads and ten bytes of id. */
const LEASE_BYTES_MAX = 14;
const STEP_WRITES = 4096;

/** The answer in the making. */
export class LeaseList extends LeaseOrder {
  /** By lease: renewals go on while they are sorted. */
  readonly #deadlineMs: Float64Array;
  #isOrdered = false;
  #written = 0;
  readonly #out: Buffer;
  /** How far `out` is filled. */
  size: number;

  /** Writes behind the first `size` octets of `out`. */
  constructor(rows: LeaseRows, out: Buffer, size: number) {
    super(rows, DEADLINE_DIGITS);
    this.#deadlineMs = new Float64Array(rows.end);
    this.#out = out;
    this.size = size;
  }

  protected gather(lease: number): void {
    this.#deadlineMs[lease] = Math.max(0, Math.floor(this.rows.deadlineMs(lease)));
  }

  protected digitOf(lease: number, digit: number): number {
    return Math.floor(this.#deadlineMs[lease]! / DIGIT_VALUES ** digit) % DIGIT_VALUES;
  }

  /** One slice; true when the answer is written. */
  override step(): boolean {
    if (!this.#isOrdered) {
      this.#isOrdered = super.step();
      return false;
    }
    const end = Math.min(this.count, this.#written + STEP_WRITES);
    for (; this.#written < end; this.#written++) this.#write(this.at(this.#written));
    return this.#written === this.count;
  }

  #write(lease: number): void {
    const out = this.#out;
    const [low, high] = [this.rows.low(lease), this.rows.high(lease)];
    out[this.size++] = 0x12;
    out[this.size++] = 1 + sizeVarint64(low, high);
    this.size = writeVarint64Field(out, this.size, 1, low, high);
  }
}

/** Lease.LeaseLeases. */
export function leasesHandler(context: EtcdContext): InPlaceHandler {
  const { store } = context;
  let running = 0;
  return (_bytes, _start, _end, out, offset, call) => {
    const rows = store.leases.copyRows();
    const size = context.headerRoom + rows.count * LEASE_BYTES_MAX;
    const revision = store.appliedRevision;
    if (rows.count <= LEASES_AT_ONCE_MAX) {
      context.guard(call.connection);
      return answer(call, out, offset, size, (target, from) => {
        const list = new LeaseList(rows, target, context.writeHeader(target, from, revision));
        while (!list.step());
        return list.size;
      });
    }
    if (running >= LONG_WORK_MAX) return context.fail(call, ETCD.tooManyRequests);
    running++;
    return call.defer((deferred) => {
      const large = Buffer.allocUnsafeSlow(size);
      const list = new LeaseList(rows, large, context.writeHeader(large, 0, revision));
      const work = { step: () => deferred.closed || list.step() };
      runInSlices(work, () => {
        running--;
        context.guard(deferred.connection);
        deferred.send(large, 0, list.size);
        deferred.finish(GRPC_CODES.ok);
      });
    });
  };
}
