/**
 * The laws of the tree, as functions from source text to findings.
 *
 * A file says which dialect it speaks in its first line: `// data plane` (dense code over typed
 * arrays, where `!` is allowed) or `// shell` (the edge to sockets, clocks and processes, where
 * time and randomness may be read). Everything else is control plane and core.
 */
import { dirname, join, normalize } from 'node:path';
import { parseSync } from 'oxc-parser';

/** Each package and the packages that it may import: arrows point down this list only. */
export const LAYERS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  wire: ['base'],
  store: ['base'],
  etcd: ['base', 'wire', 'store'],
  machinery: ['base', 'wire'],
  network: ['base', 'machinery'],
  apiserver: ['base', 'wire', 'store', 'etcd', 'machinery'],
  client: ['base', 'wire', 'machinery'],
  scheduler: ['base', 'wire', 'machinery', 'client'],
  nodes: ['base', 'machinery', 'client'],
  controllers: ['base', 'machinery', 'client'],
  fleet: ['base', 'wire', 'machinery', 'client'],
  dashboard: ['base'],
  cli: [
    ...['base', 'wire', 'store', 'etcd', 'machinery', 'apiserver'],
    ...['client', 'scheduler', 'nodes', 'controllers', 'fleet', 'dashboard', 'network'],
  ],
};

export const FILE_LINES_MAX = 600;
export const FUNCTION_LINES_MAX = 70;
export const LINE_COLUMNS_MAX = 100;

/** One source file: its path from the root of the repository, with `/`, and its text. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A file parsed once, for all laws. */
export interface Parsed extends Source {
  readonly program: SyntaxNode;
  /** Names of static, dynamic and re-exporting imports, and of `new URL(x, import.meta.url)`. */
  readonly targets: readonly string[];
  readonly comments: readonly { readonly start: number; readonly end: number }[];
}

/** Parses one file. Throws with the place where the syntax is wrong. */
export function parse(source: Source): Parsed {
  const result = parseSync(source.path, source.text);
  const error = result.errors[0];
  if (error !== undefined) throw new Error(`${source.path}: ${error.message}`);
  const program = result.program as unknown as SyntaxNode;
  const targets: string[] = [];
  for (const statement of result.module.staticImports) targets.push(statement.moduleRequest.value);
  for (const statement of result.module.staticExports) {
    for (const entry of statement.entries) {
      if (entry.moduleRequest) targets.push(entry.moduleRequest.value);
    }
  }
  walk(program, (node) => {
    if (node.type === 'ImportExpression') pushLiteral(targets, node['source']);
    if (node.type === 'NewExpression' && isUrlOfThisModule(node)) {
      pushLiteral(targets, (node['arguments'] as SyntaxNode[])[0]);
    }
  });
  return { ...source, program, targets, comments: result.comments };
}

function pushLiteral(targets: string[], node: unknown): void {
  const value = (node as { readonly value?: unknown } | undefined)?.value;
  if (typeof value === 'string') targets.push(value);
}

function isUrlOfThisModule(node: SyntaxNode): boolean {
  const callee = node['callee'] as SyntaxNode;
  return (
    callee.type === 'Identifier' &&
    callee['name'] === 'URL' &&
    (node['arguments'] as SyntaxNode[]).length === 2
  );
}

function walk(node: SyntaxNode, visit: (node: SyntaxNode) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) {
      for (const item of value) if (isSyntaxNode(item)) walk(item, visit);
    } else if (isSyntaxNode(value)) {
      walk(value, visit);
    }
  }
}

function isSyntaxNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value;
}

function isTest(path: string): boolean {
  return /\.(test|bench|sim)\.ts$/.test(path) || /^(bench|tools)\//.test(path) || isTooling(path);
}

function isTooling(path: string): boolean {
  return /^packages\/[a-z]+\/(test|tools)\//.test(path);
}

function firstLine(text: string): string {
  return text.slice(0, Math.max(0, text.indexOf('\n')));
}

