import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).map((path) => ({
  path,
  text: readFileSync(join(ROOT, path), 'utf8'),
}));

/** What `pattern` finds in all pages, each behind the page's path. */
function found(pattern: RegExp): { readonly path: string; readonly words: readonly string[] }[] {
  return pages.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map((match) => ({ path, words: match.slice(1) })),
  );
}

test('programs of the documentation are there, and run on the pinned Node', () => {
  // Whatever `node` is first on PATH, 20 or newer, cannot read the sources.
  const bare = found(/(?:^ {4}|`)(node (?:--\S+ )*[\w./-]+\.ts)/gm);
  assert.deepEqual(bare, []);
  const programs = found(/node_modules\/\.bin\/node (?:-\S+ )*([\w./-]+\.ts)/g);
  assert(programs.length > 5);
  const missing = programs.filter(({ words }) => !existsSync(join(ROOT, words[0] ?? '')));
  assert.deepEqual(missing, []);
});

test('names of the glossary are in the sources, and its words in order', () => {
  const sources = globSync(['packages/*/src/**/*.ts', 'tools/*.ts'], { cwd: ROOT })
    .map((path) => readFileSync(join(ROOT, path), 'utf8'))
    .join('\n');
  const page = readFileSync(join(ROOT, 'docs/glossary.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (.+) \| (.+) \| (.+) \|$/gm)].slice(1);
  assert(rows.length > 20);
  const words = rows.map(([, word = '']) => word);
  assert.deepEqual(words, words.toSorted());
  assert.equal(new Set(words).size, words.length, 'a word means one thing');
  const names = rows.flatMap(([, , , list = '']) => [...list.matchAll(/`(\w+)`/g)]);
  const missing = names
    .map(([, name = '']) => name)
    .filter(
      (name) => !new RegExp(`(class|function|interface|type|const) ${name}\\b`).test(sources),
    );
  assert.deepEqual(missing, []);
});

test('links between pages lead somewhere', () => {
  const links = found(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g);
  assert(links.length > 20);
  const dead = links.filter(({ path, words }) => {
    return !existsSync(join(ROOT, dirname(path), words[0] ?? ''));
  });
  assert.deepEqual(dead, []);
});
