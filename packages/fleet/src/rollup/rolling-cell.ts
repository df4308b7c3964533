/** One row of the rolling roll-up: sums that go up and down, and largest units. */
import { Quantity } from '@megaplane/machinery/quantity';
import type { Row } from './cell.ts';
import type { Shape } from './request.ts';

/** One resource of a row. */
interface Sum {
  total: Quantity;
  /** Shapes that name the resource, and those that write it in powers of 1024. */
  shapes: number;
  binaryShapes: number;
  largest: Quantity;
}

export class RollingCell {
  readonly key: string;
  /** The row's message as it was last written; null: it has changed since. */
  bytes: Uint8Array | null = null;
  readonly #first: Shape;
  readonly #shapes = new Set<Shape>();
  readonly #sums = new Map<string, Sum>();

  constructor(key: string, first: Shape) {
    this.key = key;
    this.#first = first;
  }

  /** No request is in it. */
  get isEmpty(): boolean {
    return this.#shapes.size === 0;
  }

  /** Requests of one shape are `after` in number now, and were `before` when last counted. */
  change(shape: Shape, before: number, after: number): void {
    this.bytes = null;
    if (before === 0) this.#shapes.add(shape);
    if (after === 0) this.#shapes.delete(shape);
    for (const [name, quantity] of shape.resources) {
      const more = times(quantity, after - before);
      const sum = this.#sums.get(name);
      if (sum === undefined) {
        const binaryShapes = isBinary(quantity) ? 1 : 0;
        this.#sums.set(name, { total: more, shapes: 1, binaryShapes, largest: quantity });
        continue;
      }
      sum.total = sum.total.add(more);
      if (before === 0) this.#enter(sum, quantity);
      if (after === 0) this.#leave(name, sum, quantity);
    }
  }

  row(): Row {
    const { profile, fingerprint, group } = this.#first;
    const aggregate = new Map<string, Quantity>();
    const minUnit = new Map<string, Quantity>();
    for (const [name, { total, binaryShapes, largest }] of this.#sums) {
      // the form of a sum may not depend on the order in which requests came
      const format = binaryShapes > 0 ? 'BinarySI' : 'DecimalSI';
      aggregate.set(name, new Quantity(total.digits, total.scale, format));
      minUnit.set(name, largest);
    }
    return { profile, fingerprint, group, aggregate, minUnit };
  }

  #enter(sum: Sum, quantity: Quantity): void {
    sum.shapes++;
    if (isBinary(quantity)) sum.binaryShapes++;
    if (isLarger(quantity, sum.largest)) sum.largest = quantity;
  }

  #leave(name: string, sum: Sum, quantity: Quantity): void {
    sum.shapes--;
    if (isBinary(quantity)) sum.binaryShapes--;
    if (sum.shapes === 0) {
      this.#sums.delete(name);
      return;
    }
    if (quantity !== sum.largest) return;
    let largest: Quantity | undefined;
    for (const { resources } of this.#shapes) {
      const other = resources.get(name);
      if (other === undefined) continue;
      if (largest === undefined || isLarger(other, largest)) largest = other;
    }
    if (largest !== undefined) sum.largest = largest;
  }
}

function times(quantity: Quantity, count: number): Quantity {
  return new Quantity(quantity.digits * BigInt(count), quantity.scale, quantity.format);
}

function isBinary(quantity: Quantity): boolean {
  return quantity.format === 'BinarySI';
}

/** Of two that are equal the one that is written first by its text, whatever came first. */
function isLarger(quantity: Quantity, than: Quantity): boolean {
  const order = quantity.compare(than);
  return order > 0 || (order === 0 && quantity.toString() < than.toString());
}
