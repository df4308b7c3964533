/**
 * How long the log's disk takes, in memory that both threads see: the worker records, the main
 * thread shows. Bounds are those of etcd's disk metrics.
 */
import { BoundedHistogram } from '@megaplane/base/histogram';

/** From 1 ms on, doubled 13 times. */
const DISK_BOUNDS_S = Array.from({ length: 14 }, (_, n) => 2 ** n / 1000);
/** From 10 ms on, doubled 16 times. */
const SNAPSHOT_BOUNDS_S = Array.from({ length: 17 }, (_, n) => 2 ** n / 100);
const CELLS = SNAPSHOT_BOUNDS_S.length + 2;
const CELL_BYTES = 8;

export class DiskTimes {
  readonly memory: SharedArrayBuffer;
  /** Flushes of the log that answers waited for. */
  readonly flushes: BoundedHistogram;
  /** Writes of a group of frames to the operating system. */
  readonly writes: BoundedHistogram;
  /** Snapshots, from the first byte to the name. */
  readonly snapshots: BoundedHistogram;
  readonly #bytes: Float64Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer((3 * CELLS + 1) * CELL_BYTES)) {
    this.memory = memory;
    const part = (index: number, bounds: readonly number[]): BoundedHistogram => {
      const cells = new Float64Array(memory, index * CELLS * CELL_BYTES, bounds.length + 2);
      return new BoundedHistogram(bounds, cells);
    };
    this.flushes = part(0, DISK_BOUNDS_S);
    this.writes = part(1, DISK_BOUNDS_S);
    this.snapshots = part(2, SNAPSHOT_BOUNDS_S);
    this.#bytes = new Float64Array(memory, 3 * CELLS * CELL_BYTES, 1);
  }

  /** Bytes handed to the log's files. */
  get writtenBytes(): number {
    return this.#bytes[0] ?? 0;
  }

  addWritten(bytes: number): void {
    this.#bytes[0] = this.writtenBytes + bytes;
  }
}
