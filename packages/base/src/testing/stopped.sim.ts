// shell: signals a process of a test
/** A process that SIGSTOP holds up, for sure. */
import { readdirSync, readFileSync } from 'node:fs';

const WAIT_MS_MAX = 10_000;
const pause = new Int32Array(new SharedArrayBuffer(4));

/**
 * Sends SIGSTOP and waits, without letting go of the thread, until each thread of the process
 * stands: before, one on another core may still answer.
 */
export function holdUp(pid: number): void {
  process.kill(pid, 'SIGSTOP');
  const endMs = performance.now() + WAIT_MS_MAX;
  while (threadsOf(pid).some((state) => state !== 'T')) {
    if (performance.now() > endMs) throw new Error(`${pid} does not stop`);
    Atomics.wait(pause, 0, 0, 1);
  }
}

/** A letter for each thread, as proc(5) has them; none where the system does not tell. */
function threadsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/task`;
  try {
    return readdirSync(folder).map((thread) => {
      const stat = readFileSync(`${folder}/${thread}/stat`, 'utf8');
      return stat.charAt(stat.lastIndexOf(')') + 2);
    });
  } catch {
    return [];
  }
}
