// shell: standard output
/** `megaplane completion`: scripts by which shells complete commands and flags. */
import { Argument, Command } from 'commander';
import { completionScript, SHELLS } from '../completion/scripts.ts';
import type { Shell } from '../completion/scripts.ts';
import { commandTable } from '../completion/table.ts';
import { oneOf } from '../parsers/flag-parsers.ts';

/** `program` is what is completed: all its commands are there once this one runs. */
export function completionCommand(done: (exitCode: number) => void, program: Command): Command {
  return new Command('completion')
    .summary('completion of commands and flags for a shell')
    .description(
      'Prints a script by which a shell completes commands and flags.\n\n' +
        'Example: source <(megaplane completion bash)',
    )
    .addArgument(new Argument('<shell>', SHELLS.join(', ')).argParser(oneOf(SHELLS)))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(shell, program.name(), commandTable(program)));
      done(0);
    });
}
