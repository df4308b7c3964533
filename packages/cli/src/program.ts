/** The command tree. Each subcommand's code is loaded when it runs, not before. */
import { Command, CommanderError } from 'commander';
import { apiserverCommand } from './commands/apiserver.ts';
import { benchCommand } from './commands/bench.ts';
import { completionCommand } from './commands/completion.ts';
import { controllersCommand } from './commands/controllers.ts';
import { doctorCommand } from './commands/doctor.ts';
import { envtestCommand } from './commands/envtest.ts';
import { execCommand } from './commands/exec.ts';
import { fleetCommand } from './commands/fleet.ts';
import { nodesCommand } from './commands/nodes.ts';
import { pageCommand } from './commands/page.ts';
import { schedulerCommand } from './commands/scheduler.ts';
import { storeCommand } from './commands/store.ts';
import { upCommand } from './commands/up.ts';
import { versionCommand } from './commands/version.ts';
import { withTwoDashes } from './flags/store-flags.ts';

export const EXIT_DONE = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** The whole program, with `version` as its own; commands tell `done` how they ended. */
export function makeProgram(version: string, done: (exitCode: number) => void): Command {
  const program = new Command('megaplane')
    .description('A Kubernetes control plane that holds a million nodes.')
    .version(version)
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for the flags)');
  const commands = [
    ...[upCommand, execCommand, storeCommand, apiserverCommand, schedulerCommand],
    ...[nodesCommand, controllersCommand, fleetCommand, benchCommand, doctorCommand],
    pageCommand,
  ];
  for (const make of commands) program.addCommand(strict(make(done)));
  program.addCommand(strict(envtestCommand(done, version)));
  program.addCommand(strict(completionCommand(done, program)));
  program.addCommand(strict(versionCommand(done, version)));
  return strict(program);
}

/** Runs the command line and resolves with the exit code: 0 done, 1 failed, 2 wrong usage. */
export async function runCommandLine(args: readonly string[], version: string): Promise<number> {
  let exitCode = EXIT_DONE;
  const program = makeProgram(version, (code) => {
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

/** Errors come back as exceptions, and words that no flag takes are errors. */
function strict(command: Command): Command {
  command.exitOverride().allowExcessArguments(false).showSuggestionAfterError();
  command.showHelpAfterError('(add --help for the flags)');
  for (const child of command.commands) strict(child);
  return command;
}
