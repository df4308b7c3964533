// data plane: what stands in a record, by its ref
import { type Arenas, GRANULE_BITS } from '../record/arenas.ts';
import type { Leases } from '../lease/lease-table.ts';

/** The store's part of reading records; the contract stands in contract.ts. */
export abstract class Records {
  abstract readonly arenas: Arenas;
  abstract readonly leases: Leases;

  record(ref: number): Buffer {
    return this.arenas.bytes[ref >>> GRANULE_BITS]!;
  }

  keyAt(ref: number): number {
    return this.arenas.keyAt(ref);
  }

  keyTo(ref: number): number {
    return this.arenas.keyAt(ref) + this.arenas.keySize(ref);
  }

  valueAt(ref: number): number {
    return this.arenas.valueAt(ref);
  }

  valueTo(ref: number): number {
    return this.arenas.valueAt(ref) + this.arenas.valueSize(ref);
  }

  unpackedSize(ref: number): number {
    return this.arenas.unpackedSize(ref);
  }

  unpack(ref: number, out: Buffer, at: number): number {
    return this.arenas.unpack(ref, out, at);
  }

  modRevision(ref: number): number {
    return this.arenas.modRevision(ref);
  }

  createRevision(ref: number): number {
    return this.arenas.createRevision(ref);
  }

  version(ref: number): number {
    return this.arenas.version(ref);
  }

  isTombstone(ref: number): boolean {
    return this.arenas.isTombstone(ref);
  }

  lease(ref: number): number {
    return this.leases.ofRecord(ref);
  }

  /** Lease id halves as written in the record, 0 and 0 for none. */
  leaseHigh(ref: number): number {
    return this.arenas.leaseHigh(ref);
  }

  leaseLow(ref: number): number {
    return this.arenas.leaseLow(ref);
  }

  previous(ref: number): number {
    const previous = this.arenas.previous(ref);
    return previous === 0 || this.arenas.isTombstone(previous) ? 0 : previous;
  }
}
