/** Commands and flags of the program as plain data: completion and reference are made of it. */
import type { Command, Option } from 'commander';

export interface FlagRow {
  /** With its dashes. */
  readonly long: string;
  /** With its dash; empty where there is none. */
  readonly short: string;
  /** As help shows it: `--nodes <count>`. */
  readonly usage: string;
  readonly description: string;
  /** The heading of help it stands under; empty where there is none. */
  readonly group: string;
  /** As help shows it; empty where there is none. */
  readonly defaultText: string;
  /** Files, anything, or nothing behind it. */
  readonly takes: 'file' | 'value' | 'nothing';
}

export interface CommandRow {
  /** Words behind the program's name; none for the program itself. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly description: string;
  /** Arguments as help shows them. */
  readonly usage: string;
  readonly flags: readonly FlagRow[];
  readonly children: readonly string[];
}

/** All commands of a program that are not hidden, each before its own. */
export function commandTable(program: Command): readonly CommandRow[] {
  return rowsOf(program, []);
}

function rowsOf(command: Command, path: readonly string[]): CommandRow[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  const row: CommandRow = {
    path,
    summary: command.summary() || command.description().split('\n')[0] || '',
    description: command.description(),
    usage: command.usage(),
    flags: help.visibleOptions(command).map(flagRow),
    children: children.map((child) => child.name()),
  };
  return [row, ...children.flatMap((child) => rowsOf(child, [...path, child.name()]))];
}

function flagRow(option: Option): FlagRow {
  const { long, short, flags, description, required, defaultValue } = option;
  const value = option.defaultValueDescription ?? textOf(defaultValue);
  const isFile = /<(?:file|files\.\.\.|dir|path)>/.test(flags);
  return {
    long: long ?? '',
    short: short ?? '',
    usage: flags,
    description,
    group: (option.helpGroupHeading ?? '').replace(/:$/, ''),
    defaultText: value,
    takes: required ? (isFile ? 'file' : 'value') : 'nothing',
  };
}

function textOf(value: unknown): string {
  if (value === undefined || value === false) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
