// shell: a command of the user's, its signals and its exit status
/** Runs a command as if it had been started in this process's place. */
import { guarded } from '@megaplane/base/deferred';
import { spawn } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { delimiter, join } from 'node:path';

/** What shells tell of a command that cannot be run, or is not there. */
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;
/** Shells tell of a program that signal n ended by this and n. */
const EXIT_SIGNAL = 128;

/** Passed on to the command, which decides what they mean. */
export const PASSED_SIGNALS: readonly NodeJS.Signals[] = [
  ...(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const),
];
/** Those that a terminal sends to all processes in front, the command among them. */
const OF_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT', 'SIGHUP']);

export function exitCodeOf(signal: NodeJS.Signals): number {
  return EXIT_SIGNAL + systemConstants.signals[signal];
}

/** Why a command cannot be run, and the exit code for it; null where it can be tried. */
export interface CommandFault {
  readonly exitCode: number;
  readonly text: string;
}

/** Looks for the command where `execvp` would, before anything is begun for it. */
export function commandFault(command: string, searchPath: string): CommandFault | null {
  const isPath = command.includes('/');
  const places = isPath
    ? [command]
    : searchPath.split(delimiter).map((dir) => join(dir === '' ? '.' : dir, command));
  let isThere = false;
  for (const place of places) {
    try {
      if (!statSync(place).isFile()) {
        isThere ||= isPath;
        continue;
      }
      isThere = true;
      accessSync(place, constants.X_OK);
      return null;
    } catch {
      continue;
    }
  }
  return isThere
    ? { exitCode: EXIT_NOT_EXECUTABLE, text: `${command}: it is no program that may be run` }
    : { exitCode: EXIT_NOT_FOUND, text: `${command}: no such command` };
}

/** A command that runs. */
export interface RunningCommand {
  readonly pid: number | undefined;
  /** Its exit code; 128 and n where signal n ended it. */
  readonly ended: Promise<number>;
  signal(name: NodeJS.Signals): void;
}

/** Starts it with this process's streams, directory and group. */
export function runCommand(words: readonly string[], env: NodeJS.ProcessEnv): RunningCommand {
  const [command = '', ...args] = words;
  const child = spawn(command, args, { stdio: 'inherit', env });
  const ended = new Promise<number>((resolve) => {
    child.on(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        // also told when a signal could not be sent
        if (child.pid !== undefined) return;
        process.stderr.write(`megaplane: ${command}: cannot be run (${error.code})\n`);
        resolve(error.code === 'ENOENT' ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
      }),
    );
    child.on(
      'exit',
      guarded((code, signal) => resolve(code ?? exitCodeOf(signal ?? 'SIGKILL'))),
    );
  });
  return {
    pid: child.pid,
    ended,
    signal: (name) => {
      if (!(OF_TERMINAL.has(name) && isInFront())) child.kill(name);
    },
  };
}

/** Whether the terminal's signals reach this process's group, and so the command, by themselves. */
function isInFront(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // state, parent, group, session, terminal, the group in front of it
    return fields[2] === fields[5];
  } catch {
    return process.stdin.isTTY;
  }
}
