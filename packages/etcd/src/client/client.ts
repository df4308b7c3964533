// shell: calls to an etcd cluster, with their time limits
/**
 * A client for any server of etcd's API: what Kubernetes needs of it. Calls are promises that never
 * reject: a failure is a value whose `message` is what a Go client would print.
 */
import { afterMs } from '@megaplane/base/deferred';
import type { GrpcClient, GrpcClientCall, GrpcStatus } from '@megaplane/wire/grpc';
import { Endpoints, type EndpointsOptions } from './endpoints.ts';
import {
  decodeHeader,
  decodeLeaseGrant,
  decodeLeaseKeep,
  decodeRange,
  decodeVersion,
  decodeWatch,
  decodeWrite,
  encodeCompaction,
  encodeLease,
  encodeLeaseGrant,
  encodeProgressRequest,
  encodePut,
  encodeRange,
  encodeTurn,
  encodeWatch,
  encodeWrite,
  type ConditionalWrite,
  type LeaseId,
  type RangeAnswer,
  type RangeRequest,
  type WatchAnswer,
  type WriteAnswer,
} from './messages.ts';

/** A call that has no answer by then has failed. */
const CALL_MS_MAX = 10_000;
/**
 * Without a connection for so long, calls fail almost at once: those who ask had better hear of it
 * than wait. A change of leader or of members is over sooner.
 */
const DOWN_MS_MAX = 2000;
const PATIENCE_MS_MIN = 50;
/** Calls that wait for an answer; more are refused, so that a dead cluster costs no memory. */
const CALLS_MAX = 50_000;
const UNAVAILABLE = 14;
const DEADLINE_EXCEEDED = 4;
const OK = 0;

export type EtcdResult<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      /** Code of gRPC. */
      readonly code: number;
      readonly message: string;
    };

/** What a watch tells. After `onEnd` nothing follows. */
export interface WatchSink {
  onAnswer(answer: WatchAnswer): void;
  onEnd(reason: string): void;
}

export interface EtcdWatch {
  /** Asks for an answer that tells the revision up to which everything was sent. */
  requestProgress(): void;
  /** Ends it; `onEnd` is not called any more. */
  cancel(): void;
  /** The member does not answer: leaves it for the next one. `onEnd` follows. */
  leave(why: string): void;
}

type Decode<T> = (bytes: Buffer, start: number, end: number) => T;

export class EtcdClient {
  readonly #endpoints: Endpoints;
  readonly #callMsMax: number;
  #calls = 0;

  constructor(options: EndpointsOptions & { readonly callMsMax?: number }) {
    this.#callMsMax = options.callMsMax ?? CALL_MS_MAX;
    this.#endpoints = new Endpoints(options);
  }

  /** What is wrong with the connection; '' while it is open. */
  get fault(): string {
    return this.#endpoints.fault;
  }

  range(request: RangeRequest): Promise<EtcdResult<RangeAnswer>> {
    return this.call('/etcdserverpb.KV/Range', encodeRange(request), decodeRange, true);
  }

  /** A failure may have been written all the same. */
  write(write: ConditionalWrite): Promise<EtcdResult<WriteAnswer>> {
    return this.call('/etcdserverpb.KV/Txn', encodeWrite(write), decodeWrite, false);
  }

  /** Takes turn number `version` of `key` by putting `value`; `succeeded` says whose turn it is. */
  takeTurn(key: Buffer, version: number, value: Buffer): Promise<EtcdResult<WriteAnswer>> {
    const message = encodeTurn(key, version, value);
    return this.call('/etcdserverpb.KV/Txn', message, decodeWrite, false);
  }

  /** Revision of the put. */
  put(key: Buffer, value: Buffer): Promise<EtcdResult<number>> {
    return this.call('/etcdserverpb.KV/Put', encodePut(key, value), decodeHeader, true);
  }

  compact(revision: number): Promise<EtcdResult<number>> {
    const message = encodeCompaction(revision);
    return this.call('/etcdserverpb.KV/Compact', message, decodeHeader, false);
  }

  grantLease(ttlSeconds: number): Promise<EtcdResult<LeaseId>> {
    const message = encodeLeaseGrant(ttlSeconds);
    return this.call('/etcdserverpb.Lease/LeaseGrant', message, decodeLeaseGrant, false);
  }

  /** Renews a lease: the seconds that it has again, 0 where it has ended. */
  keepLease(lease: LeaseId): Promise<EtcdResult<number>> {
    return this.call(
      '/etcdserverpb.Lease/LeaseKeepAlive',
      encodeLease(lease),
      decodeLeaseKeep,
      true,
    );
  }

