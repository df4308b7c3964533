// data plane: Txn, read in place in several passes
/**
 * The request is walked four times, each pass over the same bytes: what is wrong with it whatever
 * the store holds; which branches the compares choose, all of them against the state before the
 * transaction; what is wrong with the chosen operations as the store stands; and then, when
 * nothing can fail any more, the operations, with the response written as they run.
 */
import { newPage } from '@megaplane/store/ranges';
import type { InPlaceHandler } from '@megaplane/wire/grpc';
import { IN_PLACE_ROOM_BYTES } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { sizeInt64, sizeVarint, writeInt64, writeVarint } from '@megaplane/wire/protobuf-write';
import { APPLIED_TXN } from '../call/call-measures.ts';
import { Compare } from './compare.ts';
import { ANSWER_BYTES_MAX, type EtcdContext } from '../call/context.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import { keyValueSize, writeKeyValue } from '../codec/key-value.ts';
import { LengthGaps, OPEN_BYTES } from '../codec/length-gaps.ts';
import { admission, isOverQuota, isSpaceTight, raiseNoSpace } from '../call/alarms.ts';
import { mergedMessage } from '../codec/merged-message.ts';
import { DeleteRequest, PutRequest } from './put.ts';
import { RangeRequest, rangeBodySize, writeRangeBody } from './range.ts';
import { type KeySets, findDuplicate } from './txn-keys.ts';
import { isDeepMessage, isMessage } from '../codec/whole-message.ts';

/** Name of the message. */
const TXN = 'TxnRequest';
export const FIELD_COMPARE = 1;
export const FIELD_SUCCESS = 2;
export const FIELD_FAILURE = 3;
export const OP_RANGE = 1;
export const OP_PUT = 2;
export const OP_DELETE = 3;
export const OP_TXN = 4;
/** Transactions inside transactions: each takes one of the operations allowed to the one around
 *  it, and where very many are allowed, the stack must do. */
const DEPTH_MAX = 1000;
/** Room for an answer, at first and between requests at most. */
const OUT_BYTES: number = 64 * 1024;
const OUT_BYTES_MAX: number = 8 * 1024 * 1024;

export class TxnRunner {
  readonly #context: EtcdContext;
  /** Per depth, one to walk a transaction's fields and one for an operation's. */
  readonly #walkers: ProtobufReader[] = [];
  readonly #opReader = new ProtobufReader();
  readonly #compare = new Compare();
  readonly #range = new RangeRequest();
  readonly #put = new PutRequest();
  readonly #delete = new DeleteRequest();
  readonly #page = newPage();
  /** Branches chosen, in the order in which transactions are met. */
  readonly #chosen: number[] = [];
  #turn = 0;
  #bytes: Buffer = Buffer.alloc(0);
  // The member of the operation that `#readOp` read.
  #op = 0;
  #opAt = 0;
  #opTo = 0;
  #hasPut = false;
  #hasWrite = false;
  #needsKeyCheck = false;
  #cost = 0;
  /** Space has run out or is about to; then, whether some put is more than a smaller value. */
  #isTight = false;
  #grows = false;
  out: Buffer = Buffer.alloc(OUT_BYTES);
  #at = 0;
  readonly #gaps = new LengthGaps();
  /** The answer is longer than one may be: it is counted on, and no longer written. */
  #isOverlong = false;
  /** An operation came in parts, see merged-message.ts. */
  #isParted = false;
  /** Revision of operations' headers: the next one after the first change. */
  #hasChanged = false;

  constructor(context: EtcdContext) {
    this.#context = context;
  }

  /** Does something other than a read stand in some branch? After `validate`. */
  get hasWrite(): boolean {
    return this.#hasWrite;
  }

  /** Does an operation come in parts? Then all of it has to be read from `mergedMessage`. */
  get isParted(): boolean {
    return this.#isParted;
  }

  #walker(depth: number): ProtobufReader {
    while (this.#walkers.length <= depth) this.#walkers.push(new ProtobufReader());
    return this.#walkers[depth]!;
  }

