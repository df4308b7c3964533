// shell: runs a program of the bench folder
import { guarded } from '@megaplane/base/deferred';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

/** Shells tell a program that ended by signal n by this and n. */
const SIGNAL_EXIT = 128;
const FOLDER = join(import.meta.dirname, '../../../../bench');

/** Runs `bench/<name>.ts` with `flags` in the foreground. Resolves with its exit code. */
export function runBench(name: string, flags: readonly string[]): Promise<number> {
  const program = join(FOLDER, `${name}.ts`);
  if (!existsSync(program)) {
    throw new Error(`bench ${name}: ${program} is not there; benchmarks run in a checkout`);
  }
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...flags], { stdio: 'inherit' });
    // what is meant for the benchmark ends it; this process waits for how it does
    const pass = guarded((signal: NodeJS.Signals) => void child.kill(signal));
    process.on('SIGINT', pass).on('SIGTERM', pass);
    child.on('error', guarded(reject));
    child.on(
      'exit',
      guarded((code, signal) => {
        process.off('SIGINT', pass).off('SIGTERM', pass);
        resolve(code ?? SIGNAL_EXIT + constants.signals[signal ?? 'SIGTERM']);
      }),
    );
  });
}
