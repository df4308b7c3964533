// data plane
/**
 * Who owns whom, for every object of the cluster, as numbers.
 *
 *   object rows, per resource (rows are those of its informer)
 *     uid        16 bytes in four columns
 *     refs       hash of ownerReferences, 0 = none
 *     edge       first edge to an owner + 1
 *     flags      being deleted in the foreground, or with its dependents orphaned; or not being
 *                deleted, and a finalizer says how it is to be
 *   owners       uid -> id; only uids that some reference names
 *     head       first edge of its dependents + 1
 *     place      resource and row where it was seen, if it was
 *     absent     the server has said that there is no such object
 *   edges        owner, resource and row of the dependent, links of both lists, blocking or not,
 *                hash of the resource and key by which the reference calls the owner
 *
 * Objects that own nothing and are owned by nobody cost 25 bytes, a reference 28 more.
 */
import { assert } from '@megaplane/base/assert';
import { ownMember } from '@megaplane/base/members';
import { Int32Column, Uint16Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import { parseJson } from '@megaplane/machinery/json-text';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { hashOf } from '../columns/node-scan.ts';

export const FOREGROUND = 1;
export const ORPHANING = 2;
const DELETING = FOREGROUND | ORPHANING;
const BESPOKEN = 4;

const BLOCKING = 1;
const ABSENT = 1;
const SEARCHED = 2;
const UUID_CHARACTERS = 36;

/** One entry of ownerReferences. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly isBlocking: boolean;
}

export interface GraphEffects {
  /** Look at this object again: an owner is gone or unknown, or its own deletion waits. */
  check(resource: number, row: number): void;
  /** The row of the owner that a reference names, as [resource, row], or undefined. */
  locate(dependent: number, row: number, reference: OwnerReference): [number, number] | undefined;
  /** Hash of the resource and key that a reference names; 0 where the resource is unknown. */
  calledHash(dependent: number, row: number, reference: OwnerReference): number;
  /** The same hash of an object that is there. */
  placeHash(resource: number, row: number): number;
}

class Rows {
  readonly uid: readonly Uint32Column[] = [0, 1, 2, 3].map(() => new Uint32Column());
  readonly refs: Uint32Column = new Uint32Column();
  readonly edge: Int32Column = new Int32Column();
  readonly flags: Uint8Column = new Uint8Column();
}

/** Of a resource that is watched no more. */
const NO_ROWS = new Rows();

const FOREGROUND_NAME = Buffer.from('"foregroundDeletion"');
const ORPHAN_NAME = Buffer.from('"orphan"');

export class GarbageGraph {
  readonly #effects: GraphEffects;
  readonly #rows: Rows[] = [];
  readonly #owners: KeyTable;
  readonly #head = new Int32Column();
  readonly #state = new Uint8Column();
  readonly #placeResource = new Int32Column();
  readonly #placeRow = new Int32Column();
  /** Rows of owners that a search found: few, as only wrong references have it done. */
  readonly #foundAt: Map<number, number> = new Map();
  readonly #edgeOwner = new Int32Column();
  readonly #edgeResource = new Uint16Column();
  readonly #edgeRow = new Int32Column();
  readonly #edgeFlags = new Uint8Column();
  readonly #edgeCalled = new Uint32Column();
  readonly #nextOfOwner = new Int32Column();
  readonly #prevOfOwner = new Int32Column();
  readonly #nextOfDependent = new Int32Column();
  #edgeEnd = 0;
  #freeEdge = 0;
  #edgeCount = 0;
  readonly #key = Buffer.alloc(16);
  readonly #words = new Uint32Array(this.#key.buffer, this.#key.byteOffset, 4);

  constructor(random: Random, effects: GraphEffects) {
    this.#effects = effects;
    this.#owners = new KeyTable({ random });
  }

  /** References held now. */
  get edges(): number {
    return this.#edgeCount;
  }

