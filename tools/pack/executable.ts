/**
 * One file that is the runtime with the program inside (Node's single executable applications), for
 * Linux on x64 and arm64. No machine of the other kind is needed to make one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { bundle, ROOT } from './bundle.ts';
import { billOfMaterials, dependenciesOf, dependencyAt, noticesText } from './dependencies.ts';

export const ARCHITECTURES = ['x64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Of ELF, at octet 18: what processor a file is for. */
const ELF_MACHINES = { x64: 62, arm64: 183 } as const;

/** Makes `megaplane-VERSION-linux-ARCHITECTURE` in `out`; returns its path. */
export async function packExecutable(out: string, architecture: Architecture): Promise<string> {
  const dir = join(out, 'executable');
  mkdirSync(dir, { recursive: true });
  const { version, files, foreign } = await bundle(join(dir, 'lib'));
  await buildLoader(dir);
  const runtime = runtimeFor(architecture);
  const name = `megaplane-${version}-linux-${architecture}`;
  const output = join(out, name);
  const assets = Object.fromEntries(files.map((file) => [file, join(dir, 'lib', file)]));
  const config = join(dir, 'config.json');
  const main = join(dir, 'loader.cjs');
  writeFileSync(
    config,
    JSON.stringify({
      ...{ main, output, executable: join(runtime, 'bin/node') },
      disableExperimentalSEAWarning: true,
      assets: { ...assets, 'loader.cjs': main },
    }),
  );
  const built = spawnSync(process.execPath, ['--build-sea', config], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`executable: ${built.stdout}${built.stderr}`);
  chmodSync(output, 0o755);
  assertMachine(output, architecture);
  const dependencies = [...dependenciesOf(foreign), dependencyAt(runtime)];
  writeFileSync(`${output}.NOTICES.txt`, noticesText(dependencies));
  writeFileSync(`${output}.cdx.json`, billOfMaterials(version, dependencies));
  const digest = createHash('sha256').update(readFileSync(output)).digest('hex');
  writeFileSync(`${output}.sha256`, `${digest}  ${name}\n`);
  return output;
}

async function buildLoader(dir: string): Promise<void> {
  const input = join(ROOT, 'tools/pack/executable-loader.ts');
  const build = await rolldown({ input, platform: 'node', cwd: ROOT });
  await build.write({ file: join(dir, 'loader.cjs'), format: 'cjs' });
  await build.close();
}

/** The folder of the pinned runtime's package; fetched where this machine is of another kind. */
function runtimeFor(architecture: Architecture): string {
  const name = `node-linux-${architecture}`;
  const installed = join(ROOT, 'node_modules', name);
  if (existsSync(join(installed, 'bin/node'))) return installed;
  const cache = join(ROOT, 'node_modules/.cache/runtimes', name);
  if (existsSync(join(cache, 'package/bin/node'))) return join(cache, 'package');
  const manifest = readFileSync(join(ROOT, 'package.json'), 'utf8');
  const { optionalDependencies } = JSON.parse(manifest) as {
    readonly optionalDependencies: Readonly<Record<string, string>>;
  };
  const version = Object.entries(optionalDependencies).find(([key]) => key === name)?.[1];
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-runtime-'));
  try {
    const word = `${name}@${version}`;
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', dir, word];
    const packed = spawnSync('npm', args, { encoding: 'utf8' });
    if (packed.status !== 0) {
      throw new Error(`${word} cannot be had: ${packed.stderr.trim().split('\n').at(-1)}`);
    }
    mkdirSync(cache, { recursive: true });
    const tarball = join(dir, `${name}-${version}.tgz`);
    const unpacked = spawnSync('tar', ['-xzf', tarball, '-C', cache], { encoding: 'utf8' });
    if (unpacked.status !== 0) throw new Error(`${tarball}: ${unpacked.stderr}`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return join(cache, 'package');
}

function assertMachine(file: string, architecture: Architecture): void {
  const machine = readFileSync(file).readUInt16LE(18);
  if (machine !== ELF_MACHINES[architecture]) {
    throw new Error(`${file}: is for machine ${machine}, not for ${architecture}`);
  }
}
