/**
 * How much background work a turn may do. Where turns are long, one slice in each would fall behind
 * what they write: a snapshot keeps all that is replaced while it is written, and took minutes in a
 * busy server, at a gigabyte of memory that was touched for it alone.
 */

/** Share of the time since the last slices that the next ones may take. */
const SLICES_SHARE = 1 / 3;
/** However long that was: requests wait meanwhile. */
const SLICES_MS_MAX = 4;

export class Slices {
  readonly #clockMs: () => number;
  #endedMs: number;

  /** `clockMs` is monotonic. */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs;
    this.#endedMs = clockMs();
  }

  /** One slice, and more while the last one says that there is more to do and time lasts. */
  run(slice: (nowMs: number) => boolean): void {
    const fromMs = this.#clockMs();
    const toMs = fromMs + Math.min(SLICES_MS_MAX, (fromMs - this.#endedMs) * SLICES_SHARE);
    let nowMs = fromMs;
    while (slice(nowMs)) {
      nowMs = this.#clockMs();
      if (nowMs >= toMs) break;
    }
    this.#endedMs = this.#clockMs();
  }
}
