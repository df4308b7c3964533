import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CORES, FLOORS, FLOOR_SLACK } from './assertion-floors.ts';
import { BYTE_TEXTS } from './byte-texts.ts';
import { findKeys } from './keys.ts';
import { MODULE_STATE } from './module-state.ts';
import * as laws from './laws.ts';

const ROOT = join(import.meta.dirname, '..');
/** Programs that people start: the command, benchmarks, generators and tools. */
const ENTRY = new RegExp(
  [
    '^packages/cli/src/(main|testing|packed|pack/write-pack)\\.ts$',
    '^packages/dashboard/src/main\\.ts$',
    '^packages/[a-z]+/src/.*\\.bench\\.ts$',
    '^packages/[a-z]+/tools/.*\\.ts$',
    '^(bench|tools)/.*\\.ts$',
  ].join('|'),
);

const files: readonly laws.Parsed[] = globSync(
  ['packages/*/src/**/*.ts', 'packages/*/tools/**/*.ts', 'bench/**/*.ts', 'tools/**/*.ts'],
  { cwd: ROOT, exclude: (path) => path.includes('node_modules') },
)
  .map((path) => path.replaceAll('\\', '/'))
  .map((path) => laws.parse({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const written = files.filter((file) => !file.path.includes('/tables/'));

function planted(path: string, text: string): laws.Parsed {
  return laws.parse({ path, text });
}

function all(law: (file: laws.Parsed) => string[]): string[] {
  return written.flatMap((file) => law(file));
}

test('every import points down the layer table', () => {
  assert.deepEqual(all(laws.layerLaw), []);
});

test('the layer law bites: upward imports, paths out of a package, unknown packages', () => {
  const up = planted('packages/base/src/a.ts', `import { x } from '@megaplane/wire/x';`);
  assert.match(laws.layerLaw(up)[0] ?? '', /base may not import @megaplane\/wire\/x/);
  const lazy = planted('packages/store/src/a.ts', `await import('@megaplane/apiserver/x');`);
  assert.equal(laws.layerLaw(lazy).length, 1);
  const again = planted('packages/store/src/a.ts', `export { x } from '@megaplane/etcd/x';`);
  assert.equal(laws.layerLaw(again).length, 1);
  const path = planted('packages/base/src/a.ts', `import { x } from '../../wire/src/x.ts';`);
  assert.match(laws.layerLaw(path)[0] ?? '', /leaves the package/);
  const unknown = planted('packages/attic/src/a.ts', `export const x = 1;`);
  assert.match(laws.layerLaw(unknown)[0] ?? '', /not in the layer table/);
});

test('files, functions and lines are short', () => {
  assert.deepEqual(all(laws.lengthLaw), []);
});

test('the length law bites: a long file, a long function, a long line', () => {
  const path = 'packages/base/src/a.ts';
  const long = planted(path, 'export {};\n'.repeat(laws.FILE_LINES_MAX + 1));
  assert.match(laws.lengthLaw(long)[0] ?? '', /601 lines/);
  const body = ';\n'.repeat(laws.FUNCTION_LINES_MAX);
  assert.match(
    laws.lengthLaw(planted(path, `function f() {${body}}\n`))[0] ?? '',
    /function of 71/,
  );
  assert.match(laws.lengthLaw(planted(path, `const f = () => {${body}};\n`))[0] ?? '', /function/);
  const wide = planted(path, `const a = '${'x'.repeat(laws.LINE_COLUMNS_MAX)}';\n`);
  assert.match(laws.lengthLaw(wide)[0] ?? '', /columns/);
});

test('clocks, randomness and the process are touched in shells only', () => {
  assert.deepEqual(all(laws.worldLaw), []);
});

test('the world law bites: each way to read a clock or draw a number', () => {
  const ways = [
    ...['Date.now()', 'new Date()', 'Math.random()', 'performance.now()', 'process.exit(1)'],
    ...['setTimeout(f, 1)', 'setInterval(f, 1)', 'crypto.randomUUID()', 'randomBytes(4)'],
  ];
  for (const way of ways) {
    assert.equal(laws.worldLaw(planted('packages/base/src/a.ts', `${way};\n`)).length, 1, way);
    const shell = planted('packages/base/src/a.ts', `// shell: a clock\n${way};\n`);
    assert.deepEqual(laws.worldLaw(shell), [], way);
  }
  assert.deepEqual(laws.worldLaw(planted('packages/base/src/a.ts', 'new Date(5);')), []);
});

test('whatever runs in a later turn goes through one place', () => {
  assert.deepEqual(all(laws.deferralLaw), []);
});

test('the deferral law bites: each way to run in a later turn', () => {
  const ways = [
    ...['setTimeout(f, 1)', 'setInterval(f, 1)', 'setImmediate(f)', 'queueMicrotask(f)'],
    ...['process.nextTick(f)', 'globalThis.setTimeout(f, 1)', "socket.on('data', () => g())"],
    ...[
      "socket.once('end', f)",
      "socket.off('end', guarded(f))",
      "worker.addEventListener('message', f)",
    ],
  ];
  for (const way of ways) {
    const found = laws.deferralLaw(planted('packages/wire/src/a.ts', `// shell\n${way};\n`));
    assert.equal(found.length, 1, way);
    const store = planted('packages/store/src/a.ts', `// shell\n${way};\n`);
    assert.deepEqual(laws.deferralLaw(store), [], way);
  }
  const good = [
    ...["socket.on('data', guarded(() => g()));", 'socket.setTimeout(5);', 'afterMs(1, f);'],
    ...["const f = guarded(g); socket.on('data', f);"],
    "function f() { try { g(); } catch (error) { blame(error); } } socket.on('end', f);",
  ];
  for (const one of good) {
    assert.deepEqual(laws.deferralLaw(planted('packages/wire/src/a.ts', one)), [], one);
  }
});

test('modules keep no more between calls than is listed, and the list only shrinks', () => {
  const remedy = 'give it an owner, or take it out of tools/module-state.ts';
  assert.deepEqual(laws.stateLaw(written, MODULE_STATE), [], remedy);
});

test('the law of modules bites: what begins empty, what is assigned, what is gone', () => {
  const path = 'packages/wire/src/a.ts';
  const kept = [
    ...['let a = 1;', 'const a = new Map<string, number>();', 'export const a: A[] = [];'],
    ...['const a = {};', 'const a = Buffer.allocUnsafe(64);', 'const a = new Uint8Array(SIZE);'],
  ];
  for (const text of kept) {
    assert.equal(laws.stateLaw([planted(path, text)], {}).length, 1, text);
    assert.deepEqual(laws.stateLaw([planted(path, text)], { [path]: ['a'] }), [], text);
  }
  const constant = [
    ...['const a = new Set([1]);', 'const a: readonly A[] = [];', 'const a = Buffer.alloc(0);'],
    ...['const a: ReadonlyMap<A, B> = new Map();', 'function f() { let a = 1; }'],
  ];
  for (const text of constant) {
    assert.deepEqual(laws.stateLaw([planted(path, text)], {}), [], text);
  }
  const known = { [path]: ['b'], 'packages/wire/src/gone.ts': ['a'] };
  assert.equal(laws.stateLaw([planted(path, 'export const b = 1;')], known).length, 2);
});

test('invariants are stated: assertions on 1,000 lines do not become fewer', () => {
  const densities = laws.assertionDensities(written, CORES);
  assert.deepEqual(laws.floorLaw(densities, FLOORS, FLOOR_SLACK), []);
});

test('the law of assertions bites: too few, and a floor that was not raised', () => {
  const lines = '//\n'.repeat(99);
  const path = 'packages/wire/src/a.ts';
  const dense = planted(path, `// data plane\nassert(x, 'x');\nassertWhole(x, 'x');\n${lines}`);
  const plain = planted('packages/wire/src/b.ts', `assert(x, 'x');\n${lines}`);
  const densities = laws.assertionDensities([dense, plain], {});
  assert.equal(Math.round(densities.get('wire') ?? 0), 19);
  const core = laws.assertionDensities([plain], { wire: /src\/b/ });
  assert.equal(Math.round(core.get('wire') ?? 0), 10);
  assert.match(laws.floorLaw(densities, { wire: 25 }, 1.3)[0] ?? '', /at least 25/);
  assert.match(laws.floorLaw(densities, { wire: 10 }, 1.3)[0] ?? '', /raise its floor of 10/);
  assert.deepEqual(laws.floorLaw(densities, { wire: 16 }, 1.3), []);
});

test('the non-null assertion stays in the data plane', () => {
  assert.deepEqual(all(laws.assertionLaw), []);
});

test('the assertion law bites outside a file marked as data plane', () => {
  const path = 'packages/base/src/a.ts';
  assert.equal(laws.assertionLaw(planted(path, 'f(a[0]!);\n')).length, 1);
  assert.deepEqual(laws.assertionLaw(planted(path, '// data plane: rows\nf(a[0]!);\n')), []);
});

test('objects of the API are read with all the digits of their integers', () => {
  assert.deepEqual(all(laws.digitsLaw), []);
});

test('the digits law bites where objects are handled, and nowhere else', () => {
  const text = 'const a = JSON.parse(text);\n';
  assert.equal(laws.digitsLaw(planted('packages/client/src/a.ts', text)).length, 1);
  assert.deepEqual(laws.digitsLaw(planted('packages/client/src/a.test.ts', text)), []);
  assert.deepEqual(laws.digitsLaw(planted('packages/store/src/a.ts', text)), []);
});

test('no plain object is indexed by a text of unknown origin', () => {
  const places = findKeys(ROOT);
  assert.deepEqual(
    places.map(({ path, line, text }) => `${path}:${line}: ${text}`),
    [],
  );
});

test('text is UTF-8, but where a file says why a byte is a character there', () => {
  assert.deepEqual(
    all((file) => laws.byteTextLaw(file, BYTE_TEXTS)),
    [],
  );
  const paths = new Set(written.map(({ path }) => path));
  const gone = Object.keys(BYTE_TEXTS).filter((path) => !paths.has(path));
  assert.deepEqual(gone, [], 'reasons for files that are not there');
});

test('the law on bytes bites: each way to cut characters to their low bytes', () => {
  const path = 'packages/base/src/a.ts';
  const ways = [
    ...[`Buffer.from(name, 'latin1')`, `key.toString('latin1', 2)`, `out.write(name, 0, 'ascii')`],
    ...[`key.latin1Slice(0, 2)`, `Buffer.from(name, 'binary')`],
  ];
  for (const way of ways) {
    assert.equal(laws.byteTextLaw(planted(path, `${way};`), {}).length, 1, way);
    assert.deepEqual(laws.byteTextLaw(planted(path, `${way};`), { [path]: 'why' }), [], way);
  }
  assert.deepEqual(laws.byteTextLaw(planted(path, `Buffer.from(name);`), {}), []);
  const idle = laws.byteTextLaw(planted(path, `Buffer.from(name);`), { [path]: 'why' });
  assert.match(idle[0] ?? '', /a reason for nothing/);
});

test('one file says how certificates are looked at', () => {
  assert.deepEqual(all(laws.tlsLaw), []);
  for (const option of [
    'rejectUnauthorized: false',
    `'requestCert': true`,
    'checkServerIdentity',
  ]) {
    const own = planted('packages/wire/src/a.ts', `connect({ ${option} });`);
    assert.equal(laws.tlsLaw(own).length, 1, option);
  }
});

test('texts in JSON are read by one function, which looks at how deep they are nested', () => {
  assert.deepEqual(all(laws.jsonLaw), []);
  for (const text of ['JSON.parse(text);', `JSON['parse'](text);`, 'const { parse } = JSON;']) {
    assert.equal(laws.jsonLaw(planted('packages/wire/src/a.ts', text)).length, 1, text);
  }
});

/** The doors of all packages, as their manifests name them. */
const doors: laws.Doors = new Map(
  Object.keys(laws.LAYERS).map((name) => {
    const text = readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8');
    return [name, (JSON.parse(text) as { exports?: Record<string, string> }).exports ?? {}];
  }),
);

test('no file is dead', () => {
  assert.deepEqual(
    laws.reachLaw(files, (path) => ENTRY.test(path), doors),
    [],
  );
});

test('the reach law bites: a file that only its test imports is dead', () => {
  const found = laws.reachLaw(
    [
      planted('packages/cli/src/main.ts', `import '@megaplane/base/a';`),
      planted('packages/base/src/a.ts', `new Worker(new URL('./b.ts', import.meta.url));`),
      planted('packages/base/src/b.ts', `export {};`),
      planted('packages/base/src/c.ts', `export {};`),
      planted('packages/base/src/c.test.ts', `import './c.ts';`),
    ],
    (path) => ENTRY.test(path),
    new Map([['base', { './a': './src/a.ts' }]]),
  );
  assert.deepEqual(found, ['packages/base/src/c.ts: reached from no entry point']);
});
