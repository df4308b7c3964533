/**
 * The site as pages for its generator: those of `docs/`, the reference of flags, a first page, and
 * how it is all found. Nothing here needs the generator, so that links are checked without it.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDERS, GROUPS, LAST_GROUP, titleOf } from './pages.ts';
import { referencePages } from './reference.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A page or a picture by its path in the site. */
export type Site = ReadonlyMap<string, string | Uint8Array>;

/** Pages of the repository that those of `docs/` lead to. */
const OF_ROOT: ReadonlyMap<string, string> = new Map([
  ['CONTRIBUTING.md', 'contributing.md'],
  ['CHANGELOG.md', 'changelog.md'],
  ['README.md', 'readme.md'],
]);

/** All files of the site. */
export function siteFiles(): Site {
  const manifest = readFileSync(join(ROOT, 'packages/cli/package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { readonly version: string };
  const files = new Map<string, string | Uint8Array>();
  for (const path of globSync('**/*', { cwd: join(ROOT, 'docs') }).sort()) {
    if (!/\.(md|svg|png)$/.test(path)) continue;
    const bytes = readFileSync(join(ROOT, 'docs', path));
    files.set(path, path.endsWith('.md') ? siteText(path, bytes.toString()) : bytes);
  }
  for (const [path, name] of OF_ROOT) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    files.set(name, siteText(name, text.replaceAll(/\]\((?:\.\/)?docs\//g, '](./')));
  }
  for (const [name, text] of referencePages(version)) files.set(`reference/${name}.md`, text);
  files.set('index.md', firstPage());
  return files;
}

/** A page's text with links that lead within the site, and out of it by words alone. */
function siteText(path: string, text: string): string {
  const up = '../'.repeat(path.split('/').length - 1);
  const linked = text.replaceAll(
    /\[([^\]]*)\]\(([^)\s]+)\)/g,
    (link, words: string, target: string) => {
      if (/^(https?:|#|mailto:)/.test(target)) return link;
      const [file = '', anchor = ''] = target.split('#');
      const name = file.replaceAll(/^(?:\.\.\/|\.\/)+/g, '');
      const ofRoot = OF_ROOT.get(name);
      const behind = anchor === '' ? '' : `#${anchor}`;
      if (ofRoot !== undefined) return `[${words}](${up}./${ofRoot}${behind})`;
      const isPage = /\.(md|svg|png)$/.test(file);
      return isPage ? link : words;
    },
  );
  // Between double braces the generator would look for its own words.
  return linked.includes('{{') ? `::: v-pre\n\n${linked}\n\n:::\n` : linked;
}

/** `site/home.md`, with the pictures that there are. */
function firstPage(): string {
  const pictures = [
    ['terminal.svg', 'megaplane up and kubectl in a terminal'],
    ['page-cluster.png', 'the live page: the nodes of a cluster'],
  ] as const;
  const found = pictures.filter(([name]) => existsSync(join(ROOT, 'docs/pictures', name)));
  const links = found.map(([name, alt]) => `\n![${alt}](./pictures/${name})\n`);
  const text = readFileSync(join(ROOT, 'site/home.md'), 'utf8');
  return text.replace('PICTURES', links.join(''));
}

export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly SidebarItem[];
}

/** The table of contents. Every page of \`docs/\` is in it. */
export function sidebar(files: Site): readonly SidebarItem[] {
  const pages = [...files.keys()].filter((path) => path.endsWith('.md') && path !== 'index.md');
  const left = new Set(pages.map((path) => path.slice(0, -3)));
  const item = (name: string): SidebarItem => {
    const text = files.get(`${name}.md`);
    if (typeof text !== 'string') throw new Error(`site: there is no page ${name}`);
    left.delete(name);
    return { text: titleOf(name, text), link: `/${name}` };
  };
  const groups = GROUPS.map(({ title, pages: names }): SidebarItem => {
    return { text: title, items: names.map(item) };
  });
  const folded = [...FOLDERS, { title: 'Every flag', folder: 'reference/' }];
  const folders = folded.map(({ title, folder }): SidebarItem => {
    const names = [...left].filter((name) => name.startsWith(folder));
    return { text: title, collapsed: true, items: names.map(item) };
  });
  const rest: SidebarItem = { text: LAST_GROUP, collapsed: true, items: [...left].map(item) };
  return [...groups, ...folders, rest];
}

/** What the generator is told: it asks nothing of a network, and searches in the browser. */
export function siteConfig(files: Site): object {
  return {
    title: 'Megaplane',
    description: 'A Kubernetes control plane that holds a million nodes',
    lang: 'en',
    cleanUrls: false,
    outDir: '../../dist/site',
    cacheDir: './.cache',
    lastUpdated: false,
    themeConfig: {
      search: { provider: 'local' },
      sidebar: sidebar(files),
      outline: [2, 3],
      nav: [
        { text: 'Tutorial', link: '/tutorial' },
        { text: 'Commands', link: '/commands' },
        { text: 'Figures', link: '/figures' },
      ],
    },
  };
}
