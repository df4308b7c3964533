// shell: standard error and the environment
/** What running a command line means, whichever commands there are. */
import { guarded } from '@megaplane/base/deferred';
import { Command, CommanderError } from 'commander';
import { withTwoDashes } from './flags/store-flags.ts';

export const EXIT_DONE = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** The program with no command yet. */
export function bareProgram(version: string): Command {
  return new Command('megaplane')
    .description('A Kubernetes control plane that holds a million nodes.')
    .version(version)
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for the flags)');
}

/** Errors come back as exceptions, and words that no flag takes are errors. */
export function strict(command: Command): Command {
  command.exitOverride().allowExcessArguments(false).showSuggestionAfterError();
  command.showHelpAfterError('(add --help for the flags)');
  for (const child of command.commands) strict(child);
  return command;
}

/**
 * Runs `args` with the program that `make` gives, whose commands tell how they ended. Resolves with
 * the exit code: 0 done, 1 failed, 2 wrong usage. Rejects with what a command threw.
 */
export async function runProgram(
  make: (done: (exitCode: number) => void) => Command,
  args: readonly string[],
): Promise<number> {
  let exitCode = EXIT_DONE;
  const program = make((code) => {
    exitCode = code;
  });
  try {
    const words = args[0] === 'store' ? withTwoDashes(args) : [...args];
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const isHelp = error.exitCode === 0 || error.code === 'commander.help';
    return isHelp && error.exitCode === 0 ? EXIT_DONE : EXIT_USAGE;
  }
  return exitCode;
}

/** The same to the end of a process: an error is one line on standard error, and exit code 1. */
export async function toldExit(run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    const isVerbose = process.env['MEGAPLANE_DEBUG'] !== undefined;
    const text = error instanceof Error ? (isVerbose ? error.stack : error.message) : String(error);
    process.stderr.write(`megaplane: ${text}\n`);
    return EXIT_FAILED;
  }
}

/** Who read our words has gone (`megaplane ... | head`): the work goes on, and nothing is said. */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on(
      'error',
      guarded(() => undefined),
    );
}
