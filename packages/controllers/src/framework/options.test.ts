import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chosenControllers, CONTROLLER_NAMES } from './options.ts';

const DOCS = join(import.meta.dirname, '../../../../docs');

test('every controller has a page, a line in the list, and no page is of nobody', () => {
  const pages = readdirSync(join(DOCS, 'controllers')).map((one) => one.replace(/\.md$/, ''));
  const names = pages.filter((one) => one.endsWith('-controller'));
  assert.deepEqual(names.toSorted(), [...CONTROLLER_NAMES].toSorted());
  const list = readFileSync(join(DOCS, 'controllers.md'), 'utf8');
  const unlisted = CONTROLLER_NAMES.filter((name) => !list.includes(`(controllers/${name}.md)`));
  assert.deepEqual(unlisted, []);
});

test('names of upstream are taken, its older ones too, and others are refused', () => {
  const names = (list: string[]): string[] => {
    const chosen = chosenControllers(list);
    assert(typeof chosen !== 'string');
    return [...chosen];
  };
  assert.deepEqual(names(['persistentvolume-expander']), ['persistentvolume-expander-controller']);
  assert.deepEqual(names(['selinux-warning-controller', 'cloud-node-lifecycle']), []);
  assert(!names(['*', '-endpoint']).includes('endpoints-controller'));
  assert.deepEqual(names(['job', '-job', '-ttl', 'ttl']), ['job-controller'], 'the first counts');
  for (const wrong of ['deploymnet', 'node-ipam', '-vac-protection', '']) {
    const found = chosenControllers([wrong]);
    assert(
      typeof found === 'string' &&
        found.includes(`"${wrong.replace('-vac', 'vac')}" is not in the list`),
      wrong,
    );
  }
});
