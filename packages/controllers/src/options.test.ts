import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONTROLLER_NAMES } from './options.ts';

const DOCS = join(import.meta.dirname, '../../../docs');

test('every controller has a page, a line in the list, and no page is of nobody', () => {
  const pages = readdirSync(join(DOCS, 'controllers')).map((one) => one.replace(/\.md$/, ''));
  const names = pages.filter((one) => one.endsWith('-controller'));
  assert.deepEqual(names.toSorted(), [...CONTROLLER_NAMES].toSorted());
  const list = readFileSync(join(DOCS, 'controllers.md'), 'utf8');
  const unlisted = CONTROLLER_NAMES.filter((name) => !list.includes(`(controllers/${name}.md)`));
  assert.deepEqual(unlisted, []);
});
