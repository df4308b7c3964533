/** What watches of one version of a resource were sent, under upstream's names. */
import { Histogram } from './histogram.ts';

const BOUNDS_BYTES = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072] as const;

export class WatchCounts {
  readonly sizes: Histogram = new Histogram(BOUNDS_BYTES);
  /** Objects that watches began with. */
  initial = 0;

  sent(bytes: number): void {
    this.sizes.observe(bytes);
  }

  began(bytes: number): void {
    this.initial++;
    this.sizes.observe(bytes);
  }
}
