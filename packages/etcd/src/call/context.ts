// data plane: what all etcd services share: the store, headers, the gate
/**
 * The gate keeps an answer back until what it saw is as durable as promised: a connection whose
 * answers saw an unpublished change is held, all of it, and let go when that change is published.
 * A connection that goes on asking meanwhile waits for its latest change; the limit on streams
 * bounds how long.
 */
import { unowned } from '@megaplane/base/deferred';
import type { Page, RevisionedStore } from '@megaplane/store/contract';
import { newPage } from '@megaplane/store/ranges';
import type { Store } from '@megaplane/store/store';
import type { Connection } from '@megaplane/wire/exchange';
import { GRPC_CODES, type InPlaceCall, type InPlaceHandler } from '@megaplane/wire/grpc';
import { sizeInt64, sizeVarint, writeInt64, writeVarint64 } from '@megaplane/wire/protobuf-write';
import { CallMeasures } from './call-measures.ts';
import { type EtcdFailure, ETCD } from '../codec/failures.ts';
import { isMessage } from '../codec/whole-message.ts';
import type { GroupView } from './router.ts';

/** Largest answer that clients take; beyond twice as much gRPC could not tell its length. */
export const ANSWER_BYTES_MAX = 0x7fffffff;
/** What a message may have beside a request of the largest size, as in etcd. */
export const MESSAGE_OVERHEAD_BYTES: number = 512 * 1024;
/** Of etcd's limit on a write, its raft entry takes these beside the request and its length. */
const LOG_OVERHEAD_BYTES = 15;

export interface EtcdLimits {
  /** etcd's --max-txn-ops. */
  readonly txnOpsMax: number;
  /** etcd's --max-request-bytes: a write's own size. */
  readonly requestBytesMax: number;
  /** Bytes of keys and values, etcd's --quota-backend-bytes; 0 = no limit. */
  readonly quotaBytes: number;
}

interface Held {
  readonly connection: Connection;
  change: number;
}

export class EtcdContext {
  readonly store: Store;
  readonly limits: EtcdLimits;
  readonly clusterId: Buffer;
  readonly memberId: Buffer;
  term: number;
  /** Null where there is one member. */
  readonly group: GroupView | null;
  readonly page: Page = newPage();
  readonly measures: CallMeasures;
  /** Fields 1 and 2, then 4, of every full header. */
  readonly #ids: Buffer;
  #termField: Buffer = Buffer.alloc(0);
  readonly #held: Held[] = [];
  readonly #heldByConnection: Map<number, Held> = new Map();
  /** Monotonic time, given by the shell. */
  readonly nowMs: () => number;

  constructor(
    store: Store,
    limits: EtcdLimits,
    identity: { readonly clusterId: Buffer; readonly memberId: Buffer; readonly term: number },
    nowMs: () => number,
    group: GroupView | null = null,
  ) {
    this.group = group;
    this.store = store;
    this.limits = limits;
    this.clusterId = identity.clusterId;
    this.memberId = identity.memberId;
    this.term = identity.term;
    this.nowMs = nowMs;
    this.measures = new CallMeasures(nowMs);
    const ids = Buffer.alloc(32);
    let at = 0;
    ids[at++] = 0x08;
    at = writeVarint64(ids, at, this.clusterId.readUInt32BE(4), this.clusterId.readUInt32BE(0));
    ids[at++] = 0x10;
    at = writeVarint64(ids, at, this.memberId.readUInt32BE(4), this.memberId.readUInt32BE(0));
    this.#ids = ids.subarray(0, at);
    this.setTerm(identity.term);
    (store as RevisionedStore).onPublish(unowned(() => this.#letGo()));
  }

  /** From here on answers tell of this term. */
  setTerm(term: number): void {
    const field = Buffer.alloc(12);
    field[0] = 0x20;
    this.term = term;
    this.#termField = field.subarray(0, writeInt64(field, 1, term));
  }

  /** Bytes of a full header's content. */
  #headerSize(revision: number): number {
    const own = this.#ids.length + this.#termField.length;
    return revision === 0 ? own : own + 1 + sizeInt64(revision);
  }

  /** Bytes of a full header as a field. */
  headerSizeOf(revision: number): number {
    return 2 + this.#headerSize(revision);
  }

  /** Room that a full header takes at most, tag and length included. */
  get headerRoom(): number {
    return this.#ids.length + this.#termField.length + 16;
  }

  /** Writes a full ResponseHeader as field 1. */
  writeHeader(out: Uint8Array, at: number, revision: number): number {
    out[at++] = 0x0a;
    out[at++] = this.#headerSize(revision);
    const ids = this.#ids;
    for (let i = 0; i < ids.length; i++) out[at + i] = ids[i]!;
    at += ids.length;
    if (revision !== 0) {
      out[at++] = 0x18;
      at = writeInt64(out, at, revision);
    }
    const term = this.#termField;
    for (let i = 0; i < term.length; i++) out[at + i] = term[i]!;
    return at + term.length;
  }

  /** An answer that is a header alone. */
  header(): Buffer {
    const out = Buffer.alloc(this.headerRoom);
    return out.subarray(0, this.writeHeader(out, 0, this.store.publishedRevision));
  }

  /** Is a write of so many bytes larger than may be asked for? As etcd's log would hold it. */
  isTooLarge(sizeBytes: number): boolean {
    return sizeBytes + sizeVarint(sizeBytes) + LOG_OVERHEAD_BYTES > this.limits.requestBytesMax;
  }

  /** After an answer was made: it may leave once everything that it saw is published. */
  guard(connection: Connection): void {
    if (!this.store.isPending) return;
    const change = this.store.appliedChange;
    const held = this.#heldByConnection.get(connection.id);
    if (held !== undefined) {
      held.change = change;
      return;
    }
    const fresh = { connection, change };
    this.#held.push(fresh);
    this.#heldByConnection.set(connection.id, fresh);
    connection.hold();
  }

  /** Nothing is published any more: who waits for that hears of it by losing its connection. */
  endHeld(): void {
    for (const { connection } of this.#held.splice(0)) {
      this.#heldByConnection.delete(connection.id);
      connection.abort(ETCD.timeout.text);
    }
  }

  #letGo(): void {
    const published = this.store.publishedChange;
    const held = this.#held;
    let kept = 0;
    for (let i = 0; i < held.length; i++) {
      const one = held[i]!;
      if (one.change > published) {
        held[kept++] = one;
        continue;
      }
      this.#heldByConnection.delete(one.connection.id);
      one.connection.release();
    }
    held.length = kept;
  }

  /** Answers that what was done cannot be told at once, in the words of grpc-go. */
  failOverlong(call: InPlaceCall, sizeBytes: number): number {
    const sizes = `${sizeBytes} vs. ${ANSWER_BYTES_MAX}`;
    const text = `grpc: trying to send message larger than max (${sizes})`;
    return this.fail(call, { code: GRPC_CODES.resourceExhausted, text });
  }

  /** Answers with an error, after the gate. */
  fail(call: InPlaceCall, failure: EtcdFailure): number {
    this.guard(call.connection);
    return call.fail(failure.code, failure.text);
  }
}

/** Refuses bytes that are no message, before the handler does anything. */
export function unlessMalformed(context: EtcdContext, handler: InPlaceHandler): InPlaceHandler {
  return (bytes, start, end, out, offset, call) =>
    isMessage(bytes, start, end)
      ? handler(bytes, start, end, out, offset, call)
      : context.fail(call, ETCD.malformed);
}
