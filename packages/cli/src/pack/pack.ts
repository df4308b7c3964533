// shell: files
/**
 * A program of several hundred modules as one file, which `bin/packed.cjs` runs: nothing is looked
 * for, no types are stripped and, from the second run on, nothing is compiled.
 *
 *     index.json   entry, and of each module its file and where its text stands
 *     text         texts of all modules, one behind the other, in Latin-1 or UTF-16
 *     code-NAME    compiled code, written by the first run of the program NAME
 *     worker-N.cjs runs module N in a thread
 */
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { moduleText, type ModuleText } from './module-text.ts';

/** One row of the index: file, start, length. `start` -1: not packed; `file` is a word for Node. */
type Row = readonly [file: string, start: number, length: number, isWide: 0 | 1];

/** All files below this one are packed; others are loaded as ever. */
export interface PackOptions {
  /** A module that gives out `runCommandLine`. */
  readonly entry: string;
  /** The directory that holds the packages. */
  readonly root: string;
  readonly version: string;
}

/** Writes a pack into `dir`. Throws an Error that names the module that cannot be packed. */
export function writePack(dir: string, { entry, root, version }: PackOptions): void {
  const texts: Buffer[] = [];
  const rows: Row[] = [];
  const numbers = new Map<string, number>();
  const files: string[] = [];
  const numberOf = (file: string): number => {
    const known = numbers.get(file);
    if (known !== undefined) return known;
    numbers.set(file, files.length);
    return files.push(file) - 1;
  };
  numberOf(entry);
  let start = 0;
  // The list grows while it is gone through.
  for (let at = 0; at < files.length; at++) {
    const file = files[at] ?? '';
    if (!file.startsWith(`${root}${sep}`)) {
      rows[at] = [file, -1, 0, 0];
      continue;
    }
    const { resolve } = createRequire(file);
    const number = (word: string): number => numberOf(resolved(resolve, word));
    const { text: packed, workers } = moduleOf(file, number);
    for (const word of workers) writeWorker(dir, number(word), root);
    const isWide = /[^\0-\xff]/.test(packed);
    const bytes = Buffer.from(packed, isWide ? 'utf16le' : 'latin1');
    rows[at] = [file, start, bytes.length, isWide ? 1 : 0];
    // UTF-16 is read in pairs of bytes
    const padding = Buffer.alloc(bytes.length % 2);
    texts.push(bytes, padding);
    start += bytes.length + padding.length;
  }
  writeFileSync(join(dir, 'text'), Buffer.concat(texts));
  writeFileSync(join(dir, 'index.json'), JSON.stringify({ version, entry, rows }));
}

function writeWorker(dir: string, number: number, root: string): void {
  const runner = JSON.stringify(join(root, 'cli/bin/packed.cjs'));
  const text = `'use strict';\nrequire(${runner}).openPack(__dirname).load(${number});\n`;
  writeFileSync(join(dir, `worker-${number}.cjs`), text);
}

function moduleOf(file: string, number: (word: string) => number): ModuleText {
  try {
    return moduleText(readFileSync(file, 'utf8'), number);
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** The file of a word, or the word itself where Node knows better: its own modules, libraries. */
function resolved(resolve: (word: string) => string, word: string): string {
  if (word.startsWith('node:')) return word;
  return realpathSync(resolve(word));
}
