/**
 * Moves declarations between modules with everything that names them: `move-names.ts < list`, a
 * line `old.ts new.ts name...` for each.
 *
 * A declaration goes with the comment above it and the imports that it needs; who imported it
 * does so from its new place, other packages by a door that is made where there is none. A module
 * that does not exist yet begins with the rest of a line after `#` as its head. Moves within a file
 * by the text alone: whatever is named by strings or `import()` of types is left to the compiler.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseSync } from 'oxc-parser';

const ROOT = join(import.meta.dirname, '..');

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

interface Imported {
  readonly source: string;
  readonly imported: string;
  readonly local: string;
  readonly isType: boolean;
}

const texts = new Map<string, string>();

function read(path: string): string {
  let found = texts.get(path);
  if (found === undefined) {
    found = existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), 'utf8') : '';
    texts.set(path, found);
  }
  return found;
}

function statements(path: string): Node[] {
  const result = parseSync(path, read(path));
  if (result.errors[0] !== undefined) throw new Error(`${path}: ${result.errors[0].message}`);
  return result.program.body as unknown as Node[];
}

function declared(statement: Node): string[] {
  const inner = (statement['declaration'] ?? statement) as Node;
  if (inner.type === 'VariableDeclaration') {
    return (inner['declarations'] as Node[]).map((one) => String((one['id'] as Node)['name']));
  }
  const id = inner['id'] as Node | null | undefined;
  return typeof id?.['name'] === 'string' ? [id['name']] : [];
}

function identifiers(node: Node, into: Set<string> = new Set()): Set<string> {
  if (node.type === 'Identifier') into.add(String(node['name']));
  for (const [key, value] of Object.entries(node)) {
    if (key === 'property' && node['computed'] === false) continue;
    if (key === 'key' && node['computed'] === false && node['shorthand'] !== true) continue;
    for (const item of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (typeof item === 'object' && item !== null && 'type' in item) {
        identifiers(item as Node, into);
      }
    }
  }
  return into;
}

function importsOf(path: string): (Imported & { readonly statement: Node })[] {
  return statements(path)
    .filter(({ type }) => type === 'ImportDeclaration')
    .flatMap((statement) =>
      (statement['specifiers'] as Node[]).map((one) => {
        const local = String((one['local'] as Node)['name']);
        const name = (one['imported'] as Node | undefined)?.['name'];
        const isNamed = one.type === 'ImportSpecifier';
        return {
          source: String((statement['source'] as Node)['value']),
          imported: isNamed ? String(name) : one.type,
          local,
          isType: statement['importKind'] === 'type' || one['importKind'] === 'type',
          statement,
        };
      }),
    );
}

function printed(list: readonly Imported[], source: string): string {
  const isType = list.every((one) => one.isType);
  const names = list.map((one) => {
    const name = one.imported === one.local ? one.local : `${one.imported} as ${one.local}`;
    return one.isType && !isType ? `type ${name}` : name;
  });
  return `import ${isType ? 'type ' : ''}{ ${names.join(', ')} } from '${source}';`;
}

function setImports(path: string, statement: Node, list: readonly Imported[]): void {
  const all = read(path);
  const source = String((statement['source'] as Node)['value']);
  const line = list.length === 0 ? '' : printed(list, source);
  const end = line === '' && all[statement.end] === '\n' ? statement.end + 1 : statement.end;
  texts.set(path, all.slice(0, statement.start) + line + all.slice(end));
}

function dropImport(path: string, local: string): void {
  const all = importsOf(path);
  const found = all.find((one) => one.local === local);
  if (found === undefined) return;
  const rest = all.filter((one) => one.statement === found.statement && one.local !== local);
  setImports(path, found.statement, rest);
}

function named(path: string, target: string): string {
  const found = relative(dirname(path), target);
  return found.startsWith('.') ? found : `./${found}`;
}

function addImport(path: string, one: Imported): void {
  const all = importsOf(path);
  if (all.some(({ local }) => local === one.local)) return;
  const same = all.find(
    ({ source, imported }) => source === one.source && !imported.startsWith('Import'),
  );
  if (same !== undefined) {
    const list = all.filter(({ statement }) => statement === same.statement);
    setImports(path, same.statement, [...list, one]);
    return;
  }
  const whole = '{ ImportNamespaceSpecifier as ';
  const line = `${printed([one], one.source)
    .replace(whole, '* as {')
    .replace(/\{(\w+) \}/, '$1')}\n`;
  const last = statements(path).findLast(({ type }) => type === 'ImportDeclaration');
  const now = read(path);
  if (last !== undefined) {
    texts.set(path, `${now.slice(0, last.end)}\n${line}${now.slice(last.end + 1)}`);
    return;
  }
  const head = /^(?:\/\*\*[\s\S]*?\*\/\n|(?:\/\/.*\n)+)(?=\n|$)/.exec(now)?.[0] ?? '';
  texts.set(path, `${head}${line}${head === '' ? '\n' : ''}${now.slice(head.length)}`);
}

/** Takes the declarations out of `from`; what they are in their new place. */
function taken(from: string, names: readonly string[]): { text: string; used: Set<string> } {
  const parts: string[] = [];
  const used = new Set<string>();
  for (const name of names) {
    const list = statements(from);
    const index = list.findIndex((one) => declared(one).includes(name));
    const statement = list[index];
    if (statement === undefined) throw new Error(`${from}: no ${name}`);
    const all = read(from);
    const before = list[index - 1]?.end ?? 0;
    const gap = all.slice(before, statement.start);
    const cut = gap.lastIndexOf('\n\n');
    const start = before + (cut === -1 ? gap.length - gap.trimStart().length : cut + 2);
    const doc = all.slice(start, statement.start);
    const body = all.slice(statement.start, statement.end);
    parts.push(doc + body);
    identifiers(statement, used);
    texts.set(from, `${all.slice(0, start).trimEnd()}\n\n${all.slice(statement.end).trimStart()}`);
  }
  return { text: parts.join('\n\n'), used };
}

