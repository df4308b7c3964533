// data plane
/**
 * Nodes for which something is to be done on the server, in order, each once with all that is
 * wanted for it. A million nodes that register faster than the server takes their taints wait here
 * as six bytes each. The row of a node is held as long as it waits or is worked on.
 *
 *   wanted   by node: what is to be done, as bits; 0 = does not wait
 *   next     by node: the one after it + 1; 0 = the last one
 */
import { assert } from '@megaplane/base/assert';
import { Int32Column, Uint16Column } from '@megaplane/base/column';
import type { NodeTable } from '../columns/node-table.ts';

export class NodeQueue {
  readonly #nodes: NodeTable;
  readonly #width: number;
  readonly #work: (id: number, wanted: number) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #wanted = new Uint16Column();
  readonly #next = new Int32Column();
  #first = 0;
  #last = 0;
  #running = 0;

  /** At most `width` nodes are worked on at a time. */
  constructor(
    nodes: NodeTable,
    width: number,
    work: (id: number, wanted: number) => Promise<void>,
    onError: (error: unknown) => void,
  ) {
    this.#nodes = nodes;
    this.#width = width;
    this.#work = work;
    this.#onError = onError;
  }

  /** Wants more for a node; `wanted` is not 0. */
  add(id: number, wanted: number): void {
    assert(wanted !== 0 && wanted <= 0xffff, 'something is wanted, and has a bit');
    const before = this.#wanted.get(id);
    this.#wanted.set(id, before | wanted);
    if (before !== 0) return;
    this.#nodes.hold(id);
    this.#next.set(id, 0);
    if (this.#last === 0) this.#first = id + 1;
    else this.#next.set(this.#last - 1, id + 1);
    this.#last = id + 1;
    assert(this.#first !== 0, 'a queue with a last node has a first one');
    this.#pump();
  }

  #pump(): void {
    while (this.#running < this.#width && this.#first !== 0) {
      const id = this.#first - 1;
      this.#first = this.#next.get(id);
      if (this.#first === 0) this.#last = 0;
      const wanted = this.#wanted.get(id);
      assert(wanted !== 0, 'something is wanted for a node that waits');
      this.#wanted.set(id, 0);
      this.#running++;
      void this.#one(id, wanted);
    }
  }

  async #one(id: number, wanted: number): Promise<void> {
    try {
      await this.#work(id, wanted);
    } catch (error) {
      this.#onError(error);
    }
    assert(this.#running > 0, 'what ends was running');
    this.#running--;
    this.#nodes.unhold(id);
    this.#pump();
  }
}