  /** Finds the member of an operation; the last one sent counts. */
  #readOp(start: number, end: number): boolean {
    const reader = this.#opReader.reset(this.#bytes, start, end);
    this.#op = 0;
    while (reader.next()) {
      if (reader.wireType !== WIRE_BYTES) {
        reader.skip();
        continue;
      }
      reader.chunk();
      if (reader.field > OP_TXN) continue;
      // What another one replaces still has to be a message.
      if (this.#op !== 0 && !isMessage(this.#bytes, this.#opAt, this.#opTo)) return false;
      if (this.#op === reader.field) this.#isParted = true;
      this.#op = reader.field;
      this.#opAt = reader.chunkStart;
      this.#opTo = reader.chunkEnd;
    }
    return reader.failure === FAILURE_NONE;
  }

  /** First pass. Null when nothing is wrong. */
  validate(bytes: Buffer, start: number, end: number): EtcdFailure | null {
    this.#bytes = bytes;
    this.#hasPut = false;
    this.#hasWrite = false;
    this.#needsKeyCheck = false;
    this.#cost = 0;
    this.#grows = false;
    this.#isParted = false;
    this.#isTight = isSpaceTight(this.#context);
    const budget = this.#context.limits.txnOpsMax;
    const invalid = this.#validate(start, end, budget, 0);
    if (invalid !== null) {
      return isDeepMessage(bytes, start, end, TXN) ? invalid : ETCD.malformed;
    }
    if (this.#needsKeyCheck && this.#hasDuplicate(start, end)) return ETCD.duplicateKey;
    // What only reads never enters etcd's log.
    const isTooLarge = this.#hasWrite && this.#context.isTooLarge(end - start);
    return isTooLarge ? ETCD.tooLarge : null;
  }

  /** Why what the branches may put has no room, whichever of them is taken. */
  refusal(): EtcdFailure | null {
    const { alarms } = this.#context.store;
    if (alarms.isCorrupt && this.#hasWrite) return ETCD.corrupt;
    if (!this.#hasPut) return null;
    const admitted = admission(this.#context, this.#cost);
    if (admitted !== null || !this.#grows) return admitted;
    if (isOverQuota(this.#context, this.#cost)) return raiseNoSpace(this.#context);
    return alarms.isNoSpace ? ETCD.noSpace : null;
  }

  #validate(start: number, end: number, budget: number, depth: number): EtcdFailure | null {
    const counts = this.#count(start, end, depth);
    if (counts < 0) return ETCD.malformed;
    if (counts > budget || depth > DEPTH_MAX) return ETCD.tooManyOps;
    // The lists are looked at one after the other, whatever their order on the wire.
    const before = this.#cost;
    let dearest = 0;
    for (let field = FIELD_COMPARE; field <= FIELD_FAILURE; field++) {
      this.#cost = before;
      const walker = this.#walker(depth).reset(this.#bytes, start, end);
      while (walker.next()) {
        walker.skip();
        if (walker.field !== field || walker.wireType !== WIRE_BYTES) continue;
        const invalid =
          field === FIELD_COMPARE
            ? this.#validateCompare(walker.chunkStart, walker.chunkEnd)
            : this.#validateOp(walker.chunkStart, walker.chunkEnd, budget - counts, depth);
        if (invalid !== null) return invalid;
      }
      dearest = Math.max(dearest, this.#cost - before);
    }
    // Only one branch runs: the dearer one counts against the quota.
    this.#cost = before + dearest;
    return null;
  }

  #validateCompare(start: number, end: number): EtcdFailure | null {
    if (!this.#compare.decode(this.#bytes, start, end)) return ETCD.malformed;
    return this.#compare.keyAt === this.#compare.keyTo ? ETCD.emptyKey : null;
  }

  /** The largest of the three lists; -1 when the bytes are no message. */
  #count(start: number, end: number, depth: number): number {
    const walker = this.#walker(depth).reset(this.#bytes, start, end);
    let compares = 0;
    let successes = 0;
    let failures = 0;
    while (walker.next()) {
      if (walker.wireType === WIRE_BYTES) {
        if (walker.field === FIELD_COMPARE) compares++;
        if (walker.field === FIELD_SUCCESS) successes++;
        if (walker.field === FIELD_FAILURE) failures++;
      }
      walker.skip();
    }
    if (walker.failure !== FAILURE_NONE) return -1;
    if (successes > 1 || failures > 1) this.#needsKeyCheck = true;
    return Math.max(compares, successes, failures);
  }

  #validateOp(start: number, end: number, budget: number, depth: number): EtcdFailure | null {
    if (!this.#readOp(start, end)) return ETCD.malformed;
    const bytes = this.#bytes;
    if (this.#op !== OP_RANGE) this.#hasWrite = true;
    switch (this.#op) {
      case OP_RANGE:
        if (!this.#range.decode(bytes, this.#opAt, this.#opTo)) return ETCD.malformed;
        return this.#range.invalid();
      case OP_PUT:
        if (!this.#put.decode(bytes, this.#opAt, this.#opTo)) return ETCD.malformed;
        this.#hasPut = true;
        this.#cost += this.#put.cost;
        if (this.#isTight && !this.#put.shrinks(this.#context)) this.#grows = true;
        return this.#put.invalid();
      case OP_DELETE:
        if (!this.#delete.decode(bytes, this.#opAt, this.#opTo)) return ETCD.malformed;
        return this.#delete.keyAt === this.#delete.keyTo ? ETCD.emptyKey : null;
      case OP_TXN:
        this.#needsKeyCheck = true;
        return this.#validate(this.#opAt, this.#opTo, budget, depth + 1);
      default:
        return ETCD.keyNotFound;
    }
  }

  #hasDuplicate(start: number, end: number): boolean {
    for (const field of [FIELD_SUCCESS, FIELD_FAILURE]) {
      if (this.#branchKeys(start, end, field, 0) === null) return true;
    }
    return false;
  }

  /** Keys that a branch puts and ranges that it deletes; null when two of them collide. */
  #branchKeys(start: number, end: number, field: number, depth: number): KeySets | null {
    const puts: string[] = [];
    const deletes: (readonly [string, string])[] = [];
    const nested: (readonly [KeySets, KeySets])[] = [];
    const walker = new ProtobufReader().reset(this.#bytes, start, end);
    while (walker.next()) {
      if (walker.wireType !== WIRE_BYTES || walker.field !== field) {
        walker.skip();
        continue;
      }
      walker.chunk();
      this.#readOp(walker.chunkStart, walker.chunkEnd);
      const { keyAt, keyTo, endAt, endTo } = this.#opKeys();
      const key = this.#bytes.latin1Slice(keyAt, keyTo);
      if (this.#op === OP_PUT) puts.push(key);
      if (this.#op === OP_DELETE) deletes.push([key, this.#bytes.latin1Slice(endAt, endTo)]);
      if (this.#op !== OP_TXN) continue;
      const { 0: at, 1: to } = [this.#opAt, this.#opTo] as const;
      const then = this.#branchKeys(at, to, FIELD_SUCCESS, depth + 1);
      const otherwise = this.#branchKeys(at, to, FIELD_FAILURE, depth + 1);
      if (then === null || otherwise === null) return null;
      nested.push([then, otherwise]);
    }
    return findDuplicate(puts, deletes, nested);
  }

  #opKeys(): { keyAt: number; keyTo: number; endAt: number; endTo: number } {
    if (this.#op === OP_PUT) {
      this.#put.decode(this.#bytes, this.#opAt, this.#opTo);
      return { keyAt: this.#put.keyAt, keyTo: this.#put.keyTo, endAt: 0, endTo: 0 };
    }
    if (this.#op === OP_DELETE) {
      this.#delete.decode(this.#bytes, this.#opAt, this.#opTo);
      return this.#delete;
    }
    return { keyAt: 0, keyTo: 0, endAt: 0, endTo: 0 };
  }

  /** Second pass. */
  choose(start: number, end: number): void {
    this.#chosen.length = 0;
    this.#choose(start, end, 0);
  }

  #choose(start: number, end: number, depth: number): void {
    const walker = this.#walker(depth).reset(this.#bytes, start, end);
    let holds = true;
    while (walker.next()) {
      const isCompare = walker.field === FIELD_COMPARE && walker.wireType === WIRE_BYTES;
      walker.skip();
      if (!isCompare || !holds) continue;
      this.#compare.decode(this.#bytes, walker.chunkStart, walker.chunkEnd);
      holds = this.#compare.holds(this.#context);
    }
    const branch = holds ? FIELD_SUCCESS : FIELD_FAILURE;
    this.#chosen.push(branch);
    walker.reset(this.#bytes, start, end);
    while (walker.next()) {
      walker.skip();
      if (walker.field !== branch || walker.wireType !== WIRE_BYTES) continue;
      this.#readOp(walker.chunkStart, walker.chunkEnd);
      if (this.#op === OP_TXN) this.#choose(this.#opAt, this.#opTo, depth + 1);
    }
  }

  /** Third pass: null when the operations cannot fail, else what fails first. */
  check(start: number, end: number): EtcdFailure | null {
    this.#turn = 0;
    return this.#check(start, end, 0);
  }

  #check(start: number, end: number, depth: number): EtcdFailure | null {
    const branch = this.#chosen[this.#turn++];
    const walker = this.#walker(depth).reset(this.#bytes, start, end);
    while (walker.next()) {
      walker.skip();
      if (walker.field !== branch || walker.wireType !== WIRE_BYTES) continue;
      this.#readOp(walker.chunkStart, walker.chunkEnd);
      const failure = this.#checkOp(depth);
      if (failure !== null) return failure;
    }
    return null;
  }

  #checkOp(depth: number): EtcdFailure | null {
    if (this.#op === OP_TXN) return this.#check(this.#opAt, this.#opTo, depth + 1);
    if (this.#op === OP_PUT) {
      this.#put.decode(this.#bytes, this.#opAt, this.#opTo);
      return this.#put.checkInTxn(this.#context);
    }
    if (this.#op !== OP_RANGE) return null;
    const range = this.#range;
    range.decode(this.#bytes, this.#opAt, this.#opTo);
    const { revision } = range;
    if (revision === 0) return null;
    const { store } = this.#context;
    if (revision > store.appliedRevision) return ETCD.futureRevision;
    const { keyAt, keyTo, endAt, endTo } = range;
    const boundary = store.compactRevisionOf(this.#bytes, keyAt, keyTo, endAt, endTo);
    // Unlike in a plain Range, a negative revision is not "now" here, but for -1 where nothing was
    // compacted yet (etcd's quirk).
    return revision < (boundary === 0 ? -1 : boundary) ? ETCD.compacted : null;
  }

  /**
   * Fourth pass: runs it and leaves the TxnResponse's fields after the header in `out`. Returns
   * their size; above ANSWER_BYTES_MAX they are not there.
   */
  apply(start: number, end: number): number {
    this.#turn = 0;
    this.#at = 0;
    this.#hasChanged = false;
    this.#isOverlong = false;
    this.#apply(start, end, 0);
    if (!this.#isOverlong) return this.#gaps.join(this.out, this.#at);
    this.#gaps.clear();
    return this.#at;
  }

  /** After an answer: the room of a large one is given back. */
  trim(): void {
    if (this.out.length > OUT_BYTES_MAX) this.out = Buffer.alloc(OUT_BYTES);
  }

  #apply(start: number, end: number, depth: number): void {
    const branch = this.#chosen[this.#turn++]!;
    if (branch === FIELD_SUCCESS && this.#room(2)) {
      this.out[this.#at++] = 0x10;
      this.out[this.#at++] = 1;
    }
    const walker = this.#walker(depth).reset(this.#bytes, start, end);
    while (walker.next()) {
      walker.skip();
      if (walker.field !== branch || walker.wireType !== WIRE_BYTES) continue;
      this.#readOp(walker.chunkStart, walker.chunkEnd);
      if (this.#op === OP_RANGE) this.#applyRange();
      else if (this.#op === OP_PUT) this.#applyPut();
      else if (this.#op === OP_DELETE) this.#applyDelete();
      else this.#applyTxn(depth);
    }
  }

  /** False when so much more can never be sent: then it is only counted. */
  #room(size: number): boolean {
    const end = this.#at + size;
    if (end > ANSWER_BYTES_MAX) this.#isOverlong = true;
    if (this.#isOverlong) {
      this.#at = end;
      return false;
    }
    if (end <= this.out.length) return true;
    const larger = Buffer.allocUnsafeSlow(Math.min(end * 2, ANSWER_BYTES_MAX));
    this.out.copy(larger, 0, 0, this.#at);
    this.out = larger;
    return true;
  }

  get #revision(): number {
    return this.#context.store.appliedRevision + (this.#hasChanged ? 1 : 0);
  }

  /**
   * Opens responses[i].response_x, whose content is an operation's header and `bodySize`. False
   * when nothing is written any more.
   */
  #openOp(field: number, bodySize: number): boolean {
    const revision = this.#revision;
    const headerSize = 1 + sizeInt64(revision);
    const size = 2 + headerSize + bodySize;
    if (!this.#room(size + 32)) return false;
    const { out } = this;
    let at = this.#at;
    out[at++] = 0x1a;
    at = writeVarint(out, at, 1 + sizeVarint(size) + size);
    out[at++] = (field << 3) | 2;
    at = writeVarint(out, at, size);
    out[at++] = 0x0a;
    out[at++] = headerSize;
    out[at++] = 0x18;
    this.#at = writeInt64(out, at, revision);
    return true;
  }

  #applyRange(): void {
    const range = this.#range;
    const page = this.#page;
    range.decode(this.#bytes, this.#opAt, this.#opTo);
    range.read(this.#context, page);
    if (!this.#openOp(OP_RANGE, rangeBodySize(this.#context, page, range.keysOnly))) return;
    this.#at = writeRangeBody(this.#context, page, range.keysOnly, this.out, this.#at);
  }

  #applyPut(): void {
    const put = this.#put;
    put.decode(this.#bytes, this.#opAt, this.#opTo);
    put.apply(this.#context);
    this.#hasChanged = true;
    const { store } = this.#context;
    const { previous } = put;
    if (previous === 0) {
      this.#openOp(OP_PUT, 0);
      return;
    }
    const size = keyValueSize(store, previous, false);
    if (!this.#openOp(OP_PUT, 1 + sizeVarint(size) + size)) return;
    this.#at = writeKeyValue(store, previous, false, this.out, this.#at, 2);
  }

  #applyDelete(): void {
    const request = this.#delete;
    request.decode(this.#bytes, this.#opAt, this.#opTo);
    request.apply(this.#context);
    if (request.deleted.length > 0) this.#hasChanged = true;
    if (!this.#room(request.bodySize(this.#context) + 64)) return;
    // The exact size is known by writing: bodySize is an upper bound.
    const start = this.#at;
    const bodyEnd = request.writeBody(this.#context, this.out, start + 40);
    const size = bodyEnd - (start + 40);
    this.#openOp(OP_DELETE, size);
    this.out.copyWithin(this.#at, start + 40, bodyEnd);
    this.#at += size;
  }

  /** A nested response has an empty header, as in etcd. */
  #applyTxn(depth: number): void {
    if (this.#room(2 * OPEN_BYTES + 2)) {
      const response = this.#gaps.open(this.out, this.#at, 3);
      const txn = this.#gaps.open(this.out, response, OP_TXN);
      this.out[txn] = 0x0a;
      this.out[txn + 1] = 0;
      this.#at = txn + 2;
    }
    this.#apply(this.#opAt, this.#opTo, depth + 1);
    if (this.#isOverlong) return;
    this.#gaps.close(this.#at);
    this.#gaps.close(this.#at);
  }
}

/** KV.Txn, in place. */
export function txnHandler(context: EtcdContext): InPlaceHandler {
  const runner = new TxnRunner(context);
  const { store } = context;
  const times = context.measures.applied[APPLIED_TXN]!;
  const run: InPlaceHandler = (bytes, start, end, out, offset, call) => {
    const invalid = runner.validate(bytes, start, end);
    if (runner.isParted && isDeepMessage(bytes, start, end, TXN)) {
      const whole = mergedMessage(bytes.subarray(start, end), TXN);
      return run(whole, 0, whole.length, out, offset, call);
    }
    if (invalid !== null) return context.fail(call, invalid);
    const refused = runner.refusal();
    if (refused !== null) return context.fail(call, refused);
    const startMs = runner.hasWrite ? times.begin() : 0;
    runner.choose(start, end);
    const failure = runner.check(start, end);
    if (failure !== null) {
      if (runner.hasWrite) times.end(startMs, false);
      return context.fail(call, failure);
    }
    store.begin();
    const size = runner.apply(start, end);
    const revision = store.commit();
    if (runner.hasWrite) times.end(startMs, true);
    context.guard(call.connection);
    const total = size + context.headerRoom;
    if (total > ANSWER_BYTES_MAX) {
      runner.trim();
      return context.failOverlong(call, total);
    }
    const target = total <= IN_PLACE_ROOM_BYTES ? out : Buffer.allocUnsafeSlow(total);
    let at = context.writeHeader(target, target === out ? offset : 0, revision);
    if (size <= 64) for (let i = 0; i < size; i++) target[at + i] = runner.out[i]!;
    else runner.out.copy(target, at, 0, size);
    at += size;
    runner.trim();
    return target === out ? at : call.reply(target.subarray(0, at));
  };
  return run;
}
