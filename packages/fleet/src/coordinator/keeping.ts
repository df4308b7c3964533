/**
 * What a coordinator asks of an etcd v3 cluster: read a prefix, write one key if it is as it was,
 * and leases. A client of etcd has exactly these; nothing here knows which.
 */

type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: number; readonly message: string };

/** A lease's id: a number of 64 bits in halves. */
export interface LeaseId {
  readonly high: number;
  readonly low: number;
}

interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
}

export interface Write {
  readonly key: Buffer;
  /** Revision of its last change; 0: there must be none. */
  readonly expected: number;
  /** Null deletes. */
  readonly value: Buffer | null;
  readonly lease?: LeaseId | undefined;
  readonly guard?: { readonly key: Buffer; readonly createRevision: number } | undefined;
}

/** Calls never reject. A write that failed may have been carried out all the same. */
export interface Keeping {
  range(request: {
    readonly key: Buffer;
    readonly end?: Buffer;
    readonly limit?: number;
    readonly revision?: number;
  }): Promise<
    Result<{ readonly revision: number; readonly kvs: readonly KeyValue[]; readonly more: boolean }>
  >;
  write(write: Write): Promise<
    Result<{
      readonly revision: number;
      readonly succeeded: boolean;
      readonly found: KeyValue | null;
    }>
  >;
  grantLease(ttlSeconds: number): Promise<Result<LeaseId>>;
  /** Seconds that it has again; 0: it has ended. */
  keepLease(lease: LeaseId): Promise<Result<number>>;
  revokeLease(lease: LeaseId): Promise<Result<number>>;
}
