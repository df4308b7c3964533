/**
 * The whole program as a few files of plain JavaScript: types are gone, modules are joined, texts
 * that it reads from beside itself are inside. What `import()` names stays a file of its own, so
 * that each command loads what it needs.
 */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';
import type { Plugin } from 'rolldown';

export const ROOT: string = join(import.meta.dirname, '../..');
const CLI = join(ROOT, 'packages/cli');

/** Loaded by Node at run time where somebody has installed them: they hold machine code. */
const NATIVE = [/^@resvg\//];

/** Entries beside the program: threads, by the name of their file. */
const THREADS = globSync('packages/*/src/**/*-worker.ts', { cwd: ROOT }).sort();

/** Modules that read files of their package, and the texts that stand in their place. */
const TEXTS: readonly TextModule[] = [
  {
    module: 'packages/nodes/src/stages/set-texts.ts',
    files: 'packages/nodes/stages/*.yaml',
    code: (texts) =>
      `const texts = new Map(${texts});\n` +
      'export function stageSetText(name) { return texts.get(`${name}.yaml`); }\n',
  },
  {
    module: 'packages/fleet/src/contract/definitions.ts',
    files: 'packages/fleet/src/contract/definitions/*.yaml',
    code: (texts) =>
      `const texts = new Map(${texts});\n` +
      "const names = ['capacityrequests', 'upcomingnodes', 'availablecapacities'];\n" +
      'export function definitionsYaml() {\n' +
      "  return names.map((name) => texts.get(name + '.yaml')).join('---\\n');\n" +
      '}\n',
  },
];

/** Modules of the store but for its threads, which are entries. */
const STORE = /packages[\\/]store[\\/]src[\\/](?!.*-worker\.ts$)/;

/** The module that has the files of the live page, and the program that bundles them. */
const PAGE_MODULE = 'packages/cli/src/page/files.ts';
const PAGE = join(ROOT, 'packages/dashboard');
const PAGE_BYTES_MAX = 8 * 2 ** 20;

/** The page is inside as texts: nothing of it lies beside the program. */
function pageModule(): string {
  const options = { encoding: 'utf8', maxBuffer: PAGE_BYTES_MAX } as const;
  const texts = execFileSync(process.execPath, [join(PAGE, 'tools/build.ts')], options);
  return `const texts = new Map(Object.entries(${texts}));
const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const typeOf = (name) => {
  const type = types[name.split('.').at(-1)];
  return type.startsWith('text/') ? type + '; charset=utf-8' : type;
};
export const PAGE_FILES = [...texts.keys()];
export async function loadPageFiles() {
  return new Map([...texts].map(([name, text]) => [
    name, { contentType: typeOf(name), bytes: Buffer.from(text) },
  ]));
}
`;
}

/** Manifests of the packages that are inside the page. */
function pageDependencies(): string[] {
  const text = readFileSync(join(PAGE, 'package.json'), 'utf8');
  const { dependencies = {} } = JSON.parse(text) as { readonly dependencies?: object };
  const names = Object.keys(dependencies).filter((name) => !name.startsWith('@megaplane/'));
  return names.map((name) => join(ROOT, 'node_modules', name, 'package.json'));
}

interface TextModule {
  readonly module: string;
  readonly files: string;
  readonly code: (texts: string) => string;
}

export interface Bundled {
  readonly version: string;
  /** Names of the files that were made, below the directory. */
  readonly files: readonly string[];
  /** Modules of dependencies that are inside, as paths. */
  readonly foreign: readonly string[];
}

/** Writes the program to `dir`, whose contents it replaces. Throws where a module is not found. */
export async function bundle(dir: string): Promise<Bundled> {
  const version = versionOf(readFileSync(join(CLI, 'package.json'), 'utf8'));
  rmSync(dir, { recursive: true, force: true });
  const input: Record<string, string> = { main: join(CLI, 'src/main.ts') };
  for (const name of ['testing']) {
    const [file] = globSync(`src/${name}.ts`, { cwd: CLI });
    if (file !== undefined) input[name] = join(CLI, file);
  }
  for (const file of THREADS) input[basename(file, '.ts')] = join(ROOT, file);
  const build = await rolldown({
    input,
    platform: 'node',
    cwd: ROOT,
    external: NATIVE,
    // Its file for Node asks for a canvas that holds machine code; plots are made as SVG.
    resolve: {
      alias: {
        'vega-canvas': join(ROOT, 'node_modules/vega-canvas/build/vega-canvas.browser.js'),
      },
    },
    plugins: [standIns(), threads(), libraryAtOnce()],
    transform: { define: { MEGAPLANE_VERSION: JSON.stringify(version) } },
    treeshake: true,
    preserveEntrySignatures: 'allow-extension',
    onLog: (level, log) => {
      if (level === 'warn' && log.code !== 'INEFFECTIVE_DYNAMIC_IMPORT')
        throw new Error(`bundle: ${log.message}`);
    },
  });
  const { output } = await build.write({
    dir,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    // The last net around the program knows the store's errors by where they were thrown.
    chunkFileNames: (chunk) => (isStore(chunk.moduleIds) ? 'store/src/[name].cjs' : '[name].cjs'),
    codeSplitting: {
      groups: [{ name: 'store', test: STORE, includeDependenciesRecursively: false }],
    },
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    exports: 'named',
    sourcemap: false,
  });
  await build.close();
  const modules = output.flatMap((one) => (one.type === 'chunk' ? one.moduleIds : []));
  modules.push(...pageDependencies());
  return {
    version,
    files: output.map((one) => one.fileName).sort(),
    foreign: modules.filter((path) => path.includes('node_modules')).sort(),
  };
}

function versionOf(manifest: string): string {
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

function isStore(modules: readonly string[]): boolean {
  return modules.length > 0 && modules.every((path) => STORE.test(path));
}

/** Modules of the program, and those that stand in their place here. */
const STAND_INS: ReadonlyMap<string, string> = new Map([
  ['packages/cli/src/service/self.ts', 'tools/pack/packed-self.ts'],
  ['packages/cli/src/service/launched.ts', 'tools/pack/packed-launched.ts'],
]);

/** How they are named by others. */
const STAND_IN_WORD = /\/(?:self|launched)\.ts$/;

/** Modules that are others once the program is bundled. */
function standIns(): Plugin {
  return {
    name: 'stand-ins',
    async resolveId(word, importer) {
      if (!STAND_IN_WORD.test(word)) return null;
      const found = await this.resolve(word, importer, { skipSelf: true });
      const instead = STAND_INS.get(found?.id.slice(ROOT.length + 1) ?? '');
      return instead === undefined ? null : join(ROOT, instead);
    },
    load(id) {
      const path = id.slice(ROOT.length + 1);
      if (path === PAGE_MODULE) return { code: pageModule(), moduleType: 'js' };
      const found = TEXTS.find(({ module }) => module === path);
      if (found === undefined) return null;
      const files = globSync(found.files, { cwd: ROOT }).sort();
      const texts = files.map((file) => [basename(file), readFileSync(join(ROOT, file), 'utf8')]);
      return { code: found.code(JSON.stringify(texts)), moduleType: 'js' };
    },
  };
}

const THREAD = /new Worker\(\s*new URL\('\.\/([\w-]+)\.ts', import\.meta\.url\)/g;

function threads(): Plugin {
  return {
    name: 'threads',
    transform(code, id) {
      if (!id.endsWith('.ts') || !code.includes('new Worker(')) return null;
      const changed = code.replace(THREAD, "new PackedWorker('$1'");
      if (changed === code) throw new Error(`${id}: a thread whose file is not told by a URL`);
      const from = JSON.stringify(join(ROOT, 'tools/pack/packed-worker.ts'));
      return `import { PackedWorker } from ${from};\n${changed}`;
    },
  };
}

const LOAD = 'const load = createRequire(import.meta.url);\n';

/** A library that is loaded in the middle of a turn, when the first document comes. */
function libraryAtOnce(): Plugin {
  return {
    name: 'library at once',
    transform(code, id) {
      if (!id.endsWith('.ts') || !code.includes(LOAD)) return null;
      return code.replace(LOAD, '').replaceAll(/\bload\('([^']+)'\)/g, "require('$1')");
    },
  };
}
