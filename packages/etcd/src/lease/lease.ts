// data plane: the Lease service
import type { GrpcCallFactory, GrpcMethods, InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import { writeBytesField, writeInt64, writeVarint64 } from '@megaplane/wire/protobuf-write';
import { APPLIED_GRANT, APPLIED_REVOKE } from '../call/call-measures.ts';
import { type EtcdContext, unlessMalformed } from '../call/context.ts';
import { ETCD, storeFailure } from '../codec/failures.ts';
import { admission, isOverQuota, raiseNoSpace, unlessCorrupt } from '../call/alarms.ts';
import { leasesHandler } from './lease-list.ts';
import { answer } from '../kv/put.ts';

const LEASE_COST_BYTES = 64;

/** Two numbers of a request: field 1 and field 2, each in all shapes. */
class Numbers {
  readonly #reader = new ProtobufReader();
  first = 0;
  firstLow = 0;
  firstHigh = 0;
  second = 0;
  secondLow = 0;
  secondHigh = 0;

  decode(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#reader.reset(bytes, start, end);
    this.first = this.firstLow = this.firstHigh = 0;
    this.second = this.secondLow = this.secondHigh = 0;
    while (reader.next()) {
      if (reader.wireType !== 0 || reader.field > 2) {
        reader.skip();
        continue;
      }
      const value = reader.int64();
      if (reader.field === 1) {
        this.first = value;
        this.firstLow = reader.low;
        this.firstHigh = reader.high;
      } else {
        this.second = value;
        this.secondLow = reader.low;
        this.secondHigh = reader.high;
      }
    }
    return reader.failure === FAILURE_NONE;
  }
}

/** Writes a 64-bit field, left out when zero. */
function write64(out: Buffer, at: number, field: number, low: number, high: number): number {
  if (low === 0 && high === 0) return at;
  out[at] = field << 3;
  return writeVarint64(out, at + 1, low, high);
}

function writeNumber(out: Buffer, at: number, field: number, value: number): number {
  if (value === 0) return at;
  out[at] = field << 3;
  return writeInt64(out, at + 1, value);
}

/** Draws the halves of a random positive 63-bit id. */
export type DrawId = () => { readonly high: number; readonly low: number };

function grantHandler(context: EtcdContext, drawId: DrawId): InPlaceHandler {
  const numbers = new Numbers();
  const { leases } = context.store;
  const times = context.measures.applied[APPLIED_GRANT]!;
  return (bytes, start, end, out, offset, call) => {
    if (!numbers.decode(bytes, start, end)) return context.fail(call, ETCD.malformed);
    const refused =
      admission(context, LEASE_COST_BYTES) ??
      (isOverQuota(context, LEASE_COST_BYTES) ? raiseNoSpace(context) : null) ??
      (context.store.alarms.isNoSpace ? ETCD.noSpace : null);
    if (refused !== null) return context.fail(call, refused);
    let { secondHigh: high, secondLow: low } = numbers;
    while (high === 0 && low === 0) {
      const drawn = drawId();
      if (leases.find(drawn.high, drawn.low) === 0) ({ high, low } = drawn);
    }
    const startMs = times.begin();
    const lease = leases.grant(high, low, numbers.first, context.nowMs());
    times.end(startMs, lease >= 0);
    if (lease < 0) return context.fail(call, storeFailure(lease));
    context.measures.leaseTtls.record(leases.ttlSeconds(lease));
    context.guard(call.connection);
    let at = context.writeHeader(out, offset, context.store.appliedRevision);
    at = write64(out, at, 2, low, high);
    return writeNumber(out, at, 3, leases.ttlSeconds(lease));
  };
}

function revokeHandler(context: EtcdContext): InPlaceHandler {
  const numbers = new Numbers();
  const { leases } = context.store;
  const times = context.measures.applied[APPLIED_REVOKE]!;
  return (bytes, start, end, out, offset, call) => {
    if (!numbers.decode(bytes, start, end)) return context.fail(call, ETCD.malformed);
    const startMs = times.begin();
    const lease = leases.find(numbers.firstHigh, numbers.firstLow);
    const revision = leases.revoke(lease);
    times.end(startMs, revision >= 0);
    if (revision < 0) return context.fail(call, storeFailure(revision));
    context.guard(call.connection);
    return context.writeHeader(out, offset, revision);
  };
}

function keepAliveFactory(context: EtcdContext): GrpcCallFactory {
  const numbers = new Numbers();
  const out = Buffer.alloc(128);
  const { leases } = context.store;
  return (call) => ({
    onMessage: (bytes, start, end) => {
      if (!numbers.decode(bytes, start, end)) {
        call.finish(ETCD.malformedStream.code, ETCD.malformedStream.text);
        return;
      }
      const lease = leases.find(numbers.firstHigh, numbers.firstLow);
      const ttl = leases.keepAlive(lease, context.nowMs());
      let at = context.writeHeader(out, 0, context.store.appliedRevision);
      at = write64(out, at, 2, numbers.firstLow, numbers.firstHigh);
      at = writeNumber(out, at, 3, Math.max(0, ttl));
      context.guard(call.connection);
      call.send(out, 0, at);
    },
    onHalfClose: () => call.finish(0),
    onCancel: () => {},
  });
}

function timeToLiveHandler(context: EtcdContext): InPlaceHandler {
  const numbers = new Numbers();
  const { store } = context;
  const { leases } = store;
  return (bytes, start, end, out, offset, call) => {
    if (!numbers.decode(bytes, start, end)) return context.fail(call, ETCD.malformed);
    const { firstHigh, firstLow } = numbers;
    const lease = leases.find(firstHigh, firstLow);
    context.guard(call.connection);
    const refs: number[] = [];
    let size = context.headerRoom + 64;
    if (lease !== 0 && numbers.second !== 0) {
      leases.eachKey(lease, (ref) => {
        refs.push(ref);
        size += store.arenas.keySize(ref) + 8;
      });
    }
    return answer(call, out, offset, size, (target, from) => {
      let at = context.writeHeader(target, from, store.appliedRevision);
      at = write64(target, at, 2, firstLow, firstHigh);
      const leftMs = lease === 0 ? -1000 : Math.max(0, leases.remainingMs(lease, context.nowMs()));
      at = writeNumber(target, at, 3, Math.floor(leftMs / 1000));
      if (lease !== 0) at = writeNumber(target, at, 4, leases.ttlSeconds(lease));
      for (const ref of refs) {
        const record = store.record(ref);
        at = writeBytesField(target, at, 5, record, store.keyAt(ref), store.keyTo(ref));
      }
      return at;
    });
  };
}

export function registerLease(methods: GrpcMethods, context: EtcdContext, drawId: DrawId): void {
  methods.unary(
    '/etcdserverpb.Lease/LeaseGrant',
    unlessCorrupt(context, grantHandler(context, drawId)),
  );
  methods.unary('/etcdserverpb.Lease/LeaseRevoke', unlessCorrupt(context, revokeHandler(context)));
  methods.call('/etcdserverpb.Lease/LeaseKeepAlive', keepAliveFactory(context));
  methods.unary('/etcdserverpb.Lease/LeaseTimeToLive', timeToLiveHandler(context));
  const leases = unlessMalformed(context, leasesHandler(context));
  methods.unary('/etcdserverpb.Lease/LeaseLeases', leases);
}
