// data plane
/**
 * The short way for lease renewals: PUT of a Lease whose metadata is what is stored and whose spec
 * is well-formed. The new stored value is the stored metadata and the sent spec, found by scanning;
 * nothing is parsed. Whatever is unusual (other metadata, unknown fields, no revision, a mismatch)
 * is left to the long way, which knows all the rules and words.
 */
import { MemberCursor } from '@megaplane/machinery/scan';
import { assert } from '@megaplane/base/assert';
import { BodyText } from '@megaplane/machinery/body-text';
import { headOf, SPLICE_BYTES_MAX, writeResourceVersion } from '@megaplane/machinery/canonical';
import type { Exchange } from '@megaplane/wire/exchange';
import type { Admission } from '../admission/admission.ts';
import type { Authorizer } from '../authorization/authorization.ts';
import { ANONYMOUS, type Identity } from '../request/identity.ts';
import { LeasePath } from './lease-path.ts';
import { LEASE_SPEC_NAMES, LeaseProtobuf } from './lease-protobuf.ts';
import { LeaseOwners } from './lease-owners.ts';
import {
  appendLean,
  appendManaged,
  appendShown,
  isPacked,
  packedEnd,
} from '../managedfields/shown-fields.ts';
import { JSON_TYPE, LEAN_JSON_TYPE, PROTOBUF_TYPE } from '../request/negotiation.ts';
import { ProtobufEncoder } from '../serializer/protobuf-encoder.ts';
import { findServed } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import { emptyRow, type Storage } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import type { RepeatedRequest } from '../admission/admission-plugin.ts';

const API_VERSION = 'coordination.k8s.io/v1';

const KIND = Buffer.from('"Lease"');
const VERSION = Buffer.from(`"${API_VERSION}"`);
const NAMES = {
  kind: Buffer.from('kind'),
  apiVersion: Buffer.from('apiVersion'),
  metadata: Buffer.from('metadata'),
  spec: Buffer.from('spec'),
  resourceVersion: Buffer.from('resourceVersion'),
  managedFields: Buffer.from('managedFields'),
  uid: Buffer.from('uid'),
  creationTimestamp: Buffer.from('creationTimestamp'),
  namespace: Buffer.from('namespace'),
  ...LEASE_SPEC_NAMES,
} as const;

const QUOTE = 0x22;
const BRACE_CLOSE = 0x7d;
const BACKSLASH = 0x5c;
/** `"2006-01-02T15:04:05.000000Z"` */
const MICRO_TIME_BYTES = 29;
/** A lease above this goes the long way. */
const LEASE_BYTES_MAX = 8192;
/** Namespaces of which it is remembered that an identity may update their leases. */
const GRANTS_MAX = 1024;
const GRANT_MS = 10_000;

const HEAD = headOf(API_VERSION, 'Lease');
const SPEC_OPEN = Buffer.from(',"spec":');
const MANAGED_OPEN = Buffer.from('"managedFields":');
/** As client-go asks for built-in kinds. */
const PROTOBUF_OR_JSON = `${PROTOBUF_TYPE},${JSON_TYPE}`;
const PROTOBUF_BODIES = new BodyText(API_VERSION, 'Lease');
/** Stands for a list of fields that no other request has. */
const UNSHARED: readonly string[] = [];
const HEADERS_FIXED = ['cache-control', 'no-cache, private'] as const;

/** Somebody may update the leases of a namespace. */
interface Grant {
  readonly identity: Identity | null;
  readonly namespace: string;
  readonly untilMs: number;
}

interface Asked extends RepeatedRequest {
  readonly call: RepeatedRequest['call'] & { identity: Identity };
}

const NO_BODY = Buffer.alloc(0);
const NO_GRANT: Grant = { identity: null, namespace: '', untilMs: 0 };
const PUT = { method: 'PUT' } as const;

/** What a renewal needs to know of the server. */
export interface RenewalParts {
  readonly world: World;
  readonly admission: Admission;
  readonly authorize: Authorizer;
  /** Audit ids begin with its first 24 characters. */
  readonly uuid: string;
}

