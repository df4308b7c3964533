// data plane: machines as columns; a machine is a slot
//
//   kind      what it is like, a number of `kinds`
//   cluster   -1 if bound to none
//   stamp     the fingerprint it was bound or is made for, a number of `stamps`; 0 is none
//   marks     for sorted lists, while they are made anew
//   idKey     the beginning of the id as a number: who has a lower one comes first
import { assert } from '@megaplane/base/assert';
import { byUtf8 } from '../../contract/text-order.ts';
import { type Machine, STATES } from '../machine.ts';
import { Interned, doubled, doubledFloats } from './interned.ts';
import { type Kinds, type KindFields } from './kinds.ts';
import { SortedSlots } from './sorted-slots.ts';

export const SPECULATIVE: number = STATES.indexOf('Speculative');
export const CREATING: number = STATES.indexOf('Creating');
export const IDLE: number = STATES.indexOf('Idle');
export const CONFIGURING: number = STATES.indexOf('Configuring');
export const CONFIGURED: number = STATES.indexOf('Configured');
export const DRAINING: number = STATES.indexOf('Draining');
const NOWHERE = 255;

/** Characters in a key of an id, and bits of each: together what a double holds exactly. */
const KEY_CHARACTERS = 7;
const KEY_BITS = 7;

export class Machines {
  readonly ids: string[] = [];
  readonly slots: Map<string, number> = new Map();
  state: Uint8Array<ArrayBuffer> = new Uint8Array(64).fill(NOWHERE);
  marks: Uint8Array<ArrayBuffer> = new Uint8Array(64);
  kind: Int32Array<ArrayBuffer> = new Int32Array(64);
  cluster: Int32Array<ArrayBuffer> = new Int32Array(64);
  stamp: Int32Array<ArrayBuffer> = new Int32Array(64);
  group: Int32Array<ArrayBuffer> = new Int32Array(64);
  priority: Int32Array<ArrayBuffer> = new Int32Array(64);
  interruptionPenalty: Float64Array<ArrayBuffer> = new Float64Array(64);
  reclamationPenalty: Float64Array<ArrayBuffer> = new Float64Array(64);
  idleSince: Float64Array<ArrayBuffer> = new Float64Array(64);
  #idKey: Float64Array<ArrayBuffer> = new Float64Array(64);
  /** What all ids begin with; keys are made of what follows. */
  #prefix: string | undefined;
  readonly kinds: Kinds;
  readonly stamps: Interned<string> = new Interned();
  readonly groups: Interned<string> = new Interned();
  readonly clusterNames: string[] = [];
  readonly #clusterIds = new Map<string, number>();
  readonly #free: number[] = [];
  /** Idle and Speculative machines, by list of their kind; each by price and id. */
  readonly acquirable: readonly SortedSlots[][] = [[], []];
  /** Configured and Configuring ones of a cluster, what is kept first before others. */
  readonly bound: SortedSlots[] = [];
  readonly creating: Set<number> = new Set();
  readonly configured: number[] = [];
  /** Told of each slot while it still is what it was, and once it is what it is. */
  onLeave: (slot: number) => void = () => undefined;
  onEnter: (slot: number) => void = () => undefined;

  constructor(kinds: Kinds) {
    this.kinds = kinds;
    this.stamps.hold('');
    this.groups.hold('');
  }

  get end(): number {
    return this.ids.length;
  }

  clusterId(name: string): number {
    const known = this.#clusterIds.get(name);
    if (known !== undefined) return known;
    const id = this.clusterNames.length;
    this.#clusterIds.set(name, id);
    this.clusterNames.push(name);
    this.configured.push(0);
    this.bound.push(
      new SortedSlots(
        () => this.marks,
        (slot) => this.isBoundTo(slot, id),
        (left, right) => this.#compareKeep(left, right),
      ),
    );
    return id;
  }

  isBoundTo(slot: number, cluster: number): boolean {
    const state = this.state[slot]!;
    return this.cluster[slot] === cluster && (state === CONFIGURED || state === CONFIGURING);
  }

  put(machine: Machine): void {
    let slot = this.slots.get(machine.id);
    if (slot === undefined) slot = this.#begin(machine.id);
    else this.#leave(slot);
    const before = this.kind[slot]!;
    const fields: KindFields = machine;
    const kind = this.kinds.holdAs(fields, before);
    const stamp = this.stamps.hold(machine.stamp.fingerprint);
    const group = this.groups.hold(machine.stamp.group);
    this.#forget(slot, before);
    this.kind[slot] = kind;
    this.stamp[slot] = stamp;
    this.group[slot] = group;
    this.state[slot] = STATES.indexOf(machine.state);
    this.cluster[slot] = machine.cluster === '' ? -1 : this.clusterId(machine.cluster);
    this.priority[slot] = machine.stamp.priority;
    this.interruptionPenalty[slot] = machine.stamp.interruptionPenalty;
    this.reclamationPenalty[slot] = machine.stamp.reclamationPenalty;
    this.idleSince[slot] = machine.idleSince;
    this.#enter(slot);
  }

  remove(id: string): void {
    const slot = this.slots.get(id);
    if (slot === undefined) return;
    this.#leave(slot);
    this.#forget(slot, this.kind[slot]!);
    this.kind[slot] = -1;
    this.state[slot] = NOWHERE;
    this.cluster[slot] = -1;
    this.slots.delete(id);
    this.ids[slot] = '';
    this.#free.push(slot);
  }

