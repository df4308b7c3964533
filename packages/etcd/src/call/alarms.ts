// data plane: Maintenance.Alarm, and the space quota that raises one
/**
 * NOSPACE is raised when a write would grow the store beyond `--quota-backend-bytes`; that write
 * fails, and until the alarm is taken back all that puts or grants is refused, whatever is freed
 * meanwhile. Deletes, compactions, revocations and renewals go on; beyond etcd, so does a put that
 * replaces a value by a smaller one. CORRUPT is only ever raised by a client.
 */
import { ALARM_NO_SPACE, type Alarm } from '@megaplane/store/alarms';
import type { InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeInt64Field,
  writeVarint64Field,
} from '@megaplane/wire/protobuf-write';
import type { EtcdContext } from './context.ts';
import { ETCD, type EtcdFailure, storeFailure } from '../codec/failures.ts';

const ACTIVATE = 1;
const DEACTIVATE = 2;
const NAMES = ['NONE', 'NOSPACE', 'CORRUPT'] as const;

/** May a write of so many bytes go ahead, as memory and log stand? */
export function admission(context: EtcdContext, costBytes: number): EtcdFailure | null {
  const admitted = context.store.admit(costBytes);
  return admitted === 0 ? null : storeFailure(admitted);
}

/** Would a write of so many bytes grow the store beyond its quota? */
export function isOverQuota({ store, limits }: EtcdContext, costBytes: number): boolean {
  const { quotaBytes } = limits;
  if (quotaBytes <= 0 || store.arenas.allocatedBytes + costBytes <= quotaBytes) return false;
  return store.arenas.usedBytes + costBytes > quotaBytes;
}

/** Has the quota, or the alarm that it raised, to be looked at for a transaction at all? */
export function isSpaceTight(context: EtcdContext): boolean {
  return context.store.alarms.isNoSpace || isOverQuota(context, context.limits.requestBytesMax * 2);
}

/** The write over quota itself fails, and all others from now on. */
export function raiseNoSpace(context: EtcdContext): EtcdFailure {
  context.store.setAlarm({ kind: ALARM_NO_SPACE, ...memberOf(context) }, true);
  return ETCD.noSpace;
}

function memberOf({ memberId }: EtcdContext): { memberHigh: number; memberLow: number } {
  return { memberHigh: memberId.readUInt32BE(0), memberLow: memberId.readUInt32BE(4) };
}

/** NOSPACE, CORRUPT; as health checks exclude them. */
export function alarmName(kind: number): string {
  return NAMES[kind] ?? String(kind);
}

/** As etcd's Status prints an alarm, the blank at its end included. */
export function alarmText({ kind, memberHigh, memberLow }: Alarm): string {
  const member = (BigInt(memberHigh) << 32n) | BigInt(memberLow);
  const named = member === 0n ? '' : `memberID:${member} `;
  return `${named}alarm:${NAMES[kind] ?? kind} `;
}

interface AlarmRequest extends Alarm {
  readonly action: number;
}

/** Null when the bytes are no message. */
function decode(reader: ProtobufReader): AlarmRequest | null {
  let action = 0;
  let kind = 0;
  let memberHigh = 0;
  let memberLow = 0;
  while (reader.next()) {
    if (reader.wireType !== 0) {
      reader.skip();
      continue;
    }
    reader.varint();
    if (reader.field === 1) action = reader.low | 0;
    if (reader.field === 3) kind = reader.low | 0;
    if (reader.field === 2) {
      memberHigh = reader.high;
      memberLow = reader.low;
    }
  }
  return reader.failure === FAILURE_NONE ? { action, kind, memberHigh, memberLow } : null;
}

function writeAlarms(alarms: readonly Alarm[], out: Buffer, start: number): number {
  let at = start;
  for (const { kind, memberHigh, memberLow } of alarms) {
    const row = openMessage(out, at, 2);
    at = row;
    if (memberHigh !== 0 || memberLow !== 0) {
      at = writeVarint64Field(out, at, 1, memberLow, memberHigh);
    }
    at = closeMessage(out, row, writeInt64Field(out, at, 2, kind));
  }
  return at;
}

/** What changes, or is asked for; etcd answers with nothing where nothing changes. */
function effect(context: EtcdContext, request: AlarmRequest): readonly Alarm[] | EtcdFailure {
  const { store } = context;
  const { action, kind } = request;
  if (action === ACTIVATE) {
    if (kind === 0 || store.alarms.has(request)) return kind === 0 ? [] : [request];
    return store.setAlarm(request, true) ? [request] : ETCD.tooManyRequests;
  }
  if (action === DEACTIVATE) return store.setAlarm(request, false) ? [request] : [];
  if (action !== 0) return ETCD.unknownMethod;
  return store.alarms.list().filter((alarm) => kind === 0 || alarm.kind === kind);
}

/** Maintenance.Alarm, in place: lists, raises and takes back. */
export function alarmHandler(context: EtcdContext): InPlaceHandler {
  const reader = new ProtobufReader();
  return (bytes, start, end, out, offset, call) => {
    const request = decode(reader.reset(bytes, start, end));
    if (request === null) return context.fail(call, ETCD.malformed);
    const alarms = effect(context, request);
    if ('code' in alarms) return context.fail(call, alarms);
    context.guard(call.connection);
    const at = context.writeHeader(out, offset, context.store.appliedRevision);
    return writeAlarms(alarms, out, at);
  };
}

/** A handler that answers with etcd's refusal while the CORRUPT alarm is raised. */
export function unlessCorrupt(context: EtcdContext, handler: InPlaceHandler): InPlaceHandler {
  const { alarms } = context.store;
  return (bytes, start, end, out, offset, call) =>
    alarms.isCorrupt
      ? context.fail(call, ETCD.corrupt)
      : handler(bytes, start, end, out, offset, call);
}
