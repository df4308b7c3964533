// data plane: flags and generations of rows
/** Which rows have an owner, their flags, and tags that survive the reuse of a row. */
import { Uint8Column } from '@megaplane/base/column';

const LIVE = 1;
const GENERATIONS = 256;

export class Rows {
  readonly #flags: Uint8Column = new Uint8Column();
  readonly #generation: Uint8Column = new Uint8Column();

  /** A row gets a new owner, with no flag set. */
  reset(id: number): void {
    this.#flags.set(id, LIVE);
    this.#generation.add(id, 1);
  }

  /** A row has no owner any more. */
  retire(id: number): void {
    this.#flags.set(id, 0);
  }

  /** `flag` is one bit from 2 to 128. */
  has(id: number, flag: number): boolean {
    return (this.#flags.get(id) & flag) !== 0;
  }

  mark(id: number, flag: number, isSet: boolean): void {
    const flags = this.#flags.get(id);
    this.#flags.set(id, isSet ? flags | flag : flags & ~flag);
  }

  /** What to send along with a request about a row. */
  tagOf(id: number): number {
    return id * GENERATIONS + this.#generation.get(id);
  }

  /** The row of an answer; -1 when its owner is gone, also where the row has a new one. */
  idOf(tag: number): number {
    const id = Math.floor(tag / GENERATIONS);
    const isSame = this.#generation.get(id) === tag % GENERATIONS;
    return isSame && this.has(id, LIVE) ? id : -1;
  }
}
