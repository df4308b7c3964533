/** Programs that a benchmark has started: they end with it, however it ends. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

/** Shells tell a program that ended by signal n by this and n. */
const SIGNAL_EXIT = 128;
const running: Set<ChildProcess> = new Set();

function endAll(signal: NodeJS.Signals): void {
  for (const child of running) child.kill('SIGTERM');
  process.exit(SIGNAL_EXIT + constants.signals[signal]);
}

/**
 * Answers the child, which is told to end when this process is. What a terminal interrupts it
 * interrupts whole: that is not passed on.
 */
export function adopt<T extends ChildProcess>(child: T): T {
  if (running.size === 0) process.on('SIGTERM', endAll).on('SIGHUP', endAll);
  running.add(child);
  child.once('exit', () => {
    running.delete(child);
    if (running.size === 0) process.off('SIGTERM', endAll).off('SIGHUP', endAll);
  });
  return child;
}
