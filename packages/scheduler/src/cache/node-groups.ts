// data plane: nodes that are in the same state, found by how full they are
import { assert } from '@megaplane/base/assert';
import { Int32Column, Uint32Column } from '@megaplane/base/column';
import type { NodeTable } from './node-table.ts';
import { SIDE, TreePoints, UsageTree } from '../collections/usage-tree.ts';

/**
 * Nodes of equal kind, size, images and usage are one group: whatever is asked about one of them
 * goes for all. Nodes with as many pods as they may have are in none. Groups of equal kind, size
 * and images have one shape, and lie in its tree by the share of CPU (x) and memory (y) that their
 * pods requested. Kept up to date by the log of changes.
 *
 *   node    group      Int32    1 + number of its group, 0 without
 *           next, previous   Int32    nodes of the same group
 *   group   head       Int32    first of its nodes
 *           hash       Int32    of its state        chain   Int32    groups of the same slot
 *           shape      Uint32
 */
export class NodeGroups {
  readonly shapes: NodeShape[] = [];
  readonly head: Int32Column = new Int32Column();
  readonly #table: NodeTable;
  readonly #shapeOf = new Map<number | string, number>();
  /** By scalar resource: shapes whose nodes have any of it. */
  readonly #offering = new Map<number, Set<number>>();
  readonly #points = new TreePoints();
  readonly #group = new Int32Column();
  readonly #next = new Int32Column();
  readonly #previous = new Int32Column();
  readonly #hash = new Int32Column();
  readonly #chain = new Int32Column();
  readonly #shape = new Uint32Column();
  readonly #free: number[] = [];
  readonly #freeShapes: number[] = [];
  #slots: Int32Array = new Int32Array(1024).fill(-1);
  #groups = 0;
  #groupEnd = 0;
  #cursor = -1;
  #idEnd = 0;
  readonly #float = new Float64Array(1);
  readonly #words = new Int32Array(this.#float.buffer);

  constructor(table: NodeTable) {
    this.#table = table;
  }

  /** Groups that hold nodes. */
  get count(): number {
    return this.#groups;
  }

  /** Shapes whose nodes have any of the scarcest of some resources; null: all, as none is asked. */
  offering(scalars: readonly number[]): ReadonlySet<number> | null {
    let least: ReadonlySet<number> | null = null;
    for (const scalar of scalars) {
      const shapes = this.#offering.get(scalar) ?? NO_SHAPES;
      if (least === null || shapes.size < least.size) least = shapes;
    }
    return least;
  }

  /** The node after another one of its group, -1 after the last. */
  nextOf(id: number): number {
    return this.#next.get(id);
  }

  /** 1 + number of the group of a node, 0 without. */
  groupAt(id: number): number {
    return this.#group.get(id);
  }

  /** Groups have smaller numbers. */
  get end(): number {
    return this.#groupEnd;
  }

  /** Whether no more changes than that are to be taken in. */
  isNear(changesMax: number): boolean {
    const { log } = this.#table;
    return this.#cursor >= 0 && log.holds(this.#cursor) && log.end - this.#cursor <= changesMax;
  }

  get memoryBytes(): number {
    let bytes = this.#group.memoryBytes * 3 + this.head.memoryBytes * 4 + this.#slots.byteLength;
    bytes += this.#points.memoryBytes;
    for (const { tree } of this.shapes) bytes += tree.memoryBytes;
    return bytes;
  }

