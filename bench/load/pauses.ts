/** Pauses of the collector, as `--trace-gc` prints them. */

/** `… Scavenge 31.1 (53.3) -> 15.9 (54.3) MB, pooled: 0 MB, 1.86 / 0.00 ms  (…) task;` */
const COLLECTION = /MB, (?:pooled: [\d.]+ MB, )?([\d.]+) \/ [\d.]+ ms/;

/** Keeps the longest of them. */
export class Pauses {
  longestMs = 0;

  /** A line of the program, of whatever kind. */
  take(line: string): void {
    const ms = Number(COLLECTION.exec(line)?.[1] ?? 0);
    this.longestMs = Math.max(this.longestMs, ms);
  }

  clear(): void {
    this.longestMs = 0;
  }
}
