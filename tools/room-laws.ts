/**
 * The laws of rooms: folders are layers, small, and without circles; doors are named.
 *
 * All functions go from sources to findings, as those of `laws.ts`.
 */
import { dirname, join, normalize } from 'node:path';
import { moduleNames } from './module-names.ts';

export const FOLDER_FILES_MAX = 25;

/** A package's folders in the order of layers, lowest first, a meaning each. */
export type Rooms = readonly (readonly [folder: string, meaning: string])[];

/** A file of a package and the files of the same package that it names. */
export interface Linked {
  /** From the root of the repository. */
  readonly path: string;
  readonly package: string;
  readonly links: readonly { readonly path: string; readonly isType: boolean }[];
}

/** What a module of a package names in its own package. */
export function linked(path: string, text: string): Linked {
  const name = /^packages\/([a-z]+)\//.exec(path)?.[1] ?? '';
  const links = moduleNames(path, text)
    .filter(({ value, isUrl }) => value.startsWith('.') && !isUrl)
    .map(({ value, isType }) => ({ path: normalize(join(dirname(path), value)), isType }))
    .filter((link) => link.path.startsWith(`packages/${name}/`));
  return { path, package: name, links };
}

/** The room that a file lies in: the longest that its path begins with. */
export function roomOf(path: string, rooms: Rooms): string | undefined {
  const inside = /^packages\/[a-z]+\/src\/(.*)$/.exec(path)?.[1];
  if (inside === undefined) return undefined;
  const folder = inside.includes('/') ? inside.slice(0, inside.lastIndexOf('/')) : '';
  let best: string | undefined;
  for (const [room] of rooms) {
    const isIn = room === folder || (room !== '' && folder.startsWith(`${room}/`));
    if (isIn && room.length >= (best?.length ?? 0)) best = room;
  }
  return best;
}

/** A file imports, types included, only from its own room and those below it. */
export function roomLaw(file: Linked, rooms: Rooms): string[] {
  if (isTestFile(file.path)) return [];
  const own = roomOf(file.path, rooms);
  if (own === undefined) return [`${file.path}: lies in no room`];
  const order = rooms.map(([room]) => room);
  const found: string[] = [];
  for (const link of file.links) {
    const other = roomOf(link.path, rooms);
    if (other === undefined || other === own) continue;
    if (order.indexOf(other) > order.indexOf(own)) found.push(`${file.path} -> ${link.path}`);
  }
  return [...new Set(found)];
}

/** Sources know no test doubles: what lies in `testing/` or `simulation/`, or is a simulation. */
export function doubleLaw(file: Linked): string[] {
  if (isTestFile(file.path) || isDouble(file.path)) return [];
  return file.links
    .filter((link) => isDouble(link.path))
    .map((link) => `${file.path} -> ${link.path}: a test double`);
}

/** No folder holds more files than a reader can see at once; tests are not counted. */
export function folderLaw(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    if (!/^packages\/[a-z]+\/src\//.test(path) || path.endsWith('.test.ts')) continue;
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => `${folder}: ${count} files, at most ${FOLDER_FILES_MAX}`);
}

/** No file reaches itself by imports, types included; a finding is one circle's files by name. */
export function circleLaw(files: readonly Linked[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const next = (path: string): string[] =>
    (byPath.get(path)?.links ?? [])
      .filter((link) => byPath.has(link.path))
      .map((link) => link.path);
  return components([...byPath.keys()], next)
    .filter((members) => members.length > 1)
    .map((members) => members.sort().join(' '));
}

/** Strongly connected components (Tarjan), without recursion. */
function components(paths: readonly string[], next: (path: string) => string[]): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const open: string[] = [];
  const isOpen = new Set<string>();
  const found: string[][] = [];
  const enter = (path: string): { path: string; rest: string[] } => {
    low.set(path, index.size);
    index.set(path, index.size);
    open.push(path);
    isOpen.add(path);
    return { path, rest: next(path) };
  };
  for (const start of paths) {
    const way = index.has(start) ? [] : [enter(start)];
    for (let at = way.at(-1); at !== undefined; at = way.at(-1)) {
      const to = at.rest.pop();
      if (to !== undefined) {
        if (!index.has(to)) way.push(enter(to));
        else if (isOpen.has(to)) lower(low, at.path, index.get(to));
        continue;
      }
      way.pop();
      const before = way.at(-1);
      if (before !== undefined) lower(low, before.path, low.get(at.path));
      if (low.get(at.path) !== index.get(at.path)) continue;
      const members = open.splice(open.indexOf(at.path));
      for (const member of members) isOpen.delete(member);
      found.push(members);
    }
  }
  return found;
}

function lower(low: Map<string, number>, path: string, to: number | undefined): void {
  low.set(path, Math.min(low.get(path) ?? Infinity, to ?? Infinity));
}

function isTestFile(path: string): boolean {
  return /\.(test|bench)\.ts$/.test(path) || /^packages\/[a-z]+\/(test|tools)\//.test(path);
}

function isDouble(path: string): boolean {
  return path.endsWith('.sim.ts') || /\/src\/(.*\/)?(testing|simulation)\//.test(path);
}

const PAGE_HEAD = `# Architecture: packages and their rooms

A package is a layer, a folder is a layer within it. A package imports from packages above it in
[CONTRIBUTING.md](../CONTRIBUTING.md), a folder from folders above it on this page, and a test holds
both. \`tools/rooms.ts\` is the source of this page.
`;

/** The page of the documentation that lists all rooms, as Markdown. */
export function architecturePage(rooms: Readonly<Record<string, Rooms>>): string {
  const parts = Object.entries(rooms).map(([name, list]) => {
    const rows = list.map(
      ([room, meaning]) => `| \`${room === '' ? 'src/' : `${room}/`}\` | ${meaning} |`,
    );
    return `\n## ${name}\n\n| folder | what it holds |\n|---|---|\n${rows.join('\n')}\n`;
  });
  return PAGE_HEAD + parts.join('');
}
