// shell: writes to stderr
/** Logs of the subcommands: lines for people or JSON, on stderr, from a level on. */
import type { Command } from 'commander';
import { oneOf } from './usage.ts';

const LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type Level = (typeof LEVELS)[number];
export type Log = (level: Level, message: string) => void;

export interface LogFlags {
  readonly logFormat: 'text' | 'json';
  readonly logLevel: Level;
}

/** Adds the flags that every subcommand has. */
export function addLogOptions(command: Command): Command {
  return command
    .optionsGroup('Logs:')
    .option('--log-format <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .option('--log-level <level>', LEVELS.join(', '), oneOf(LEVELS), 'info');
}

/** The function that writes one message. */
export function logger({ logFormat, logLevel }: LogFlags): Log {
  const least = LEVELS.indexOf(logLevel);
  return (level, message) => {
    if (LEVELS.indexOf(level) > least) return;
    const time = new Date().toISOString();
    const line =
      logFormat === 'json'
        ? JSON.stringify({ time, level, message })
        : `${time} ${level.padEnd(5)} ${message}`;
    process.stderr.write(`${line}\n`);
  };
}
