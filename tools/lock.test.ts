/**
 * What is installed is what was looked at: each package by its content. The lock names no address:
 * packages come from the registry that npm is set up with, and their content decides.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
}

const ROOT = join(import.meta.dirname, '..');

test('the lock file has version and integrity of every package, and no other source', () => {
  const text = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Readonly<Record<string, Locked>> };
  const installed = Object.entries(packages).filter(
    ([path, { link }]) => path.includes('node_modules/') && link !== true,
  );
  assert(installed.length > 100);
  for (const [path, { version, resolved, integrity }] of installed) {
    assert.match(version ?? '', /^\d+\.\d+\.\d+/, path);
    assert.equal(resolved, undefined, path);
    assert.match(integrity ?? '', /^sha512-[A-Za-z0-9+/]{86}==$/, path);
  }
});

const isLong = process.env['MEGAPLANE_LONG'] === '1';
/** What npm says where the registry it asks has no such service. */
const NO_SERVICE =
  /audit endpoint returned an error|no signatures|ENOTFOUND|EAI_AGAIN|ECONNREFUSED/;

for (const words of [['--audit-level=high'], ['signatures']]) {
  test(`npm audit ${words.join(' ')} finds nothing`, { skip: !isLong }, (t) => {
    const { status, stdout, stderr } = spawnSync('npm', ['audit', ...words], {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 300_000,
    });
    if (NO_SERVICE.test(stdout + stderr)) t.skip('the registry that npm asks tells of no audits');
    else assert.equal(status, 0, stdout + stderr);
  });
}
