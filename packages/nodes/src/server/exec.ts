// shell: child processes
/** Runs the command of an exec where its rule says, and joins it with the client's streams. */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { cleanEnvironment } from './clean-environment.ts';
import type { ExecItem } from './pod-rules.ts';
import { reasonOf } from './log-reader.ts';
import { keepGroup, killGroup } from './process-groups.ts';
import type { RemoteStreams, WantedStreams } from './remote-streams.ts';

/** Before the command begins its terminal may get a size; it does not wait longer. */
const FIRST_SIZE_MS = 200;

/** A process that ended by signal n has the exit code of this and n. */
const SIGNAL_EXIT = 128;

export const SUCCESS: JsonObject = { metadata: {}, status: 'Success' };

/** The Status of a command that ended with another code than 0, as kubelets write it. */
export function exitStatus(code: number): JsonObject {
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  };
}

/** The Status of what went wrong at the kubelet itself. */
export function internalStatus(text: string): JsonObject {
  return {
    metadata: {},
    status: 'Failure',
    message: `Internal error occurred: ${text}`,
    reason: 'InternalError',
    details: { causes: [{ message: text }] },
    code: 500,
  };
}

/** Runs until the command ends or the client leaves. */
export function runExec(
  target: NonNullable<ExecItem['local']>,
  command: readonly string[],
  wanted: WantedStreams,
  streams: RemoteStreams,
): void {
  if (target.workDir !== '' && !existsSync(target.workDir)) {
    const text = `chdir ${target.workDir}: no such file or directory`;
    streams.finish(internalStatus(`error executing command in container: ${text}`));
    return;
  }
  if (wanted.tty) runInTerminal(target, command, streams);
  else join(start(target, command, 'ignore'), command, wanted, streams);
  streams.begin();
}

function start(
  { workDir, environment, user, group }: NonNullable<ExecItem['local']>,
  command: readonly string[],
  extra: 'pipe' | 'ignore',
): ChildProcess {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe', extra],
    detached: true,
    env: cleanEnvironment(environment),
    ...(workDir === '' ? {} : { cwd: workDir }),
    ...(user === null ? {} : { uid: user }),
    ...(group === null ? {} : { gid: group }),
  });
  keepGroup(child);
  return child;
}

function join(
  child: ChildProcess,
  command: readonly string[],
  wanted: WantedStreams,
  streams: RemoteStreams,
): void {
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) return;
  let isOver = false;
  const finish = (status: JsonObject): void => {
    if (!isOver) streams.finish(status);
    isOver = true;
  };
  const pump = (source: Readable, name: 'stdout' | 'stderr'): void => {
    source.on(
      'data',
      guarded((bytes: Buffer) => {
        if (!streams.write(name, bytes)) source.pause();
      }),
    );
  };
  pump(stdout, 'stdout');
  pump(stderr, wanted.tty ? 'stdout' : 'stderr');
  streams.onDrain = () => {
    stdout.resume();
    stderr.resume();
  };
  // a command that reads no input closes it, which is no failure
  stdin.on(
    'error',
    guarded(() => streams.resume()),
  );
  stdin.on(
    'drain',
    guarded(() => streams.resume()),
  );
  streams.onStdin = (bytes) => {
    if (stdin.writable && !stdin.write(bytes)) streams.pause();
  };
  streams.onStdinEnd = () => stdin.end();
  if (!wanted.stdin) stdin.end();
  streams.onClose = () => {
    isOver = true;
    killGroup(child);
  };
  child.on(
    'error',
    guarded((error: NodeJS.ErrnoException) => {
      const name = command[0] ?? '';
      const isMissing = error.code === 'ENOENT' && !name.includes('/');
      const why = isMissing
        ? `exec: ${JSON.stringify(name)}: executable file not found in $PATH`
        : `fork/exec ${name}: ${reasonOf(error)}`;
      finish(internalStatus(`error executing command in container: ${why}`));
    }),
  );
  child.on(
    'close',
    guarded((code, signal) => {
      // container runtimes tell a signal as shells do
      const ended = signal === null ? (code ?? 0) : SIGNAL_EXIT + constants.signals[signal];
      finish(ended === 0 ? SUCCESS : exitStatus(ended));
    }),
  );
}

/**
 * A terminal comes from `script` of util-linux, which is on every Linux: it opens one, runs the
 * command in it, and passes its end on. The command's shell tells the terminal's name on descriptor
 * 3, so that later sizes can be set from outside.
 */
function runInTerminal(
  target: NonNullable<ExecItem['local']>,
  command: readonly string[],
  streams: RemoteStreams,
): void {
  let child: ChildProcess | null = null;
  let terminal = '';
  let size: readonly [number, number] | null = null;
  const begin = (): void => {
    if (child !== null) return;
    clearTimeout(timer);
    const sized = size === null ? '' : `stty cols ${size[0]} rows ${size[1]} 2>/dev/null; `;
    const text = `${sized}tty >&3; exec 3>&-; exec ${command.map(quoted).join(' ')}`;
    const environment = { TERM: 'xterm', ...target.environment, SHELL: '/bin/sh' };
    const args = ['script', '-qefc', text, '/dev/null'];
    child = start({ ...target, environment }, args, 'pipe');
    child.stdio[3]?.on(
      'data',
      guarded((bytes: Buffer) => (terminal += bytes.toString('latin1').trim())),
    );
    const wanted = { stdin: true, stdout: true, stderr: false, tty: true };
    join(child, ['script'], wanted, streams);
  };
  const timer = afterMs(FIRST_SIZE_MS, begin);
  streams.onClose = () => clearTimeout(timer);
  const early: Buffer[] = [];
  streams.onStdin = (bytes) => {
    early.push(bytes);
    begin();
    for (const one of early.splice(0)) streams.onStdin(one);
  };
  streams.onStdinEnd = () => {
    begin();
    streams.onStdinEnd();
  };
  streams.onResize = (columns, rows) => {
    size = [columns, rows];
    if (child === null) begin();
    else if (terminal !== '') {
      const args = ['-F', terminal, 'cols', String(columns), 'rows', String(rows)];
      // a terminal that has just gone needs no size
      spawn('stty', args, { stdio: 'ignore' }).on(
        'error',
        guarded(() => undefined),
      );
    }
  };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