export class LeaseRenewal {
  readonly #storage: Storage;
  readonly #authorize: Authorizer;
  readonly #nowMs: () => number;
  readonly #row = emptyRow();
  readonly #top = new MemberCursor();
  readonly #sent = new MemberCursor();
  readonly #kept = new MemberCursor();
  readonly #value: Buffer = Buffer.allocUnsafeSlow(LEASE_BYTES_MAX * 2);
  /** Views of `#value` by their lengths, of which leases have few. */
  readonly #values: (Buffer | undefined)[] = [];
  readonly #path = new LeasePath();
  /** Header fields that were read last, and what they say. */
  #fields: readonly string[] = UNSHARED;
  #isReadable = false;
  #bodyType: string | undefined = undefined;
  #agent = '';
  #flowFields: readonly string[] = [];
  #lasting: readonly string[] = HEADERS_FIXED;
  /** By who comes, all that is known of them: a name alone says nothing of groups. */
  #grants = new WeakMap<Identity, Map<string, number>>();
  #lastGrant: Grant = NO_GRANT;
  readonly #admission: Admission;
  /** What admission is asked by; the identity is that of the renewal at hand. */
  readonly #asked: Asked;
  readonly #owners = new LeaseOwners();
  readonly #sink = new Sink(LEASE_BYTES_MAX * 2);
  /** Which fields the sent spec has: bit 1 to 5, in upstream's order. */
  #specMask = 0;
  #isLean = false;
  #isProtobuf = false;
  readonly #protobuf = new LeaseProtobuf();
  #encoder: ProtobufEncoder | null = null;
  readonly #auditPrefix: string;
  #count = 0;

