/**
 * Parsers of flag values. Each throws commander's `InvalidArgumentError`, which becomes one line
 * that names the flag and exit code 2.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { formatDuration, parseByteSize, parseDurationMs } from '@megaplane/base/limits';
import type { Parsed } from '@megaplane/base/limits';
import { type Command, InvalidArgumentError, Option } from 'commander';

/** A parser of whole numbers from `min` to `max`, both included. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
    if (Number.isNaN(value)) {
      throw new InvalidArgumentError(`a whole number from ${min} to ${max} is needed.`);
    }
    if (value < min || value > max) {
      throw new InvalidArgumentError(`it must lie between ${min} and ${max}.`);
    }
    return value;
  };
}

/** A parser of one word out of `words`. */
export function oneOf<Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((candidate) => candidate === text);
    if (word === undefined) throw new InvalidArgumentError(`one of ${words.join(', ')} is needed.`);
    return word;
  };
}

/** A duration as Go writes it (`1m30s`, `500ms`, `0`), in milliseconds. */
export function durationMs(text: string): number {
  return parsed(parseDurationMs(text));
}

/** A parser of durations that are not shorter than `minMs`. */
export function durationFrom(minMs: number): (text: string) => number {
  return (text) => {
    const value = durationMs(text);
    if (value >= minMs) return value;
    throw new InvalidArgumentError(`${formatDuration(minMs)} or longer is needed.`);
  };
}

/** A size such as `512MiB` or `1073741824`, in bytes. */
export function sizeBytes(text: string): number {
  return parsed(parseByteSize(text));
}

function parsed(result: Parsed): number {
  if (result.kind === 'invalid') throw new InvalidArgumentError(result.message);
  return result.value;
}

/** Collects a flag that may be given several times, or once with commas. */
export function list(text: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), ...text.split(',').filter((item) => item !== '')];
}

/** Words with commas between them. */
export function words(text: string): readonly string[] {
  return text.split(',').filter((item) => item !== '');
}

/** A number from 0 on, with or without a fraction. */
export function positive(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value)) throw new InvalidArgumentError('a number such as 0.1 is needed.');
  return value;
}

/** A part of a whole, in percent. */
export function percent(text: string): number {
  const value = positive(text);
  if (value > 0 && value <= 100) return value;
  throw new InvalidArgumentError('a number above 0 and up to 100 is needed.');
}

/**
 * A path that must not be empty: an empty one, as an unset variable leaves it, would be the
 * working directory.
 */
export function path(text: string): string {
  if (text === '') throw new InvalidArgumentError('a path is needed.');
  return text;
}

/** The words of `--durability`. */
export const DURABILITIES = ['none', 'buffered', 'fsync'] as const;

/** What `--durability` takes: `journal` with --journal alone. */
const MODES: readonly string[] = [...DURABILITIES, 'journal'];

/** `--durability`: a mode, or modes by what they are for: `leases=none,fsync`. */
export function durabilityModes(text: string): string {
  for (const part of text.split(',')) {
    const mode = part.slice(part.lastIndexOf('=') + 1).trim();
    if (mode === '' && part.trim() === '') continue;
    if (!MODES.includes(mode)) {
      throw new InvalidArgumentError(`"${mode}" is not one of ${MODES.join(', ')}.`);
    }
  }
  return text;
}

/** `--history-limit`: a size, or sizes by what they are for: `/a/=64MiB,1GiB`. */
export function historySizes(text: string): string {
  for (const part of text.split(',')) {
    if (part.trim() !== '') sizeBytes(part.slice(part.lastIndexOf('=') + 1).trim());
  }
  return text;
}

/** Addresses with commas between them, such as `http://127.0.0.1:2379`. */
export function urls(text: string): string {
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const url = URL.parse(part.trim());
    if (url === null || !['http:', 'https:', 'unix:'].includes(url.protocol)) {
      throw new InvalidArgumentError(`${part.trim()} is no URL such as http://127.0.0.1:2379.`);
    }
  }
  return text;
}

/** The value of a flag that may be written `--flag`, `--flag=true` or `--flag=false`. */
export function flagValue(text: string): boolean {
  // The forms of Go's strconv.ParseBool, which manifests of etcd may use.
  if (/^(1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (/^(0|f|F|false|FALSE|False)$/.test(text)) return false;
  throw new InvalidArgumentError('true or false is needed.');
}

/** Those of the named flags that were given: an absent flag must stay absent, not undefined. */
export function given<Flags extends object, Name extends keyof Flags & string>(
  flags: Flags,
  names: readonly Name[],
): { [Given in Name]?: NonNullable<Flags[Given]> } {
  const found: Record<string, unknown> = {};
  for (const name of names) {
    const value = ownMember(flags, name);
    if (value !== undefined) putMember(found, name, value);
  }
  return found as { [Given in Name]?: NonNullable<Flags[Given]> };
}

/** A flag that takes a duration, with its default shown as people write it. */
export function durationOption(
  flags: string,
  description: string,
  defaultMs: number,
  parse: (text: string) => number = durationMs,
): Option {
  const option = new Option(flags, description).argParser(parse);
  return option.default(defaultMs, formatDuration(defaultMs));
}

/** Values of a command's flags by name, for `/flagz`; '' where nothing was given. */
export function flagValues(command: Command): Map<string, string> {
  const values = command.opts<Record<string, unknown>>();
  return new Map(
    command.options.map((option) => {
      const value = ownMember(values, option.attributeName());
      if (value === undefined) return [option.name(), ''];
      return [option.name(), typeof value === 'string' ? value : JSON.stringify(value)];
    }),
  );
}

/** Where somebody is reached. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, an IPv6 address in brackets; port 0 where one is to be taken that is free. */
export function hostPort(text: string): HostPort {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError('host:port is needed.');
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

/** An address, which may be given several times; `https://` in front asks for TLS. */
export interface DialAddress extends HostPort {
  readonly isSecure: boolean;
}

/** Takes one more address, `max` of them at most. */
export function dialAddresses(
  max: number,
): (text: string, before: readonly DialAddress[] | undefined) => readonly DialAddress[] {
  return (text, before) => {
    const isSecure = text.startsWith('https://');
    const address = hostPort(isSecure ? text.slice('https://'.length) : text);
    const all = [...(before ?? []), { ...address, isSecure }];
    if (all.length > max) throw new InvalidArgumentError(`at most ${max}.`);
    return all;
  };
}
