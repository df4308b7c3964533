// shell: the process that started this one
/**
 * Whoever kills the process that stands for the program means the program. Where the real one is
 * its child (a starter under a Node that cannot replace itself, npx), the child ends with it, as on
 * SIGTERM. A parent that dies is not told of; the kernel gives its children another parent.
 */

import { everyMs } from '@megaplane/base/deferred';
import { readFileSync } from 'node:fs';

/** Set by the starter: its process id. */
const PARENT = 'MEGAPLANE_PARENT';
/** Between two looks. */
const LOOK_MS = 500;

/** Sends this process SIGTERM once the one that started it for its user is gone. */
export function endWithParent(env: NodeJS.ProcessEnv): void {
  const isGone = watchOf(env);
  // The program's own children have other parents.
  delete env[PARENT];
  if (isGone === null) return;
  const timer = everyMs(LOOK_MS, () => {
    if (!isGone()) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  });
  timer.unref();
}

/** How to tell that it is gone; null where there is none to end with. */
function watchOf(env: NodeJS.ProcessEnv): (() => boolean) | null {
  const starter = Number(env[PARENT] ?? 0);
  const isNpx = isStartedByNpx(env);
  if (starter === 0 && !isNpx) return null;
  const chain = [starter > 0 ? starter : process.ppid];
  // npm's shell, or npm itself where the shell made way for its one command.
  if (starter > 0 && isNpx) chain.push(parentOf(starter));
  const last = chain.at(-1) ?? 0;
  if (isNpx && isShell(last)) chain.push(parentOf(last));
  return () =>
    process.ppid !== chain[0] ||
    chain.slice(1).some((pid, index) => parentOf(chain[index] ?? 0) !== pid);
}

/** With `npx megaplane ...` npm, or its shell, waits for this process and for nothing else. */
function isStartedByNpx(env: NodeJS.ProcessEnv): boolean {
  const script = env['npm_lifecycle_script'] ?? '';
  return env['npm_lifecycle_event'] === 'npx' && /^\W*megaplane\b/.test(script);
}

/** Does a shell run there with one command? */
function isShell(pid: number): boolean {
  return /^\S*sh\0-c\0/.test(fileOf(pid, 'cmdline'));
}

/** Of a process by its id, where the system tells; else 0. */
function parentOf(pid: number): number {
  const stat = fileOf(pid, 'stat');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
}

function fileOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    return '';
  }
}
