// shell
/**
 * How long one round of the event loop reads.
 *
 * All that has come on all sockets would be handed over before anything else has its turn: with ten
 * busy connections that is 4 MB and 30 ms, and timers, background work and whoever sent one small
 * request wait for it. Here, once the reads of a round have taken their time, sockets that have
 * more rest until the next round. What was not read then is read first, as the kernel's list of
 * ready sockets begins with those that waited longest.
 */

/** A socket that gave so much at once may have more, in this round or soon. */
const LOUD_BYTES_MIN: number = 32 * 1024;
/** Rounds after which it counts as quiet again. */
const LOUD_ROUNDS = 64;

/** A socket that can stop reading for a while. */
export interface RestingReader {
  /** Number of the round in which it was loud last; 0 while it counts as quiet. */
  loudRound: number;
  isResting: boolean;
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
  #isOpen = false;
  #startMs = 0;
  #isOver = false;
  #resting: RestingReader[] = [];
  #loud: RestingReader[] = [];

  constructor(world: RoundsWorld, readMsMax: number) {
    this.#world = world;
    this.#readMsMax = readMsMax;
  }

  /** Before what was read is handled. */
  begin(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#startMs = this.#world.nowMs();
    this.#world.afterRound(this.#end);
  }

  /** After `count` octets of a socket were handled: whether it may read on in this round. */
  goesOn(reader: RestingReader, count: number): boolean {
    if (count >= LOUD_BYTES_MIN) {
      if (reader.loudRound === 0) this.#loud.push(reader);
      reader.loudRound = this.#round;
    }
    if (this.#world.nowMs() - this.#startMs < this.#readMsMax) return true;
    if (!this.#isOver) {
      this.#isOver = true;
      for (const loud of this.#loud) this.#rest(loud);
    }
    this.#rest(reader);
    return false;
  }

  #rest(reader: RestingReader): void {
    if (reader.isResting) return;
    reader.isResting = true;
    this.#resting.push(reader);
    reader.rest();
  }

  readonly #end = (): void => {
    const resting = this.#resting;
    this.#resting = [];
    this.#isOpen = false;
    this.#isOver = false;
    this.#round++;
    if (this.#round % LOUD_ROUNDS === 0) this.#forgetQuiet();
    for (const reader of resting) {
      reader.isResting = false;
      reader.wake();
    }
  };

  #forgetQuiet(): void {
    this.#loud = this.#loud.filter((reader) => {
      if (this.#round - reader.loudRound < LOUD_ROUNDS) return true;
      reader.loudRound = 0;
      return false;
    });
  }
}