function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

/** Imports that leave the package must point down the layer table, by the package's name. */
export function layerLaw(file: Parsed): string[] {
  const layer = /^packages\/([a-z]+)\//.exec(file.path)?.[1];
  if (layer === undefined) return [];
  const allowed = LAYERS[layer];
  if (allowed === undefined) return [`${file.path}: package ${layer} is not in the layer table`];
  const found: string[] = [];
  for (const target of file.targets) {
    const other = /^@megaplane\/([a-z]+)/.exec(target)?.[1];
    if (other !== undefined && other !== layer && !allowed.includes(other)) {
      found.push(`${file.path}: ${layer} may not import ${target}`);
    }
    const local = target.startsWith('.') ? normalize(join(dirname(file.path), target)) : undefined;
    if (local !== undefined && !local.startsWith(`packages/${layer}/`)) {
      found.push(`${file.path}: ${target} leaves the package by a path`);
    }
  }
  return found;
}

/** Lines, files and functions stay short enough to be read in one sitting. */
export function lengthLaw(file: Parsed): string[] {
  const found: string[] = [];
  const lines = file.text.split('\n');
  if (lines.length - 1 > FILE_LINES_MAX) {
    found.push(`${file.path}: ${lines.length - 1} lines, at most ${FILE_LINES_MAX}`);
  }
  for (const [index, line] of lines.entries()) {
    if (line.length > LINE_COLUMNS_MAX && !/https?:\/\//.test(line)) {
      found.push(`${file.path}:${index + 1}: ${line.length} columns, at most ${LINE_COLUMNS_MAX}`);
    }
  }
  walk(file.program, (node) => {
    if (!/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) {
      return;
    }
    const first = lineOf(file.text, node.start);
    const count = lineOf(file.text, node.end) - first + 1;
    const isSuite = isTest(file.path);
    if (count > FUNCTION_LINES_MAX && !isSuite) {
      found.push(
        `${file.path}:${first}: a function of ${count} lines, at most ${FUNCTION_LINES_MAX}`,
      );
    }
  });
  return found;
}

const WORLD: Readonly<Record<string, readonly string[]>> = {
  Date: ['now'],
  performance: ['now'],
  Math: ['random'],
  crypto: ['randomUUID', 'getRandomValues', 'randomBytes', 'randomInt'],
  process: ['hrtime', 'exit', 'argv', 'env', 'stdout', 'stderr', 'on', 'once', 'kill'],
};
const WORLD_CALLS = ['setTimeout', 'setInterval', 'setImmediate', 'randomUUID', 'randomBytes'];

/** Only files that declare themselves shells read clocks, draw randomness or touch the process. */
export function worldLaw(file: Parsed): string[] {
  if (isTest(file.path) || firstLine(file.text).startsWith('// shell')) return [];
  const found: string[] = [];
  const report = (node: SyntaxNode, what: string): void => {
    found.push(`${file.path}:${lineOf(file.text, node.start)}: ${what} outside a shell`);
  };
  walk(file.program, (node) => {
    if (node.type === 'MemberExpression') {
      const object = (node['object'] as SyntaxNode)['name'];
      const property = (node['property'] as SyntaxNode)['name'];
      if (typeof object === 'string' && typeof property === 'string') {
        if (WORLD[object]?.includes(property)) report(node, `${object}.${property}`);
      }
    }
    if (node.type === 'CallExpression') {
      const name = (node['callee'] as SyntaxNode)['name'];
      if (typeof name === 'string' && WORLD_CALLS.includes(name)) report(node, name);
    }
    if (node.type === 'NewExpression' && (node['arguments'] as unknown[]).length === 0) {
      if ((node['callee'] as SyntaxNode)['name'] === 'Date') report(node, 'new Date()');
    }
  });
  return found;
}

/** Packages that handle objects of the API, whose integers have 64 bits. */
const OBJECT_LAYERS = ['machinery', 'apiserver', 'client', 'scheduler', 'nodes', 'controllers'];

