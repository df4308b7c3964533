/**
 * All orders in which two threads can do what they do to shared memory.
 *
 * The code under test is the real one. `Atomics` is replaced while it runs: each call is a step,
 * and the search decides whose step is next, for every choice there is. A participant is a function
 * that is run from its start for each step, with the results that its earlier steps had; a step
 * after those it has taken so far suspends it by an exception.
 *
 * Plain memory is where it belongs, too: the writer writes the same octets each time it is run, and
 * the reader sees memory as it was at its own steps. States that were reached before, by whichever
 * order, are not looked at again.
 */
import assert from 'node:assert/strict';

/** What a participant does beside `Atomics`. */
export interface Steps {
  /** Waits until somebody rang for it. */
  waitForBell(): void;
  /** Wakes the other one. */
  ring(): void;
  /** Somebody else may have steps here. */
  pause(): void;
}

/** Runs to its end on this memory; called again and again. */
export type Participant = (memory: SharedArrayBuffer, steps: Steps) => void;

interface Taken {
  readonly result: number;
  /** Memory as it was after the step. */
  readonly memory: Uint8Array;
}

interface State {
  readonly memory: Uint8Array;
  /** By participant. */
  readonly taken: readonly (readonly Taken[])[];
  readonly bells: readonly number[];
  readonly isOver: readonly boolean[];
  readonly path: string;
}

const SUSPENDED = Symbol('suspended');

/** What may happen next to a participant: nothing while it waits for a bell that did not ring. */
const BLOCKED = Symbol('blocked');

export class Interleavings {
  readonly #participants: readonly Participant[];
  readonly #memory: SharedArrayBuffer;
  readonly #view: SharedArrayBuffer;
  /** Orders looked at, as far as they differ. */
  states = 0;

  constructor(bytes: number, participants: readonly Participant[]) {
    this.#participants = participants;
    this.#memory = new SharedArrayBuffer(bytes);
    this.#view = new SharedArrayBuffer(bytes);
  }

  /**
   * Calls `atEnd` in every state from which nobody goes on: `over` tells who came to an end. The
   * first participant has taken `ahead` steps before the other has its first.
   */
  search(ahead: number, atEnd: (over: readonly boolean[], path: string) => void): void {
    const seen = new Set<string>();
    const none = this.#participants.map(() => []);
    let first: State = {
      memory: new Uint8Array(this.#memory.byteLength),
      taken: none,
      bells: none.map(() => 0),
      isOver: none.map(() => false),
      path: '',
    };
    for (let count = 0; count < ahead; count++) {
      const next = this.#step(first, 0);
      assert(next !== null, 'who is ahead does not wait');
      first = next;
    }
    const open = [first];
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      this.states++;
      let count = 0;
      for (const index of this.#participants.keys()) {
        const next = state.isOver[index] === true ? null : this.#step(state, index);
        if (next === null) continue;
        count++;
        const key = keyOf(next);
        if (seen.has(key)) continue;
        seen.add(key);
        open.push(next);
      }
      if (count === 0) atEnd(state.isOver, state.path);
    }
  }

  /** One step of one participant, and what follows up to its next one; null: it waits. */
  #step(state: State, index: number): State | null {
    const memory = new Uint8Array(this.#memory);
    memory.set(state.memory);
    const taken = [...(state.taken[index] ?? [])];
    const bells = [...state.bells];
    const replayed = taken.length;
    // who writes plain memory writes to all of it, who reads sees what was there then
    const isWriter = index === 0;
    const own = new Uint8Array(isWriter ? this.#memory : this.#view);
    let at = 0;
    const step = (act: () => number): number => {
      const known = taken[at];
      if (known !== undefined) {
        at++;
        if (!isWriter) own.set(known.memory);
        return known.result;
      }
      if (at > replayed) throw SUSPENDED;
      const result = act();
      at++;
      taken.push({ result, memory: memory.slice() });
      if (!isWriter) own.set(memory);
      return result;
    };
    const words = new Int32Array(this.#memory);
    const steps: Steps = {
      waitForBell: () => {
        step(() => {
          if ((bells[index] ?? 0) === 0) throw BLOCKED;
          bells[index] = 0;
          return 0;
        });
      },
      ring: () => void step(() => (bells[1 - index] = 1)),
      pause: () => void step(() => 0),
    };
    const end = this.#run(index, isWriter ? this.#memory : this.#view, steps, words, step);
    if (end === 'blocked') return null;
    const isOver = state.isOver.map((each, other) => (other === index ? end === 'over' : each));
    return {
      memory: memory.slice(),
      taken: state.taken.map((each, other) => (other === index ? taken : each)),
      bells,
      isOver,
      path: state.path + String(index),
    };
  }

  #run(
    index: number,
    memory: SharedArrayBuffer,
    steps: Steps,
    words: Int32Array,
    step: (act: () => number) => number,
  ): 'over' | 'suspended' | 'blocked' {
    const real = globalThis.Atomics;
    const replaced: Partial<typeof Atomics> = {
      load: ((_: Int32Array, at: number) => step(() => real.load(words, at))) as never,
      store: ((_: Int32Array, at: number, value: number) =>
        step(() => real.store(words, at, value))) as never,
      exchange: ((_: Int32Array, at: number, value: number) =>
        step(() => real.exchange(words, at, value))) as never,
    };
    globalThis.Atomics = replaced as typeof Atomics;
    try {
      this.#participants[index]?.(memory, steps);
      return 'over';
    } catch (error) {
      if (error === SUSPENDED) return 'suspended';
      if (error === BLOCKED) return 'blocked';
      throw error;
    } finally {
      globalThis.Atomics = real;
    }
  }
}

/** Two orders that led to the same memory, results and bells have the same future. */
function keyOf({ memory, taken, bells, isOver }: State): string {
  const results = taken.map((each) => each.map(({ result }) => result).join(',')).join('|');
  assert(results.length < 1e5);
  return `${Buffer.from(memory).toString('latin1')}#${results}#${bells.join()}#${isOver.join()}`;
}