  /** Takes in all changes of nodes. */
  catchUp(): void {
    const { log } = this.#table;
    if (this.#cursor === log.end) return;
    const from = this.#cursor;
    this.#cursor = log.end;
    const isWhole = from < 0 || !log.holds(from);
    const idEnd = Math.max(this.#idEnd, this.#table.idEnd);
    this.#idEnd = this.#table.idEnd;
    // First all leave, so that whoever is left in a group shows the state that made it.
    if (isWhole) {
      for (let id = 0; id < idEnd; id++) this.#leave(id);
      for (let id = 0; id < idEnd; id++) this.#join(id);
      return;
    }
    for (let position = from; position < log.end; position++) this.#leave(log.at(position));
    for (let position = from; position < log.end; position++) this.#join(log.at(position));
  }

  #leave(id: number): void {
    const group = this.#group.get(id) - 1;
    if (group < 0) return;
    this.#group.set(id, 0);
    const next = this.#next.get(id);
    const previous = this.#previous.get(id);
    const before = previous < 0 ? this.head.get(group) : this.#next.get(previous);
    assert(before === id, 'a node is in the list of its group');
    if (previous >= 0) this.#next.set(previous, next);
    else this.head.set(group, next);
    if (next >= 0) this.#previous.set(next, previous);
    if (this.head.get(group) < 0) this.#dissolve(group);
  }

  #dissolve(group: number): void {
    const slot = this.#hash.get(group) & (this.#slots.length - 1);
    let at = this.#slots[slot]!;
    if (at === group) {
      this.#slots[slot] = this.#chain.get(group);
    } else {
      while (this.#chain.get(at) !== group) at = this.#chain.get(at);
      this.#chain.set(at, this.#chain.get(group));
    }
    const number = this.#shape.get(group);
    const shape = this.shapes[number]!;
    shape.tree.remove(group);
    this.#free.push(group);
    this.#groups--;
    const numbers = this.#groups + this.#free.length;
    assert(numbers === this.#groupEnd, 'a group is in use, or its number is free');
    // Numbers of kinds and sizes are reused, so that an empty shape may come to lie.
    if (shape.tree.count(0) > 0) return;
    this.#shapeOf.delete(keyOf(shape.kind, shape.size, shape.imageSet));
    for (const scalar of shape.scalars) this.#offering.get(scalar)?.delete(number);
    this.#freeShapes.push(number);
  }

  #join(id: number): void {
    const table = this.#table;
    if (this.#group.get(id) !== 0 || !table.isPresent(id)) return;
    // Nobody can go there, whatever it requests.
    if (this.#isFull(id)) return;
    const hash = this.#hashOf(id);
    let group = this.#slots[hash & (this.#slots.length - 1)]!;
    while (group >= 0) {
      if (this.#hash.get(group) === hash && this.#isSame(id, this.head.get(group))) break;
      group = this.#chain.get(group);
    }
    if (group < 0) group = this.#found(id, hash);
    const before = this.head.get(group);
    this.#next.set(id, before);
    this.#previous.set(id, -1);
    if (before >= 0) this.#previous.set(before, id);
    this.head.set(group, id);
    this.#group.set(id, group + 1);
  }

  /** A new group for the state of a node. */
  #found(id: number, hash: number): number {
    if (this.#groups >= this.#slots.length) this.#rehash();
    const group = this.#free.pop() ?? this.#groupEnd++;
    const slot = hash & (this.#slots.length - 1);
    this.#chain.set(group, this.#slots[slot]!);
    this.#slots[slot] = group;
    this.#hash.set(group, hash);
    this.head.set(group, -1);
    this.#groups++;
    const number = this.#shapeNumber(id);
    this.#shape.set(group, number);
    const { tree, milliCpu, memory } = this.shapes[number]!;
    const table = this.#table;
    tree.insert(
      group,
      along(table.milliCpu.get(id), milliCpu),
      along(table.memory.get(id), memory),
    );
    return group;
  }

  #shapeNumber(id: number): number {
    const table = this.#table;
    const kind = table.kind.get(id);
    const size = table.size.get(id);
    const imageSet = table.imageSet.get(id);
    const key = keyOf(kind, size, imageSet);
    const known = this.#shapeOf.get(key);
    if (known !== undefined) return known;
    const number = this.#freeShapes.pop() ?? this.shapes.length;
    this.shapes[number] = {
      kind,
      size,
      imageSet,
      milliCpu: table.sizeMilliCpu.get(size),
      memory: table.sizeMemory.get(size),
      scalars: table.sizeScalars[size]!,
      tree: new UsageTree(this.#points),
    };
    for (const scalar of table.sizeScalars[size]!) {
      const shapes = this.#offering.get(scalar);
      if (shapes === undefined) this.#offering.set(scalar, new Set([number]));
      else shapes.add(number);
    }
    this.#shapeOf.set(key, number);
    return number;
  }

  #rehash(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(-1);
    const mask = this.#slots.length - 1;
    for (let group = 0; group < this.#groupEnd; group++) {
      if (this.head.get(group) < 0) continue;
      const slot = this.#hash.get(group) & mask;
      this.#chain.set(group, this.#slots[slot]!);
      this.#slots[slot] = group;
    }
  }

  #isFull(id: number): boolean {
    const table = this.#table;
    return table.pods.get(id) + 1 > table.sizePods.get(table.size.get(id));
  }

  #isSame(id: number, other: number): boolean {
    const table = this.#table;
    if (
      table.milliCpu.get(id) !== table.milliCpu.get(other) ||
      table.memory.get(id) !== table.memory.get(other) ||
      table.milliCpuNonZero.get(id) !== table.milliCpuNonZero.get(other) ||
      table.memoryNonZero.get(id) !== table.memoryNonZero.get(other) ||
      table.ephemeral.get(id) !== table.ephemeral.get(other) ||
      table.kind.get(id) !== table.kind.get(other) ||
      table.size.get(id) !== table.size.get(other) ||
      table.imageSet.get(id) !== table.imageSet.get(other)
    ) {
      return false;
    }
    // Of what nodes of the size do not have, none is left whatever is used.
    const offered = table.sizeScalars[table.size.get(id)]!;
    for (let i = 0; i < offered.length; i++) {
      const column = table.scalarColumns[offered[i]!];
      if (column !== undefined && column.get(id) !== column.get(other)) return false;
    }
    return true;
  }

  #hashOf(id: number): number {
    const table = this.#table;
    let hash = table.kind.get(id) + 31 * table.size.get(id) + 1009 * table.imageSet.get(id);
    hash = this.#mix(hash, table.milliCpu.get(id));
    hash = this.#mix(hash, table.memory.get(id));
    hash = this.#mix(hash, table.milliCpuNonZero.get(id));
    hash = this.#mix(hash, table.memoryNonZero.get(id));
    hash = this.#mix(hash, table.ephemeral.get(id));
    return hash;
  }

  #mix(hash: number, value: number): number {
    this.#float[0] = value;
    let mixed = Math.imul(hash ^ this.#words[0]!, 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 15) ^ this.#words[1]!, 0xc2b2ae35);
    return mixed ^ (mixed >>> 13);
  }
}

const NO_SHAPES: ReadonlySet<number> = new Set();

/** Groups that differ in usage alone. */
export interface NodeShape {
  readonly kind: number;
  readonly size: number;
  readonly imageSet: number;
  readonly milliCpu: number;
  readonly memory: number;
  /** Scalar resources that its nodes have any of. */
  readonly scalars: readonly number[];
  readonly tree: UsageTree;
}

/** Where usage lies between nothing and all of a capacity; more than all of it lies at the end. */
function along(used: number, capacity: number): number {
  if (capacity <= 0 || used <= 0) return 0;
  return Math.min(SIDE - 1, Math.floor((used / capacity) * SIDE));
}

/** What nodes from coordinate `at` on use at least; where it is rounded, one less than that. */
export function usedFrom(at: number, capacity: number): number {
  return at === 0 ? 0 : Math.ceil(capacity * (at / SIDE) * (1 - ROUNDING));
}

/** What nodes before coordinate `at` use at most; those at the end may use any amount. */
export function usedBefore(at: number, capacity: number): number {
  if (at >= SIDE || capacity <= 0) return Infinity;
  return Math.floor(capacity * (at / SIDE) * (1 + ROUNDING));
}

/** More than three roundings of doubles can amount to. */
const ROUNDING: number = 2 ** -50;

function keyOf(kind: number, size: number, imageSet: number): number | string {
  if (kind < 2 ** 17 && size < 2 ** 17 && imageSet < 2 ** 17) {
    return (kind * 2 ** 17 + size) * 2 ** 17 + imageSet;
  }
  return `${kind} ${size} ${imageSet}`;
}
