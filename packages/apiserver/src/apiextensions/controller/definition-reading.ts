/**
 * Reads the definitions that a start finds, some in each turn: ten thousand take the better part of
 * a second, for which nobody waits who asks for a pod. A kind that is asked for is read at once,
 * and all that is left as soon as somebody has to know every kind.
 */
import type { UnreadKinds } from '../schema/kind-registry.ts';
import { emptyRow, type Row, type Storage } from '../../storage/storage.ts';
import { DEFINITIONS_PREFIX } from '../../storage/served.ts';

/** Of one turn: a millisecond. */
const SLICE = 16;
/** What is read before the first request. */
const FIRST_SLICE = 64;

const row = emptyRow();

export interface ReadingParts {
  readonly storage: Storage;
  readonly start: Buffer;
  readonly end: Buffer;
  /** Takes over what a stored definition says; must not read kinds of other definitions. */
  readonly learn: (definition: Row) => void;
  /** Called once, when every definition was learned. */
  readonly done: () => void;
}

export class DefinitionReading implements UnreadKinds {
  readonly #parts: ReadingParts;
  /** Everything before this key is read; null when all is. */
  #from: Buffer | null;
  #isReading = false;

  constructor(parts: ReadingParts) {
    this.#parts = parts;
    this.#from = parts.start;
  }

  /** Reads a few now and the others by `defer`. */
  begin(defer: (work: () => void) => void): void {
    const go = (): void => {
      if (this.#read(SLICE)) defer(go);
    };
    if (this.#read(FIRST_SLICE)) defer(go);
  }

  one(name: string): void {
    const { storage, learn } = this.#parts;
    if (storage.get(Buffer.from(DEFINITIONS_PREFIX + name), row)) learn(row);
  }

  rest(): void {
    this.#read(Infinity);
  }

  /** True while something is left. */
  #read(most: number): boolean {
    const { storage, end, learn, done } = this.#parts;
    if (this.#from === null || this.#isReading) return this.#from !== null;
    let left = most;
    let last: Buffer | null = null;
    this.#isReading = true;
    try {
      storage.page(this.#from, end, 0, (definition) => {
        if (left-- === 0) return false;
        if (left === 0) last = keyAfter(definition);
        learn(definition);
        return true;
      });
    } finally {
      this.#isReading = false;
    }
    this.#from = left < 0 ? last : null;
    if (this.#from === null) done();
    return this.#from !== null;
  }
}

function keyAfter({ key, keyStart, keyEnd }: Row): Buffer {
  return Buffer.concat([key.subarray(keyStart, keyEnd), Buffer.of(0)]);
}
