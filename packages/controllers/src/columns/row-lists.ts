// data plane
/** Many doubly linked lists of rows; a row is in one list at most. Cells hold id + 1, 0 = end. */
import { assert } from '@megaplane/base/assert';
import { Int32Column } from '@megaplane/base/column';

export class RowLists {
  readonly #head = new Int32Column();
  readonly #next = new Int32Column();
  readonly #prev = new Int32Column();

  /** The first row of a list, or -1. */
  first(list: number): number {
    return this.#head.get(list) - 1;
  }

  /** The row after another in its list, or -1. */
  after(row: number): number {
    return this.#next.get(row) - 1;
  }

  add(list: number, row: number): void {
    const head = this.#head.get(list);
    assert(this.#next.get(row) === 0 && this.#prev.get(row) === 0, 'a row is in one list at most');
    assert(head !== row + 1, 'a row is in its list once');
    this.#next.set(row, head);
    this.#prev.set(row, 0);
    if (head !== 0) this.#prev.set(head - 1, row + 1);
    this.#head.set(list, row + 1);
  }

  /** The row must be in the list. */
  remove(list: number, row: number): void {
    const next = this.#next.get(row);
    const prev = this.#prev.get(row);
    const before = prev === 0 ? this.#head.get(list) : this.#next.get(prev - 1);
    assert(before === row + 1, 'a row that is taken out is in that list');
    if (prev === 0) this.#head.set(list, next);
    else this.#next.set(prev - 1, next);
    if (next !== 0) this.#prev.set(next - 1, prev);
    this.#next.set(row, 0);
    this.#prev.set(row, 0);
  }
}
