/** What Observe sends while a leader speaks: each put of its key, as fast as the client reads. */
import type { GrpcCall } from '@megaplane/wire/grpc';
import type { EtcdContext } from '../call/context.ts';
import { keyValueSize, writeKeyValueContent } from '../codec/key-value.ts';
import { Message, encodeMessage } from '../codec/message.ts';
import type { Principal } from './own-calls.ts';

const NO_END = Buffer.alloc(0);

interface KeyRange {
  readonly key: Buffer;
  readonly end: Buffer;
}

export class LeaderWatch {
  readonly #context: EtcdContext;
  readonly #caller: Principal;
  readonly #call: GrpcCall;
  /** The leader's key and the revision told last. */
  #key: Buffer = NO_END;
  #revision = 0;

  constructor(context: EtcdContext, caller: Principal, call: GrpcCall) {
    this.#context = context;
    this.#caller = caller;
    this.#call = call;
  }

  /** Sends a leader that was read at `revision`. */
  sendKv(header: Buffer, kv: Buffer, revision: number): void {
    this.#key = Buffer.from(new Message(kv).bytes(1));
    this.#revision = revision;
    this.#context.guard(this.#call.connection);
    this.#call.send(
      encodeMessage([
        [1, header],
        [2, kv],
      ]),
    );
  }

  /** True when a key of the range was put, and sent; false when the watch ended. */
  untilPut({ key, end }: KeyRange, from: number): Promise<boolean> {
    return this.#read({ key, end }, from, (ref) => {
      if (this.#context.store.isTombstone(ref)) return false;
      this.#sendRecord(ref);
      return true;
    });
  }

  /** True when the leader's key was deleted; each put of it was sent. */
  untilDeleted(): Promise<boolean> {
    return this.#read({ key: this.#key, end: NO_END }, this.#revision + 1, (ref) => {
      if (this.#context.store.isTombstone(ref)) return true;
      this.#sendRecord(ref);
      return false;
    });
  }

  #sendRecord(ref: number): void {
    const { store } = this.#context;
    const kv = Buffer.allocUnsafe(keyValueSize(store, ref, false));
    writeKeyValueContent(store, ref, false, kv, 0);
    this.#key = Buffer.from(store.record(ref).subarray(store.keyAt(ref), store.keyTo(ref)));
    this.#revision = store.modRevision(ref);
    const head = Buffer.alloc(this.#context.headerRoom);
    const to = this.#context.writeHeader(head, 0, this.#revision);
    this.#call.send(Buffer.concat([head.subarray(0, to), encodeMessage([[2, kv]])]));
  }

  /** Reads events until one is the last; false when compacted or nobody reads any more. */
  #read(range: KeyRange, from: number, isLast: (ref: number) => boolean): Promise<boolean> {
    const { store } = this.#context;
    const bytes = Buffer.concat([range.key, range.end]);
    const keyTo = range.key.length;
    return new Promise((resolve) => {
      let id = 0;
      const done = (isWell: boolean): void => {
        store.unwatch(id);
        this.#caller.onGone = null;
        this.#caller.onRoom = null;
        resolve(isWell);
      };
      const read = (): void => {
        while (this.#call.writable() > 0) {
          const ref = store.watchNext(id);
          if (ref === 0) return;
          if (ref < 0) return done(false);
          if (isLast(ref)) return done(true);
        }
      };
      id = store.watch(bytes, 0, keyTo, keyTo, bytes.length, from, { onEvents: read });
      this.#caller.onGone = () => done(false);
      this.#caller.onRoom = read;
      read();
    });
  }
}
