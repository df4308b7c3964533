// data plane: amounts of which nearly all are zero, or of which most are not
import { Float64Column } from '@megaplane/base/column';

/** With more amounts than this a column costs no more than what is kept by id. */
const SPARSE_MAX = 1024;

/**
 * One amount for each id, zero where nothing was written. A resource that few nodes have costs
 * what those cost: there may be thousands of such resources. One that many have is a column.
 */
export class AmountColumn {
  #few: Map<number, number> | null = new Map();
  #many: Float64Column | null = null;

  get(id: number): number {
    return this.#many === null ? (this.#few!.get(id) ?? 0) : this.#many.get(id);
  }

  set(id: number, amount: number): void {
    if (this.#many !== null) return this.#many.set(id, amount);
    const few = this.#few!;
    if (amount === 0) few.delete(id);
    else few.set(id, amount);
    if (few.size > SPARSE_MAX) this.#spread(few);
  }

  /** About, where the amounts are few. */
  get memoryBytes(): number {
    return this.#many?.memoryBytes ?? this.#few!.size * 48;
  }

  #spread(few: ReadonlyMap<number, number>): void {
    const many = new Float64Column();
    for (const [id, amount] of few) many.set(id, amount);
    this.#many = many;
    this.#few = null;
  }
}
