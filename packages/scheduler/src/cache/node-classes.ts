/**
 * Numbers of what classes of pods have in common for one node after another, by its text. Volumes
 * and devices of a pod make other ones of a class's; those go with it.
 *
 * Numbers are never given twice, so that what is kept by number need not be checked. Whoever keeps
 * something by number hears when it goes.
 */

/** Of one class; older ones are forgotten, and get new numbers. */
const DERIVED_MAX = 64;

interface NodeClass {
  readonly text: string;
  users: number;
  /** By text. */
  readonly derived: Map<string, number>;
}

export class NodeClasses {
  readonly #numbers = new Map<string, number>();
  readonly #classes = new Map<number, NodeClass>();
  readonly #listeners: ((nodeClass: number) => void)[] = [];
  #end = 0;

  /** Texts that are known, without those that volumes and devices make. */
  get size(): number {
    return this.#classes.size;
  }

  /** `listener` is called with each number that is of no use any more. */
  onGone(listener: (nodeClass: number) => void): void {
    this.#listeners.push(listener);
  }

  /** The number of a text, with one more user. */
  acquire(text: string): number {
    const number = this.#numbers.get(text) ?? this.#end++;
    const known = this.#classes.get(number);
    if (known === undefined) {
      this.#numbers.set(text, number);
      this.#classes.set(number, { text, users: 1, derived: new Map() });
    } else {
      known.users++;
    }
    return number;
  }

  /** The number of what something has made of a class; `text` says so, with the class. */
  derive(nodeClass: number, text: string): number {
    const derived = this.#classes.get(nodeClass)?.derived;
    const known = derived?.get(text);
    if (known !== undefined) return known;
    const number = this.#end++;
    derived?.set(text, number);
    if (derived === undefined || derived.size <= DERIVED_MAX) return number;
    for (const [oldest, old] of derived.entries().take(1)) {
      derived.delete(oldest);
      this.#tell(old);
    }
    return number;
  }

  /** One user less; the last one lets the number go, and what was made of it. */
  release(nodeClass: number): void {
    const known = this.#classes.get(nodeClass);
    if (known === undefined || --known.users > 0) return;
    this.#classes.delete(nodeClass);
    this.#numbers.delete(known.text);
    this.#tell(nodeClass);
    for (const number of known.derived.values()) this.#tell(number);
  }

  #tell(nodeClass: number): void {
    for (const listener of this.#listeners) listener(nodeClass);
  }
}
