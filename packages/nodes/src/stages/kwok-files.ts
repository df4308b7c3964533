// shell: reads files that people name
/** kwok's files as texts: each is read once, at the start, so that all later worlds agree. */
import { isUtf8 } from 'node:buffer';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homePath } from '../client/home-path.ts';
import { PortConfig } from '../server/port-config.ts';
import { stageFunctions } from '../gotemplate/stage-functions.ts';
import { kustomizedFiles } from './kustomization.ts';
import type { StageLanguages } from './stage-file.ts';
import { stageSetText } from './set-texts.ts';
import { loadStages, STAGE_SETS, type KwokFile } from './stage-sets.ts';
import { takeDocument } from './stage-sets.ts';
import { FileError } from '../yaml/yaml-fields.ts';

/** Bytes that no text has: YAML 1.1 section 5.1 without the line breaks and tabs. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
/** The standard input, as kwok names it. */
const STDIN = '-';

/**
 * The files and sets that `names` name, also several by commas, and the files of directories of
 * kustomize. Throws an Error that says which cannot be read.
 */
export function readKwokFiles(flag: string, names: readonly string[]): readonly KwokFile[] {
  const single = names.flatMap((name) => (isPath(name) ? [name] : name.split(',')));
  return single.flatMap((name): KwokFile[] => {
    const set = STAGE_SETS.find((one) => one === name);
    if (set !== undefined) return [{ name, text: stageSetText(set), isSet: true }];
    const isDirectory = isPath(name) && statSync(homePath(name)).isDirectory();
    return filesOf(flag, name, isDirectory).map((one) => ({
      name: one,
      text: textOf(one, bytesOf(flag, one)),
      isSet: false,
      isListed: isDirectory,
    }));
  });
}

function isPath(name: string): boolean {
  return name !== STDIN && existsSync(homePath(name));
}

function filesOf(flag: string, name: string, isDirectory: boolean): readonly string[] {
  try {
    return isDirectory ? kustomizedFiles(homePath(name)) : [name];
  } catch (error) {
    if (error instanceof FileError) throw error;
    const why = (error as Error).message;
    throw new Error(`${flag}: cannot read ${name}: ${why}`, { cause: error });
  }
}

/** What comes along and holds where no file says otherwise. */
export function defaultMetrics(): readonly KwokFile[] {
  return readKwokFiles('', ['metrics']);
}

/** Throws a FileError for the first thing that a simulator would refuse in these files. */
export function judgeKwokFiles(files: readonly KwokFile[]): void {
  const config = new PortConfig({ nowMs: () => 0, random: () => 0, startedContainers: () => 0 });
  loadStages(files, LANGUAGES_OF_NOBODY, takeDocument(config), () => {});
}

/** Languages that know every name and are never asked for a value. */
const LANGUAGES_OF_NOBODY: StageLanguages = {
  functions: stageFunctions({
    nowMs: () => 0,
    random: () => 0,
    version: '',
    nodePort: 0,
    nodeName: '',
    nodeIp: '',
    nodeAddresses: () => [],
    podAddresses: () => [],
    anyAddress: () => '',
  }),
  clock: { nowMs: () => 0, random: () => 0 },
};

function bytesOf(flag: string, name: string): Buffer {
  try {
    return readFileSync(name === STDIN ? 0 : homePath(name));
  } catch (error) {
    const sets = STAGE_SETS.join(', ');
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const hint = isMissing ? ` (and it is none of the sets ${sets})` : '';
    const why = (error as Error).message;
    throw new Error(`${flag}: cannot read ${name}: ${why}${hint}`, { cause: error });
  }
}

/** The text of a file; a FileError at the first byte that no text has. */
function textOf(name: string, bytes: Buffer): string {
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (isUtf8(bytes) && !CONTROL.test(text)) return text;
  const lines = text.split('\n');
  const bad = new RegExp(`${CONTROL.source}|\uFFFD`);
  const line = lines.findIndex((one) => bad.test(one));
  const column = lines[line]?.search(bad) ?? 0;
  const where = `${name}:${line + 1}:${column + 1}`;
  throw new FileError(`${where}: this is no text in UTF-8; a YAML file is expected`);
}
