// shell: runs a program of the bench folder
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, '../../../bench');

/** Runs `bench/<name>.ts` with `flags` in the foreground. Resolves with its exit code. */
export function runBench(name: string, flags: readonly string[]): Promise<number> {
  const program = join(FOLDER, `${name}.ts`);
  if (!existsSync(program)) {
    throw new Error(`bench ${name}: ${program} is not there; benchmarks run in a checkout`);
  }
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...flags], { stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}
