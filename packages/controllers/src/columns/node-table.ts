// data plane
/**
 * Every node that is known by name, as a row of numbers.
 *
 *   keys       name -> id, ids reused
 *   bits       see node-flags.ts
 *   seenMs     observed time of the last sign of life (lease or heartbeat)
 *   heartbeat  hash of the Ready condition's heartbeat, 0 = never seen
 *   lease      hash of the lease's renewTime, 0 = never seen
 *   zone       index of the zone
 *   ttl        seconds of its annotation + 1, 0 = none; see node-ttl.ts
 *   revision   resourceVersion of the state that the other columns show
 *   taints     number of its taints' text, see taint-interner.ts
 *   podHead    first pod of the node's list + 1, 0 = none (the list is pod-table.ts's)
 *   holds      pods and leases that name the node, work for it; a row lives while it exists or
 *              is held
 *
 * 47 bytes a node beside the name.
 */
import { assert } from '@megaplane/base/assert';
import { Float64Column, Int32Column, Uint16Column, Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import { EXISTS } from './node-flags.ts';
import { TaintInterner } from './taint-interner.ts';

export class NodeTable {
  readonly keys: KeyTable;
  readonly bits: Uint32Column = new Uint32Column();
  readonly seenMs: Float64Column = new Float64Column();
  readonly heartbeat: Uint32Column = new Uint32Column();
  readonly lease: Uint32Column = new Uint32Column();
  readonly zone: Uint16Column = new Uint16Column();
  readonly ttl: Int32Column = new Int32Column();
  readonly revision: Float64Column = new Float64Column();
  readonly podHead: Int32Column = new Int32Column();
  readonly holds: Uint32Column = new Uint32Column();
  readonly #taints = new Uint16Column();
  readonly #taintTexts = new TaintInterner();

  /** Hears of each row that is forgotten, as its number will be another node's. */
  released: (id: number) => void = () => {};

  constructor(random: Random) {
    this.keys = new KeyTable({ random });
  }

  /** The row of a name; made if it is new. */
  rowOf(bytes: Uint8Array, start: number, end: number): number {
    const id = this.keys.insert(bytes, start, end);
    if (this.keys.isNew) this.#clear(id);
    return id;
  }

  /** The row of a name, or -1. */
  find(name: string): number {
    const bytes = Buffer.from(name);
    return this.keys.find(bytes, 0, bytes.length);
  }

  nameOf(id: number): string {
    return this.keys.keyText(id);
  }

  exists(id: number): boolean {
    return (this.bits.get(id) & EXISTS) !== 0;
  }

  /** `spec.taints` as JSON, empty for none; undefined where it is not kept. */
  taintsOf(id: number): string | undefined {
    return this.#taintTexts.textOf(this.#taints.get(id));
  }

  setTaints(id: number, text: string): void {
    const before = this.#taints.get(id);
    this.#taints.set(id, this.#taintTexts.hold(text));
    this.#taintTexts.release(before);
  }

  hold(id: number): void {
    assert(this.keys.has(id), 'a row that is held is that of a node');
    this.holds.add(id, 1);
  }

  unhold(id: number): void {
    assert(this.holds.get(id) > 0, 'a node is let go as often as it was held');
    this.holds.set(id, this.holds.get(id) - 1);
    this.release(id);
  }

  /** Forgets a row that nobody needs any more. */
  release(id: number): void {
    if (this.exists(id) || this.holds.get(id) > 0 || !this.keys.has(id)) return;
    assert(this.podHead.get(id) === 0, 'a node that is forgotten has no pods');
    this.keys.remove(id);
    this.setTaints(id, '');
    this.released(id);
  }

  #clear(id: number): void {
    this.bits.set(id, 0);
    this.seenMs.set(id, 0);
    this.heartbeat.set(id, 0);
    this.lease.set(id, 0);
    this.zone.set(id, 0);
    this.ttl.set(id, 0);
    this.revision.set(id, 0);
    this.podHead.set(id, 0);
    this.holds.set(id, 0);
  }
}