  /** Ends a lease and what hangs on it. */
  revokeLease(lease: LeaseId): Promise<EtcdResult<number>> {
    return this.call('/etcdserverpb.Lease/LeaseRevoke', encodeLease(lease), decodeHeader, true);
  }

  /** Version of the member in use, `3.5.16`. */
  version(): Promise<EtcdResult<string>> {
    const empty = Buffer.alloc(0);
    return this.call('/etcdserverpb.Maintenance/Status', empty, decodeVersion, true);
  }

  /**
   * Any unary call. `isSafe`: it may be made twice. A failure may have been worked on all the same.
   */
  async call<T>(
    path: string,
    message: Buffer,
    decode: Decode<T>,
    isSafe: boolean,
  ): Promise<EtcdResult<T>> {
    if (this.#calls >= CALLS_MAX) {
      return { ok: false, code: 8, message: 'etcdserver: too many requests' };
    }
    this.#calls++;
    const endMs = performance.now() + this.#callMsMax;
    for (;;) {
      const leftMs = endMs - performance.now();
      const client = await this.#opened(leftMs);
      if (client === null) {
        this.#calls--;
        return { ok: false, code: UNAVAILABLE, message: this.#unreachable() };
      }
      const { status, value } = await once(client, path, message, decode, leftMs);
      if (status.code === OK && value !== undefined) {
        this.#calls--;
        return { ok: true, value };
      }
      if (status.code === DEADLINE_EXCEEDED) {
        this.#endpoints.leave(client, 'a call got no answer in time');
      }
      const isUntouched = status.failure?.kind === 'refused';
      const isAgain = isUntouched || (isSafe && status.code === UNAVAILABLE);
      if (!isAgain || performance.now() >= endMs) {
        this.#calls--;
        return { ok: false, code: status.code, message: textOf(status) };
      }
      if (!isUntouched) await pause(Math.min(50, endMs - performance.now()));
    }
  }

  #unreachable(): string {
    const { fault } = this.#endpoints;
    return fault === '' ? 'the client is closed' : `etcd cannot be reached: ${fault}`;
  }

  /** A connection, or null when there is none within `waitMs`, or has been none for long. */
  async #opened(waitMs: number): Promise<GrpcClient | null> {
    if (waitMs <= 0) return null;
    const patienceMs = Math.max(PATIENCE_MS_MIN, DOWN_MS_MAX - this.#endpoints.downForMs);
    const { promise, resolve } = Promise.withResolvers<null>();
    const timer = afterMs(Math.min(waitMs, patienceMs), () => resolve(null));
    const client = await Promise.race([this.#endpoints.open(), promise]);
    clearTimeout(timer);
    return client;
  }

  /** Watches `[key, end)` from `startRevision` on. Null when no connection comes up in time. */
  async watch(
    key: Buffer,
    end: Buffer,
    startRevision: number,
    sink: WatchSink,
  ): Promise<EtcdWatch | null> {
    const client = await this.#opened(CALL_MS_MAX);
    if (client === null) return null;
    let isDone = false;
    const call = client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_, bytes, from, to) => {
        if (!isDone) sink.onAnswer(decodeWatch(bytes, from, to));
      },
      onStatus: (_, status) => {
        if (isDone) return;
        isDone = true;
        sink.onEnd(textOf(status));
      },
    });
    call.send(encodeWatch(key, end, startRevision));
    return {
      requestProgress: () => {
        if (!isDone) call.send(encodeProgressRequest());
      },
      cancel: () => {
        isDone = true;
        call.cancel();
      },
      leave: (why) => this.#endpoints.leave(client, why),
    };
  }

  close(): void {
    this.#endpoints.close();
  }
}

interface Outcome<T> {
  readonly status: GrpcStatus;
  readonly value: T | undefined;
}

function once<T>(
  client: GrpcClient,
  path: string,
  message: Buffer,
  decode: Decode<T>,
  timeoutMs: number,
): Promise<Outcome<T>> {
  const { promise, resolve } = Promise.withResolvers<Outcome<T>>();
  let value: T | undefined;
  const sink = {
    onMessage: (_: GrpcClientCall, bytes: Buffer, start: number, end: number): void => {
      value = decode(bytes, start, end);
    },
    onStatus: (_: GrpcClientCall, status: GrpcStatus): void => resolve({ status, value }),
  };
  client.unary(path, message, sink, { timeoutMs: Math.max(1, Math.ceil(timeoutMs)) });
  return promise;
}

/** The server's own words; the transport's as Go's gRPC shows them. */
function textOf({ code, message, failure }: GrpcStatus): string {
  if (failure === null) return message;
  return code === UNAVAILABLE ? `rpc error: code = Unavailable desc = ${message}` : message;
}

function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  afterMs(Math.max(0, ms), resolve);
  return promise;
}
