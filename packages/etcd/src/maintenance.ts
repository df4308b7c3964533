// data plane: the Maintenance service of a store with one member
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcMethods, InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeInt64Field,
  writeTextField,
} from '@megaplane/wire/protobuf-write';
import { alarmHandler, alarmText } from './alarms.ts';
import type { EtcdContext } from './context.ts';
import { ETCD, storeFailure } from './failures.ts';
import { hashKv } from './hash-kv.ts';
import { writeMemberId } from './members.ts';

/** What clients are told: from here on they use progress requests, and RangeStream is not asked. */
export const ETCD_VERSION = '3.6.11';

/** Bytes of keys, values and history that are alive. */
export function bytesInUse(context: EtcdContext): number {
  return context.store.arenas.liveBytes;
}

function statusHandler(context: EtcdContext): InPlaceHandler {
  const { store } = context;
  return (_bytes, _start, _end, out, offset, call) => {
    context.guard(call.connection);
    const revision = store.appliedRevision;
    let at = context.writeHeader(out, offset, revision);
    at = writeTextField(out, at, 2, ETCD_VERSION);
    at = writeInt64Field(out, at, 3, store.arenas.allocatedBytes);
    at = writeMemberId(context, out, at, 4);
    at = writeInt64Field(out, at, 5, revision);
    at = writeInt64Field(out, at, 6, context.term);
    at = writeInt64Field(out, at, 7, revision);
    for (const alarm of store.alarms.list()) at = writeTextField(out, at, 8, alarmText(alarm));
    at = writeInt64Field(out, at, 9, bytesInUse(context));
    at = writeTextField(out, at, 11, '3.6.0');
    at = writeInt64Field(out, at, 12, context.limits.quotaBytes);
    // No downgrade goes on: an empty message, which etcd sends too.
    const info = openMessage(out, at, 13);
    return closeMessage(out, info, info);
  };
}

/** Answered when memory and disk are given back, without a header, as in etcd. */
function defragmentHandler(context: EtcdContext, defragment: () => Promise<void>): InPlaceHandler {
  const answer = Buffer.alloc(0);
  return (_bytes, _start, _end, _out, _offset, call) =>
    call.defer((deferred) => {
      void defragment().then(() => {
        context.guard(deferred.connection);
        deferred.send(answer);
        deferred.finish(GRPC_CODES.ok);
      });
    });
}

function hashHandler(context: EtcdContext): InPlaceHandler {
  return (_bytes, _start, _end, out, offset, call) => {
    context.guard(call.connection);
    const at = context.writeHeader(out, offset, context.store.appliedRevision);
    return writeInt64Field(out, at, 2, hashKv(context.store, 0).hash);
  };
}

function hashKvHandler(context: EtcdContext): InPlaceHandler {
  const reader = new ProtobufReader();
  const { store } = context;
  return (bytes, start, end, out, offset, call) => {
    reader.reset(bytes, start, end);
    let revision = 0;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) revision = reader.int64();
      else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    if (revision > store.appliedRevision) return context.fail(call, storeFailure(-2));
    if (revision > 0 && revision < store.compactRevision) return context.fail(call, ETCD.compacted);
    context.guard(call.connection);
    const hashed = revision === 0 ? store.appliedRevision : revision;
    const { hash, compactRevision } = hashKv(store, hashed);
    let at = context.writeHeader(out, offset, store.appliedRevision);
    at = writeInt64Field(out, at, 2, hash);
    at = writeInt64Field(out, at, 3, compactRevision);
    return writeInt64Field(out, at, 4, hashed);
  };
}

/** There is nobody to hand over to; handing over to oneself is done at once. */
function moveLeaderHandler(context: EtcdContext): InPlaceHandler {
  const reader = new ProtobufReader();
  const { memberId } = context;
  return (bytes, start, end, _out, offset, call) => {
    reader.reset(bytes, start, end);
    let isOwn = false;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) {
        reader.varint();
        const isHigh = reader.high === memberId.readUInt32BE(0);
        isOwn = isHigh && reader.low === memberId.readUInt32BE(4);
      } else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    return isOwn ? offset : context.fail(call, ETCD.badTransferee);
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
      if (reader.field === 1 && reader.wireType === 0) action = reader.int64();
      else if (reader.field === 2 && reader.wireType === WIRE_BYTES) target = reader.text();
      else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    if (action < 0 || action > DOWNGRADE_CANCEL) return context.fail(call, ETCD.unknownMethod);
    if (action === DOWNGRADE_CANCEL) {
      const at = context.writeHeader(out, offset, context.store.appliedRevision);
      return writeTextField(out, at, 2, ETCD_VERSION.split('.').slice(0, 2).join('.'));
    }
    const isVersion = /^v?\d+\.\d+(\.\d+)?$/.test(target);
    return context.fail(call, isVersion ? ETCD.downgradeTarget : ETCD.downgradeFormat);
  };
}

export function registerMaintenance(
  methods: GrpcMethods,
  context: EtcdContext,
  defragment: () => Promise<void>,
): void {
  const service = '/etcdserverpb.Maintenance';
  methods.unary(`${service}/Status`, statusHandler(context));
  methods.unary(`${service}/Alarm`, alarmHandler(context));
  methods.unary(`${service}/Defragment`, defragmentHandler(context, defragment));
  methods.unary(`${service}/Hash`, hashHandler(context));
  methods.unary(`${service}/HashKV`, hashKvHandler(context));
  methods.unary(`${service}/MoveLeader`, moveLeaderHandler(context));
  methods.unary(`${service}/Downgrade`, downgradeHandler(context));
}
