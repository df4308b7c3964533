/**
 * The times that leases are renewed at. kube-controller-manager takes a lease for renewed when its
 * time is later than the one before, so these never go back: after the wall clock was set back, or
 * for leases that another machine has renewed with a clock ahead of ours, they creep on until the
 * clock has come after them.
 */

/** How much slower than time itself they go on while the clock is behind. */
const CREEP_FACTOR = 100;
/** Renewals further ahead than this are no clock's that was set back, and are not waited for. */
const AHEAD_MS_MAX = 86_400_000;
const RENEW_TIME = Buffer.from('"renewTime":"');
/** `2026-01-02T03:04:05.678901Z` */
const MICRO_TIME_LENGTH = 27;

export interface KubeletClock {
  /** Milliseconds that no setting of the clock changes: for intervals. */
  steadyMs(): number;
  /** Milliseconds since 1970 by the machine's clock, which may be set back: for stamps. */
  wallMs(): number;
}

export class RenewTimes {
  readonly #clock: KubeletClock;
  #lastMs = -Infinity;
  #steadyMs: number;

  constructor(clock: KubeletClock) {
    this.#clock = clock;
    this.#steadyMs = clock.steadyMs();
  }

  /** Milliseconds since 1970 to renew with now. */
  next(): number {
    const steadyMs = this.#clock.steadyMs();
    const wallMs = this.#clock.wallMs();
    const creptMs = this.#lastMs + Math.max(0, steadyMs - this.#steadyMs) / CREEP_FACTOR;
    this.#steadyMs = steadyMs;
    this.#lastMs = Math.max(wallMs, creptMs);
    return this.#lastMs;
  }

  /** A lease from before, as JSON: later ones are later than it, too. Its time; NaN: none. */
  observe(bytes: Uint8Array, start: number, end: number): number {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const at = buffer.subarray(0, end).indexOf(RENEW_TIME, start);
    if (at < 0) return NaN;
    const from = at + RENEW_TIME.length;
    const text = buffer.toString('latin1', from, Math.min(end, from + MICRO_TIME_LENGTH));
    if (!text.endsWith('Z')) return NaN;
    const timeMs = Date.parse(text);
    if (Number.isNaN(timeMs) || timeMs > this.#clock.wallMs() + AHEAD_MS_MAX) return NaN;
    this.#lastMs = Math.max(this.#lastMs, timeMs + 1);
    return timeMs;
  }
}
