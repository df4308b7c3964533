// shell: a file
/**
 * What was done to a machine, kept in a file so that all of it can be undone, also by a later
 * version and after a crash. An entry is written before its step is done.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseJson } from '@megaplane/machinery/json-text';
import { doStep, undoOf, undoStep } from './machine.ts';
import { readFileOr } from './read-file.ts';
import { SECRET_FILE_MODE, undoText, type Step, type Undo } from './steps.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

interface Record {
  /** The kernel's boot in which it was done: only files are left of it after another one. */
  readonly boot: string;
  /** Facts that the one who did it keeps. */
  readonly facts: { readonly [name: string]: string };
  readonly undos: readonly Undo[];
}

export class StepRecord {
  readonly #file: string;
  #undos: Undo[] = [];
  #facts: { readonly [name: string]: string } = {};

  /** Reads what was done before; throws an Error where the file is none of ours. */
  constructor(file: string) {
    this.#file = file;
    const text = readFileOr(file);
    if (text === undefined) return;
    const read = recordIn(text);
    if (read === undefined) throw new Error(`${file} is no record of steps: move it away`);
    const isSameBoot = read.boot === bootId();
    this.#facts = read.facts;
    const isLasting = ({ kind }: Undo): boolean => kind === 'file' || kind === 'directory';
    this.#undos = read.undos.filter((undo) => isSameBoot || isLasting(undo));
  }

  get isEmpty(): boolean {
    return this.#undos.length === 0;
  }

  get facts(): { readonly [name: string]: string } {
    return this.#facts;
  }

  /** Whether a device was made here. */
  hasMade(device: string): boolean {
    return this.#undos.some((undo) => undo.kind === 'link' && undo.name === device);
  }

  hasMadeDirectory(path: string): boolean {
    return this.#undos.some((undo) => undo.kind === 'directory' && undo.path === path);
  }

  /** What would be undone, a line each. */
  texts(): readonly string[] {
    return this.#undos.toReversed().map(undoText);
  }

  /** Does steps in their order; the text of the first that cannot be done, or ''. */
  perform(steps: readonly Step[], facts: { readonly [name: string]: string }): string {
    this.#facts = facts;
    for (const step of steps) {
      const undo = undoOf(step);
      // what was found first is what was there
      if (undo !== undefined && !this.#undos.some((one) => keyOf(one) === keyOf(undo))) {
        this.#undos.push(undo);
        this.#write();
      }
      const why = doStep(step);
      if (why !== '') return why;
    }
    this.#write();
    return '';
  }

  /** Undoes all, the last first. What cannot be undone is told and stays in the file. */
  undo(): readonly string[] {
    const faults: string[] = [];
    const left: Undo[] = [];
    for (const undo of this.#undos.toReversed()) {
      const why = undoStep(undo);
      if (why === '') continue;
      faults.push(why);
      left.unshift(undo);
    }
    this.#undos = left;
    if (left.length > 0) this.#write();
    else rmSync(this.#file, { force: true });
    return faults;
  }

  #write(): void {
    const record: Record = { boot: bootId(), facts: this.#facts, undos: this.#undos };
    mkdirSync(dirname(this.#file), { recursive: true });
    const next = `${this.#file}.next`;
    writeFileSync(next, `${JSON.stringify(record, null, 1)}\n`, { mode: SECRET_FILE_MODE });
    renameSync(next, this.#file);
  }
}

function recordIn(text: string): Record | undefined {
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || !('undos' in parsed)) return undefined;
  return Array.isArray(parsed.undos) ? (parsed as Record) : undefined;
}

function bootId(): string {
  return readFileOr(BOOT_ID)?.trim() ?? '';
}

function keyOf(undo: Undo): string {
  switch (undo.kind) {
    case 'setting':
    case 'file':
    case 'directory':
      return `${undo.kind} ${undo.path}`;
    case 'link':
      return `link ${undo.name}`;
    case 'address':
      return `address ${undo.device} ${undo.address}`;
    case 'route':
    case 'deviceRoute':
      return `route ${undo.prefix}`;
    case 'daemon':
      return `daemon ${undo.pidFile}`;
    case 'command':
      return `command ${undo.words.join(' ')}`;
    case 'table':
      return `table ${undo.family} ${undo.table}`;
  }
}
