/** docs/dependencies.md lists what is installed, as package-lock.json has it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const ROW = /^\| `([^`]+)` \| (\S+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \| (yes|no) \| ([^|]+) \|$/;
const INSTALLED = 'node_modules/';
const SCOPES = ['dependencies', 'devDependencies', 'optionalDependencies'] as const;

type Scope = Readonly<
  Record<(typeof SCOPES)[number], Readonly<Record<string, string>> | undefined>
>;

interface Locked extends Scope {
  readonly version?: string;
  readonly license?: string;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
}

const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
const packages = Object.entries(lock.packages);
const others = packages.filter(([path, { link }]) => path.includes(INSTALLED) && link !== true);

/** What the workspaces name. */
function listed(): string[] {
  const names = new Set<string>();
  for (const [path, workspace] of packages) {
    if (path.includes(INSTALLED)) continue;
    for (const scope of SCOPES) {
      for (const name of Object.keys(workspace[scope] ?? {})) names.add(name);
    }
  }
  return [...names].filter((name) => !/^(@megaplane\/|megaplane$)/.test(name)).toSorted();
}

test('each package that a workspace names has a row that says what the lock says', () => {
  const rows = page.split('\n').flatMap((line) => ROW.exec(line)?.slice(1) ?? []);
  const names = rows.filter((_, i) => i % 7 === 0);
  assert.deepEqual(names.toSorted(), listed());
  for (const [at, name] of names.entries()) {
    const [, version, licence, size, date, scripts, purpose] = rows.slice(at * 7, at * 7 + 7);
    const locked = lock.packages[INSTALLED + name];
    assert.equal(version, locked?.version, name);
    assert.equal(licence, locked?.license, name);
    assert.equal(scripts, locked?.hasInstallScript === true ? 'yes' : 'no', name);
    assert.match(size ?? '', /^(?:[\d.]+ (?:KiB|MiB)|not measured)$/, name);
    assert.match(date ?? '', /^\d{4}-\d{2}-\d{2}$/, name);
    assert.notEqual(purpose?.trim() ?? '', '', name);
  }
});

test('the page names the licences of all packages, and those with install scripts', () => {
  const licences = new Set(others.map(([, { license }]) => license ?? 'none'));
  for (const licence of licences) assert(page.includes(licence), `licence ${licence} is not named`);
  const scripted = others.filter(([, { hasInstallScript }]) => hasInstallScript === true);
  const names = scripted
    .map(([path]) => path.slice(path.lastIndexOf(INSTALLED) + INSTALLED.length))
    .toSorted();
  const line = page.split('\n').find((one) => one.startsWith('Install scripts: ')) ?? '';
  const [list = ''] = line.split('. ');
  const told = [...list.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');
  assert.deepEqual(told.toSorted(), names);
});
