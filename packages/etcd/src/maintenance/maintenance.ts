// data plane: the Maintenance service of a store with one member
import type { BoundedHistogram } from '@megaplane/base/histogram';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcMethods, InPlaceCall, InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeInt64Field,
  writeTextField,
} from '@megaplane/wire/protobuf-write';
import { alarmHandler, alarmText } from '../call/alarms.ts';
import { type Compactor, HASH_AT_ONCE_BYTES_MAX } from '../kv/compaction.ts';
import { type EtcdContext, unlessMalformed } from '../call/context.ts';
import { ETCD } from '../codec/failures.ts';
import { KvHash } from '../kv/hash-kv.ts';
import { writeId } from './members.ts';
import { LONG_WORK_MAX, runInSlices } from '../call/slices.ts';
import { snapshotFactory } from './snapshot-stream.ts';

/** What clients are told: from here on they use progress requests, and RangeStream is not asked. */
export const ETCD_VERSION = '3.6.11';

/** What etcd's file has before there is any key; some tools take a size of 0 for a failure. */
const EMPTY_BYTES = 20_480;
/** The quota that etcd tells of, and keeps to, where none is set; here it is only told of. */
const QUOTA_DEFAULT_BYTES: number = 2 ** 31;

/** Bytes of keys, values and history that are alive. */
export function bytesInUse(context: EtcdContext): number {
  return EMPTY_BYTES + context.store.arenas.liveBytes;
}

/** The same with what is free between them. */
export function bytesTaken(context: EtcdContext): number {
  return EMPTY_BYTES + context.store.arenas.allocatedBytes;
}

function statusHandler(context: EtcdContext): InPlaceHandler {
  const { store } = context;
  return (_bytes, _start, _end, out, offset, call) => {
    context.guard(call.connection);
    const revision = store.appliedRevision;
    let at = context.writeHeader(out, offset, revision);
    at = writeTextField(out, at, 2, ETCD_VERSION);
    at = writeInt64Field(out, at, 3, bytesTaken(context));
    const { group } = context;
    const position = group?.position ?? revision;
    const leader = group === null ? context.memberId : group.leaderId();
    if (leader !== null) at = writeId(leader, out, at, 4);
    at = writeInt64Field(out, at, 5, position);
    at = writeInt64Field(out, at, 6, context.term);
    at = writeInt64Field(out, at, 7, position);
    for (const alarm of store.alarms.list()) at = writeTextField(out, at, 8, alarmText(alarm));
    at = writeInt64Field(out, at, 9, bytesInUse(context));
    at = writeTextField(out, at, 11, '3.6.0');
    at = writeInt64Field(out, at, 12, context.limits.quotaBytes || QUOTA_DEFAULT_BYTES);
    // No downgrade goes on: an empty message, which etcd sends too.
    const info = openMessage(out, at, 13);
    return closeMessage(out, info, info);
  };
}

/** Answered when memory and disk are given back, without a header, as in etcd. */
function defragmentHandler(context: EtcdContext, defragment: () => Promise<void>): InPlaceHandler {
  const answer = Buffer.alloc(0);
  const { measures } = context;
  return (_bytes, _start, _end, _out, _offset, call) =>
    call.defer((deferred) => {
      const fromMs = context.nowMs();
      measures.defragmenting++;
      void defragment().then(() => {
        measures.defragmenting--;
        measures.defragments.record((context.nowMs() - fromMs) / 1000);
        context.guard(deferred.connection);
        deferred.send(answer);
        deferred.finish(GRPC_CODES.ok);
      });
    });
}

type WriteHash = (hashed: KvHash, revision: number, out: Buffer, at: number) => number;

/** Hashes at once where that is quick, else in slices; the answer names today's revision. */
class Hashes {
  readonly #context: EtcdContext;
  readonly #compactor: Compactor;
  #running = 0;

  constructor(context: EtcdContext, compactor: Compactor) {
    this.#context = context;
    this.#compactor = compactor;
  }

