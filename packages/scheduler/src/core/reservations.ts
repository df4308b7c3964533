/** What pods on their way to a node have been promised, besides the node. */
import { assert } from '@megaplane/base/assert';
import { keyOf } from '../api/objects.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { WITHHELD_CLAIM, type ObjectWrite, type Reservation } from '../framework/reservation.ts';

const CLAIM = 'ResourceClaim';

export class Reservations {
  readonly #objects: ObjectStore;
  readonly #byTag = new Map<number, readonly Reservation[]>();
  /** Writes under way that take something from a claim, by key. */
  readonly #withheld = new Map<string, number>();

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** From now on others see what is promised as taken. */
  take(tag: number, reservations: readonly Reservation[]): void {
    if (reservations.length === 0) return;
    assert(!this.#byTag.has(tag), 'a pod on its way is promised things once');
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

  /**
   * A write that nobody waits for begins. Until it ends, no pod gets what its claim says: it may be
   * about to lose its devices, and nobody else may have them before it has.
   */
  withhold({ kind, key }: ObjectWrite): void {
    const claim = kind === CLAIM ? this.#objects.object(kind, key) : undefined;
    if (claim === undefined) return;
    this.#withheld.set(key, (this.#withheld.get(key) ?? 0) + 1);
    this.#objects.assume(WITHHELD_CLAIM, { ...claim, kind: WITHHELD_CLAIM });
  }

  /** It has ended, one way or the other. Returns whether the claim can be had again. */
  release({ key }: ObjectWrite): boolean {
    const count = this.#withheld.get(key);
    if (count === undefined) return false;
    if (count > 1) this.#withheld.set(key, count - 1);
    else {
      this.#withheld.delete(key);
      this.#objects.restore(WITHHELD_CLAIM, key);
    }
    return count === 1;
  }
}