/** What reads JSON for others, and one that reads it as Go programs without types do. */
const JSON_READERS: readonly string[] = [
  'packages/machinery/src/json/json-text.ts',
  'packages/machinery/src/json/json-reader.ts',
  'packages/machinery/src/json/number-literals.ts',
  'packages/nodes/src/gotemplate/sprig-functions.ts',
];

/** `JSON.parse` rounds the integers of objects: they are read by `parseJson`. */
export function digitsLaw(file: Parsed): string[] {
  const layer = /^packages\/([a-z]+)\/src\//.exec(file.path)?.[1] ?? '';
  if (isTest(file.path) || !OBJECT_LAYERS.includes(layer)) return [];
  if (JSON_READERS.includes(file.path)) return [];
  const found: string[] = [];
  walk(file.program, (node) => {
    if (node.type !== 'MemberExpression') return;
    const object = (node['object'] as SyntaxNode)['name'];
    const property = (node['property'] as SyntaxNode)['name'];
    if (object !== 'JSON' || property !== 'parse') return;
    found.push(`${file.path}:${lineOf(file.text, node.start)}: JSON.parse rounds long integers`);
  });
  return found;
}

/** Ways to put work off to a later turn, and the functions of `deferred.ts` that stand for them. */
const DEFERRALS: Readonly<Record<string, string>> = {
  setTimeout: 'afterMs',
  setInterval: 'everyMs',
  setImmediate: 'nextTurn',
  queueMicrotask: 'endOfTurn',
  nextTick: 'endOfTurn',
};
const REGISTRATIONS: ReadonlySet<string> = new Set(
  (
    'on once addListener prependListener prependOnceListener addEventListener ' +
    'off removeListener removeEventListener'
  ).split(' '),
);
const DEFERRED_FILE = 'packages/base/src/time/deferred.ts';

/**
 * What throws in a later turn ends the process unless `deferred.ts` calls it: so it calls whatever
 * is put off, and every listener. The store alone puts off by itself: an error there is a reason to
 * end. Listeners that are named are functions of the file that catch by themselves.
 */
export function deferralLaw(file: Parsed): string[] {
  const isExempt = file.path.startsWith('packages/store/') || file.path === DEFERRED_FILE;
  if (isTest(file.path) || isExempt) return [];
  const found: string[] = [];
  const named = guardedNames(file.program);
  walk(file.program, (node) => {
    if (node.type !== 'CallExpression') return;
    const callee = node['callee'] as SyntaxNode;
    const member = callee.type === 'MemberExpression' ? (callee['property'] as SyntaxNode) : callee;
    const name = member['name'];
    if (typeof name !== 'string') return;
    const place = `${file.path}:${lineOf(file.text, node.start)}`;
    const owner = callee.type === 'MemberExpression' ? (callee['object'] as SyntaxNode) : null;
    const isGlobal = owner === null || /^(process|globalThis)$/.test(String(owner['name']));
    const instead = Object.hasOwn(DEFERRALS, name) ? DEFERRALS[name] : undefined;
    if (instead !== undefined && isGlobal) found.push(`${place}: ${name} is ${instead} here`);
    const [event, listener] = node['arguments'] as (SyntaxNode | undefined)[];
    const isListened = owner !== null && REGISTRATIONS.has(name) && event?.type === 'Literal';
    if (!isListened || listener === undefined || typeof event['value'] !== 'string') return;
    const isTaken = /^(off|remove)/.test(name);
    const isBare = isTaken && listener.type === 'CallExpression';
    if (isBare || !isGuarded(listener, named))
      found.push(`${place}: a listener that is not guarded`);
  });
  return found;
}

/** What is taken away again must be what was registered: `guarded` makes a new one each time. */
function isGuarded(listener: SyntaxNode, named: ReadonlySet<string>): boolean {
  if (listener.type === 'Identifier') return named.has(String(listener['name']));
  if (listener.type !== 'CallExpression') return false;
  return (listener['callee'] as SyntaxNode)['name'] === 'guarded';
}

