/**
 * Who waits for which revision. Waits are mostly made in rising order, so that adding is putting
 * at the end; taking is from the front.
 */
export interface Wait {
  readonly revision: number;
  readonly deadlineMs: number;
  /** False: the revision did not come in time. */
  readonly done: (isReached: boolean) => void;
}

export class RevisionQueue {
  #waits: Wait[] = [];
  #first = 0;

  get size(): number {
    return this.#waits.length - this.#first;
  }

  add(wait: Wait): void {
    const waits = this.#waits;
    let at = waits.length;
    for (let before = waits[at - 1]; before !== undefined && at > this.#first;) {
      if (before.revision <= wait.revision) break;
      at--;
      before = waits[at - 1];
    }
    waits.splice(at, 0, wait);
  }

  /** Ends the waits for revisions up to `revision`. */
  reach(revision: number): void {
    for (;;) {
      const wait = this.#waits[this.#first];
      if (wait === undefined || wait.revision > revision) break;
      this.#first++;
      wait.done(true);
    }
    if (this.#first > 1024 || this.#first === this.#waits.length) {
      this.#waits = this.#waits.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Ends the waits whose time is over. */
  expire(nowMs: number): void {
    const late = this.#waits.slice(this.#first).filter((wait) => wait.deadlineMs <= nowMs);
    if (late.length === 0) return;
    this.#waits = this.#waits.slice(this.#first).filter((wait) => wait.deadlineMs > nowMs);
    this.#first = 0;
    for (const wait of late) wait.done(false);
  }
}
