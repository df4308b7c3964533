/** Images that nodes hold: interned sets, and how many nodes hold each image. */
import { Interner } from '../collections/interner.ts';
import type { NodeImage } from './node-facts.ts';
import type { ImageState } from '../framework/node-info.ts';

interface ImageRecord {
  /** Of the first node that had it, kept while any node has it, as upstream does. */
  readonly sizeBytes: number;
  nodes: number;
}

export class ImageTable {
  readonly #sets = new Interner<readonly string[]>();
  readonly #records = new Map<string, ImageRecord>();
  #version = 0;

  constructor() {
    // Number 0 is the empty set and stays in use.
    this.#sets.acquire('', () => []);
  }

  /** Counts changes of what is held where. */
  get version(): number {
    return this.#version;
  }

  get epoch(): number {
    return this.#sets.epoch;
  }

  /** A node holds these images. Returns the number of their set. */
  acquire(images: readonly NodeImage[]): number {
    if (images.length > 0) this.#version++;
    for (const { name, sizeBytes } of images) {
      const record = this.#records.get(name);
      if (record === undefined) this.#records.set(name, { sizeBytes, nodes: 1 });
      else record.nodes++;
    }
    const names = images.map(({ name }) => name);
    return this.#sets.acquire(names.join('\n'), () => names);
  }

  /** Whether a set is made of just these images. */
  equals(set: number, images: readonly NodeImage[]): boolean {
    const names = this.#sets.get(set);
    return (
      names.length === images.length && images.every(({ name }, index) => name === names[index])
    );
  }

  release(set: number): void {
    const names = this.#sets.get(set);
    if (names.length > 0) this.#version++;
    for (const name of names) {
      const record = this.#records.get(name);
      if (record !== undefined && --record.nodes === 0) this.#records.delete(name);
    }
    this.#sets.release(set);
  }

  /** Names of a set; the same array as long as the set is in use. */
  namesOf(set: number): readonly string[] {
    return this.#sets.get(set);
  }

  /** All images that any node holds. */
  get records(): Iterable<readonly [string, ImageState]> {
    return this.#records;
  }

  /** Whether any node holds one of these images. */
  holdsAny(names: readonly string[]): boolean {
    return names.some((name) => this.#records.has(name));
  }

  /** What each image of a set weighs; the values go on counting. */
  statesOf(set: number): ReadonlyMap<string, ImageState> {
    const states = new Map<string, ImageState>();
    for (const name of this.#sets.get(set)) {
      const record = this.#records.get(name);
      if (record !== undefined) states.set(name, record);
    }
    return states;
  }

  /** Sum of the sizes of those images that the set holds, each by the share of nodes with it. */
  scaledBytes(set: number, names: readonly string[], nodeCount: number): number {
    const held = this.#sets.get(set);
    let sum = 0;
    for (const name of names) {
      const record = this.#records.get(name);
      if (record === undefined || !held.includes(name)) continue;
      sum += Math.trunc(record.sizeBytes * (record.nodes / nodeCount));
    }
    return sum;
  }
}