/** Constants that `guarded` made, and functions whose whole body is one `try`. */
function guardedNames(program: SyntaxNode): ReadonlySet<string> {
  const names = new Set<string>();
  walk(program, (node) => {
    const id = node['id'] as SyntaxNode | undefined;
    const init = node['init'] as SyntaxNode | undefined;
    if (node.type === 'VariableDeclarator' && init?.type === 'CallExpression') {
      if (isGuarded(init, names)) names.add(String(id?.['name']));
    }
    if (node.type !== 'FunctionDeclaration') return;
    const { body } = node['body'] as { readonly body: readonly SyntaxNode[] };
    if (body.length === 1 && body[0]?.type === 'TryStatement') names.add(String(id?.['name']));
  });
  return names;
}

/** `!` belongs to the data plane, where an index is in range by construction. */
export function assertionLaw(file: Parsed): string[] {
  if (isTest(file.path) || firstLine(file.text).startsWith('// data plane')) return [];
  const found: string[] = [];
  walk(file.program, (node) => {
    if (node.type === 'TSNonNullExpression') {
      found.push(`${file.path}:${lineOf(file.text, node.start)}: ! outside the data plane`);
    }
  });
  return found;
}

const FILLED = new Set(['Map', 'Set', 'WeakMap', 'WeakSet', 'FinalizationRegistry']);
const TYPED_ARRAY = /^(?:Uint8|Int8|Uint16|Int16|Uint32|Int32|Float32|Float64|BigInt64)Array$/;

/**
 * Names of what a module keeps between calls: `let`, and constants that begin empty and so are
 * filled later. Two servers in one process share it, and nothing says who may change it.
 */
export function moduleState(file: Parsed): string[] {
  const found: string[] = [];
  for (const statement of file.program['body'] as SyntaxNode[]) {
    const inner = statement['declaration'] as SyntaxNode | null | undefined;
    const declared = statement.type === 'VariableDeclaration' ? statement : inner;
    if (declared?.type !== 'VariableDeclaration' || declared['declare'] === true) continue;
    for (const one of declared['declarations'] as SyntaxNode[]) {
      const id = one['id'] as SyntaxNode;
      // what says that it is only read is a constant
      if (/^:\s*(?:readonly |Readonly)/.test(typeText(file, id))) continue;
      const isKept = declared['kind'] !== 'const' || beginsEmpty(one['init'] as SyntaxNode | null);
      if (isKept) found.push(String(id['name']));
    }
  }
  return found;
}

/** The annotation of a declared name, with its colon; empty where there is none. */
function typeText(file: Parsed, id: SyntaxNode): string {
  const annotation = id['typeAnnotation'] as SyntaxNode | null | undefined;
  return annotation ? file.text.slice(annotation.start, annotation.end) : '';
}

function beginsEmpty(init: SyntaxNode | null): boolean {
  if (init === null) return false;
  if (init.type === 'ArrayExpression') return (init['elements'] as unknown[]).length === 0;
  if (init.type === 'ObjectExpression') return (init['properties'] as unknown[]).length === 0;
  const callee = (init['callee'] as SyntaxNode | undefined) ?? null;
  if (init.type === 'NewExpression') {
    const name = String(callee?.['name']);
    const [first] = init['arguments'] as (SyntaxNode | undefined)[];
    if (FILLED.has(name)) return first === undefined;
    return TYPED_ARRAY.test(name) && first?.['value'] !== 0;
  }
  const owner = (callee?.['object'] as SyntaxNode | undefined)?.['name'];
  const method = String((callee?.['property'] as SyntaxNode | undefined)?.['name']);
  if (init.type !== 'CallExpression' || owner !== 'Buffer') return false;
  const [size] = init['arguments'] as (SyntaxNode | undefined)[];
  return method.startsWith('alloc') && size?.['value'] !== 0;
}

