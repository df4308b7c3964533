/**
 * Asks for every request, once users are enabled, whether its caller may do it. What is wrong with
 * a request whatever the caller is left to its handler, which refuses it in etcd's order.
 */
import type { EtcdContext } from '../../call/context.ts';
import { Compare } from '../../kv/compare.ts';
import type { EtcdFailure } from '../../codec/failures.ts';
import { hasMemberUrls } from '../../maintenance/members.ts';
import { mergedMessage } from '../../codec/merged-message.ts';
import { DeleteRequest, PutRequest } from '../../kv/put.ts';
import { RangeRequest } from '../../kv/range.ts';
import type { Caller, MethodGuard } from '../../call/served-methods.ts';
import {
  FIELD_COMPARE,
  FIELD_FAILURE,
  FIELD_SUCCESS,
  OP_DELETE,
  OP_PUT,
  OP_RANGE,
  OP_TXN,
  TxnRunner,
} from '../../kv/txn.ts';
import { isDeepMessage } from '../../codec/whole-message.ts';
import { ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { AUTH } from '../auth-failures.ts';
import type { AuthState, Identity } from '../auth-state.ts';
import { READ, WRITE } from '../permissions.ts';
import type { Now, Tokens } from '../tokens.ts';

type Refusal = EtcdFailure | null;
type Check = (bytes: Buffer, start: number, end: number, who: Identity | null) => Refusal;

/** Metadata of what came as JSON. */
export const GATEWAY_MARK = 'grpcgateway-accept';
const TXN = '/etcdserverpb.KV/Txn';
/** Methods whose requests are looked at before their callers. */
const CHECKED_FIRST = new Set([
  ...['/etcdserverpb.KV/Range', '/etcdserverpb.KV/Put', '/etcdserverpb.KV/DeleteRange'],
  ...['/etcdserverpb.KV/RangeStream', '/etcdserverpb.Cluster/MemberAdd'],
]);

export interface GuardParts {
  readonly context: EtcdContext;
  readonly state: AuthState;
  readonly tokens: Tokens;
  /** The common name of a trusted client certificate names a user, etcd's --client-cert-auth. */
  readonly usesCertificates: boolean;
  readonly now: () => Now;
}

export class AuthGuard implements MethodGuard {
  readonly #parts: GuardParts;
  readonly #range = new RangeRequest();
  readonly #put = new PutRequest();
  readonly #delete = new DeleteRequest();
  readonly #compare = new Compare();
  readonly #txn: TxnRunner;
  readonly #checks: ReadonlyMap<string, Check>;

  constructor(parts: GuardParts) {
    this.#parts = parts;
    this.#txn = new TxnRunner(parts.context);
    const { state } = parts;
    const onlyRoot: Check = (_bytes, _start, _end, who) => state.permitsAll(who);
    const anybody: Check = (_bytes, _start, _end, who) => (who === null ? AUTH.userEmpty : null);
    const named = (service: string, methods: readonly string[], check: Check) =>
      methods.map((method) => [`/etcdserverpb.${service}/${method}`, check] as const);
    this.#checks = new Map([
      ...named('KV', ['Range', 'RangeStream'], (...request) => this.#mayRange(...request)),
      ...named('KV', ['Put'], (...request) => this.#mayPut(...request)),
      ...named('KV', ['DeleteRange'], (...request) => this.#mayDelete(...request)),
      ...named('KV', ['Txn'], (...request) => this.#mayTransact(...request)),
      ...named('KV', ['Compact'], onlyRoot),
      ...named('Lease', ['LeaseGrant'], anybody),
      ...named('Lease', ['LeaseRevoke', 'LeaseKeepAlive'], (bytes, start, end, who) =>
        this.#mayUseLease(bytes, start, end, who, WRITE),
      ),
      ...named('Lease', ['LeaseTimeToLive'], (bytes, start, end, who) =>
        this.#mayUseLease(bytes, start, end, who, READ),
      ),
      ...named('Lease', ['LeaseLeases'], (_bytes, _start, _end, who) => this.#mayList(who)),
      ...named('Cluster', ['MemberList'], anybody),
      ...named('Cluster', ['MemberRemove', 'MemberUpdate', 'MemberPromote'], onlyRoot),
      ...named('Cluster', ['MemberAdd'], (bytes, start, end, who) =>
        hasMemberUrls(bytes, start, end) ? state.permitsAll(who) : null,
      ),
      ...named('Maintenance', ['Status'], anybody),
      ...named('Maintenance', ['Defragment', 'Hash', 'HashKV', 'Snapshot'], onlyRoot),
      ...named('Maintenance', ['MoveLeader', 'Downgrade'], onlyRoot),
      ...named('Maintenance', ['Alarm'], (bytes, start, end, who) =>
        numberField(bytes, start, end, 1) === 0
          ? anybody(bytes, start, end, who)
          : state.permitsAll(who),
      ),
      ...named('Auth', ['AuthEnable', 'AuthDisable', 'AuthStatus', 'UserAdd'], onlyRoot),
      ...named('Auth', ['UserList', 'UserDelete', 'UserChangePassword'], onlyRoot),
      ...named('Auth', ['UserGrantRole', 'UserRevokeRole', 'RoleAdd', 'RoleList'], onlyRoot),
      ...named('Auth', ['RoleDelete', 'RoleGrantPermission', 'RoleRevokePermission'], onlyRoot),
      ...named('Auth', ['UserGet'], (bytes, start, end, who) => {
        // Nobody has the empty name, which no user has.
        const isOwn = textField(bytes, start, end, 1) === (who?.name ?? '');
        return isOwn ? null : state.permitsAll(who);
      }),
      ...named('Auth', ['RoleGet'], (bytes, start, end, who) => {
        const role = textField(bytes, start, end, 1);
        const isOwn = who !== null && state.hasRole(who.name, role);
        return isOwn ? null : state.permitsAll(who);
      }),
    ]);
  }

  get isEnabled(): boolean {
    return this.#parts.state.enabled;
  }

  refuse(path: string, bytes: Buffer, start: number, end: number, caller: Caller): Refusal {
    const check = this.#checks.get(path);
    if (check === undefined) return null;
    const who = this.identify(caller);
    if (who === null || !('code' in who)) return check(bytes, start, end, who);
    return this.#isInvalid(path, bytes, start, end) ? null : who;
  }

  /** Is the request wrong whoever sends it? Then etcd does not look at a token. */
  #isInvalid(path: string, bytes: Buffer, start: number, end: number): boolean {
    if (path === TXN) {
      const invalid = this.#txn.validate(bytes, start, end);
      // What comes in parts may be right as a whole: then a token is looked at.
      return invalid !== null && !this.#txn.isParted;
    }
    // For nobody these pass only when they are left to their handler.
    return CHECKED_FIRST.has(path) && this.#checks.get(path)?.(bytes, start, end, null) === null;
  }

  /** Who calls: by token, else by certificate; null when nobody is known. */
  identify(caller: Caller): Identity | EtcdFailure | null {
    const { state, tokens, usesCertificates, now } = this.#parts;
    const token = caller.metadata('token') ?? caller.metadata('authorization');
    if (token !== undefined) {
      const bare = token.replace(/^Bearer /, '');
      return tokens.find(bare, state.revision, now()) ?? AUTH.invalidToken;
    }
    // etcd's gateway is a client with a certificate of its own, whose name stands for nobody.
    if (!usesCertificates || caller.metadata(GATEWAY_MARK) !== undefined) return null;
    const certificate = caller.connection.peerCertificate();
    if (certificate === null || !certificate.trusted) return null;
    return { name: certificate.commonName, revision: state.revision };
  }

  /** For watches, which are refused one by one: the reason, null when it may go on. */
  refuseWatch(caller: Caller, key: string, rangeEnd: string): EtcdFailure | null {
    if (!this.isEnabled) return null;
    const who = this.identify(caller);
    if (who !== null && 'code' in who) return who;
    return this.#parts.state.permits(who, READ, key, rangeEnd);
  }

  #may(who: Identity | null, kind: number, bytes: Buffer, range: KeyRange): Refusal {
    const key = bytes.latin1Slice(range.keyAt, range.keyTo);
    const rangeEnd = bytes.latin1Slice(range.endAt, range.endTo);
    return this.#parts.state.permits(who, kind, key, rangeEnd);
  }

  #mayRange(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    const range = this.#range;
    if (!range.decode(bytes, start, end) || range.invalid() !== null) return null;
    return this.#may(who, READ, bytes, range);
  }

  #mayPut(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    const put = this.#put;
    if (!put.decode(bytes, start, end) || put.invalid() !== null) return null;
    const { keyAt, keyTo, leaseHigh, leaseLow, prevKv } = put;
    const range = { keyAt, keyTo, endAt: 0, endTo: 0 };
    return (
      this.#may(who, WRITE, bytes, range) ??
      this.#mayTouchLease(leaseHigh, leaseLow, who, WRITE) ??
      (prevKv ? this.#may(who, READ, bytes, range) : null)
    );
  }

  #mayDelete(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    const request = this.#delete;
    if (!request.decode(bytes, start, end) || request.keyAt === request.keyTo) return null;
    return (
      this.#may(who, WRITE, bytes, request) ??
      (request.prevKv ? this.#may(who, READ, bytes, request) : null)
    );
  }

  #mayTransact(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    const invalid = this.#txn.validate(bytes, start, end);
    if (this.#txn.isParted && isDeepMessage(bytes, start, end, 'TxnRequest')) {
      const whole = mergedMessage(bytes.subarray(start, end), 'TxnRequest');
      return this.#mayTransact(whole, 0, whole.length, who);
    }
    return invalid === null ? this.#mayBranches(bytes, start, end, who) : null;
  }

  /** Compares and both branches, whichever runs. */
  #mayBranches(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    for (const wanted of [FIELD_COMPARE, FIELD_SUCCESS, FIELD_FAILURE]) {
      const reader = new ProtobufReader().reset(bytes, start, end);
      while (reader.next()) {
        if (reader.wireType !== WIRE_BYTES || reader.field !== wanted) {
          reader.skip();
          continue;
        }
        reader.chunk();
        const { chunkStart, chunkEnd } = reader;
        const refused =
          wanted === FIELD_COMPARE
            ? this.#mayCompare(bytes, chunkStart, chunkEnd, who)
            : this.#mayOperate(bytes, chunkStart, chunkEnd, who);
        if (refused !== null) return refused;
      }
    }
    return null;
  }

  #mayCompare(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    if (!this.#compare.decode(bytes, start, end)) return null;
    return this.#may(who, READ, bytes, this.#compare);
  }

  #mayOperate(bytes: Buffer, start: number, end: number, who: Identity | null): Refusal {
    const reader = new ProtobufReader().reset(bytes, start, end);
    let refused: Refusal = null;
    while (refused === null && reader.next()) {
      if (reader.wireType !== WIRE_BYTES) {
        reader.skip();
        continue;
      }
      reader.chunk();
      const { field, chunkStart, chunkEnd } = reader;
      if (field === OP_RANGE) refused = this.#mayRange(bytes, chunkStart, chunkEnd, who);
      if (field === OP_PUT) refused = this.#mayPut(bytes, chunkStart, chunkEnd, who);
      if (field === OP_DELETE) refused = this.#mayDelete(bytes, chunkStart, chunkEnd, who);
      if (field === OP_TXN) refused = this.#mayBranches(bytes, chunkStart, chunkEnd, who);
    }
    return refused;
  }

  #mayUseLease(
    bytes: Buffer,
    start: number,
    end: number,
    who: Identity | null,
    kind: number,
  ): Refusal {
    if (who === null) return AUTH.userEmpty;
    // Only a request for the keys of a lease reads them.
    if (kind === READ && numberField(bytes, start, end, 2) === 0) return null;
    const reader = new ProtobufReader().reset(bytes, start, end);
    let high = 0;
    let low = 0;
    while (reader.next()) {
      if (reader.field !== 1 || reader.wireType !== 0) {
        reader.skip();
        continue;
      }
      reader.varint();
      ({ high, low } = reader);
    }
    return this.#mayTouchLease(high >>> 0, low >>> 0, who, kind);
  }

  /** Whoever uses a lease must be allowed to do the same to each of its keys. */
  #mayTouchLease(high: number, low: number, who: Identity | null, kind: number): Refusal {
    const { context, state } = this.#parts;
    if (state.permitsAll(who) === null) return null;
    const { leases } = context.store;
    const lease = leases.find(high, low);
    return lease === 0 ? null : this.#mayTouchKeys(lease, who, kind);
  }

  #mayTouchKeys(lease: number, who: Identity | null, kind: number): Refusal {
    const { context, state } = this.#parts;
    const { store } = context;
    let refused: Refusal = null;
    store.leases.eachKey(lease, (ref) => {
      const key = store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref));
      refused ??= state.permits(who, kind, key, '');
    });
    return refused;
  }

  #mayList(who: Identity | null): Refusal {
    const { context, state } = this.#parts;
    if (who === null) return AUTH.userEmpty;
    if (state.permitsAll(who) === null) return null;
    let refused: Refusal = null;
    context.store.leases.each((lease) => {
      refused ??= this.#mayTouchKeys(lease, who, READ);
    });
    return refused;
  }
}

interface KeyRange {
  readonly keyAt: number;
  readonly keyTo: number;
  readonly endAt: number;
  readonly endTo: number;
}

function numberField(bytes: Buffer, start: number, end: number, field: number): number {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let value = 0;
  while (reader.next()) {
    if (reader.field === field && reader.wireType === 0) value = reader.int64();
    else reader.skip();
  }
  return value;
}

function textField(bytes: Buffer, start: number, end: number, field: number): string {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let value = '';
  while (reader.next()) {
    if (reader.field === field && reader.wireType === WIRE_BYTES) value = reader.text();
    else reader.skip();
  }
  return value;
}