interface Doors {
  readonly exports: Record<string, string>;
}

function doorOf(file: string): string {
  const [, pkg = '', inside = ''] = /^packages\/(\w+)\/(.*)$/.exec(file) ?? [];
  const path = `packages/${pkg}/package.json`;
  const json = JSON.parse(read(path)) as Doors;
  let door = Object.entries(json.exports).find(([, target]) => target === `./${inside}`)?.[0];
  if (door === undefined) {
    door = `./${basename(file, '.ts')}`;
    if (json.exports[door] !== undefined) throw new Error(`${path}: ${door} is another file's`);
    const next = Object.entries({ ...json.exports, [door]: `./${inside}` }).toSorted(
      ([one], [other]) => (one < other ? -1 : 1),
    );
    texts.set(path, `${JSON.stringify({ ...json, exports: Object.fromEntries(next) }, null, 2)}\n`);
  }
  return `@megaplane/${pkg}/${door.slice(2)}`;
}

function doorsTo(file: string): string[] {
  const [, pkg = '', inside = ''] = /^packages\/(\w+)\/(.*)$/.exec(file) ?? [];
  const json = JSON.parse(read(`packages/${pkg}/package.json`)) as Partial<Doors>;
  return Object.entries(json.exports ?? {})
    .filter(([, target]) => target === `./${inside}`)
    .map(([door]) => `@megaplane/${pkg}/${door.slice(2)}`);
}

function move(from: string, to: string, names: readonly string[], head: string): void {
  const before = importsOf(from);
  const { text, used } = taken(from, names);
  const old = read(to);
  texts.set(to, old === '' ? `${head}\n\n${text}\n` : `${old.trimEnd()}\n\n${text}\n`);
  const own = new Set(statements(to).flatMap(declared));
  const left = statements(from).flatMap(declared);
  for (const name of names) dropImport(to, name);
  for (const one of before.filter(({ local }) => used.has(local) && !own.has(local))) {
    const isPath = one.source.startsWith('.');
    const target = isPath ? join(dirname(from), one.source) : '';
    addImport(to, { ...one, source: isPath ? named(to, target) : one.source });
  }
  // a variable of a function may have the name of something else
  const isLocal = (name: string): boolean => new RegExp(`\\b(?:const|let) ${name}\\b`).test(text);
  for (const name of left.filter((one) => used.has(one) && !own.has(one) && !isLocal(one))) {
    process.stdout.write(`${to} needs ${name} of ${from}\n`);
    addImport(to, { source: named(to, from), imported: name, local: name, isType: false });
  }
  const still = new Set<string>();
  for (const one of statements(from)) if (one.type !== 'ImportDeclaration') identifiers(one, still);
  for (const { local } of before) if (!still.has(local)) dropImport(from, local);
  for (const name of names.filter((one) => still.has(one))) {
    // what was private to its module is not any more
    const bare = new RegExp(
      `^(?=(?:async function|function|const|class|interface|type) ${name}\\b)`,
      'm',
    );
    texts.set(to, read(to).replace(bare, 'export '));
    const isType = /^(export )?(interface|type) /m.test(text) && !still.has(`new ${name}`);
    const source = named(from, to);
    const isOnlyType =
      isType && new RegExp(`^(?:export )?(interface|type) ${name}\\b`, 'm').test(text);
    addImport(from, { source, imported: name, local: name, isType: isOnlyType });
  }
  const doors = doorsTo(from);
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.ts'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const path of files.split('\n').filter((one) => one !== '' && one !== from && one !== to)) {
    if (!names.some((name) => read(path).includes(name))) continue;
    for (const one of importsOf(path)) {
      if (!names.includes(one.imported)) continue;
      const isDoor = doors.includes(one.source);
      if (!isDoor && (!one.source.startsWith('.') || join(dirname(path), one.source) !== from)) {
        continue;
      }
      dropImport(path, one.local);
      addImport(path, { ...one, source: isDoor ? doorOf(to) : named(path, to) });
    }
  }
}

for (const line of (await text(process.stdin)).split('\n')) {
  const [moves = '', head = ''] = line.split('#');
  const [from, to, ...names] = moves.trim().split(/\s+/);
  if (from !== undefined && to !== undefined) {
    move(from, to, names, head === '' ? '' : `/** ${head.trim()} */`);
  }
}
const changed = [...texts].filter(
  ([path, now]) =>
    now !== '' && (!existsSync(join(ROOT, path)) || readFileSync(join(ROOT, path), 'utf8') !== now),
);
for (const [path, now] of changed) {
  mkdirSync(dirname(join(ROOT, path)), { recursive: true });
  writeFileSync(join(ROOT, path), now);
}
execFileSync(
  'node_modules/.bin/oxfmt',
  changed.map(([path]) => path),
  { cwd: ROOT },
);
process.stdout.write(`${changed.length} files changed\n`);