/** Modules keep no more between calls than `known` says of them, and `known` only shrinks. */
export function stateLaw(
  files: readonly Parsed[],
  known: Readonly<Record<string, readonly string[]>>,
): string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  for (const file of files) {
    const isSource = file.path.startsWith('packages/') && !isTest(file.path);
    if (!isSource || /\/(testing|simulation|tables)\//.test(file.path)) continue;
    const allowed = Object.hasOwn(known, file.path) ? (known[file.path] ?? []) : [];
    const names = moduleState(file);
    seen.add(file.path);
    for (const name of names) {
      if (!allowed.includes(name)) found.push(`${file.path}: ${name} is kept between calls`);
    }
    for (const name of allowed) {
      if (!names.includes(name)) found.push(`${file.path}: ${name} is listed and no more there`);
    }
  }
  const gone = Object.keys(known).filter((path) => !seen.has(path));
  return [...found, ...gone.map((path) => `${path}: is listed and no more there`)];
}

/** Calls of `assert` and of functions whose names begin so, in one file. */
export function assertionsIn(file: Parsed): number {
  let count = 0;
  walk(file.program, (node) => {
    const callee = node.type === 'CallExpression' ? (node['callee'] as SyntaxNode) : null;
    if (String(callee?.['name']).startsWith('assert')) count++;
  });
  return count;
}

/** Assertions on 1,000 lines by package, of files of the data plane and of what `cores` names. */
export function assertionDensities(
  files: readonly Parsed[],
  cores: Readonly<Record<string, RegExp>>,
): Map<string, number> {
  const sums = new Map<string, { lines: number; assertions: number }>();
  for (const file of files) {
    const name = /^packages\/([a-z]+)\/src\//.exec(file.path)?.[1];
    const isDouble = /\/(testing|simulation)\//.test(file.path);
    if (name === undefined || isTest(file.path) || isDouble) continue;
    const isDense = firstLine(file.text).startsWith('// data plane');
    if (!isDense && cores[name]?.test(file.path) !== true) continue;
    const sum = sums.get(name) ?? { lines: 0, assertions: 0 };
    sum.lines += file.text.split('\n').length;
    sum.assertions += assertionsIn(file);
    sums.set(name, sum);
  }
  return new Map(
    [...sums].map(([name, { lines, assertions }]) => [name, (1000 * assertions) / lines]),
  );
}

/** Invariants are stated: no package has fewer assertions than its floor, which may only rise. */
export function floorLaw(
  densities: ReadonlyMap<string, number>,
  floors: Readonly<Record<string, number>>,
  slack: number,
): string[] {
  const found: string[] = [];
  for (const [name, density] of densities) {
    const floor = Object.hasOwn(floors, name) ? (floors[name] ?? 0) : 0;
    const shown = `${name}: ${density.toFixed(1)} assertions on 1,000 lines`;
    if (density < floor) found.push(`${shown}, at least ${floor}`);
    if (density > Math.max(0.5, floor * slack)) found.push(`${shown}: raise its floor of ${floor}`);
  }
  return found;
}

const BYTE_ENCODINGS: ReadonlySet<unknown> = new Set(['latin1', 'binary', 'ascii']);
const ENCODED = /^(?:toString|from|write|indexOf|includes|readFile|readFileSync|setEncoding)$/;
const BYTE_METHODS = /^(?:latin1|ascii)(?:Slice|Write)$/;

