/**
 * Which domains (a label and a value, a rack or a zone) a shard has, as a coordinator has told it.
 * None at all means every machine: a shard that no coordinator ever spoke to serves what it finds.
 * What the coordinator said last stays, for as long as it says nothing.
 */
import { INSTANCE_TYPE_KEY, ZONE_KEY } from '../contract/api.ts';
import type { Machine as MachineMessage } from '../contract/tables/provider.ts';
import type { Machine } from '../engine/machine.ts';
import { attributeOf } from '../engine/machine.ts';

/** Domains of one shard. */
export const DOMAINS_MAX = 100_000;

/** States in which a machine is for nobody: only then may it pass to another shard. */
const FREE: ReadonlySet<string> = new Set(['Speculative', 'Idle']);

export class Domains {
  readonly #values = new Map<string, Set<string>>();
  #count = 0;
  /** Rises with each change. */
  version = 0;

  constructor(pairs: Iterable<readonly [string, string]> = []) {
    for (const [key, value] of pairs) this.add(key, value);
  }

  get size(): number {
    return this.#count;
  }

  *pairs(): Generator<readonly [string, string]> {
    for (const [key, values] of this.#values) for (const value of values) yield [key, value];
  }

  /** False where there are too many. */
  add(key: string, value: string): boolean {
    const values = this.#values.get(key) ?? new Set();
    if (values.has(value)) return true;
    if (this.#count >= DOMAINS_MAX) return false;
    this.#values.set(key, values.add(value));
    this.#count++;
    this.version++;
    return true;
  }

  remove(key: string, value: string): void {
    const values = this.#values.get(key);
    if (values?.delete(value) !== true) return;
    if (values.size === 0) this.#values.delete(key);
    this.#count--;
    this.version++;
  }

  /** Whether a machine that a provider tells of is in one of them. */
  hasTold({ instanceType, zone, labels }: MachineMessage): boolean {
    if (this.#count === 0) return true;
    for (const [key, values] of this.#values) {
      const label = Object.hasOwn(labels, key) ? labels[key] : undefined;
      const field = key === INSTANCE_TYPE_KEY ? instanceType : key === ZONE_KEY ? zone : '';
      const value = field === '' ? label : field;
      if (value !== undefined && values.has(value)) return true;
    }
    return false;
  }

  /** Whether a machine that is known may stay: in one of them, or not free yet. */
  keeps(machine: Machine): boolean {
    if (this.#count === 0 || !FREE.has(machine.state)) return true;
    for (const [key, values] of this.#values) {
      const value = attributeOf(machine, key);
      if (value !== undefined && values.has(value)) return true;
    }
    return false;
  }
}
