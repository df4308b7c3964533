/** The command tree. Each subcommand's code is loaded when it runs, not before. */
import type { Command } from 'commander';
import { bareProgram, runProgram, strict } from './command-line.ts';
import { apiserverCommand } from './commands/apiserver.ts';
import { benchCommand } from './commands/bench.ts';
import { completionCommand } from './commands/completion.ts';
import { controllersCommand } from './commands/controllers.ts';
import { doctorCommand } from './commands/doctor.ts';
import { envtestCommand } from './commands/envtest.ts';
import { execCommand } from './commands/exec.ts';
import { fleetCommand } from './commands/fleet.ts';
import { joinCommandCommand } from './node/join-command.ts';
import { networkCommand } from './node/network-command.ts';
import { nodeCommand } from './node/node-command.ts';
import { nodesCommand } from './commands/nodes.ts';
import { pageCommand } from './commands/page.ts';
import { schedulerCommand } from './commands/scheduler.ts';
import { storeCommand } from './commands/store.ts';
import { upCommand } from './commands/up.ts';
import { versionCommand } from './commands/version.ts';

/** The whole program, with `version` as its own; commands tell `done` how they ended. */
export function makeProgram(version: string, done: (exitCode: number) => void): Command {
  const program = bareProgram(version);
  const commands = [
    ...[upCommand, execCommand, storeCommand, apiserverCommand, schedulerCommand],
    ...[nodesCommand, controllersCommand, fleetCommand, benchCommand, doctorCommand],
    pageCommand,
    ...[networkCommand, nodeCommand, joinCommandCommand],
  ];
  for (const make of commands) program.addCommand(strict(make(done)));
  program.addCommand(strict(envtestCommand(done, version)));
  program.addCommand(strict(completionCommand(done, program)));
  program.addCommand(strict(versionCommand(done, version)));
  return strict(program);
}

/** Runs the command line and resolves with the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runCommandLine(args: readonly string[], version: string): Promise<number> {
  return runProgram((done) => makeProgram(version, done), args);
}
