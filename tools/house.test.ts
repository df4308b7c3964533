import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LAYERS } from './laws.ts';
import * as laws from './room-laws.ts';
import { ROOMS } from './rooms.ts';

const ROOT = join(import.meta.dirname, '..');

const files = globSync('packages/*/src/**/*.ts', { cwd: ROOT })
  .map((path) => path.replaceAll('\\', '/'))
  .map((path) => laws.linked(path, readFileSync(join(ROOT, path), 'utf8')));
const sources = files.filter(({ path }) => !path.endsWith('.test.ts'));

function planted(path: string, text: string): laws.Linked {
  return laws.linked(path, text);
}

test('every package has rooms, and every room a meaning and files', () => {
  assert.deepEqual(Object.keys(ROOMS).sort(), Object.keys(LAYERS).sort());
  for (const [name, rooms] of Object.entries(ROOMS)) {
    const lived = new Set(files.map(({ path }) => laws.roomOf(path, rooms)));
    const own = new Set(
      files.filter((file) => file.package === name).map(({ path }) => laws.roomOf(path, rooms)),
    );
    assert.ok(lived.size > 0);
    for (const [room, meaning] of rooms) {
      assert.notEqual(meaning, '', `${name}/${room}`);
      assert.ok(own.has(room), `${name}/src/${room} holds no file`);
    }
  }
});

test('a file imports, types included, only from its own room and those below', () => {
  assert.deepEqual(
    files.flatMap((file) => laws.roomLaw(file, ROOMS[file.package] ?? [])),
    [],
  );
});

test('the law of rooms bites: imports of values and types from above, files in no room', () => {
  const rooms = [
    ['low', ''],
    ['low/deep', ''],
    ['high', ''],
  ] as const;
  const path = 'packages/base/src/low/a.ts';
  const up = `import type { X } from '../high/x.ts';`;
  assert.equal(laws.roomLaw(planted(path, up), rooms).length, 1);
  const typed = `export type Y = import('../high/x.ts').X;`;
  assert.equal(laws.roomLaw(planted(path, typed), rooms).length, 1);
  const again = `export { x } from './deep/x.ts';`;
  assert.equal(laws.roomLaw(planted(path, again), rooms).length, 1);
  const down = `import { x } from '../low/deep/x.ts';`;
  assert.deepEqual(laws.roomLaw(planted('packages/base/src/high/a.ts', down), rooms), []);
  const attic = planted('packages/base/src/attic/a.ts', 'export {};');
  assert.match(laws.roomLaw(attic, rooms)[0] ?? '', /lies in no room/);
  assert.deepEqual(laws.roomLaw(planted('packages/base/src/low/a.test.ts', up), rooms), []);
});

test('no folder holds too many files', () => {
  assert.deepEqual(laws.folderLaw(files.map(({ path }) => path)), []);
  const many = Array.from({ length: laws.FOLDER_FILES_MAX + 1 }, (_, i) => `f${i}.ts`);
  const found = laws.folderLaw(many.map((name) => `packages/base/src/low/${name}`));
  assert.match(found[0] ?? '', /26 files, at most 25/);
});

test('no files import each other in a circle, types included', () => {
  assert.deepEqual(laws.circleLaw(sources), []);
});

test('the law of circles bites', () => {
  const a = planted('packages/base/src/a.ts', `import { b } from './b.ts';`);
  const b = planted('packages/base/src/b.ts', `import type { C } from './c.ts';`);
  const c = planted('packages/base/src/c.ts', `export * from './a.ts';`);
  assert.equal(laws.circleLaw([a, b, c]).length, 1);
  const value = planted('packages/base/src/b.ts', `import { c } from './c.ts';`);
  assert.equal(laws.circleLaw([a, value, c]).length, 1);
  const worker = planted('packages/base/src/b.ts', `new URL('./c.ts', import.meta.url);`);
  assert.deepEqual(laws.circleLaw([a, worker, c]), []);
});

test('sources import no test doubles', () => {
  assert.deepEqual(files.flatMap(laws.doubleLaw), []);
  const fake = `import { x } from './testing/x.ts';`;
  assert.equal(laws.doubleLaw(planted('packages/base/src/a.ts', fake)).length, 1);
  const sim = `import { x } from './x.sim.ts';`;
  assert.equal(laws.doubleLaw(planted('packages/base/src/a.ts', sim)).length, 1);
  assert.deepEqual(laws.doubleLaw(planted('packages/base/src/b.sim.ts', sim)), []);
});

test('packages name their doors one by one, and each leads to a file', () => {
  for (const name of Object.keys(LAYERS).filter((layer) => layer !== 'cli')) {
    const text = readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8');
    const { exports } = JSON.parse(text) as { readonly exports: Readonly<Record<string, string>> };
    for (const [door, file] of Object.entries(exports)) {
      assert.ok(!door.includes('*'), `${name}: ${door}`);
      assert.doesNotThrow(() => readFileSync(join(ROOT, 'packages', name, file)), door);
    }
  }
});

test('the page on architecture lists the rooms', () => {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
  assert.equal(page, laws.architecturePage(ROOMS));
});
