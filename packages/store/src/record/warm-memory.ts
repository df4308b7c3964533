// shell: memory that another thread touches first
/**
 * The first touch of memory makes the system find it and clear it: 6 to 12 ms for the 4 MiB of an
 * arena in large pages, where the host took them back, and as long everything else waits. Reading
 * zeros into it does that on a thread of the runtime's pool.
 */
import { openSync, read } from 'node:fs';
import type { Warmer } from './arenas.ts';

const ZEROS = '/dev/zero';
/** Whoever asks less often waits for memory so seldom that it may as well. */
const PAUSE_MS_MAX = 2000;

export class MemoryWarmer implements Warmer {
  /** -1 where there is no such file, null before it was looked for. */
  #fd: number | null = null;
  #askedMs = -Infinity;

  warm(sizeBytes: number, done: (memory: SharedArrayBuffer) => void): boolean {
    const nowMs = performance.now();
    const isOften = nowMs - this.#askedMs < PAUSE_MS_MAX;
    this.#askedMs = nowMs;
    if (!isOften) return false;
    this.#fd ??= openZeros();
    if (this.#fd < 0) return false;
    const memory = new SharedArrayBuffer(sizeBytes);
    // What could not be read is cold, and as good as any other.
    read(this.#fd, new Uint8Array(memory), 0, sizeBytes, null, () => done(memory));
    return true;
  }
}

function openZeros(): number {
  try {
    return openSync(ZEROS, 'r');
  } catch {
    return -1;
  }
}
