/**
 * Moves files and everything that names them: `move-files.ts < list`, a line `old new` for each.
 *
 * Paths are from the root of the repository. Tests, benchmarks and simulations that carry the name
 * of a moved source go with it unless the list names them. Rewritten are imports, modules and data
 * that are found by `import.meta`, `exports` of packages, and paths that texts mention. Run it on a
 * branch to follow moves that main has made: what is listed and no longer there is left out.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { moduleNames } from './module-names.ts';

const ROOT = join(import.meta.dirname, '..');
const CODE = /^(packages|bench|tools)\/.*\.ts$/;
const TEXT = /\.(ts|md|json|yml|yaml|sh|cjs|txt)$|^\.ci\/run$/;

function tracked(): string[] {
  const out = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' });
  return out.split('\n').filter((path) => path !== '');
}

/** The moves of a list, with the tests that go along. */
function movesOf(list: string, files: readonly string[]): Map<string, string> {
  const moves = new Map<string, string>();
  for (const line of list.split('\n')) {
    const [from, to] = line.trim().split(/\s+/);
    if (from !== undefined && to !== undefined && existsSync(join(ROOT, from))) moves.set(from, to);
  }
  const byFolder = new Map<string, string[]>();
  for (const file of files) {
    const folder = dirname(file);
    byFolder.set(folder, [...(byFolder.get(folder) ?? []), file]);
  }
  for (const [from, to] of [...moves]) {
    if (!from.endsWith('.ts') || /\.(test|bench|sim)\.ts$/.test(from)) continue;
    const stem = basename(from, '.ts');
    const newStem = basename(to, '.ts');
    for (const file of byFolder.get(dirname(from)) ?? []) {
      const name = basename(file);
      if (moves.has(file) || !name.startsWith(`${stem}.`) || !/\.(test|bench)\.ts$/.test(name)) {
        continue;
      }
      moves.set(file, join(dirname(to), newStem + name.slice(stem.length)));
    }
  }
  return new Map([...moves].filter(([from, to]) => from !== to));
}

/** A path as a module names it: always with `./` or `../` in front. */
function named(fromFolder: string, target: string): string {
  const path = relative(fromFolder, target);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The text of a module with what it names by path as it must be after the moves. */
function rewritten(path: string, source: string, moves: ReadonlyMap<string, string>): string {
  const before = dirname(path);
  const after = dirname(moves.get(path) ?? path);
  const next = (target: string): string => moves.get(target) ?? target;
  const edits = moduleNames(path, source)
    .filter(({ value }) => value.startsWith('.'))
    .filter(({ value }) => before !== after || next(join(before, value)) !== join(before, value))
    .map(({ start, end, value }) => {
      const target = join(before, value);
      return { start, end, value: `'${named(after, next(target))}'` };
    })
    .sort((a, b) => b.start - a.start);
  let text = source;
  for (const { start, end, value } of edits) text = text.slice(0, start) + value + text.slice(end);
  return text.replaceAll(
    /(import\.meta\.dirname, )((?:'[^']*'(?:, )?)+)(?=[,)])/g,
    (whole, head: string, parts: string) => {
      const target = join(
        before,
        ...[...parts.matchAll(/'([^']*)'/g)].map(([, part = '']) => part),
      );
      const path = relative(after, next(target));
      return before === after && next(target) === target ? whole : `${head}'${path}'`;
    },
  );
}

function main(list: string): void {
  const files = tracked();
  const moves = movesOf(list, files);
  const targets = new Set(moves.values());
  if (targets.size !== moves.size) {
    const twice = [...moves].filter(([from, to]) =>
      [...moves].some(([f, t]) => t === to && f !== from),
    );
    throw new Error(`two files would get the same path: ${twice.join(', ')}`);
  }
  for (const path of files.filter((file) => CODE.test(file))) {
    const source = readFileSync(join(ROOT, path), 'utf8');
    const text = rewritten(path, source, moves);
    if (text !== source) writeFileSync(join(ROOT, path), text);
  }
  // what a package exports is named from the package, what texts mention from the root
  for (const path of files.filter((file) => TEXT.test(file))) {
    const source = readFileSync(join(ROOT, path), 'utf8');
    const own = /^(packages\/[a-z]+)\/package\.json$/.exec(path)?.[1];
    const text = source.replaceAll(
      /(?<![\w-])(?<!\w\/)(?:\.\/src|packages|bench|tools)\/[\w./-]+/g,
      (name) => {
        if (own !== undefined && name.startsWith('./src/')) {
          const to = moves.get(`${own}/${name.slice(2)}`);
          return to === undefined ? name : `./${relative(own, to)}`;
        }
        return moves.get(name) ?? name;
      },
    );
    if (text !== source) writeFileSync(join(ROOT, path), text);
  }
  for (const [from, to] of moves) {
    mkdirSync(join(ROOT, dirname(to)), { recursive: true });
    execFileSync('git', ['mv', from, to], { cwd: ROOT });
  }
  process.stdout.write(`${moves.size} files moved\n`);
}

main(await text(process.stdin));
