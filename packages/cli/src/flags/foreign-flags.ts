/**
 * Flags of the programs that the commands stand in for, and that have no effect here. Manifests
 * that name them keep working: they are taken without a word in `--help`, and those that were
 * given are named in one warning.
 */
import { type Command, Option } from 'commander';

/** Names with white space between them, without dashes. */
export function flagNames(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Adds them, hidden; each may stand without a value. */
export function addForeignFlags(command: Command, names: readonly string[]): Command {
  for (const name of names) command.addOption(new Option(`--${name} [value]`).hideHelp());
  return command;
}

/** What was given for one of them; undefined for nothing. */
export function foreignValue(command: Command, name: string): unknown {
  const key = name.replaceAll(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
  return command.getOptionValue(key);
}

/** Those that were given, in the order of `names`. */
export function foreignFlags(command: Command, names: readonly string[]): string[] {
  return names.filter((name) => foreignValue(command, name) !== undefined);
}

/** What is to be warned of, after `what` it means; empty for nothing. */
export function foreignWarning(what: string, given: readonly string[]): string {
  return given.length === 0 ? '' : `${what}: ${given.map((name) => `--${name}`).join(', ')}`;
}
