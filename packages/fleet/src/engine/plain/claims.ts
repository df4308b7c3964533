/** Who holds which machine while one cycle is decided. */
import { assert } from '@megaplane/base/assert';
import { type Amounts, NO_AMOUNTS, add, subtract } from '../amounts.ts';
import type { Machine } from '../machine.ts';
import { comparePrecedence } from '../profile.ts';
import type { Row } from '../row.ts';

/** How often a row may be driven out of machines and try again. */
export const RETRIES_MAX = 10;

interface Claim {
  readonly row: Row;
  readonly retries: number;
}

export class Claims {
  readonly #byMachine = new Map<Machine, Claim>();
  readonly #byRow = new Map<Row, Set<Machine>>();

  isClaimed(machine: Machine): boolean {
    return this.#byMachine.has(machine);
  }

  /** True if nobody holds it, or somebody who gives way to `row`. */
  isOpenTo(machine: Machine, row: Row): boolean {
    const claim = this.#byMachine.get(machine);
    return claim === undefined || comparePrecedence(claim.row.profile, row.profile) < 0;
  }

  of(row: Row): ReadonlySet<Machine> {
    return this.#byRow.get(row) ?? new Set();
  }

  /** What a row wants beyond what it holds. */
  deficitOf(row: Row): Amounts {
    let held = NO_AMOUNTS;
    for (const { allocatable } of this.of(row)) held = add(held, allocatable);
    return subtract(row.aggregate, held);
  }

  /** Gives a machine to a row; answers who held it, with one retry less. */
  take(machine: Machine, row: Row, retries: number): Claim | undefined {
    assert(this.isOpenTo(machine, row), 'only who gives way loses a machine');
    const before = this.#byMachine.get(machine);
    if (before !== undefined) this.#byRow.get(before.row)?.delete(machine);
    this.#byMachine.set(machine, { row, retries });
    const held = this.#byRow.get(row);
    if (held === undefined) this.#byRow.set(row, new Set([machine]));
    else held.add(machine);
    return before === undefined ? undefined : { row: before.row, retries: before.retries - 1 };
  }
}
