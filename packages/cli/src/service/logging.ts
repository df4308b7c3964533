// shell: writes to stderr
/** Logs of the subcommands: lines for people or JSON, on stderr, from a level on. */
import { type Command, Option } from 'commander';
import { visibleLines, visibleText } from '@megaplane/base/visible-text';
import { oneOf } from '../parsers/flag-parsers.ts';

const LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type Level = (typeof LEVELS)[number];
/** etcd's levels above `error`: what ends the program is told anyway. */
const ETCD_LEVELS = ['dpanic', 'panic', 'fatal'];
export type Log = (level: Level, message: string) => void;

export interface LogFlags {
  readonly logFormat: 'text' | 'json';
  readonly logLevel: Level;
}

/** Adds the flags that every subcommand has. */
export function addLogOptions(command: Command): Command {
  return command
    .optionsGroup('Logs:')
    .option('--log-format <format>', 'text or json', logFormat, 'text')
    .option('--log-level <level>', LEVELS.join(', '), logLevel, 'info');
}

/** etcd calls lines for people `console`. */
function logFormat(text: string): 'text' | 'json' {
  return oneOf(['text', 'json'])(text === 'console' ? 'text' : text);
}

/** In small letters or, as etcd takes them, in capitals. */
function logLevel(text: string): Level {
  const level = text.toLowerCase();
  return oneOf(LEVELS)(ETCD_LEVELS.includes(level) ? 'error' : level);
}

/** The function that writes one message. */
export function logger(flags: LogFlags): Log {
  return adjustableLogger(flags).log;
}

/** klog's flags, hidden. */
export interface KlogFlags {
  readonly v?: string;
  readonly loggingFormat?: string;
}

/** Adds them, for `withKlogFlags`. */
export function addKlogFlags(command: Command): Command {
  return command
    .addOption(new Option('-v, --v <level>').hideHelp())
    .addOption(new Option('--logging-format <format>').hideHelp());
}

/** From this of klog's levels on, a program tells what only its makers want to know. */
const DEBUG_VERBOSITY = 4;

/** With what klog's `-v` and `--logging-format` say, where they were given. */
export function withKlogFlags(flags: LogFlags & KlogFlags): LogFlags {
  const { v, loggingFormat } = flags;
  return {
    logFormat: loggingFormat === 'json' ? 'json' : flags.logFormat,
    logLevel: Number(v ?? 0) >= DEBUG_VERBOSITY ? 'debug' : flags.logLevel,
  };
}

/** The same, and what changes how much is written while the program runs. */
export function adjustableLogger({ logFormat, logLevel }: LogFlags): {
  readonly log: Log;
  readonly setVerbosity: (level: number) => void;
} {
  let least = LEVELS.indexOf(logLevel);
  const setVerbosity = (level: number): void => {
    least = LEVELS.indexOf(level >= DEBUG_VERBOSITY ? 'debug' : 'info');
  };
  const log: Log = (level, message) => {
    if (LEVELS.indexOf(level) > least) return;
    const time = new Date().toISOString();
    const line =
      logFormat === 'json'
        ? visibleText(JSON.stringify({ time, level, message }))
        : `${time} ${level.padEnd(5)} ${visibleLines(message)}`;
    process.stderr.write(`${line}\n`);
  };
  return { log, setVerbosity };
}
