// shell: child processes
/** Commands as groups of processes, so that nothing that they have started outlives them or us. */
import { guarded } from '@megaplane/base/deferred';
import type { ChildProcess } from 'node:child_process';

const running: Set<ChildProcess> = new Set();
let isWatching = false;

/** Keeps a command that was spawned `detached`: it ends with this process at the latest. */
export function keepGroup(child: ChildProcess): void {
  if (!isWatching)
    process.on(
      'exit',
      guarded(() => running.forEach(killGroup)),
    );
  isWatching = true;
  running.add(child);
  child.on(
    'close',
    guarded(() => running.delete(child)),
  );
}

/** Ends the command and all that it has started. */
export function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    const isGone = exitCode !== null || signalCode !== null;
    if (!isGone && (error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
