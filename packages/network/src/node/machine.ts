// shell: programs, files and settings of this machine
/** What steps do to this machine, and what it tells of itself. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parseJson } from '@megaplane/machinery/json-text';
import { readFileOr } from './read-file.ts';
import type { Step, Undo } from './steps.ts';

const PROGRAM_MS_MAX = 30_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const SYSTEM = '/proc/sys';

/** Runs a program; a text says why it failed, in its own words. */
export function run(program: string, args: readonly string[], input = ''): string {
  const options = {
    encoding: 'utf8',
    timeout: PROGRAM_MS_MAX,
    input,
    maxBuffer: OUTPUT_BYTES_MAX,
  } as const;
  const { status, stderr, error } = spawnSync(program, args, options);
  if (error !== undefined) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return isMissing ? `${program} is not installed` : `${program}: ${error.message}`;
  }
  return status === 0 ? '' : `${program} ${args.join(' ')}: ${stderr.trim()}`;
}

/** What a program prints; '' where it fails. */
export function output(program: string, args: readonly string[]): string {
  const options = {
    encoding: 'utf8',
    timeout: PROGRAM_MS_MAX,
    maxBuffer: OUTPUT_BYTES_MAX,
  } as const;
  const { status, stdout } = spawnSync(program, args, options);
  return status === 0 ? stdout : '';
}

/** Addresses of a device with their lengths, but for those of a link alone. */
export function addressesOf(device: string): readonly string[] {
  const text = output('ip', ['-json', 'addr', 'show', 'dev', device]);
  const parsed: unknown = text === '' ? [] : parseJson(text);
  const [first] = Array.isArray(parsed) ? (parsed as { addr_info?: AddressInfo[] }[]) : [];
  const infos = first?.addr_info ?? [];
  return infos
    .filter(({ scope }) => scope !== 'link')
    .map(({ local, prefixlen }) => `${local ?? ''}/${prefixlen ?? 0}`);
}

interface AddressInfo {
  readonly local?: string;
  readonly prefixlen?: number;
  readonly scope?: string;
}

/** Devices that are ports of a bridge. */
export function portsOf(bridge: string): readonly string[] {
  const dir = `/sys/class/net/${bridge}/brif`;
  return existsSync(dir) ? readdirSync(dir) : [];
}

/** What has to be known to undo a step later; undefined: it changes nothing. */
export function undoOf(step: Step): Undo | undefined {
  switch (step.kind) {
    case 'setting': {
      const value = readFileOr(join(SYSTEM, step.path))?.trim();
      if (value === undefined || value === step.value) return undefined;
      return { kind: 'setting', path: step.path, value };
    }
    case 'bridge':
      return existsSync(`/sys/class/net/${step.name}`)
        ? undefined
        : { kind: 'link', name: step.name };
    case 'address': {
      const { device, address } = step;
      return addressesOf(device).includes(address)
        ? undefined
        : { kind: 'address', device, address };
    }
    case 'route':
      return { kind: 'route', prefix: step.prefix, via: step.via, device: step.device };
    case 'deviceRoute':
      return { kind: 'deviceRoute', prefix: step.prefix, device: step.device };
    case 'tunnel':
      return existsSync(`/sys/class/net/${step.name}`)
        ? undefined
        : { kind: 'link', name: step.name };
    case 'daemon':
      return { kind: 'daemon', program: step.program, pidFile: step.pidFile };
    case 'command':
      return step.undo.length === 0 ? undefined : { kind: 'command', words: step.undo };
    case 'nftables':
      return { kind: 'table', family: step.family, table: step.table };
    case 'file': {
      const before = readFileOr(step.path);
      if (before === undefined) return { kind: 'file', path: step.path };
      if (before === step.text) return undefined;
      return { kind: 'file', path: step.path, before, mode: statSync(step.path).mode & 0o777 };
    }
    case 'directory':
      return existsSync(step.path) ? undefined : { kind: 'directory', path: step.path };
  }
}