  /** Announces a resource by its number: the next one, or that of one which was retired. */
  addResource(resource: number): void {
    const known = this.#rows[resource];
    const isFree = known === undefined || known === NO_ROWS;
    assert(isFree && resource <= this.#rows.length, 'a resource has a number of its own');
    this.#rows[resource] = new Rows();
  }

  upsert(resource: number, row: number, isNew: boolean, bytes: Uint8Array, scan: ObjectScan): void {
    const rows = this.#rows[resource]!;
    if (scan.uidStart < 0) return;
    if (isNew) this.#clear(rows, row);
    this.#readUid(bytes, scan.uidStart, scan.uidEnd);
    if (!isNew && !this.#isUid(rows, row)) {
      // A new object under an old name, whose deletion went unseen.
      this.remove(resource, row);
      this.#clear(rows, row);
      this.#readUid(bytes, scan.uidStart, scan.uidEnd);
    }
    for (let i = 0; i < 4; i++) rows.uid[i]!.set(row, this.#words[i]!);
    const owner = this.#owners.find(this.#key, 0, 16);
    if (owner >= 0) this.#setPlace(owner, resource, row);
    this.#readDeletion(rows, resource, row, bytes, scan);
    this.#readReferences(rows, resource, row, bytes, scan);
  }

  #readDeletion(
    rows: Rows,
    resource: number,
    row: number,
    bytes: Uint8Array,
    scan: ObjectScan,
  ): void {
    let flags = 0;
    if (scan.finalizersStart >= 0) {
      const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).subarray(
        scan.finalizersStart,
        scan.finalizersEnd,
      );
      if (list.includes(FOREGROUND_NAME)) flags |= FOREGROUND;
      if (list.includes(ORPHAN_NAME)) flags |= ORPHANING;
      if (flags !== 0 && scan.deletionTimestampStart < 0) flags = BESPOKEN;
    }
    const before = rows.flags.get(row);
    if (before === flags) return;
    rows.flags.set(row, flags);
    if ((flags & DELETING) === 0) return;
    this.#effects.check(resource, row);
    if ((flags & FOREGROUND) !== 0) this.#checkDependents(this.#ownerOf(rows, row));
  }

