// shell: reads etcd's configuration file
/** etcd's `--config-file`: the flags as YAML or JSON, in place of all other flags. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** Sections of etcd's file, and what their names begin with as flags. */
const SECTIONS: ReadonlyMap<string, string> = new Map([
  ['client-transport-security', ''],
  ['peer-transport-security', 'peer-'],
  ['socket-options', 'socket-'],
]);
/** Names of the file that are others as flags. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['allowed-cn', 'client-cert-allowed-cn'],
  ['allowed-hostname', 'client-cert-allowed-hostname'],
  ['peer-allowed-cn', 'peer-cert-allowed-cn'],
  ['peer-allowed-hostname', 'peer-cert-allowed-hostname'],
  ['experimental-snapshot-catch-up-entries', 'experimental-snapshot-catchup-entries'],
]);
/** A number is one of nanoseconds, as Go reads it. */
const DURATIONS: ReadonlySet<string> = new Set([
  'grpc-keepalive-interval',
  'grpc-keepalive-timeout',
  'watch-progress-notify-interval',
  'experimental-watch-progress-notify-interval',
]);

/** The file as arguments of the command line. Throws an Error for people. */
export function configArguments(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`--config-file: ${(error as Error).message}`, { cause: error });
  }
  return configTextArguments(path, text);
}

export function configTextArguments(path: string, text: string): string[] {
  let content: unknown;
  try {
    content = parse(text);
  } catch (error) {
    throw new Error(`--config-file: ${path}: ${(error as Error).message}`, { cause: error });
  }
  if (content === null) return [];
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw new Error(`--config-file: ${path} is no list of "flag: value"`);
  }
  return Object.entries(content).flatMap(([name, value]: [string, unknown]) => {
    const prefix = SECTIONS.get(name);
    if (prefix === undefined) return argument(path, name, value);
    const section = typeof value === 'object' && value !== null ? value : {};
    return Object.entries(section).flatMap(([inner, one]: [string, unknown]) =>
      argument(path, `${prefix}${inner}`, one),
    );
  });
}

function argument(path: string, given: string, value: unknown): string[] {
  if (value === null || value === '') return [];
  const name = RENAMED.get(given) ?? given;
  if (typeof value === 'number' && DURATIONS.has(name)) return [`--${name}=${value}ns`];
  if (Array.isArray(value)) return [`--${name}=${value.map(String).join(',')}`];
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return [`--${name}=${value}`];
  }
  throw new Error(`--config-file: ${path}: ${name} is a section that no flag takes`);
}
