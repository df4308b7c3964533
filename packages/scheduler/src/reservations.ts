/** What pods on their way to a node have been promised, besides the node. */
import { keyOf } from './objects.ts';
import type { ObjectStore } from './object-store.ts';
import type { ObjectWrite, Reservation } from './reservation.ts';

export class Reservations {
  readonly #objects: ObjectStore;
  readonly #byTag = new Map<number, readonly Reservation[]>();

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** From now on others see what is promised as taken. */
  take(tag: number, reservations: readonly Reservation[]): void {
    if (reservations.length === 0) return;
    this.#byTag.set(tag, reservations);
    for (const { assumed, pending } of reservations) {
      for (const object of [...assumed, ...pending]) {
        this.#objects.assume(object.kind ?? '', object);
      }
    }
  }

  of(tag: number): readonly Reservation[] {
    return this.#byTag.get(tag) ?? [];
  }

  /** The writes of one reservation are done. */
  written({ pending }: Reservation): void {
    for (const object of pending) this.#objects.restore(object.kind ?? '', keyOf(object));
  }

  /** The pod is bound. */
  keep(tag: number): void {
    this.#byTag.delete(tag);
  }

  /** The pod does not get the node. Returns what is to be written back. */
  giveBack(tag: number): readonly ObjectWrite[] {
    const reservations = this.of(tag);
    this.#byTag.delete(tag);
    for (const { assumed, pending } of reservations) {
      for (const object of [...assumed, ...pending]) {
        this.#objects.restore(object.kind ?? '', keyOf(object));
      }
    }
    return reservations.flatMap(({ undo }) => undo);
  }
}