  #readReferences(
    rows: Rows,
    resource: number,
    row: number,
    bytes: Uint8Array,
    { ownerReferencesStart: from, ownerReferencesEnd: to }: ObjectScan,
  ): void {
    const hash = from < 0 ? 0 : hashOf(bytes, from, to);
    if (rows.refs.get(row) === hash) return;
    rows.refs.set(row, hash);
    this.#checkWaitingOwners(rows, row);
    this.#dropEdges(rows, row);
    if (hash === 0) return;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(
      'utf8',
      from,
      to,
    );
    let isSound = true;
    for (const reference of referencesOf(parseJson(text))) {
      const length = this.#readUidText(reference.uid);
      const owner = this.#owners.insert(this.#key, 0, length);
      if (owner < 0) continue;
      if (this.#owners.isNew) this.#clearOwner(owner);
      const at = this.#addEdge(rows, resource, row, owner, reference.isBlocking);
      this.#edgeCalled.set(at, this.#effects.calledHash(resource, row, reference));
      if (!this.#isSound(resource, row, owner, reference)) isSound = false;
    }
    if (!isSound) this.#effects.check(resource, row);
  }

  /** True where the owner is there, is the one that is meant, and does not wait to be deleted. */
  #isSound(resource: number, row: number, owner: number, reference: OwnerReference): boolean {
    const place = this.#effects.locate(resource, row, reference);
    if (place === undefined) return false;
    const rows = this.#rows[place[0]]!;
    this.#readUidText(reference.uid);
    if (!this.#isUid(rows, place[1])) return false;
    this.#setPlace(owner, place[0], place[1]);
    return (rows.flags.get(place[1]) & FOREGROUND) === 0;
  }

  /** An object is gone: its dependents lose an owner, its owners a dependent. */
  remove(resource: number, row: number): void {
    const rows = this.#rows[resource]!;
    const owner = this.#ownerOf(rows, row);
    if (owner >= 0) {
      this.#placeResource.set(owner, 0);
      this.#state.set(owner, this.#state.get(owner) | ABSENT);
      this.#checkDependents(owner);
    }
    this.#checkWaitingOwners(rows, row);
    this.#dropEdges(rows, row);
    this.#clear(rows, row);
  }

  /**
   * A resource is served no more, or under another version: what its rows, below `rowEnd`, told is
   * forgotten. That says nothing of whether the objects are there, so their dependents are looked
   * at and not taken for abandoned.
   */
  retire(resource: number, rowEnd: number): void {
    const rows = this.#rows[resource]!;
    for (let row = 0; row < rowEnd; row++) {
      const owner = this.#ownerOf(rows, row);
      if (owner >= 0 && this.#placeResource.get(owner) === resource + 1) {
        if (this.#placeRow.get(owner) === row) this.#placeResource.set(owner, 0);
        this.#checkDependents(owner);
      }
      this.#checkWaitingOwners(rows, row);
      this.#dropEdges(rows, row);
      this.#clear(rows, row);
    }
    this.#rows[resource] = NO_ROWS;
  }

  /** Owners that wait for their dependents may have one less to wait for. */
  #checkWaitingOwners(rows: Rows, dependent: number): void {
    let edge = rows.edge.get(dependent);
    for (; edge !== 0; edge = this.#nextOfDependent.get(edge - 1)) {
      const owner = this.#edgeOwner.get(edge - 1);
      const resource = this.#placeResource.get(owner) - 1;
      if (resource < 0) continue;
      const row = this.#placeRow.get(owner);
      if (this.flagsOf(resource, row) !== 0) this.#effects.check(resource, row);
    }
  }

  #checkDependents(owner: number): void {
    if (owner < 0) return;
    for (let edge = this.#head.get(owner); edge !== 0; edge = this.#nextOfOwner.get(edge - 1)) {
      this.#effects.check(this.#edgeResource.get(edge - 1), this.#edgeRow.get(edge - 1));
    }
  }

  /** Calls `visit` for each dependent; `isBlocking` keeps its owner from going first. */
  dependents(
    resource: number,
    row: number,
    visit: (resource: number, row: number, isBlocking: boolean) => void,
  ): void {
    const owner = this.#ownerOf(this.#rows[resource]!, row);
    if (owner < 0) return;
    for (let edge = this.#head.get(owner); edge !== 0; edge = this.#nextOfOwner.get(edge - 1)) {
      const at = edge - 1;
      const isBlocking = (this.#edgeFlags.get(at) & BLOCKING) !== 0;
      visit(this.#edgeResource.get(at), this.#edgeRow.get(at), isBlocking);
    }
  }

  /** Whom an object names as its owners, and where each of them is in sight. */
  ownersOf(
    resource: number,
    row: number,
  ): { readonly uid: string; readonly place: readonly [number, number] | undefined }[] {
    const found = [];
    let edge = this.#rows[resource]!.edge.get(row);
    for (; edge !== 0; edge = this.#nextOfDependent.get(edge - 1)) {
      const owner = this.#edgeOwner.get(edge - 1);
      const place = this.#placeResource.get(owner) - 1;
      const at = place < 0 ? undefined : ([place, this.#placeRow.get(owner)] as const);
      found.push({ uid: this.#uidOfOwner(owner), place: at });
    }
    return found;
  }

  /** It is there, and owns or is owned. */
  isLinked(resource: number, row: number): boolean {
    return this.#rows[resource]!.edge.get(row) !== 0 || this.hasDependents(resource, row);
  }

  /** The row of the object with this uid, or -1; looks through all of them. */
  findUid(resource: number, uid: string, rowEnd: number): number {
    this.#readUidText(uid);
    const rows = this.#rows[resource]!;
    for (let row = 0; row < rowEnd; row++) if (this.#isUid(rows, row)) return row;
    return -1;
  }

  hasDependents(resource: number, row: number): boolean {
    const owner = this.#ownerOf(this.#rows[resource]!, row);
    return owner >= 0 && this.#head.get(owner) !== 0;
  }

  flagsOf(resource: number, row: number): number {
    return this.#rows[resource]!.flags.get(row) & DELETING;
  }

  /**
   * True where the object has owners, all of them are known to be gone, and it is deleted as most
   * are, in the background.
   */
  isAbandoned(resource: number, row: number): boolean {
    let edge = this.#rows[resource]!.edge.get(row);
    if (edge === 0 || this.#rows[resource]!.flags.get(row) === BESPOKEN) return false;
    for (; edge !== 0; edge = this.#nextOfDependent.get(edge - 1)) {
      if ((this.#state.get(this.#edgeOwner.get(edge - 1)) & ABSENT) === 0) return false;
      // what is named as a kind that nobody knows is never judged
      if (this.#edgeCalled.get(edge - 1) === 0) return false;
    }
    return true;
  }

  /**
   * True where nothing is to be done for an object: it is not being deleted, and each owner is in
   * sight, goes by the name in the reference, and does not wait for its dependents. Most objects
   * whose owner was read after them come to be so without a question to the server.
   */
  isSettled(resource: number, row: number): boolean {
    const rows = this.#rows[resource]!;
    if (this.flagsOf(resource, row) !== 0) return false;
    let edge = rows.edge.get(row);
    for (; edge !== 0; edge = this.#nextOfDependent.get(edge - 1)) {
      const owner = this.#edgeOwner.get(edge - 1);
      const place = this.#placeResource.get(owner) - 1;
      if (place < 0) return false;
      const placeRow = this.#placeRow.get(owner);
      if ((this.#rows[place]!.flags.get(placeRow) & FOREGROUND) !== 0) return false;
      const called = this.#edgeCalled.get(edge - 1);
      if (called === 0 || called !== this.#effects.placeHash(place, placeRow)) return false;
    }
    return true;
  }

  /** The server has no object with this uid: it never will have one again. */
  markAbsent(uid: string): void {
    const owner = this.#owners.find(this.#key, 0, this.#readUidText(uid));
    if (owner >= 0) this.#state.set(owner, this.#state.get(owner) | ABSENT);
  }

  isAbsent(uid: string): boolean {
    const owner = this.#owners.find(this.#key, 0, this.#readUidText(uid));
    return owner >= 0 && (this.#state.get(owner) & ABSENT) !== 0;
  }

  /**
   * A row of the resource with this uid, under whatever name, or -1. Looks through all rows below
   * `rowEnd` once for each uid; then it is the row that was found, undefined where it is no more.
   */
  search(resource: number, uid: string, rowEnd: number): number | undefined {
    const owner = this.#owners.find(this.#key, 0, this.#readUidText(uid));
    if (owner < 0) return -1;
    const rows = this.#rows[resource]!;
    if ((this.#state.get(owner) & SEARCHED) !== 0) {
      const found = this.#foundAt.get(owner);
      return found !== undefined && this.#isUid(rows, found) ? found : undefined;
    }
    this.#state.set(owner, this.#state.get(owner) | SEARCHED);
    for (let row = 0; row < rowEnd; row++) {
      if (!this.#isUid(rows, row)) continue;
      this.#foundAt.set(owner, row);
      return row;
    }
    return -1;
  }

  /** True where the row holds the object with this uid. */
  hasUid(resource: number, row: number, uid: string): boolean {
    this.#readUidText(uid);
    return this.#isUid(this.#rows[resource]!, row);
  }

  #uidOfOwner(owner: number): string {
    const end = this.#owners.copyKey(owner, this.#key, 0);
    // Whatever is shorter was no UUID, and stayed text.
    return end < 16 ? this.#key.toString('latin1', 0, end) : this.#keyAsUid();
  }

  uidOf(resource: number, row: number): string {
    const rows = this.#rows[resource]!;
    for (let i = 0; i < 4; i++) this.#words[i] = rows.uid[i]!.get(row);
    return this.#keyAsUid();
  }

  #keyAsUid(): string {
    const hex = this.#key.toString('hex');
    const cuts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
    return [...cuts, hex.slice(20)].join('-');
  }

  #ownerOf(rows: Rows, row: number): number {
    for (let i = 0; i < 4; i++) this.#words[i] = rows.uid[i]!.get(row);
    return this.#owners.find(this.#key, 0, 16);
  }

  #isUid(rows: Rows, row: number): boolean {
    for (let i = 0; i < 4; i++) if (rows.uid[i]!.get(row) !== this.#words[i]) return false;
    return true;
  }

  #setPlace(owner: number, resource: number, row: number): void {
    this.#placeResource.set(owner, resource + 1);
    this.#placeRow.set(owner, row);
    this.#state.set(owner, this.#state.get(owner) & ~ABSENT);
  }

  #clear(rows: Rows, row: number): void {
    for (let i = 0; i < 4; i++) rows.uid[i]!.set(row, 0);
    rows.refs.set(row, 0);
    rows.edge.set(row, 0);
    rows.flags.set(row, 0);
  }

  #clearOwner(owner: number): void {
    this.#foundAt.delete(owner);
    this.#head.set(owner, 0);
    this.#state.set(owner, 0);
    this.#placeResource.set(owner, 0);
    this.#placeRow.set(owner, 0);
  }

  #addEdge(rows: Rows, resource: number, row: number, owner: number, isBlocking: boolean): number {
    let at = this.#freeEdge - 1;
    if (at < 0) at = this.#edgeEnd++;
    else this.#freeEdge = this.#nextOfDependent.get(at);
    this.#edgeCount++;
    assert(this.#edgeCount <= this.#edgeEnd, 'each reference has an edge of its own');
    this.#edgeOwner.set(at, owner);
    this.#edgeResource.set(at, resource);
    this.#edgeRow.set(at, row);
    this.#edgeFlags.set(at, isBlocking ? BLOCKING : 0);
    this.#nextOfDependent.set(at, rows.edge.get(row));
    rows.edge.set(row, at + 1);
    const head = this.#head.get(owner);
    this.#nextOfOwner.set(at, head);
    this.#prevOfOwner.set(at, 0);
    if (head !== 0) this.#prevOfOwner.set(head - 1, at + 1);
    this.#head.set(owner, at + 1);
    return at;
  }

  #dropEdges(rows: Rows, row: number): void {
    let edge = rows.edge.get(row);
    rows.edge.set(row, 0);
    while (edge !== 0) {
      const at = edge - 1;
      const next = this.#nextOfOwner.get(at);
      const prev = this.#prevOfOwner.get(at);
      const owner = this.#edgeOwner.get(at);
      assert(this.#edgeRow.get(at) === row, 'an edge hangs on its dependent');
      const before = prev === 0 ? this.#head.get(owner) : this.#nextOfOwner.get(prev - 1);
      assert(before === edge, 'an edge is in the list of its owner');
      if (prev !== 0) this.#nextOfOwner.set(prev - 1, next);
      else this.#head.set(owner, next);
      if (next !== 0) this.#prevOfOwner.set(next - 1, prev);
      if (this.#head.get(owner) === 0) this.#owners.remove(owner);
      edge = this.#nextOfDependent.get(at);
      this.#nextOfDependent.set(at, this.#freeEdge);
      this.#freeEdge = at + 1;
      this.#edgeCount--;
    }
    assert(this.#edgeCount >= 0, 'no more references go than there were');
  }

  /** Sixteen bytes for a UUID; what is none cannot be the uid of an object, and stays text. */
  #readUidText(uid: string): number {
    const hex = uid.replaceAll('-', '');
    if (uid.length === UUID_CHARACTERS && /^[0-9a-f]{32}$/.test(hex)) {
      this.#key.write(hex, 'hex');
      return 16;
    }
    this.#key.fill(0);
    return Math.max(1, this.#key.write(uid.slice(0, 15), 'latin1'));
  }

  #readUid(bytes: Uint8Array, start: number, end: number): void {
    let at = 0;
    let high = -1;
    for (let i = start; i < end && at < 16; i++) {
      const byte = bytes[i]!;
      const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57;
      if (digit < 0 || digit > 15) continue;
      if (high < 0) high = digit;
      else {
        this.#key[at++] = high * 16 + digit;
        high = -1;
      }
    }
    while (at < 16) this.#key[at++] = 0;
  }
}

/** ownerReferences as the garbage collector needs them. */
export function referencesOf(list: unknown): OwnerReference[] {
  if (!Array.isArray(list)) return [];
  const found: OwnerReference[] = [];
  for (const item of list as unknown[]) {
    if (typeof item !== 'object' || item === null) continue;
    const one = item as Record<string, unknown>;
    const text = (field: string): string => {
      const value = ownMember(one, field);
      return typeof value === 'string' ? value : '';
    };
    found.push({
      apiVersion: text('apiVersion'),
      kind: text('kind'),
      name: text('name'),
      uid: text('uid'),
      isBlocking: one['blockOwnerDeletion'] === true,
    });
  }
  return found;
}