  machineAt(slot: number): Machine {
    const {
      labels,
      instanceType,
      zone,
      capacityType,
      allocatable,
      price,
      interruptionProbability,
    } = this.kinds.fields[this.kind[slot]!]!;
    const cluster = this.cluster[slot]!;
    return {
      id: this.ids[slot]!,
      state: STATES[this.state[slot]!]!,
      cluster: cluster < 0 ? '' : this.clusterNames[cluster]!,
      ...{ labels, instanceType, zone, capacityType, allocatable, price, interruptionProbability },
      stamp: {
        fingerprint: this.stamps.keyOf(this.stamp[slot]!),
        group: this.groups.keyOf(this.group[slot]!),
        priority: this.priority[slot]!,
        interruptionPenalty: this.interruptionPenalty[slot]!,
        reclamationPenalty: this.reclamationPenalty[slot]!,
      },
      idleSince: this.idleSince[slot]!,
    };
  }

  /** The list of Idle (or Speculative) machines of one list of kinds. */
  listOf(state: number, list: number): SortedSlots {
    const lists = this.acquirable[state === IDLE ? 0 : 1]!;
    while (lists.length <= list) {
      const own = lists.length;
      lists.push(
        new SortedSlots(
          () => this.marks,
          (slot) => this.state[slot] === state && this.kinds.list[this.kind[slot]!] === own,
          (left, right) => this.comparePrice(left, right),
        ),
      );
    }
    return lists[list]!;
  }

  comparePrice(left: number, right: number): number {
    const { price } = this.kinds;
    const gap = price[this.kind[left]!]! - price[this.kind[right]!]!;
    return gap === 0 ? this.compareId(left, right) : gap;
  }

  compareId(left: number, right: number): number {
    const gap = this.#idKey[left]! - this.#idKey[right]!;
    return gap === 0 ? byUtf8(this.ids[left]!, this.ids[right]!) : gap;
  }

  #compareKeep(left: number, right: number): number {
    const byState =
      Number(this.state[left] === CONFIGURING) - Number(this.state[right] === CONFIGURING);
    if (byState !== 0) return byState;
    const { price } = this.kinds;
    const gap = price[this.kind[left]!]! - price[this.kind[right]!]!;
    if (gap !== 0) return gap;
    const [a, b] = [this.reclamationPenalty[left]!, this.reclamationPenalty[right]!];
    if (a !== b) return b > a ? 1 : -1;
    return this.compareId(left, right);
  }

  #begin(id: string): number {
    const slot = this.#free.pop() ?? this.ids.length;
    this.ids[slot] = id;
    this.slots.set(id, slot);
    if (slot === this.state.length) this.#grow();
    this.#setKey(slot, id);
    this.kind[slot] = -1;
    this.state[slot] = NOWHERE;
    this.cluster[slot] = -1;
    return slot;
  }

  #setKey(slot: number, id: string): void {
    const before = (this.#prefix ??= id);
    let length = before.length;
    if (!id.startsWith(before)) {
      length = 0;
      while (id.charCodeAt(length) === before.charCodeAt(length)) length++;
      this.#prefix = before.slice(0, length);
      for (const other of this.slots.values()) {
        this.#idKey[other] = keyFrom(this.ids[other]!, length);
      }
    }
    this.#idKey[slot] = keyFrom(id, length);
  }

  #grow(): void {
    for (const name of ['kind', 'cluster', 'stamp', 'group', 'priority'] as const) {
      this[name] = doubled(this[name]);
    }
    for (const name of ['interruptionPenalty', 'reclamationPenalty', 'idleSince'] as const) {
      this[name] = doubledFloats(this[name]);
    }
    this.#idKey = doubledFloats(this.#idKey);
    const { state } = this;
    this.state = new Uint8Array(state.length * 2).fill(NOWHERE);
    this.state.set(state);
    this.marks = new Uint8Array(state.length * 2);
  }

  #forget(slot: number, kind: number): void {
    if (kind < 0) return;
    this.kinds.release(kind);
    this.stamps.release(this.stamp[slot]!);
    this.groups.release(this.group[slot]!);
  }

  #leave(slot: number): void {
    const state = this.state[slot]!;
    this.onLeave(slot);
    this.#touch(slot);
    if (state === CREATING) this.creating.delete(slot);
    if (state === CONFIGURED && this.cluster[slot]! >= 0) this.configured[this.cluster[slot]!]!--;
  }

  #enter(slot: number): void {
    const state = this.state[slot]!;
    assert(state !== NOWHERE, 'a machine has a state');
    if (state === CREATING) this.creating.add(slot);
    if (state === CONFIGURED && this.cluster[slot]! >= 0) this.configured[this.cluster[slot]!]!++;
    this.#touch(slot);
    this.onEnter(slot);
  }

  /** Has the lists that a slot is in, or is to be in, look at it again. */
  #touch(slot: number): void {
    const state = this.state[slot]!;
    if (state === IDLE || state === SPECULATIVE) {
      this.listOf(state, this.kinds.list[this.kind[slot]!]!).touch(slot);
    }
    const cluster = this.cluster[slot]!;
    if (cluster >= 0) this.bound[cluster]!.touch(slot);
  }
}

/** Seven characters from a place on, as a number in their order; what it cuts off is equal. */
function keyFrom(id: string, from: number): number {
  let key = 0;
  for (let at = from; at < from + KEY_CHARACTERS; at++) {
    const code = at < id.length ? id.charCodeAt(at) : 0;
    key = key * 2 ** KEY_BITS + Math.min(code, 2 ** KEY_BITS - 1);
  }
  return key;
}