/** A byte is a character only where `reasons` says why; a reason is for a file that needs it. */
export function byteTextLaw(file: Parsed, reasons: Readonly<Record<string, string>>): string[] {
  if (isTest(file.path)) return [];
  const found: string[] = [];
  walk(file.program, (node) => {
    const callee = node.type === 'CallExpression' ? (node['callee'] as SyntaxNode) : null;
    const called = (callee?.['property'] as SyntaxNode | undefined) ?? callee;
    const name = called?.['name'];
    if (callee === null || typeof name !== 'string') return;
    const isEncoded =
      ENCODED.test(name) &&
      (node['arguments'] as SyntaxNode[]).some((one) => BYTE_ENCODINGS.has(one['value']));
    if (isEncoded || BYTE_METHODS.test(name)) {
      const line = lineOf(file.text, node.start);
      found.push(`${file.path}:${line}: bytes as characters, without a reason`);
    }
  });
  const isAllowed = Object.hasOwn(reasons, file.path);
  if (isAllowed && found.length === 0) return [`${file.path}: a reason for nothing`];
  return isAllowed ? [] : found;
}

const TLS_PARTS = 'packages/base/src/tls/tls-parts.ts';
const TLS_OPTIONS: ReadonlySet<unknown> = new Set([
  ...['rejectUnauthorized', 'requestCert', 'checkServerIdentity', 'allowPartialTrustChain'],
]);

/** One file says how certificates are looked at. */
export function tlsLaw(file: Parsed): string[] {
  if (isTest(file.path) || file.path === TLS_PARTS) return [];
  const found: string[] = [];
  walk(file.program, (node) => {
    if (node.type !== 'Property') return;
    const key = node['key'] as SyntaxNode;
    const name = key['name'] ?? key['value'];
    if (!TLS_OPTIONS.has(name)) return;
    found.push(
      `${file.path}:${lineOf(file.text, node.start)}: ${String(name)} outside ${TLS_PARTS}`,
    );
  });
  return found;
}

const NESTED_JSON = 'packages/base/src/bytes/nested-json.ts';
const BROWSER = 'packages/dashboard/';

/**
 * The runtime's own reader breaks on texts that are nested deep: one file looks at them before. The
 * page has that of a browser.
 */
export function jsonLaw(file: Parsed): string[] {
  const { path } = file;
  if (isTest(path) || path === NESTED_JSON || path.startsWith(BROWSER)) return [];
  if (!path.startsWith('packages/')) return [];
  const found: string[] = [];
  walk(file.program, (node) => {
    const place = `${file.path}:${lineOf(file.text, node.start)}`;
    const isTaken =
      node.type === 'VariableDeclarator' &&
      (node['init'] as SyntaxNode | null)?.['name'] === 'JSON';
    if (isTaken) found.push(`${place}: JSON is taken apart`);
    if (node.type !== 'MemberExpression') return;
    if ((node['object'] as SyntaxNode)['name'] !== 'JSON') return;
    const property = node['property'] as SyntaxNode;
    const name = property['name'] ?? property['value'];
    if (name === 'parse') found.push(`${place}: JSON.parse is parseNested here`);
  });
  return found;
}

/** Every source file is reached from an entry point, by imports alone; tests do not count. */
export function reachLaw(
  files: readonly Parsed[],
  isEntry: (path: string) => boolean,
  doors: Doors,
): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<string>();
  const queue = files.filter((file) => isEntry(file.path)).map((file) => file.path);
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    for (const target of byPath.get(path)?.targets ?? []) {
      const next = resolveTarget(path, target, doors);
      if (next !== undefined && byPath.has(next)) queue.push(next);
    }
  }
  return files
    .filter((file) => !reached.has(file.path) && !isTest(file.path))
    .map((file) => `${file.path}: reached from no entry point`);
}

/** What each package exports: `./name` to `./src/file.ts`. */
export type Doors = ReadonlyMap<string, Readonly<Record<string, string>>>;

function resolveTarget(from: string, target: string, doors: Doors): string | undefined {
  if (target.startsWith('.')) return normalize(join(dirname(from), target));
  const match = /^@megaplane\/([a-z]+)\/(.+)$/.exec(target);
  if (match === null) return undefined;
  const [, name = '', door = ''] = match;
  const file = new Map(Object.entries(doors.get(name) ?? {})).get(`./${door}`);
  return file === undefined ? undefined : normalize(join('packages', name, file));
}
