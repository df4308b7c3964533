/** One npm package with the whole program: it installs without the repository. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { isolatedDeclarationSync } from 'rolldown/experimental';
import { bundle, ROOT } from './bundle.ts';
import { billOfMaterials, dependenciesOf, noticesText } from './dependencies.ts';

const CLI = join(ROOT, 'packages/cli');
const ENTRY_OF_SOURCES = "'src', 'main.ts'";
const ENTRY_OF_BUNDLE = "'lib', 'main.cjs'";

/** Makes `megaplane-VERSION.tgz` in `out`, from a directory beside it; returns its path. */
export async function packNpm(out: string): Promise<string> {
  const dir = join(out, 'npm');
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, 'bin'), { recursive: true });
  const { version, foreign } = await bundle(join(dir, 'lib'));
  const dependencies = dependenciesOf(foreign);
  const starter = readFileSync(join(CLI, 'bin/megaplane.cjs'), 'utf8');
  if (starter.split(ENTRY_OF_SOURCES).length !== 2) throw new Error('bin: names no entry once');
  const bin = starter.replace(ENTRY_OF_SOURCES, ENTRY_OF_BUNDLE).replaceAll('in the checkout', '');
  writeFileSync(join(dir, 'bin/megaplane.cjs'), bin, { mode: 0o755 });
  writeFileSync(join(dir, 'package.json'), manifest(version, declarations(dir)));
  for (const file of ['LICENSE', 'CHANGELOG.md']) copyFileSync(join(ROOT, file), join(dir, file));
  copyFileSync(join(ROOT, 'deploy/npm/README.md'), join(dir, 'README.md'));
  writeFileSync(join(dir, 'THIRD-PARTY-NOTICES.txt'), noticesText(dependencies));
  writeFileSync(join(dir, 'sbom.cdx.json'), billOfMaterials(version, dependencies));
  const packed = spawnSync(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', out],
    {
      cwd: dir,
      encoding: 'utf8',
    },
  );
  if (packed.status !== 0) throw new Error(`npm pack: ${packed.stderr}`);
  return join(out, `megaplane-${version}.tgz`);
}

/** The manifest that users see: no dependency but the runtime, which is a package a platform. */
function manifest(version: string, hasTypes: boolean): string {
  const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly optionalDependencies: object;
    readonly engines: object;
  };
  const testing = { types: './types/testing.d.ts', default: './lib/testing.cjs' };
  return `${JSON.stringify(
    {
      name: 'megaplane',
      version,
      description: 'A Kubernetes control plane that holds a million nodes',
      license: 'Apache-2.0',
      keywords: ['kubernetes', 'etcd', 'scheduler', 'kwok', 'envtest', 'simulation'],
      bin: { megaplane: 'bin/megaplane.cjs' },
      exports: {
        './package.json': './package.json',
        ...(hasTypes ? { './testing': testing } : {}),
      },
      engines: root.engines,
      optionalDependencies: root.optionalDependencies,
      // Plots as PNG, where somebody wants them: it holds machine code.
      peerDependencies: { '@resvg/resvg-js': '2.6.2' },
      peerDependenciesMeta: { '@resvg/resvg-js': { optional: true } },
    },
    null,
    2,
  )}\n`;
}

/** Writes the types of what programs may import; false where there is no such entry. */
function declarations(dir: string): boolean {
  const src = join(CLI, 'src');
  const queue = [join(src, 'testing.ts')];
  if (!existsSync(join(src, 'testing.ts'))) return false;
  const seen = new Set(queue);
  for (const file of queue) {
    const { code, errors } = isolatedDeclarationSync(file, readFileSync(file, 'utf8'));
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
    const text = code.replaceAll(
      /(from |import\()(["'])(\.[^"']+)\.ts\2/g,
      (_all, how, q, path) => {
        const target = normalize(join(dirname(file), `${path}.ts`));
        if (!seen.has(target)) queue.push(target);
        seen.add(target);
        return `${how}${q}${path}.js${q}`;
      },
    );
    if (/@megaplane\//.test(text)) throw new Error(`${file}: its types name another package`);
    const to = join(dir, 'types', relative(src, file).replace(/\.ts$/, '.d.ts'));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, text);
  }
  return true;
}
