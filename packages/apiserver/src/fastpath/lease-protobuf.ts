// data plane
/**
 * A stored lease as Kubernetes protobuf, for the answers of renewals: what `ProtobufEncoder` gives
 * for the leases that kubelets and controllers keep, without a text or an object between. Where
 * a lease has more than those have (labels, finalizers, escapes, two entries of owners), it is left
 * to the encoder.
 */
import { BackwardWriter } from '@megaplane/machinery/backward-writer';
import { closeEnvelope, openEnvelope } from '@megaplane/machinery/protobuf-envelope';
import { MemberCursor } from '@megaplane/machinery/scan';
import type { Template } from '@megaplane/machinery/apply/field-templates';
import { isPacked, packedEnd, recentTemplate } from '../managedfields/shown-fields.ts';
import type { Sink } from '../sink/sink.ts';

const API_VERSION = 'coordination.k8s.io/v1';
const KIND = 'Lease';
type LeaseSpecField =
  | 'holderIdentity'
  | 'leaseDurationSeconds'
  | 'acquireTime'
  | 'renewTime'
  | 'leaseTransitions';
/** Names of the fields that leases of nodes and of leaders have. */
export const LEASE_SPEC_NAMES: Readonly<Record<LeaseSpecField, Buffer>> = {
  holderIdentity: Buffer.from('holderIdentity'),
  leaseDurationSeconds: Buffer.from('leaseDurationSeconds'),
  acquireTime: Buffer.from('acquireTime'),
  renewTime: Buffer.from('renewTime'),
  leaseTransitions: Buffer.from('leaseTransitions'),
};
const NAMES = {
  name: Buffer.from('name'),
  namespace: Buffer.from('namespace'),
  uid: Buffer.from('uid'),
  creationTimestamp: Buffer.from('creationTimestamp'),
  ownerReferences: Buffer.from('ownerReferences'),
  apiVersion: Buffer.from('apiVersion'),
  kind: Buffer.from('kind'),
  controller: Buffer.from('controller'),
  blockOwnerDeletion: Buffer.from('blockOwnerDeletion'),
  ...LEASE_SPEC_NAMES,
} as const;
const REFERENCES_OPEN_BYTES = '"managedFields":"'.length;
const ID_BYTES = 12;
const HOLES_MAX = 16;

const QUOTE = 0x22;
const PERCENT = 0x25;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const LOWER_T = 0x74;

const words = new BackwardWriter();
const FIELDS_TYPE = textField(6, 'FieldsV1');

/** A range of the lease; nothing while `end` is 0. */
interface Place {
  start: number;
  end: number;
}

/** What an entry of owners says besides its time and its fills. */
interface EntryParts {
  readonly template: Template;
  /** Fields of protobuf: the manager, the operation, the version. */
  readonly opening: Buffer;
  /** Another one. */
  readonly subresource: Buffer;
  /** FieldsV1 between the holes. */
  readonly pieces: readonly Buffer[];
}

export class LeaseProtobuf {
  readonly #out = new BackwardWriter();
  readonly #members = new MemberCursor();
  readonly #inner = new MemberCursor();
  #bytes: Buffer = Buffer.alloc(0);
  #isKnown = true;
  readonly #name = nowhere();
  readonly #namespace = nowhere();
  readonly #uid = nowhere();
  readonly #created = nowhere();
  readonly #owner = nowhere();
  readonly #holder = nowhere();
  readonly #duration = nowhere();
  readonly #acquired = nowhere();
  readonly #renewed = nowhere();
  readonly #transitions = nowhere();
  readonly #ownerParts = Array.from({ length: 6 }, nowhere);
  readonly #holes: readonly Place[] = Array.from({ length: HOLES_MAX }, nowhere);
  #entry: EntryParts | null = null;
  /** The date read last, as one number, and the seconds before it. */
  #date = -1;
  #dateSeconds = 0;

