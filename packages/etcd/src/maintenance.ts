// data plane: the Maintenance and Cluster services of a store with one member
import type { GrpcMethods, InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeInt64,
  writeTextField,
  writeVarint64,
} from '@megaplane/wire/protobuf-write';
import type { EtcdContext } from './context.ts';
import { ETCD, storeFailure } from './failures.ts';
import { hashKv } from './hash-kv.ts';

/** What clients are told: from here on they use progress requests, and RangeStream is not asked. */
export const ETCD_VERSION = '3.6.11';

export interface MemberInfo {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly peerUrls: readonly string[];
}

function writeNumber(out: Buffer, at: number, field: number, value: number): number {
  if (value === 0) return at;
  out[at] = field << 3;
  return writeInt64(out, at + 1, value);
}

function writeMemberId(context: EtcdContext, out: Buffer, at: number, field: number): number {
  const { memberId } = context;
  out[at] = field << 3;
  return writeVarint64(out, at + 1, memberId.readUInt32BE(4), memberId.readUInt32BE(0));
}

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
    at = writeNumber(out, at, 3, store.arenas.allocatedBytes);
    at = writeMemberId(context, out, at, 4);
    at = writeNumber(out, at, 5, revision);
    at = writeNumber(out, at, 6, context.term);
    at = writeNumber(out, at, 7, revision);
    at = writeNumber(out, at, 9, bytesInUse(context));
    at = writeTextField(out, at, 11, '3.6.0');
    return writeNumber(out, at, 12, context.limits.quotaBytes);
  };
}

/** No alarm is ever raised: a full store refuses by itself and recovers by itself. */
function alarmHandler(context: EtcdContext): InPlaceHandler {
  return (_bytes, _start, _end, out, offset, call) => {
    context.guard(call.connection);
    return context.writeHeader(out, offset, context.store.appliedRevision);
  };
}

function defragmentHandler(context: EtcdContext): InPlaceHandler {
  return (_bytes, _start, _end, out, offset, call) => {
    context.guard(call.connection);
    context.store.arenas.releaseSpares();
    return context.writeHeader(out, offset, context.store.appliedRevision);
  };
}

function hashHandler(context: EtcdContext): InPlaceHandler {
  return (_bytes, _start, _end, out, offset, call) => {
    context.guard(call.connection);
    const at = context.writeHeader(out, offset, context.store.appliedRevision);
    return writeNumber(out, at, 2, hashKv(context.store, 0).hash);
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
    at = writeNumber(out, at, 2, hash);
    at = writeNumber(out, at, 3, compactRevision);
    return writeNumber(out, at, 4, hashed);
  };
}

function memberListHandler(context: EtcdContext, member: MemberInfo): InPlaceHandler {
  return (_bytes, _start, _end, out, offset, call) => {
    let at = context.writeHeader(out, offset, 0);
    const start = openMessage(out, at, 2);
    at = writeMemberId(context, out, start, 1);
    if (member.name !== '') at = writeTextField(out, at, 2, member.name);
    for (const url of member.peerUrls) at = writeTextField(out, at, 3, url);
    for (const url of member.clientUrls) at = writeTextField(out, at, 4, url);
    context.guard(call.connection);
    return closeMessage(out, start, at);
  };
}

export function registerMaintenance(
  methods: GrpcMethods,
  context: EtcdContext,
  member: MemberInfo,
): void {
  methods.unary('/etcdserverpb.Maintenance/Status', statusHandler(context));
  methods.unary('/etcdserverpb.Maintenance/Alarm', alarmHandler(context));
  methods.unary('/etcdserverpb.Maintenance/Defragment', defragmentHandler(context));
  methods.unary('/etcdserverpb.Maintenance/Hash', hashHandler(context));
  methods.unary('/etcdserverpb.Maintenance/HashKV', hashKvHandler(context));
  methods.unary('/etcdserverpb.Cluster/MemberList', memberListHandler(context, member));
}