  constructor({ world, admission, authorize, uuid }: RenewalParts) {
    this.#storage = world.storage;
    this.#authorize = authorize;
    this.#nowMs = () => world.edge.nowMs();
    this.#auditPrefix = uuid.slice(0, 24);
    this.#admission = admission;
    const served = findServed('coordination.k8s.io', 'v1', 'leases');
    assert(served !== undefined, 'leases are served');
    const call = { exchange: PUT, info: this.#path, identity: ANONYMOUS, body: NO_BODY };
    this.#asked = { world, served, call };
  }

  /** Grants may have changed: whoever comes is asked for anew. */
  forgetGrants(): void {
    this.#grants = new WeakMap();
    this.#lastGrant = NO_GRANT;
  }

  /** A first look: the namespace of the lease that it asks for; `''` where it is none of ours. */
  namespaceOf({ path, body }: Exchange): string {
    if (body.length > LEASE_BYTES_MAX || !this.#path.read(path)) return '';
    return this.#path.namespace;
  }

  /**
   * Handles the exchange, of which `namespaceOf` knew the namespace, if it is a plain renewal;
   * false leaves it untouched. `fields` are header fields that its answer carries besides its own.
   */
  tryRenew(exchange: Exchange, identity: Identity, fields: readonly string[] = []): boolean {
    if (!this.#path.read(exchange.path)) return false;
    this.#readHeaders(exchange);
    if (!this.#isReadable) return false;
    const text = textOf(this.#bodyType, exchange.body);
    if (text === null) return false;
    if (!this.#mayUpdate(identity) || !this.#isUnseen(identity)) return false;
    const { key } = this.#path;
    if (!this.#storage.get(key, this.#row)) return false;
    const length = this.#assemble(text);
    if (length < 0 || this.#isUnchanged(length)) return false;
    const agent = this.#agent;
    const seconds = Math.floor(this.#nowMs() / 1000);
    if (!this.#owners.renew(this.#value, HEAD.length, agent, this.#specMask, seconds)) return false;
    this.#write(exchange, key, length, fields);
    return true;
  }

  /** What the header fields say, read once for requests in a row that share their list. */
  #readHeaders(exchange: Exchange): void {
    // HTTP/1.1 would make a list of all fields to look for three
    const fields = exchange.connection.protocol === 'h2' ? exchange.fields() : UNSHARED;
    if (fields === this.#fields && fields !== UNSHARED) return;
    this.#fields = fields;
    this.#isReadable = this.#readAccept(exchange.header('accept'));
    this.#bodyType = exchange.header('content-type');
    this.#agent = exchange.header('user-agent') ?? '';
  }

  /** How the answer is to look; false where the long way has to find out. */
  #readAccept(accept: string | undefined): boolean {
    this.#isLean = accept === LEAN_JSON_TYPE;
    this.#isProtobuf = accept === PROTOBUF_TYPE || accept === PROTOBUF_OR_JSON;
    if (this.#isLean || this.#isProtobuf) return true;
    return accept === undefined || accept === JSON_TYPE || accept === '*/*';
  }

  /** A write that changes nothing is none: the revision stays. */
  #isUnchanged(length: number): boolean {
    const { bytes, start, end } = this.#row;
    return length === end - start && bytes.compare(this.#value, 0, length, start, end) === 0;
  }

  #mayUpdate(identity: Identity): boolean {
    if (identity.isMaster) return true;
    const { namespace } = this.#path;
    const nowMs = this.#nowMs();
    const last = this.#lastGrant;
    if (identity === last.identity && namespace === last.namespace && nowMs < last.untilMs) {
      return true;
    }
    let grants = this.#grants.get(identity);
    const untilMs = grants?.get(namespace) ?? 0;
    if (untilMs > nowMs) {
      this.#lastGrant = { identity, namespace, untilMs };
      return true;
    }
    const decision = this.#authorize(identity, {
      verb: 'update',
      isResource: true,
      path: '',
      group: 'coordination.k8s.io',
      version: 'v1',
      resource: 'leases',
      subresource: '',
      namespace,
      name: this.#path.name,
    });
    // a decision by name holds for that name only: it is not remembered
    if (decision.allowed && decision.reason === '' && decision.isNarrow !== true) {
      if (grants === undefined) this.#grants.set(identity, (grants = new Map()));
      if (grants.size >= GRANTS_MAX) grants.clear();
      grants.set(namespace, nowMs + GRANT_MS);
    }
    return decision.allowed;
  }

  /** No plugin of admission, no policy and no webhook would look at it. */
  #isUnseen(identity: Identity): boolean {
    this.#asked.call.identity = identity;
    return this.#admission.repeats(this.#asked);
  }

  /** Puts the new stored value into `#value`; its length, or -1 for the long way. */
  #assemble(body: Buffer): number {
    const top = this.#top;
    const end = body.length;
    let metadataEnd = -1;
    let spec = -1;
    let specEnd = -1;
    if (!top.open(body, 0, end)) return -1;
    while (top.nextKey()) {
      if (top.is(NAMES.metadata)) {
        if (metadataEnd >= 0) return -1;
        metadataEnd = this.#compareMetadata(body, top.valueStart, end);
        if (metadataEnd < 0) return -1;
        top.resume(this.#sent.closeEnd);
      } else if (top.is(NAMES.spec)) {
        if (spec >= 0 || !this.#isPlainSpec(body, top.valueStart, end)) return -1;
        spec = top.valueStart;
        specEnd = this.#sent.closeEnd;
        top.resume(specEnd);
      } else if (!top.skip() || !this.#isOwnType(body)) return -1;
    }
    if (!top.isClosed || metadataEnd < 0 || spec < 0) return -1;
    const { bytes, start } = this.#row;
    let length = bytes.copy(this.#value, 0, start, metadataEnd);
    length += SPEC_OPEN.copy(this.#value, length);
    length += body.copy(this.#value, length, spec, specEnd);
    this.#value[length++] = BRACE_CLOSE;
    return length;
  }

  /** The member that `#top` is at says what the object is, and it is a Lease. */
  #isOwnType(body: Buffer): boolean {
    const top = this.#top;
    if (top.is(NAMES.kind)) return equals(body, top.valueStart, top.valueEnd, KIND);
    return top.is(NAMES.apiVersion) && equals(body, top.valueStart, top.valueEnd, VERSION);
  }

  /**
   * The sent metadata must name the stored revision and otherwise be the stored one, in the same
   * order; what the server restores by itself may be absent. Returns where the stored metadata
   * ends, or -1. Afterwards `#sent` is behind what was sent.
   */
  #compareMetadata(body: Buffer, metadata: number, end: number): number {
    const { bytes, start, end: rowEnd, modRevision } = this.#row;
    const sent = this.#sent;
    const kept = this.#kept;
    const keptMetadata = start + HEAD.length - 1;
    if (!sent.open(body, metadata, end) || !kept.open(bytes, keptMetadata, rowEnd)) return -1;
    // the owners, which come first and are restored
    if (isPacked(bytes, keptMetadata + 1)) kept.pass(packedEnd(bytes, keptMetadata + 1));
    let hasRevision = false;
    while (sent.nextKey()) {
      if (sent.is(NAMES.resourceVersion)) {
        if (!sent.skip() || !isRevision(body, sent.valueStart, sent.valueEnd, modRevision)) {
          return -1;
        }
        hasRevision = true;
      } else if (sent.is(NAMES.managedFields)) {
        if (!sent.skip() || !this.#isShown(body, sent.valueStart, sent.valueEnd)) return -1;
      } else {
        if (!this.#findKept(body)) return -1;
        const { valueStart, valueEnd } = kept;
        const to = sent.valueStart + valueEnd - valueStart;
        if (!sameRange(body, sent.valueStart, to, bytes, valueStart, valueEnd)) return -1;
        sent.resume(to);
      }
    }
    if (!hasRevision || !sent.isClosed) return -1;
    while (kept.next()) if (!isRestored(kept)) return -1;
    return kept.isClosed ? kept.closeEnd : -1;
  }

  /** Clients send back whose the fields are: as they were shown, or the long way decides. */
  #isShown(body: Buffer, from: number, to: number): boolean {
    const { bytes, start } = this.#row;
    const at = start + HEAD.length;
    if (!isPacked(bytes, at)) return false;
    const sink = this.#sink;
    sink.length = 0;
    appendManaged(sink, bytes, at);
    const length = sink.length - MANAGED_OPEN.length;
    return (
      to - from === length &&
      body.compare(sink.bytes, MANAGED_OPEN.length, sink.length, from, to) === 0
    );
  }

  /** Moves `#kept` to the field that `#sent` is at, over fields that the server restores. */
  #findKept(body: Buffer): boolean {
    const sent = this.#sent;
    const kept = this.#kept;
    const { bytes } = this.#row;
    while (kept.next()) {
      if (sameRange(body, sent.keyStart, sent.keyEnd, bytes, kept.keyStart, kept.keyEnd)) {
        return true;
      }
      if (!isRestored(kept)) return false;
    }
    return false;
  }

  /**
   * Known fields in upstream's order, each of its type, without white space. Afterwards `#sent` is
   * behind them.
   */
  #isPlainSpec(body: Buffer, spec: number, end: number): boolean {
    const member = this.#sent;
    if (!member.open(body, spec, end)) return false;
    let order = 0;
    let mask = 0;
    let at = spec + 1;
    while (member.next()) {
      // a quote right here, a colon right after the key: nothing between tokens
      if (member.keyStart - 1 !== at || member.valueStart !== member.keyEnd + 2) return false;
      const rank = this.#rankOf(member, body);
      if (rank <= order) return false;
      order = rank;
      mask |= 1 << rank;
      at = member.valueEnd + 1;
    }
    this.#specMask = mask;
    return member.isClosed && member.closeEnd === at && order > 0;
  }

  #rankOf(member: MemberCursor, body: Buffer): number {
    const start = member.valueStart;
    const end = member.valueEnd;
    if (member.is(NAMES.holderIdentity)) return isPlainString(body, start, end) ? 1 : 0;
    if (member.is(NAMES.leaseDurationSeconds)) return isPositive(body, start, end) ? 2 : 0;
    if (member.is(NAMES.acquireTime)) return isMicroTime(body, start, end) ? 3 : 0;
    if (member.is(NAMES.renewTime)) return isMicroTime(body, start, end) ? 4 : 0;
    if (member.is(NAMES.leaseTransitions)) return isCount(body, start, end) ? 5 : 0;
    return 0;
  }

  #write(exchange: Exchange, key: Buffer, length: number, fields: readonly string[]): void {
    const value = (this.#values[length] ??= this.#value.subarray(0, length));
    const expected = this.#row.modRevision;
    const isLean = this.#isLean;
    const isProtobuf = this.#isProtobuf;
    const audit = this.#auditPrefix + (++this.#count).toString(16).padStart(12, '0');
    this.#storage.put(key, value, expected, (outcome) => {
      const headers = ['audit-id', audit];
      const lasting = this.#lastingOf(fields);
      if (outcome.kind !== 'done') {
        // in this process nothing comes between the read above and the write; only a full or
        // failing store refuses
        exchange.respond(
          503,
          'text/plain; charset=utf-8',
          'storage is not available\n',
          headers,
          lasting,
        );
        return;
      }
      const sink = this.#sink;
      sink.length = 0;
      if (isProtobuf) {
        const { revision } = outcome;
        const isWritten = this.#protobuf.append(sink, value, HEAD.length, length, revision);
        if (!isWritten) this.#encode(value, revision);
        exchange.respondCopy(200, PROTOBUF_TYPE, sink.bytes, sink.length, headers, lasting);
        return;
      }
      sink.append(value, 0, HEAD.length);
      sink.ensure(SPLICE_BYTES_MAX);
      sink.length = writeResourceVersion(outcome.revision, sink.bytes, sink.length);
      if (isLean) appendLean(sink, value, HEAD.length, length);
      else appendShown(sink, value, HEAD.length, length);
      sink.ascii('\n');
      exchange.respondCopy(200, JSON_TYPE, sink.bytes, sink.length, headers, lasting);
    });
  }

  /** What answers carry besides; the same list for the same fields. */
  #lastingOf(fields: readonly string[]): readonly string[] {
    if (fields !== this.#flowFields) {
      this.#flowFields = fields;
      this.#lasting = [...HEADERS_FIXED, ...fields];
    }
    return this.#lasting;
  }

  /** The stored value as protobuf, into the sink. */
  #encode(value: Buffer, revision: number): void {
    const served = findServed('coordination.k8s.io', 'v1', 'leases');
    assert(served !== undefined, 'leases are served');
    this.#encoder ??= new ProtobufEncoder(served);
    const row = this.#row;
    row.bytes = value;
    row.start = 0;
    row.end = value.length;
    row.modRevision = revision;
    this.#encoder.object(this.#sink, row, revision);
  }
}

/** The body as JSON, of clients of client-go too; null for what the long way has to read. */
function textOf(type: string | undefined, body: Buffer): Buffer | null {
  if (type === undefined || type === JSON_TYPE) return body;
  return type === PROTOBUF_TYPE ? PROTOBUF_BODIES.read(body) : null;
}

/** True at a field that an update leaves as it is stored, whatever the client sends. */
function isRestored(member: MemberCursor): boolean {
  return (
    member.is(NAMES.uid) ||
    member.is(NAMES.creationTimestamp) ||
    member.is(NAMES.namespace) ||
    member.is(NAMES.managedFields)
  );
}

function equals(bytes: Buffer, start: number, end: number, value: Buffer): boolean {
  return sameRange(bytes, start, end, value, 0, value.length);
}

function sameRange(
  left: Buffer,
  leftStart: number,
  leftEnd: number,
  right: Buffer,
  rightStart: number,
  rightEnd: number,
): boolean {
  const length = leftEnd - leftStart;
  if (length !== rightEnd - rightStart) return false;
  for (let at = 0; at < length; at++) {
    if (left[leftStart + at] !== right[rightStart + at]) return false;
  }
  return true;
}

/** `"123"` that says exactly `revision`. */
function isRevision(bytes: Buffer, start: number, end: number, revision: number): boolean {
  if (end - start < 3 || bytes[start] !== QUOTE || bytes[start + 1] === 0x30) return false;
  let value = 0;
  for (let at = start + 1; at < end - 1; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return false;
    value = value * 10 + digit;
  }
  return value === revision;
}

function isPlainString(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[start] !== QUOTE) return false;
  for (let at = start + 1; at < end - 1; at++) {
    const byte = bytes[at]!;
    if (byte < 0x20 || byte === BACKSLASH || byte > 0x7e) return false;
    if (byte === 0x26 || byte === 0x3c || byte === 0x3e) return false;
  }
  return true;
}

function isCount(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > 9 || end === start) return false;
  if (bytes[start] === 0x30 && end - start > 1) return false;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}

function isPositive(bytes: Buffer, start: number, end: number): boolean {
  return bytes[start] !== 0x30 && isCount(bytes, start, end);
}

/** The shape with six digits, and a month, day and clock within their ranges. */
function isMicroTime(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== MICRO_TIME_BYTES || bytes[start] !== QUOTE) return false;
  for (let at = 0; at < 27; at++) {
    const byte = bytes[start + 1 + at]!;
    const mark = TIME_MARKS[at]!;
    if (mark === 0 ? byte < 0x30 || byte > 0x39 : byte !== mark) return false;
  }
  const month = twoDigits(bytes, start + 6);
  const day = twoDigits(bytes, start + 9);
  return (
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= 28 + DAYS_OVER_28[month]! &&
    twoDigits(bytes, start + 12) < 24 &&
    twoDigits(bytes, start + 15) < 60 &&
    twoDigits(bytes, start + 18) < 60
  );
}

function twoDigits(bytes: Buffer, at: number): number {
  return (bytes[at]! - 0x30) * 10 + bytes[at + 1]! - 0x30;
}

/** Zero where a digit stands in `2006-01-02T15:04:05.000000Z`, else the character. */
const TIME_MARKS = Uint8Array.from(
  Buffer.from('0000-00-00T00:00:00.000000Z').map((byte) => (byte === 0x30 ? 0 : byte)),
);
/** February goes the long way on its 29th. */
const DAYS_OVER_28 = Uint8Array.of(0, 3, 0, 3, 2, 3, 2, 3, 3, 2, 3, 2, 3);
