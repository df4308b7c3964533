// shell: Maintenance.Snapshot: the database file to a client, as fast as it reads
import { afterMs, nextTurn } from '@megaplane/base/deferred';
import { type Hash, createHash } from 'node:crypto';
import type { GrpcCall, GrpcCallFactory, GrpcCallHandler } from '@megaplane/wire/grpc';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import {
  sizeBytesField,
  sizeInt64,
  writeBytesField,
  writeInt64Field,
  writeTextField,
} from '@megaplane/wire/protobuf-write';
import { Backup, STORAGE_VERSION } from '../backend/backup.ts';
import { PIECE_BYTES } from '../bbolt/image.ts';
import type { EtcdContext } from '../call/context.ts';
import { ETCD } from '../codec/failures.ts';
import { LONG_WORK_MAX, runInSlices, sliceMs } from '../call/slices.ts';
import { isMessage } from '../codec/whole-message.ts';

/** While a snapshot is read nothing is freed: a client that stops reading is cut off. */
const STALL_MS_MAX = 60_000;

class SnapshotStream implements GrpcCallHandler {
  readonly #call: GrpcCall;
  readonly #context: EtcdContext;
  /** Those of the server that read records now. */
  readonly #streams: Set<GrpcCall>;
  readonly #hash: Hash = createHash('sha256');
  #backup: Backup | null = null;
  #isReady = false;
  #isPumping = false;
  #pumpedMs = 0;
  #remaining = 0;
  #piece: Buffer = Buffer.alloc(0);
  #pieceAt = 0;
  #message: Buffer = Buffer.alloc(0);
  #stall: NodeJS.Timeout | null = null;

  constructor(context: EtcdContext, call: GrpcCall, streams: Set<GrpcCall>) {
    this.#context = context;
    this.#call = call;
    this.#streams = streams;
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    if (isMessage(bytes, start, end)) return;
    this.#call.finish(ETCD.malformedStream.code, ETCD.malformedStream.text);
  }

  onHalfClose(): void {
    const { store, term, nowMs } = this.#context;
    if (this.#streams.size >= LONG_WORK_MAX) {
      this.#call.finish(ETCD.tooManyRequests.code, ETCD.tooManyRequests.text);
      return;
    }
    this.#streams.add(this.#call);
    const backup = new Backup(store, term, nowMs());
    this.#backup = backup;
    // Nothing of it may leave before it is as durable as promised.
    this.#context.guard(this.#call.connection);
    const work = { step: () => this.#call.closed || backup.step() };
    runInSlices(work, () => {
      this.#isReady = true;
      this.#remaining = backup.size;
      this.#pump();
    });
  }

  onCancel(): void {
    this.#end();
  }

  onWritable(): void {
    this.#pump();
  }

  #end(): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall = null;
    if (this.#backup === null) return;
    this.#backup.end();
    this.#backup = null;
    this.#streams.delete(this.#call);
  }

  #pump(): void {
    if (!this.#isReady || this.#isPumping || this.#backup === null) return;
    if (this.#call.closed) {
      this.#end();
      return;
    }
    this.#watchStall();
    const nowMs = performance.now();
    const endMs = nowMs + sliceMs(nowMs - this.#pumpedMs);
    while (this.#call.writable() > 0) {
      this.#pumpedMs = performance.now();
      if (this.#pumpedMs > endMs) {
        this.#isPumping = true;
        nextTurn(() => {
          this.#isPumping = false;
          this.#pump();
        });
        return;
      }
      if (!this.#sendNext()) return;
    }
  }

  #watchStall(): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall = afterMs(STALL_MS_MAX, () => {
      this.#call.finish(
        GRPC_CODES.deadlineExceeded,
        `the snapshot was not read for ${STALL_MS_MAX / 1000} s; take it again`,
      );
      this.#end();
    });
    this.#stall.unref();
  }

  /** False after the last message. */
  #sendNext(): boolean {
    const backup = this.#backup;
    if (backup === null) return false;
    if (this.#pieceAt === this.#piece.length) {
      const piece = backup.next();
      if (piece === null) {
        this.#send(this.#hash.digest());
        this.#call.finish(GRPC_CODES.ok);
        this.#end();
        return false;
      }
      this.#hash.update(piece);
      this.#piece = piece;
      this.#pieceAt = 0;
    }
    const end = Math.min(this.#piece.length, this.#pieceAt + PIECE_BYTES);
    this.#remaining -= end - this.#pieceAt;
    this.#send(this.#piece.subarray(this.#pieceAt, end));
    this.#pieceAt = end;
    return true;
  }

  #send(blob: Buffer): void {
    const size = sizeBytesField(3, blob.length) + sizeInt64(this.#remaining) + 16;
    // Sent or copied when `send` returns; a message of its own each would be memory that only a
    // collection of the whole heap gives back.
    if (size > this.#message.length) this.#message = Buffer.allocUnsafe(size);
    const message = this.#message;
    let at = writeInt64Field(message, 0, 2, this.#remaining);
    at = writeBytesField(message, at, 3, blob, 0, blob.length);
    at = writeTextField(message, at, 4, STORAGE_VERSION);
    this.#call.send(message, 0, at);
  }
}

/** The streams of one server; more than LONG_WORK_MAX at a time are refused. */
export function snapshotFactory(context: EtcdContext): GrpcCallFactory {
  const streams = new Set<GrpcCall>();
  return (call) => new SnapshotStream(context, call, streams);
}
