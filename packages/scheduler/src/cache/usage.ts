/** What a placed pod takes from its node, interned: pods of one make share it. */
import { Interner } from '../collections/interner.ts';
import type { Resources } from '../api/resources.ts';

export interface Usage {
  readonly milliCpu: number;
  readonly memory: number;
  readonly ephemeral: number;
  readonly milliCpuNonZero: number;
  readonly memoryNonZero: number;
  /** By number of the scalar resource; empty for nearly all pods. */
  readonly scalars: readonly { readonly scalar: number; readonly amount: number }[];
}

/** Names of scalar resources as small numbers, never forgotten: clusters have a few dozen. */
export class ScalarNames {
  readonly #numbers = new Map<string, number>();
  readonly names: string[] = [];

  numberOf(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.names.length;
      this.names.push(name);
      this.#numbers.set(name, number);
    }
    return number;
  }
}

export class Usages {
  readonly #interner = new Interner<Usage>();
  readonly #scalars: ScalarNames;

  constructor(scalars: ScalarNames) {
    this.#scalars = scalars;
  }

  get size(): number {
    return this.#interner.size;
  }

  acquire(requests: Resources, nonZero: Resources): number {
    const scalars = [...requests.scalars]
      .filter(([, amount]) => amount !== 0)
      .map(([name, amount]) => ({ scalar: this.#scalars.numberOf(name), amount }))
      .toSorted((left, right) => left.scalar - right.scalar);
    const usage: Usage = {
      milliCpu: requests.milliCpu,
      memory: requests.memory,
      ephemeral: requests.ephemeral,
      milliCpuNonZero: nonZero.milliCpu,
      memoryNonZero: nonZero.memory,
      scalars,
    };
    return this.#interner.acquire(JSON.stringify(usage), () => usage);
  }

  retain(id: number): void {
    this.#interner.retain(id);
  }

  release(id: number): void {
    this.#interner.release(id);
  }

  get(id: number): Usage {
    return this.#interner.get(id);
  }

  /** A usage in the form of requests. */
  requestsOf(id: number): { readonly requests: Resources; readonly requestsNonZero: Resources } {
    const { milliCpu, memory, ephemeral, milliCpuNonZero, memoryNonZero, scalars } = this.get(id);
    const amounts = scalars.map(({ scalar, amount }): [string, number] => {
      return [this.#scalars.names[scalar] ?? '', amount];
    });
    const requests = { milliCpu, memory, ephemeral, scalars: new Map(amounts) };
    const nonZero = { milliCpu: milliCpuNonZero, memory: memoryNonZero };
    return { requests, requestsNonZero: { ...requests, ...nonZero } };
  }
}
