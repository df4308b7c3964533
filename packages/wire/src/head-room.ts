/** What an unfinished head of a connection holds of its listener's budget. */
import type { BodyBudget } from './body-budget.ts';
import { HEAD_BYTES_FREE } from './limits.ts';

export class HeadRoom {
  readonly #budget: BodyBudget;
  #taken = 0;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** So many octets are held from now on; false: there is no room, and nothing has changed. */
  hold(bytes: number): boolean {
    const wanted = Math.max(0, bytes - HEAD_BYTES_FREE);
    if (wanted === this.#taken) return true;
    if (wanted < this.#taken) this.#budget.give(this.#taken - wanted);
    else if (!this.#budget.take(wanted - this.#taken)) return false;
    this.#taken = wanted;
    return true;
  }
}
