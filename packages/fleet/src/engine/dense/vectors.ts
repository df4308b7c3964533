// data plane: amounts of resources as rows of one array of doubles, each distinct vector once
//
//   values  Float64Array  id * stride + dimension -> whole units or thousandths, an integer
//
// Amounts of memory and storage count in whole units, all others in thousandths. What does not
// come out even, is negative, or is beyond 2^53 is called odd: exact phases must then be taken.
import { assert } from '@megaplane/base/assert';
import { Quantity } from '@megaplane/machinery/quantity';
import type { Amounts } from '../amounts.ts';
import { byUtf8 } from '../../contract/text-order.ts';
import { Interned, doubledFloats } from './interned.ts';

/** More resources than this are not told apart: a roll-up or machine with more is odd. */
export const DIMENSIONS_MAX = 64;

const MILLI = -3;

/** What a vector is to be: rounding goes against who would gain by it. */
type Side = 'wanted' | 'offered';

export class Vectors {
  values: Float64Array<ArrayBuffer> = new Float64Array(64 * 4);
  /** Places of a vector in `values`, at least as many as there are dimensions. */
  stride = 4;
  readonly names: string[] = [];
  /** In the order of their names: sums of fractions must not depend on who came first. */
  byName: readonly number[] = [];
  readonly #scales: number[] = [];
  readonly #dimensions = new Map<string, number>();
  readonly #ids = new Interned<string>();
  #isOdd = false;
  readonly #scratch = new Float64Array(DIMENSIONS_MAX);

  get dimensions(): number {
    return this.names.length;
  }

  /** True if the last vector held was not exactly what was given. */
  get wasOdd(): boolean {
    return this.#isOdd;
  }

  /** The number of a vector, held once more. */
  hold(amounts: Amounts, side: Side): number {
    this.#isOdd = false;
    const scratch = this.#scratch.fill(0);
    for (const [name, quantity] of amounts) {
      const dimension = this.#dimensionOf(name);
      if (dimension === undefined) this.#isOdd = true;
      else scratch[dimension] = this.#valueOf(quantity, this.#scales[dimension]!, side);
    }
    return this.#hold(scratch);
  }

  /** The number of `times` the vector `id`, held once more. */
  holdTimes(id: number, times: number): number {
    const scratch = this.#scratch.fill(0);
    for (let at = 0; at < this.dimensions; at++) {
      scratch[at] = this.values[id * this.stride + at]! * times;
    }
    return this.#hold(scratch);
  }

  holdAgain(id: number): void {
    this.#ids.holdAgain(id);
  }

  release(id: number): void {
    this.#ids.release(id);
  }

  amountsOf(id: number): Amounts {
    return this.amountsAt(this.values, id * this.stride);
  }

  /** The amounts that stand in `values` from `offset` on; zeros are left out. */
  amountsAt(values: Float64Array, offset: number): Amounts {
    const entries: [string, Quantity][] = [];
    for (let at = 0; at < this.dimensions; at++) {
      const value = values[offset + at]!;
      if (value === 0) continue;
      const scale = this.#scales[at]!;
      const format = scale === 0 ? 'BinarySI' : 'DecimalSI';
      entries.push([this.names[at]!, new Quantity(BigInt(value), scale, format)]);
    }
    return new Map(entries.toSorted(([left], [right]) => byUtf8(left, right)));
  }

  /** What orders sums of gangs: names with thousandths. */
  sizeText(id: number): string {
    const amounts = [...this.amountsOf(id)];
    return amounts.map(([name, quantity]) => `${name}=${quantity.scaled(MILLI)};`).join('');
  }

  /** True if vector `have` is enough in each dimension for vector `want`. */
  covers(have: number, want: number): boolean {
    const { values, stride } = this;
    const from = have * stride;
    const to = want * stride;
    for (let at = 0; at < this.names.length; at++) {
      if (values[from + at]! < values[to + at]!) return false;
    }
    return true;
  }

  /** True if vector `have` has something of what is lacking. */
  helps(have: number, lacking: Float64Array): boolean {
    const from = have * this.stride;
    for (let at = 0; at < this.names.length; at++) {
      if (lacking[at]! > 0 && this.values[from + at]! > 0) return true;
    }
    return false;
  }

  #hold(scratch: Float64Array): number {
    let key = '';
    for (let at = 0; at < this.dimensions; at++) key += `${scratch[at]!},`;
    // dimensions that come later are zero in what is there already
    const id = this.#ids.hold(key.replace(/(?:0,)+$/, ''));
    while ((id + 1) * this.stride > this.values.length) this.values = doubledFloats(this.values);
    this.values.set(scratch.subarray(0, this.stride), id * this.stride);
    return id;
  }

  #dimensionOf(name: string): number | undefined {
    const known = this.#dimensions.get(name);
    if (known !== undefined) return known;
    if (this.names.length === DIMENSIONS_MAX) return undefined;
    const dimension = this.names.length;
    this.names.push(name);
    this.#scales.push(/memory|storage|hugepages/i.test(name) ? 0 : MILLI);
    this.#dimensions.set(name, dimension);
    this.byName = [...this.byName, dimension].sort((left, right) => {
      return byUtf8(this.names[left]!, this.names[right]!);
    });
    if (dimension === this.stride) this.#widen();
    return dimension;
  }

  #widen(): void {
    const before = this.stride;
    this.stride = before * 2;
    const wider = new Float64Array(this.values.length * 2);
    for (let id = 0; id < this.#ids.end; id++) {
      wider.set(this.values.subarray(id * before, (id + 1) * before), id * this.stride);
    }
    this.values = wider;
    assert(this.stride <= DIMENSIONS_MAX, 'there are never more places than dimensions');
  }

  #valueOf(quantity: Quantity, scale: number, side: Side): number {
    const isEven = quantity.isExact(scale);
    const up = quantity.scaled(scale);
    const value = Number(isEven || side === 'wanted' ? up : up - 1n);
    const isPlain = isEven && value > 0 && value <= Number.MAX_SAFE_INTEGER;
    // an explicit zero is told apart from none where rows are compared
    if (!isPlain) this.#isOdd = true;
    return Math.min(Math.max(0, value), Number.MAX_SAFE_INTEGER);
  }
}
