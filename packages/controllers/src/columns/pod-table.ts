// data plane
/**
 * Every pod as a row of numbers; rows are those of the pods' informer.
 *
 *   node        row of its node + 1, 0 = not bound
 *   next, prev  the list of a node's pods: row + 1, 0 = end; the head is the node table's
 *   flags       phase, deletion, Ready condition
 *   tolerance   class of tolerations (pods share a few dozen lists of them)
 *   createdS    creation, seconds since 1970
 *
 * 21 bytes a pod beside its key.
 */
import { assert } from '@megaplane/base/assert';
import { Int32Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, matches, pathOf, skipValue } from '@megaplane/machinery/scan';
import type { NodeTable } from './node-table.ts';

export const POD_EXISTS = 1;
export const POD_DELETING = 2;
/** Succeeded or Failed. */
export const POD_ENDED = 4;
export const POD_FAILED = 8;
/** Failed because the kubelet evicted it: goes first when ended pods are too many. */
export const POD_EVICTED = 16;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const TOLERATIONS = pathOf('tolerations');
const CREATED = pathOf('creationTimestamp');
const REASON = pathOf('reason');
const SUCCEEDED = encode('Succeeded');
const FAILED = encode('Failed');
const EVICTED = encode('"Evicted"');
const NONE = encode('[]');

export class PodTable {
  readonly node: Int32Column = new Int32Column();
  readonly flags: Uint8Column = new Uint8Column();
  readonly tolerance: Uint32Column = new Uint32Column();
  readonly createdS: Uint32Column = new Uint32Column();
  /** Texts of toleration lists, as JSON. */
  readonly tolerances: KeyTable;
  readonly #next = new Int32Column();
  readonly #prev = new Int32Column();
  readonly #nodes: NodeTable;
  /** Pods that have ended. */
  endedCount = 0;

  constructor(nodes: NodeTable, random: Random) {
    this.#nodes = nodes;
    this.tolerances = new KeyTable({ random });
  }

  /** Takes a pod in; true where its node, its tolerations or its deletion changed. */
  upsert(row: number, isNew: boolean, bytes: Uint8Array, scan: ObjectScan): boolean {
    if (isNew) this.#clear(row);
    const flags = this.#flagsOf(bytes, scan);
    const before = this.flags.get(row);
    this.flags.set(row, flags);
    if ((before ^ flags) & POD_ENDED) this.endedCount += (flags & POD_ENDED) !== 0 ? 1 : -1;
    const node =
      scan.nodeNameStart < 0 || scan.nodeNameEnd <= scan.nodeNameStart
        ? -1
        : this.#nodes.rowOf(bytes, scan.nodeNameStart, scan.nodeNameEnd);
    const isMoved = this.#place(row, node);
    const tolerance = this.#toleranceOf(bytes, scan);
    const isOther = this.tolerance.get(row) !== tolerance;
    this.tolerance.set(row, tolerance);
    if (isNew) this.createdS.set(row, this.#createdOf(bytes, scan));
    return isNew || isMoved || isOther || ((before ^ flags) & POD_DELETING) !== 0;
  }

  remove(row: number): void {
    if ((this.flags.get(row) & POD_ENDED) !== 0) this.endedCount--;
    assert(this.endedCount >= 0, 'no more pods go than have ended');
    this.#place(row, -1);
    this.flags.set(row, 0);
  }

  /** The node's row, or -1. */
  nodeOf(row: number): number {
    return this.node.get(row) - 1;
  }

  /** The first pod of a node, or -1; go on with `after`. */
  first(node: number): number {
    return this.#nodes.podHead.get(node) - 1;
  }

  after(row: number): number {
    return this.#next.get(row) - 1;
  }

  #clear(row: number): void {
    assert(this.node.get(row) === 0, 'a row is free of its node before another pod has it');
    this.node.set(row, 0);
    this.flags.set(row, 0);
    this.tolerance.set(row, 0);
    this.createdS.set(row, 0);
    this.#next.set(row, 0);
    this.#prev.set(row, 0);
  }

  #flagsOf(bytes: Uint8Array, scan: ObjectScan): number {
    let flags = POD_EXISTS;
    if (scan.deletionTimestampStart >= 0) flags |= POD_DELETING;
    if (scan.phaseStart < 0) return flags;
    if (matches(bytes, scan.phaseStart, scan.phaseEnd, SUCCEEDED)) flags |= POD_ENDED;
    if (!matches(bytes, scan.phaseStart, scan.phaseEnd, FAILED)) return flags;
    flags |= POD_ENDED | POD_FAILED;
    const reason = findPath(bytes, scan.statusStart, scan.statusEnd, REASON);
    if (reason < 0) return flags;
    const end = skipValue(bytes, reason, scan.statusEnd);
    return matches(bytes, reason, end, EVICTED) ? flags | POD_EVICTED : flags;
  }

  #toleranceOf(bytes: Uint8Array, scan: ObjectScan): number {
    const list =
      scan.specStart < 0 ? -1 : findPath(bytes, scan.specStart, scan.specEnd, TOLERATIONS);
    if (list < 0) return this.tolerances.insert(NONE, 0, NONE.length);
    return this.tolerances.insert(bytes, list, skipValue(bytes, list, scan.specEnd));
  }

  #createdOf(bytes: Uint8Array, scan: ObjectScan): number {
    const at = findPath(bytes, scan.metadataStart, scan.metadataEnd, CREATED);
    if (at < 0) return 0;
    let text = '';
    for (let i = at + 1; i < at + 21; i++) text += String.fromCharCode(bytes[i]!);
    const ms = Date.parse(text);
    return Number.isNaN(ms) ? 0 : ms / 1000;
  }

  /** Moves a pod to another node's list (-1 = none); true if it was elsewhere. */
  #place(row: number, node: number): boolean {
    const from = this.node.get(row) - 1;
    if (from === node) return false;
    if (from >= 0) {
      const next = this.#next.get(row);
      const prev = this.#prev.get(row);
      const before = prev === 0 ? this.#nodes.podHead.get(from) : this.#next.get(prev - 1);
      assert(before === row + 1, 'a pod is in the list of its node');
      if (prev === 0) this.#nodes.podHead.set(from, next);
      else this.#next.set(prev - 1, next);
      if (next !== 0) this.#prev.set(next - 1, prev);
      this.#nodes.unhold(from);
    }
    this.node.set(row, node + 1);
    this.#prev.set(row, 0);
    this.#next.set(row, 0);
    if (node >= 0) {
      const head = this.#nodes.podHead.get(node);
      this.#next.set(row, head);
      if (head !== 0) this.#prev.set(head - 1, row + 1);
      this.#nodes.podHead.set(node, row + 1);
      this.#nodes.hold(node);
    }
    return true;
  }
}
