// data plane: what one watcher reads for many
/**
 * Watchers of a range that stand at the same place read the same events. The reading that is
 * under way, or was the last one, has a number; whoever stands where it began gets that number,
 * and may pass to its end without reading.
 */
export class WatchReading {
  #number = 0;
  #range = 0;
  #state = 0;
  #revision = 0;
  #sub = 0;
  endState = 0;
  endRevision = 0;
  endSub = 0;

  /** The number of a reading from a place: the last one's if it began there, else a new one. */
  numberOf(range: number, state: number, revision: number, sub: number): number {
    const isSame =
      range === this.#range &&
      state === this.#state &&
      revision === this.#revision &&
      sub === this.#sub;
    if (isSame) return this.#number;
    this.#range = range;
    this.#state = state;
    this.#revision = revision;
    this.#sub = sub;
    return ++this.#number;
  }

  end(state: number, revision: number, sub: number): void {
    this.endState = state;
    this.endRevision = revision;
    this.endSub = sub;
  }

  /** Ranges or events have changed: no place is the same as before. */
  forget(): void {
    this.#range = 0;
  }
}
