// shell
/**
 * How long one round of the event loop reads.
 *
 * All that has come on all sockets would be handed over before anything else has its turn: with ten
 * busy connections that is 4 MB and 30 ms, and timers, background work and whoever sent one small
 * request wait for it. Here, once the reads of a round have taken their time, sockets that have
 * more rest until the next round. Those that were read rest until all others had their turn: the
 * kernel names ready sockets in the same order each time, so that the first ones would take every
 * round, and the last ones none.
 */
import type { Rest } from '../http/exchange.ts';

/** A socket that gave so much in a round may have more, in this one or soon. */
const LOUD_BYTES_MIN: number = 8 * 1024;
/** So does one whose few octets took so long: a hundred watches are opened by 4 KB. */
const LOUD_MS_MIN = 3;
/** Rounds after which it counts as quiet again. */
const LOUD_ROUNDS = 64;

/** A socket that can stop reading for a while. */
export interface RestingReader {
  /** Number of the round in which it was loud last; 0 while it counts as quiet. */
  loudRound: number;
  /** Number of the round in which it was read last, and what it gave in that one. */
  readRound: number;
  readBytes: number;
  /** How long handling that took. */
  readMs: number;
  /** Number of the cycle in which it was loud last. */
  readCycle: number;
  isResting: boolean;
  /** When it rests, as is known now. */
  restOf(): Rest;
  /** Reads nothing from here on. */
  rest(): void;
  /** Reads again, unless somebody paused it meanwhile. */
  wake(): void;
}

/** What the rounds need of the world. */
export interface RoundsWorld {
  nowMs(): number;
  /** Calls when this round has read, before the next one. */
  afterRound(callback: () => void): void;
}

export class ReadRounds {
  readonly #world: RoundsWorld;
  readonly #readMsMax: number;
  #round = 1;
  /** Ends when everybody who is loud has been read since it began, or had nothing. */
  #cycle = 1;
  #isOpen = false;
  #isEndPlanned = false;
  #startMs = 0;
  /** When the handling of what was read last began. */
  #handledMs = 0;
  #isOver = false;
  #resting: RestingReader[] = [];
  #loud: RestingReader[] = [];

  constructor(world: RoundsWorld, readMsMax: number) {
    this.#world = world;
    this.#readMsMax = readMsMax;
  }

  /** Before what was read is handled. */
  begin(): void {
    this.#handledMs = this.#world.nowMs();
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#startMs = this.#handledMs;
    this.#planEnd();
  }

  /** After `count` octets of a socket were handled: whether it may read on in this round. */
  goesOn(reader: RestingReader, count: number): boolean {
    if (reader.readRound !== this.#round) {
      reader.readRound = this.#round;
      reader.readBytes = 0;
      reader.readMs = 0;
    }
    const nowMs = this.#world.nowMs();
    reader.readBytes += count;
    reader.readMs += nowMs - this.#handledMs;
    // so little is all that it had, and to rest costs more than to look again
    if (reader.readBytes < LOUD_BYTES_MIN && reader.readMs < LOUD_MS_MIN) return true;
    if (reader.loudRound === 0) this.#loud.push(reader);
    reader.loudRound = this.#round;
    reader.readCycle = this.#cycle;
    if (nowMs - this.#startMs < this.#readMsMax) {
      return reader.restOf() !== 'now' || !this.#rest(reader);
    }
    if (!this.#isOver) {
      this.#isOver = true;
      for (const loud of this.#loud) this.#rest(loud);
    }
    return !this.#rest(reader);
  }

  #rest(reader: RestingReader): boolean {
    if (reader.isResting) return true;
    if (reader.restOf() === 'never') return false;
    reader.isResting = true;
    this.#resting.push(reader);
    reader.rest();
    return true;
  }

  #planEnd(): void {
    if (this.#isEndPlanned) return;
    this.#isEndPlanned = true;
    this.#world.afterRound(this.#end);
  }

  readonly #end = (): void => {
    const isLate = this.#isOver && this.#resting.some((reader) => this.#isNext(reader));
    const woken = isLate ? this.#resting.filter((reader) => this.#isNext(reader)) : this.#resting;
    this.#resting = isLate ? this.#resting.filter((reader) => !this.#isNext(reader)) : [];
    if (!isLate) this.#cycle++;
    this.#isOpen = false;
    this.#isEndPlanned = false;
    this.#isOver = false;
    this.#round++;
    if (this.#round % LOUD_ROUNDS === 0) this.#forgetQuiet();
    // even if nobody has anything to read in the next round
    if (this.#resting.length > 0) this.#planEnd();
    for (const reader of woken) {
      reader.isResting = false;
      reader.wake();
    }
  };

  /** Was not read in this cycle. */
  #isNext(reader: RestingReader): boolean {
    return reader.readCycle !== this.#cycle;
  }

  #forgetQuiet(): void {
    this.#loud = this.#loud.filter((reader) => {
      if (this.#round - reader.loudRound < LOUD_ROUNDS) return true;
      reader.loudRound = 0;
      return false;
    });
  }
}