  /**
   * Appends the lease in its envelope, as of `revision`: `value` up to `end` as it is stored, its
   * metadata's first member at `head`. False, with nothing appended, where it has other parts than
   * leases of nodes have.
   */
  append(sink: Sink, value: Buffer, head: number, end: number, revision: number): boolean {
    this.#bytes = value;
    this.#isKnown = true;
    const specAt = this.#readMetadata(head, end);
    if (specAt < 0 || !this.#readSpec(specAt, end)) return false;
    const out = this.#out;
    out.reset();
    openEnvelope(out);
    const object = out.mark();
    this.#writeSpec();
    this.#writeMetadata(head, revision);
    if (!this.#isKnown) return false;
    closeEnvelope(out, object, API_VERSION, KIND);
    sink.append(out.bytes, out.at);
    return true;
  }

  /** Notes where the parts of metadata are; the offset of the spec's brace, or -1. */
  #readMetadata(head: number, end: number): number {
    const bytes = this.#bytes;
    const members = this.#members;
    clear(this.#name, this.#namespace, this.#uid, this.#created, this.#owner);
    if (!members.open(bytes, head - 1, end)) return -1;
    if (isPacked(bytes, head)) members.pass(packedEnd(bytes, head));
    while (members.next()) {
      const place = this.#metadataPlace();
      if (place === null) return -1;
      place.start = members.valueStart;
      place.end = members.valueEnd;
    }
    // ,"spec":
    const specAt = members.closeEnd + 8;
    return members.isClosed && specAt < end && bytes[specAt] === BRACE_OPEN ? specAt : -1;
  }

  #metadataPlace(): Place | null {
    const members = this.#members;
    if (members.is(NAMES.name)) return this.#name;
    if (members.is(NAMES.namespace)) return this.#namespace;
    if (members.is(NAMES.uid)) return this.#uid;
    if (members.is(NAMES.creationTimestamp)) return this.#created;
    return members.is(NAMES.ownerReferences) ? this.#owner : null;
  }

  #readSpec(specAt: number, end: number): boolean {
    const members = this.#members;
    clear(this.#holder, this.#duration, this.#acquired, this.#renewed, this.#transitions);
    if (!members.open(this.#bytes, specAt, end)) return false;
    while (members.next()) {
      const place = this.#specPlace();
      if (place === null) return false;
      place.start = members.valueStart;
      place.end = members.valueEnd;
    }
    return members.isClosed;
  }

  #specPlace(): Place | null {
    const members = this.#members;
    if (members.is(NAMES.holderIdentity)) return this.#holder;
    if (members.is(NAMES.leaseDurationSeconds)) return this.#duration;
    if (members.is(NAMES.acquireTime)) return this.#acquired;
    if (members.is(NAMES.renewTime)) return this.#renewed;
    return members.is(NAMES.leaseTransitions) ? this.#transitions : null;
  }

  #writeSpec(): void {
    const out = this.#out;
    const mark = out.mark();
    this.#writeNumber(5, this.#transitions);
    this.#writeTime(4, this.#renewed);
    this.#writeTime(3, this.#acquired);
    this.#writeNumber(2, this.#duration);
    if (this.#holder.end > 0) this.#writeText(1, this.#holder);
    out.length(2, mark);
  }

  /** Text is written where there is none, too, as are generations and times of creation. */
  #writeMetadata(head: number, revision: number): void {
    const out = this.#out;
    const mark = out.mark();
    if (isPacked(this.#bytes, head)) this.#writeEntry(head + REFERENCES_OPEN_BYTES);
    if (this.#owner.end > 0) this.#writeOwner();
    const created = out.mark();
    if (this.#created.end > 0) this.#writeInstant(this.#created.start + 1, 0);
    out.length(8, created);
    writeInt(out, 7, 0);
    out.string(6, String(revision));
    this.#writeText(5, this.#uid);
    out.string(4, '');
    this.#writeText(3, this.#namespace);
    out.string(2, '');
    this.#writeText(1, this.#name);
    out.length(1, mark);
  }

  /** The text between the quotes at a place; empty where there is none. */
  #writeText(field: number, { start, end }: Place): void {
    const out = this.#out;
    const mark = out.mark();
    if (end > 0) {
      const bytes = this.#bytes;
      if (bytes[start] !== QUOTE) this.#isKnown = false;
      out.room(end - start);
      const to = out.bytes;
      let { at } = out;
      for (let from = end - 2; from > start; from--) {
        const byte = bytes[from]!;
        if (byte === BACKSLASH) this.#isKnown = false;
        to[--at] = byte;
      }
      out.at = at;
    }
    out.length(field, mark);
  }

  #writeNumber(field: number, { start, end }: Place): void {
    if (end === 0) return;
    let value = 0;
    for (let at = start; at < end; at++) {
      const digit = this.#bytes[at]! - 0x30;
      if (digit < 0 || digit > 9) this.#isKnown = false;
      value = value * 10 + digit;
    }
    if (end - start > 9) this.#isKnown = false;
    writeInt(this.#out, field, value);
  }

  /** `"2006-01-02T15:04:05.000000Z"` */
  #writeTime(field: number, { start, end }: Place): void {
    if (end === 0) return;
    const bytes = this.#bytes;
    if (end - start !== 29 || bytes[start] !== QUOTE) return void (this.#isKnown = false);
    const mark = this.#out.mark();
    const micros =
      (digits(bytes, start + 21) * 100 + digits(bytes, start + 23)) * 100 +
      digits(bytes, start + 25);
    this.#writeInstant(start + 1, micros * 1000);
    this.#out.length(field, mark);
  }

  /** `2006-01-02T15:04:05` at an offset. */
  #writeInstant(at: number, nanos: number): void {
    const bytes = this.#bytes;
    const year = digits(bytes, at) * 100 + digits(bytes, at + 2);
    const date = (year * 100 + digits(bytes, at + 5)) * 100 + digits(bytes, at + 8);
    if (date !== this.#date) {
      this.#date = date;
      const month = Math.floor(date / 100) % 100;
      // years below 100 are not what they say, and before 1970 numbers are written otherwise
      this.#dateSeconds = year < 1970 ? -1 : Date.UTC(year, month - 1, date % 100) / 1000;
    }
    if (!(this.#dateSeconds >= 0)) this.#isKnown = false;
    const minutes = digits(bytes, at + 11) * 60 + digits(bytes, at + 14);
    this.#writeTimestamp(this.#dateSeconds + minutes * 60 + digits(bytes, at + 17), nanos);
  }

  #writeTimestamp(seconds: number, nanos: number): void {
    writeInt(this.#out, 2, nanos);
    writeInt(this.#out, 1, seconds);
  }

  /** One owner; the encoder knows several. */
  #writeOwner(): void {
    const { start, end } = this.#owner;
    const bytes = this.#bytes;
    const inner = this.#inner;
    const parts = this.#ownerParts;
    for (const part of parts) part.end = 0;
    if (bytes[start] !== BRACKET_OPEN || !inner.open(bytes, start + 1, end)) {
      return void (this.#isKnown = false);
    }
    while (inner.next()) {
      const part = parts[OWNER_MEMBERS.findIndex((name) => inner.is(name))];
      if (part === undefined) return void (this.#isKnown = false);
      part.start = inner.valueStart;
      part.end = inner.valueEnd;
    }
    const isOne = inner.isClosed && bytes[inner.closeEnd] === BRACKET_CLOSE;
    if (!isOne || inner.closeEnd + 1 !== end) return void (this.#isKnown = false);
    const [kind, name, uid, apiVersion, controller, blocks] = parts;
    const out = this.#out;
    const mark = out.mark();
    if (blocks!.end > 0) writeInt(out, 7, bytes[blocks!.start] === LOWER_T ? 1 : 0);
    if (controller!.end > 0) writeInt(out, 6, bytes[controller!.start] === LOWER_T ? 1 : 0);
    this.#writeText(5, apiVersion!);
    this.#writeText(4, uid!);
    this.#writeText(3, name!);
    this.#writeText(1, kind!);
    out.length(13, mark);
  }

  /** The one entry that the references at `at` stand for. */
  #writeEntry(at: number): void {
    const bytes = this.#bytes;
    const template = recentTemplate(bytes, at);
    if (template === undefined) return void (this.#isKnown = false);
    const parts = this.#partsOf(template);
    let seconds = 0;
    let from = at + ID_BYTES + 1;
    const timeAt = from;
    for (; bytes[from] !== SEMICOLON && bytes[from] !== QUOTE; from++) {
      const byte = bytes[from]!;
      if (byte === COMMA) return void (this.#isKnown = false);
      seconds = seconds * 36 + (byte >= 0x61 ? byte - 0x57 : byte - 0x30);
    }
    const hasTime = from > timeAt;
    let holes = 0;
    while (bytes[from] === SEMICOLON && holes < HOLES_MAX) {
      const hole = this.#holes[holes++]!;
      hole.start = ++from;
      for (; bytes[from] !== SEMICOLON && bytes[from] !== QUOTE; from++) {
        const byte = bytes[from]!;
        if (byte === COMMA || byte === PERCENT) return void (this.#isKnown = false);
      }
      hole.end = from;
    }
    if (bytes[from] !== QUOTE || holes !== parts.pieces.length - 1) {
      return void (this.#isKnown = false);
    }
    const out = this.#out;
    const mark = out.mark();
    out.copyShort(parts.subresource);
    const raw = out.mark();
    for (let index = holes; index > 0; index--) {
      out.copyRange(parts.pieces[index]!, 0, parts.pieces[index]!.length);
      const hole = this.#holes[index - 1]!;
      out.copyRange(bytes, hole.start, hole.end);
    }
    out.copyRange(parts.pieces[0]!, 0, parts.pieces[0]!.length);
    out.length(1, raw);
    out.length(7, raw);
    out.copyShort(FIELDS_TYPE);
    if (hasTime) {
      const time = out.mark();
      this.#writeTimestamp(seconds, 0);
      out.length(4, time);
    }
    out.copyRange(parts.opening, 0, parts.opening.length);
    out.length(17, mark);
  }

  /** Leases of one kind of client come in rows. */
  #partsOf(template: Template): EntryParts {
    if (this.#entry?.template === template) return this.#entry;
    const { name, operation, apiVersion, subresource } = template.manager;
    const opening = [textField(1, name), textField(2, operation), textField(3, apiVersion)];
    this.#entry = {
      template,
      opening: Buffer.concat(opening),
      subresource: textField(8, subresource),
      pieces: template.pieces.map((piece) => Buffer.from(piece)),
    };
    return this.#entry;
  }
}

/** In the order of `#ownerParts`. */
const OWNER_MEMBERS: readonly Buffer[] = [
  NAMES.kind,
  NAMES.name,
  NAMES.uid,
  NAMES.apiVersion,
  NAMES.controller,
  NAMES.blockOwnerDeletion,
];

function nowhere(): Place {
  return { start: 0, end: 0 };
}

function clear(a: Place, b: Place, c: Place, d: Place, e: Place): void {
  a.end = b.end = c.end = d.end = e.end = 0;
}

function writeInt(out: BackwardWriter, field: number, value: number): void {
  out.varint(value);
  out.varint(field * 8);
}

function textField(field: number, text: string): Buffer {
  words.reset();
  words.string(field, text);
  return words.take();
}

/** Two digits. */
function digits(bytes: Buffer, at: number): number {
  return (bytes[at]! - 0x30) * 10 + bytes[at + 1]! - 0x30;
}
