// data plane: points in a square, found by where they lie
import { Int32Column, Uint16Column } from '@megaplane/base/column';

/**
 * A quadtree: a cell that holds more than a few points is cut into four, and becomes one again
 * when it holds few. Points are numbers that the caller gives; many may lie at one place.
 *
 *   cell    first   Int32    first of four cells side by side, -1 for a leaf
 *           parent  Int32    -1 for the root, which is cell 0
 *           count   Uint32   points in it
 *           head    Int32    list of the points of a leaf, -1 for none
 *           x, y    Uint16   its corner        depth   Uint8   0 for the root
 *   point   leaf, next, previous   Int32       x, y   Uint16
 */
export const DEPTH_MAX = 14;
/** Coordinates are below this. */
export const SIDE: number = 1 << DEPTH_MAX;
const LEAF_POINTS_MAX = 16;
/** A cell that was cut becomes a leaf again at this many, so that it is not cut at once. */
const LEAF_POINTS_MIN = 6;

export class UsageTree {
  first: Int32Array = new Int32Array(16).fill(-1);
  head: Int32Array = new Int32Array(16).fill(-1);
  x: Uint16Array = new Uint16Array(16);
  y: Uint16Array = new Uint16Array(16);
  depth: Uint8Array = new Uint8Array(16);
  #parent: Int32Array = new Int32Array(16).fill(-1);
  #count: Uint32Array = new Uint32Array(16);
  #cells = 1;
  readonly #free: number[] = [];
  readonly #points: TreePoints;

  /** Trees that never hold the same point may share the columns of points. */
  constructor(points: TreePoints) {
    this.#points = points;
  }

  /** Points in a cell; cell 0 holds all. */
  count(cell: number): number {
    return this.#count[cell]!;
  }

  /** The next point of a leaf after one of them, -1 after the last. */
  next(point: number): number {
    return this.#points.next.get(point);
  }

  insert(point: number, x: number, y: number): void {
    this.#points.x.set(point, x);
    this.#points.y.set(point, y);
    let cell = 0;
    this.#count[0]!++;
    while (this.first[cell]! >= 0) {
      cell = this.#quarterOf(cell, x, y);
      this.#count[cell]!++;
    }
    this.#link(cell, point);
    while (this.#count[cell]! > LEAF_POINTS_MAX && this.depth[cell]! < DEPTH_MAX) {
      this.#cut(cell);
      cell = this.#quarterOf(cell, x, y);
    }
  }

  remove(point: number): void {
    let cell = this.#points.leaf.get(point);
    this.#unlink(cell, point);
    for (; cell >= 0; cell = this.#parent[cell]!) {
      const count = --this.#count[cell]!;
      if (this.first[cell]! >= 0 && count <= LEAF_POINTS_MIN) this.#merge(cell);
    }
  }

  get memoryBytes(): number {
    return this.first.length * (4 * 4 + 2 * 2 + 1);
  }

  #quarterOf(cell: number, x: number, y: number): number {
    const half = SIDE >>> (this.depth[cell]! + 1);
    const right = x >= this.x[cell]! + half ? 1 : 0;
    const upper = y >= this.y[cell]! + half ? 2 : 0;
    return this.first[cell]! + right + upper;
  }

  #link(cell: number, point: number): void {
    const { leaf, next, previous } = this.#points;
    const before = this.head[cell]!;
    leaf.set(point, cell);
    next.set(point, before);
    previous.set(point, -1);
    if (before >= 0) previous.set(before, point);
    this.head[cell] = point;
  }

  #unlink(cell: number, point: number): void {
    const { next, previous } = this.#points;
    const after = next.get(point);
    const before = previous.get(point);
    if (before >= 0) next.set(before, after);
    else this.head[cell] = after;
    if (after >= 0) previous.set(after, before);
  }

  #cut(cell: number): void {
    const first = this.#fourCells();
    const depth = this.depth[cell]! + 1;
    const half = SIDE >>> depth;
    for (let quarter = 0; quarter < 4; quarter++) {
      const part = first + quarter;
      this.x[part] = this.x[cell]! + (quarter & 1) * half;
      this.y[part] = this.y[cell]! + (quarter >>> 1) * half;
      this.depth[part] = depth;
      this.first[part] = -1;
      this.head[part] = -1;
      this.#parent[part] = cell;
      this.#count[part] = 0;
    }
    this.first[cell] = first;
    let point = this.head[cell]!;
    this.head[cell] = -1;
    while (point >= 0) {
      const after = this.#points.next.get(point);
      const part = this.#quarterOf(cell, this.#points.x.get(point), this.#points.y.get(point));
      this.#count[part]!++;
      this.#link(part, point);
      point = after;
    }
  }

  /** The quarters are leaves: each holds too few points to have been cut for long. */
  #merge(cell: number): void {
    const first = this.first[cell]!;
    this.first[cell] = -1;
    for (let part = first; part < first + 4; part++) {
      let point = this.head[part]!;
      while (point >= 0) {
        const after = this.#points.next.get(point);
        this.#link(cell, point);
        point = after;
      }
    }
    this.#free.push(first);
  }

  #fourCells(): number {
    const reused = this.#free.pop();
    if (reused !== undefined) return reused;
    const first = this.#cells;
    this.#cells += 4;
    if (this.#cells > this.first.length) this.#grow();
    return first;
  }

  #grow(): void {
    const length = this.first.length * 2;
    const wider = <T extends Int32Array | Uint32Array | Uint16Array | Uint8Array>(
      made: T,
      old: T,
    ): T => {
      made.set(old);
      return made;
    };
    this.first = wider(new Int32Array(length), this.first);
    this.head = wider(new Int32Array(length), this.head);
    this.x = wider(new Uint16Array(length), this.x);
    this.y = wider(new Uint16Array(length), this.y);
    this.depth = wider(new Uint8Array(length), this.depth);
    this.#parent = wider(new Int32Array(length), this.#parent);
    this.#count = wider(new Uint32Array(length), this.#count);
  }
}

/** What trees know of points, by point. */
export class TreePoints {
  readonly leaf: Int32Column = new Int32Column();
  readonly next: Int32Column = new Int32Column();
  readonly previous: Int32Column = new Int32Column();
  readonly x: Uint16Column = new Uint16Column();
  readonly y: Uint16Column = new Uint16Column();

  get memoryBytes(): number {
    return 3 * this.leaf.memoryBytes + 2 * this.x.memoryBytes;
  }
}