/** Does a step; a text says why it cannot be done. Done twice it is done once. */
export function doStep(step: Step): string {
  switch (step.kind) {
    case 'setting':
      return set(step.path, step.value, step.isOptional);
    case 'bridge':
      return (
        (existsSync(`/sys/class/net/${step.name}`)
          ? ''
          : run('ip', ['link', 'add', step.name, 'type', 'bridge'])) ||
        (step.mtu > 0 ? run('ip', ['link', 'set', step.name, 'mtu', `${step.mtu}`]) : '') ||
        run('ip', ['link', 'set', step.name, 'up'])
      );
    case 'address': {
      if (addressesOf(step.device).includes(step.address)) return '';
      const flags = step.isSix ? ['nodad'] : [];
      return run('ip', ['addr', 'add', step.address, 'dev', step.device, ...flags]);
    }
    case 'route':
      return run('ip', ['route', 'replace', step.prefix, 'via', step.via, 'dev', step.device]);
    case 'deviceRoute':
      return run('ip', ['route', 'replace', step.prefix, 'dev', step.device]);
    case 'tunnel':
      return (
        (existsSync(`/sys/class/net/${step.name}`)
          ? ''
          : run('tayga', ['--config', step.config, '--mktun'])) ||
        run('ip', ['link', 'set', step.name, 'up'])
      );
    case 'daemon':
      return isRunning(step.program, step.pidFile) ? '' : run(step.program, step.args);
    case 'command':
      return run(step.words[0] ?? '', step.words.slice(1));
    case 'nftables': {
      const { family, table, rules } = step;
      const anew = `table ${family} ${table} {}\ndelete table ${family} ${table}\n${rules}`;
      return run('nft', ['-f', '-'], anew);
    }
    case 'file':
      return write(step.path, step.text, step.mode);
    case 'directory':
      return tried(() => mkdirSync(step.path, { recursive: true }));
  }
}

/** Undoes a step; what is gone already is undone. */
export function undoStep(undo: Undo): string {
  switch (undo.kind) {
    case 'setting':
      return set(undo.path, undo.value, true);
    case 'link':
      return existsSync(`/sys/class/net/${undo.name}`) ? run('ip', ['link', 'del', undo.name]) : '';
    case 'address':
      if (!addressesOf(undo.device).includes(undo.address)) return '';
      return run('ip', ['addr', 'del', undo.address, 'dev', undo.device]);
    case 'route':
      run('ip', ['route', 'del', undo.prefix, 'via', undo.via, 'dev', undo.device]);
      return '';
    case 'deviceRoute':
      run('ip', ['route', 'del', undo.prefix, 'dev', undo.device]);
      return '';
    case 'daemon':
      return end(undo.program, undo.pidFile);
    case 'command':
      return run(undo.words[0] ?? '', undo.words.slice(1));
    case 'table':
      run('nft', ['delete', 'table', undo.family, undo.table]);
      return '';
    case 'file':
      if (undo.before !== undefined) return write(undo.path, undo.before, undo.mode ?? 0o644);
      return tried(() => rmSync(undo.path, { force: true }));
    case 'directory':
      // what others have put there stays
      return existsSync(undo.path) && readdirSync(undo.path).length === 0
        ? tried(() => rmdirSync(undo.path))
        : '';
  }
}

/** The number of a daemon that lives; numbers are given anew, so its name is looked at. */
function pidOf(program: string, pidFile: string): number {
  const pid = Number(readFileOr(pidFile)?.trim() ?? '0');
  if (!(pid > 0)) return 0;
  return readFileOr(`/proc/${pid}/comm`)?.trim() === program ? pid : 0;
}

function isRunning(program: string, pidFile: string): boolean {
  return pidOf(program, pidFile) > 0;
}

function end(program: string, pidFile: string): string {
  const pid = pidOf(program, pidFile);
  const why = pid === 0 ? '' : tried(() => void process.kill(pid, 'SIGTERM'));
  return why || tried(() => rmSync(pidFile, { force: true }));
}

function set(path: string, value: string, isOptional: boolean): string {
  const file = join(SYSTEM, path);
  const why = tried(() => {
    if (readFileSync(file, 'utf8').trim() !== value) writeFileSync(file, value);
  });
  return isOptional ? '' : why;
}

function write(path: string, text: string, mode: number): string {
  return tried(() => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode });
    chmodSync(path, mode);
  });
}

function tried(work: () => void): string {
  try {
    work();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}
