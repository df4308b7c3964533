import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { commandTable } from '../packages/cli/src/completion/table.ts';
import { makeProgram } from '../packages/cli/src/program.ts';
import { anchorOf } from './site/pages.ts';
import { sidebar, siteFiles, type SidebarItem } from './site/prepare.ts';

const ROOT = join(import.meta.dirname, '..');
const files = siteFiles();
const pages = new Map(
  [...files].flatMap(([path, content]) =>
    typeof content === 'string' ? [[path, content] as const] : [],
  ),
);

test('every page is in the table of contents, once', () => {
  const links = (item: SidebarItem): string[] => [
    ...(item.link === undefined ? [] : [item.link]),
    ...(item.items ?? []).flatMap(links),
  ];
  const found = sidebar(files).flatMap(links).sort();
  const wanted = [...pages.keys()].filter((path) => path !== 'index.md').sort();
  assert.deepEqual(found, wanted.map((path) => `/${path.slice(0, -3)}`).sort());
});

test('the reference has every flag of every command', () => {
  for (const { path, flags } of commandTable(makeProgram('0.0.0', () => {}))) {
    const [name] = path;
    if (name === undefined) continue;
    const page = pages.get(`reference/${name}.md`) ?? '';
    for (const { usage } of flags) {
      const cell = `| \`${usage.replaceAll('|', '\\|')}\` |`;
      assert(page.includes(cell), `${path.join(' ')} ${usage}`);
    }
  }
});

/** A page without what is shown as it stands. */
function prose(text: string): string {
  return text.replaceAll(/^```[^]*?^```/gm, '').replaceAll(/^ {4}.*$/gm, '');
}

function anchors(text: string): Set<string> {
  const found = new Set<string>();
  for (const [, heading = ''] of prose(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const first = anchorOf(heading);
    let name = first;
    for (let n = 1; found.has(name); n++) name = `${first}-${n}`;
    found.add(name);
  }
  return found;
}

test('links of the site lead to pages, and to headings that are on them', () => {
  const dead: string[] = [];
  let count = 0;
  for (const [path, text] of pages) {
    const plain = prose(text).replaceAll(/`[^`\n]*`/g, '');
    for (const [, target = ''] of plain.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|mailto:)/.test(target)) continue;
      count++;
      const [file = '', anchor = ''] = target.split('#');
      const to = file === '' ? path : normalize(join(dirname(path), file));
      if (!files.has(to)) dead.push(`${path}: ${target}`);
      else if (anchor !== '' && !anchors(pages.get(to) ?? '').has(anchor)) {
        dead.push(`${path}: ${target} (no such heading)`);
      }
    }
  }
  assert.deepEqual(dead, []);
  assert(count > 100);
});

const GENERATOR = join(ROOT, 'site/node_modules/vitepress');
const isLong = process.env['MEGAPLANE_LONG'] === '1';
const skip = !existsSync(GENERATOR)
  ? 'the site is built where its generator is: npm ci --prefix site'
  : !isLong && 'MEGAPLANE_LONG=1 npm test builds the site';

test('the site is built without a network, with its search', { skip }, () => {
  const built = spawnSync(process.execPath, [join(ROOT, 'tools/site.ts')], { encoding: 'utf8' });
  assert.equal(built.status, 0, built.stdout + built.stderr);
  const out = join(ROOT, 'dist/site');
  for (const path of pages.keys()) {
    const html = readFileSync(join(out, path.replace(/\.md$/, '.html')), 'utf8');
    const outside = [...html.matchAll(/(?:src|href)="(https?:[^"]+)"/g)].map(([, url]) => url);
    assert.deepEqual(
      outside.filter((url) => /\.(?:js|css|woff2?|png|svg)$/.test(url ?? '')),
      [],
      path,
    );
  }
  const search = globSync('assets/chunks/@localSearchIndex*.js', { cwd: out });
  assert.equal(search.length, 1);
  assert.match(readFileSync(join(out, search[0] ?? ''), 'utf8'), /durability/);
});