  /** `asked` 0 is now; `times` takes the seconds that it took. */
  answer(
    asked: number,
    out: Buffer,
    offset: number,
    call: InPlaceCall,
    write: WriteHash,
    times: BoundedHistogram,
  ): number {
    const context = this.#context;
    const fromMs = context.nowMs();
    const note = (): void => times.record((context.nowMs() - fromMs) / 1000);
    const { store } = context;
    const current = store.appliedRevision;
    const kept = this.#compactor.keptAt(asked);
    if (kept?.isDone === true) {
      note();
      context.guard(call.connection);
      return write(kept.hash, current, out, offset);
    }
    if (this.#running >= LONG_WORK_MAX) return context.fail(call, ETCD.tooManyRequests);
    const hash = kept?.hash ?? new KvHash(store, asked === 0 ? current : asked);
    if (store.arenas.liveBytes <= HASH_AT_ONCE_BYTES_MAX) {
      while (!hash.step());
      note();
      context.guard(call.connection);
      return write(hash, current, out, offset);
    }
    return call.defer((deferred) => {
      this.#running++;
      const work = kept === null ? hash : { step: () => kept.isDone };
      runInSlices(work, () => {
        this.#running--;
        note();
        const answer = Buffer.alloc(256);
        const end = write(hash, current, answer, 0);
        context.guard(deferred.connection);
        deferred.send(answer, 0, end);
        deferred.finish(GRPC_CODES.ok);
      });
    });
  }
}

/** etcd hashes its file, which no other program can have; ours is the hash of all records. */
function hashHandler(context: EtcdContext, hashes: Hashes): InPlaceHandler {
  const write: WriteHash = ({ hash }, current, out, start) =>
    writeInt64Field(out, context.writeHeader(out, start, current), 2, hash);
  const times = context.measures.hashes;
  return (_bytes, _start, _end, out, offset, call) =>
    hashes.answer(0, out, offset, call, write, times);
}

function hashKvHandler(context: EtcdContext, hashes: Hashes, compactor: Compactor): InPlaceHandler {
  const reader = new ProtobufReader();
  const { store } = context;
  const write: WriteHash = ({ hash, compactRevision, revision }, current, out, start) => {
    let at = context.writeHeader(out, start, current);
    at = writeInt64Field(out, at, 2, hash);
    at = writeInt64Field(out, at, 3, compactRevision);
    return writeInt64Field(out, at, 4, revision);
  };
  return (bytes, start, end, out, offset, call) => {
    reader.reset(bytes, start, end);
    let revision = 0;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) revision = reader.int64();
      else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    if (revision > store.appliedRevision) return context.fail(call, ETCD.futureRevision);
    if (revision > 0 && revision < store.compactRevision && compactor.keptAt(revision) === null) {
      return context.fail(call, ETCD.compacted);
    }
    return hashes.answer(revision, out, offset, call, write, context.measures.revisionHashes);
  };
}

/** Handing over to oneself is done at once; one member alone has nobody else. */
function moveLeaderHandler(context: EtcdContext): InPlaceHandler {
  const reader = new ProtobufReader();
  const { memberId, group } = context;
  return (bytes, start, end, _out, offset, call) => {
    reader.reset(bytes, start, end);
    const id = Buffer.alloc(8);
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) {
        reader.varint();
        id.writeUInt32BE(reader.high, 0);
        id.writeUInt32BE(reader.low, 4);
      } else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    if (group?.isLeader === false) return context.fail(call, ETCD.notLeader);
    if (id.equals(memberId)) return offset;
    if (group === null || group.members().every((member) => !member.id.equals(id))) {
      return context.fail(call, ETCD.badTransferee);
    }
    return call.defer((deferred) => {
      group.moveTo(id, (isMoved) => {
        if (isMoved) deferred.send(context.header());
        const { code, text } = ETCD.timeout;
        if (isMoved) deferred.finish(GRPC_CODES.ok);
        else deferred.finish(code, text);
      });
    });
  };
}

const DOWNGRADE_CANCEL = 2;

/** No other version can read this one's files, so no target is a valid one. */
function downgradeHandler(context: EtcdContext): InPlaceHandler {
  const reader = new ProtobufReader();
  return (bytes, start, end, out, offset, call) => {
    reader.reset(bytes, start, end);
    let action = 0;
    let target = '';
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) action = reader.int32();
      else if (reader.field === 2 && reader.wireType === WIRE_BYTES) target = reader.text();
      else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    if (action < 0 || action > DOWNGRADE_CANCEL) return context.fail(call, ETCD.unknownMethod);
    if (action === DOWNGRADE_CANCEL) {
      const at = context.writeHeader(out, offset, context.store.appliedRevision);
      return writeTextField(out, at, 2, ETCD_VERSION.split('.').slice(0, 2).join('.'));
    }
    const isVersion = /^\d+\.\d+(\.\d+([-+][\w.+-]+)?)?$/.test(target);
    return context.fail(call, isVersion ? ETCD.downgradeTarget : ETCD.downgradeFormat);
  };
}

export function registerMaintenance(
  methods: GrpcMethods,
  context: EtcdContext,
  compactor: Compactor,
  defragment: () => Promise<void>,
): void {
  const service = '/etcdserverpb.Maintenance';
  const hashes = new Hashes(context, compactor);
  const fieldless = (name: string, handler: InPlaceHandler): void =>
    methods.unary(`${service}/${name}`, unlessMalformed(context, handler));
  fieldless('Status', statusHandler(context));
  methods.unary(`${service}/Alarm`, alarmHandler(context));
  fieldless('Defragment', defragmentHandler(context, defragment));
  fieldless('Hash', hashHandler(context, hashes));
  methods.unary(`${service}/HashKV`, hashKvHandler(context, hashes, compactor));
  methods.call(`${service}/Snapshot`, snapshotFactory(context));
  methods.unary(`${service}/MoveLeader`, moveLeaderHandler(context));
  methods.unary(`${service}/Downgrade`, downgradeHandler(context));
}
