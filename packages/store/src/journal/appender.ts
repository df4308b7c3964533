/** Appends of one writer: made again until it is known what came of them. */
import { type Entry, encodeEntry, pieces } from './entry.ts';
import type { Journal } from './journal.ts';

const PAUSE_MS = 50;
const FULL_PAUSE_MS = 250;
const READ_WAIT_MS = 500;

export type Settled =
  | { readonly kind: 'written' }
  /** Something else stands in its place. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'gone'; readonly why: string };

/** The part of the world that an appender needs. */
export interface AppenderWorld {
  pause(ms: number): Promise<void>;
  log(message: string): void;
}

export class Appender {
  readonly #journal: Journal;
  readonly #world: AppenderWorld;
  readonly #isOver: () => boolean;

  constructor(journal: Journal, world: AppenderWorld, isOver: () => boolean) {
    this.#journal = journal;
    this.#world = world;
    this.#isOver = isOver;
  }

  /** A group as payloads of entries. */
  pieces(payload: Buffer): Buffer[] {
    return pieces(payload, this.#journal.entryBytesMax);
  }

  /**
   * Writes an entry behind `expected`. A change of anything in it would be another append: so it
   * is made again as it is, until the engine says that it stands, or something else does.
   * `onFull` is called when there is no room, and there is then waited for it.
   */
  async append(entry: Entry, expected: number, onFull: () => void = () => {}): Promise<Settled> {
    const bytes = encodeEntry(entry);
    let told = '';
    while (!this.#isOver()) {
      const outcome = await this.#journal.append(bytes, expected);
      switch (outcome.kind) {
        case 'appended':
          return { kind: 'written' };
        case 'gone':
          return outcome;
        case 'moved':
          return await this.#look(bytes, expected + 1);
        case 'full':
          onFull();
          await this.#world.pause(FULL_PAUSE_MS);
          break;
        case 'unknown':
        case 'unavailable':
          await this.#world.pause(PAUSE_MS);
          break;
      }
      if ('why' in outcome && outcome.why !== told) {
        told = outcome.why;
        this.#world.log(`entry ${expected + 1} is not written yet: ${told}`);
      }
    }
    return { kind: 'lost' };
  }

  /** Is what stands there an earlier attempt of the same? */
  async #look(bytes: Buffer, position: number): Promise<Settled> {
    while (!this.#isOver()) {
      const outcome = await this.#journal.read(position, READ_WAIT_MS);
      switch (outcome.kind) {
        case 'entries': {
          const [found] = outcome.entries;
          if (found !== undefined) {
            return { kind: found.bytes.equals(bytes) ? 'written' : 'lost' };
          }
          break;
        }
        // Trimmed by a later leader.
        case 'trimmed':
          return { kind: 'lost' };
        case 'gone':
          return outcome;
        case 'unavailable':
          await this.#world.pause(PAUSE_MS);
      }
    }
    return { kind: 'lost' };
  }
}
