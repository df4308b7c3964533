// shell: the entry of a pack
/** What a pack runs (`pack/pack.ts`): one command, and no code but for that. */
import { enableCompileCache } from 'node:module';
import type { Command } from 'commander';
import { bareProgram, outliveReaders, runProgram, strict, toldExit } from './command-line.ts';

type MakeCommand = (done: (exitCode: number) => void) => Command;
/** Of programs that are started thousands of times a day. */
const COMMANDS: ReadonlyMap<string, () => Promise<MakeCommand>> = new Map([
  ['store', async () => (await import('./commands/store.ts')).storeCommand],
  ['apiserver', async () => (await import('./commands/apiserver.ts')).apiserverCommand],
]);

/** Runs the command line, whose first word is one of these, and resolves with the exit code. */
export function runPacked(args: readonly string[], version: string): Promise<number> {
  outliveReaders();
  // of threads, which load their own modules
  enableCompileCache();
  const [name = ''] = args;
  const found = COMMANDS.get(name);
  if (found === undefined) throw new Error(`${name}: this pack has no such command`);
  return toldExit(async () => {
    const make = await found();
    return runProgram((done) => {
      const program = bareProgram(version);
      program.addCommand(strict(make(done)));
      return strict(program);
    }, args);
  });
}
