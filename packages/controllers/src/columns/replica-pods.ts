// data plane
/**
 * Every pod as a row of numbers, for the controllers that own pods or select them by labels; rows
 * are those of the pods' informer.
 *
 *   owner       id of the controlling owner's uid + 1, 0 = nobody controls it
 *   labels      id of its label set + 1; a set is `namespace NUL {"a":"b"}`, shared by pods
 *   next, prev  lists of an owner's pods and of a label set's pods: row + 1, 0 = end
 *   setNext ..  list of the label sets of one namespace: id + 1, 0 = end
 *
 * About 50 bytes a pod beside its key.
 */
import { assert } from '@megaplane/base/assert';
import { Int32Column, Uint16Column, Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { type LabelProgram, matchesLabelBytes } from '@megaplane/machinery/selectors-bytes';
import { findPath, matches, stringValue, type ScanPath } from '@megaplane/machinery/scan';
import { PodScan } from './pod-scan.ts';
import { RowLists } from './row-lists.ts';

export const REPLICA_EXISTS = 1;
export const REPLICA_DELETING = 2;
export const REPLICA_BOUND = 4;
export const REPLICA_READY = 8;
export const PHASE_PENDING = 0;
export const PHASE_UNKNOWN = 1;
export const PHASE_RUNNING = 2;
export const PHASE_SUCCEEDED = 3;
export const PHASE_FAILED = 4;
const PHASE_SHIFT = 4;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const RUNNING = encode('Running');
const SUCCEEDED = encode('Succeeded');
const FAILED = encode('Failed');
const UNKNOWN = encode('Unknown');
const NO_LABELS = encode('{}');
const SET_BYTES_MAX = 262_144;

export class ReplicaPods {
  readonly flags: Uint16Column = new Uint16Column();
  readonly createdS: Uint32Column = new Uint32Column();
  /** When its readiness changed last. */
  readonly readyS: Uint32Column = new Uint32Column();
  readonly restarts: Uint32Column = new Uint32Column();
  readonly deletionCost: Int32Column = new Int32Column();
  /** A hash of the node's name: for counting neighbours, where a rare clash does no harm. */
  readonly node: Uint32Column = new Uint32Column();
  /** As they were before the last `upsert` or `remove`: ids, -1 = none. */
  ownerBefore = -1;
  labelsBefore = -1;
  flagsBefore = 0;
  readonly #owner = new Int32Column();
  readonly #labels = new Int32Column();
  readonly #owners: KeyTable;
  readonly #sets: KeyTable;
  readonly #namespaces: KeyTable;
  readonly #ofOwner = new RowLists();
  readonly #ofSet = new RowLists();
  readonly #ofNamespace = new RowLists();
  readonly #setNamespace = new Uint32Column();
  readonly #more = new PodScan();
  readonly #setKey = Buffer.allocUnsafe(SET_BYTES_MAX);
  #emptyOwner = -1;
  #emptySet = -1;

  constructor(random: Random) {
    this.#owners = new KeyTable({ random: random.fork('owners') });
    this.#sets = new KeyTable({ random: random.fork('label sets') });
    this.#namespaces = new KeyTable({ random: random.fork('namespaces') });
  }

  upsert(row: number, isNew: boolean, bytes: Buffer, scan: ObjectScan): void {
    if (isNew) this.#clear(row);
    this.#sweep();
    this.#remember(row);
    this.flags.set(row, flagsOf(bytes, scan));
    const hash = scan.nodeNameStart < 0 ? 0 : hashOf(bytes, scan.nodeNameStart, scan.nodeNameEnd);
    this.node.set(row, hash);
    const more = this.#more;
    more.scan(bytes, scan);
    if (more.isReady) this.flags.set(row, this.flags.get(row) | REPLICA_READY);
    this.readyS.set(row, more.readyS);
    this.restarts.set(row, more.restarts);
    this.deletionCost.set(row, more.deletionCost);
    this.createdS.set(row, more.createdS);
    this.#setOwner(row, bytes, more.ownerStart, more.ownerEnd);
    this.#setLabels(row, this.#setOf(bytes, scan));
  }

  remove(row: number): void {
    this.#sweep();
    this.#remember(row);
    this.#setOwner(row, NO_LABELS, -1, -1);
    this.#setLabels(row, -1);
    this.flags.set(row, 0);
  }

  phaseOf(row: number): number {
    return this.flags.get(row) >>> PHASE_SHIFT;
  }

  /** The phase before the last `upsert` or `remove`. */
  get phaseBefore(): number {
    return this.flagsBefore >>> PHASE_SHIFT;
  }

  /** Neither ended nor being deleted: what counts as a replica. */
  isActive(row: number): boolean {
    return (this.flags.get(row) & REPLICA_DELETING) === 0 && this.phaseOf(row) < PHASE_SUCCEEDED;
  }

  /** Being deleted, and not ended yet. */
  isTerminating(row: number): boolean {
    return (this.flags.get(row) & REPLICA_DELETING) !== 0 && this.phaseOf(row) < PHASE_SUCCEEDED;
  }

  /** Id of the owner with this uid, or -1; ids hold while the owner has pods. */
  findOwner(uid: string): number {
    const key = Buffer.from(uid);
    return this.#owners.find(key, 0, key.length);
  }

  /** Id of the owner's uid, or -1. */
  ownerOf(row: number): number {
    return this.#owner.get(row) - 1;
  }

  uidOf(owner: number): string {
    return this.#owners.keyText(owner);
  }

  /** The first pod of an owner, or -1; go on with `nextOfOwner`. */
  firstOfOwner(owner: number): number {
    return owner < 0 ? -1 : this.#ofOwner.first(owner);
  }

  nextOfOwner(row: number): number {
    return this.#ofOwner.after(row);
  }

  /** Id of the pod's label set, or -1. */
  labelsOf(row: number): number {
    return this.#labels.get(row) - 1;
  }

  /** The first label set that pods of the namespace have, or -1; go on with `nextSet`. */
  firstSet(namespace: string): number {
    const key = Buffer.from(namespace);
    const id = this.#namespaces.find(key, 0, key.length);
    return id < 0 ? -1 : this.#ofNamespace.first(id);
  }

  nextSet(labels: number): number {
    return this.#ofNamespace.after(labels);
  }

  /** The first pod with a label set, or -1; go on with `nextOfSet`. */
  firstOfSet(labels: number): number {
    return this.#ofSet.first(labels);
  }

  nextOfSet(row: number): number {
    return this.#ofSet.after(row);
  }

  /** Whether the labels of a set satisfy a selector. */
  matches(labels: number, program: LabelProgram): boolean {
    const sets = this.#sets;
    const bytes = sets.keyBytes(labels);
    const start = sets.keyStart(labels);
    const end = start + sets.keyLength(labels);
    let at = start;
    while (bytes[at] !== 0) at++;
    return matchesLabelBytes(program, bytes, at + 1, end);
  }

  /** The value of a label in a label set, '' where it has none. */
  labelIn(labels: number, label: ScanPath): string {
    const sets = this.#sets;
    const bytes = sets.keyBytes(labels);
    let start = sets.keyStart(labels);
    const end = start + sets.keyLength(labels);
    while (bytes[start] !== 0) start++;
    if (++start >= end) return '';
    return stringValue(bytes, findPath(bytes, start, end, label), end);
  }

  namespaceOfSet(labels: number): string {
    return this.#namespaces.keyText(this.#setNamespace.get(labels));
  }

  #clear(row: number): void {
    assert(this.#owner.get(row) === 0, 'a row is free of its owner before another pod has it');
    assert(this.#labels.get(row) === 0, 'a row is free of its labels before another pod has it');
    this.#owner.set(row, 0);
    this.#labels.set(row, 0);
    this.flags.set(row, 0);
  }

  #remember(row: number): void {
    this.ownerBefore = this.ownerOf(row);
    this.labelsBefore = this.labelsOf(row);
    this.flagsBefore = this.flags.get(row);
  }

  #setOwner(row: number, bytes: Uint8Array, start: number, end: number): void {
    const from = this.ownerOf(row);
    const to = start < 0 ? -1 : this.#owners.insert(bytes, start, end);
    if (from === to) return;
    if (from >= 0) this.#ofOwner.remove(from, row);
    if (to >= 0) this.#ofOwner.add(to, row);
    this.#owner.set(row, to + 1);
    if (from >= 0 && this.#ofOwner.first(from) < 0) this.#emptyOwner = from;
  }

  #setLabels(row: number, to: number): void {
    const from = this.labelsOf(row);
    if (from === to) return;
    if (from >= 0) this.#ofSet.remove(from, row);
    if (to >= 0) this.#ofSet.add(to, row);
    this.#labels.set(row, to + 1);
    if (from >= 0 && this.#ofSet.first(from) < 0) this.#emptySet = from;
  }

  /**
   * Forgets the owner and the label set that the last change left without pods. Not sooner: who
   * is told of a change may ask for what was before.
   */
  #sweep(): void {
    const owner = this.#emptyOwner;
    if (owner >= 0 && this.#ofOwner.first(owner) < 0) this.#owners.remove(owner);
    this.#emptyOwner = -1;
    const labels = this.#emptySet;
    if (labels >= 0 && this.#ofSet.first(labels) < 0) {
      const namespace = this.#setNamespace.get(labels);
      this.#ofNamespace.remove(namespace, labels);
      this.#sets.remove(labels);
      if (this.#ofNamespace.first(namespace) < 0) this.#namespaces.remove(namespace);
    }
    this.#emptySet = -1;
  }

  /** The id of the label set of the object at hand. */
  #setOf(
    bytes: Uint8Array,
    { namespaceStart, namespaceEnd, labelsStart, labelsEnd }: ObjectScan,
  ): number {
    if (namespaceStart < 0) return -1;
    const key = this.#setKey;
    let at = namespaceEnd - namespaceStart;
    key.set(bytes.subarray(namespaceStart, namespaceEnd), 0);
    key[at++] = 0;
    const labels = labelsStart < 0 ? NO_LABELS : bytes.subarray(labelsStart, labelsEnd);
    if (at + labels.length > SET_BYTES_MAX) return -1;
    key.set(labels, at);
    at += labels.length;
    const id = this.#sets.insert(key, 0, at);
    // the table is full: the pod is as one whose labels are too long
    if (id < 0) return -1;
    if (!this.#sets.isNew) return id;
    const namespace = this.#namespaces.insert(bytes, namespaceStart, namespaceEnd);
    this.#setNamespace.set(id, namespace);
    this.#ofNamespace.add(namespace, id);
    return id;
  }
}

function flagsOf(bytes: Uint8Array, scan: ObjectScan): number {
  let flags = REPLICA_EXISTS;
  if (scan.deletionTimestampStart >= 0) flags |= REPLICA_DELETING;
  if (scan.nodeNameEnd > scan.nodeNameStart) flags |= REPLICA_BOUND;
  const start = scan.phaseStart;
  if (start < 0) return flags;
  const end = scan.phaseEnd;
  let phase = PHASE_PENDING;
  if (matches(bytes, start, end, RUNNING)) phase = PHASE_RUNNING;
  else if (matches(bytes, start, end, SUCCEEDED)) phase = PHASE_SUCCEEDED;
  else if (matches(bytes, start, end, FAILED)) phase = PHASE_FAILED;
  else if (matches(bytes, start, end, UNKNOWN)) phase = PHASE_UNKNOWN;
  return flags | (phase << PHASE_SHIFT);
}

/** FNV-1a. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash >>> 0;
}
