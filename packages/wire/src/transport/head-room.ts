/** What an unfinished head of a connection holds of its listener's budget. */
import { shareOfPeer, type BodyBudget } from './body-budget.ts';
import type { Connection, BodyShare } from '../http/exchange.ts';
import { HEAD_BYTES_FREE } from '../limits.ts';

export class HeadRoom {
  readonly #budget: BodyBudget;
  readonly #connection: Connection;
  #share: BodyShare | null = null;
  #taken = 0;

  constructor(budget: BodyBudget, connection: Connection) {
    this.#budget = budget;
    this.#connection = connection;
  }

  /** So many octets are held from now on; false: there is no room, and nothing has changed. */
  hold(bytes: number): boolean {
    const wanted = Math.max(0, bytes - HEAD_BYTES_FREE);
    if (wanted === this.#taken) return true;
    // whoever has a head that long is not known yet
    this.#share ??= shareOfPeer(this.#connection, true);
    if (wanted < this.#taken) this.#budget.give(this.#share, this.#taken - wanted);
    else if (!this.#budget.take(this.#share, wanted - this.#taken)) return false;
    this.#taken = wanted;
    return true;
  }
}
