/** What is shipped as it stands, but for the version: the chart, units of systemd, completions. */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { completionScript, SHELLS } from '../../packages/cli/src/completion/scripts.ts';
import { commandTable } from '../../packages/cli/src/completion/table.ts';
import { makeProgram } from '../../packages/cli/src/program.ts';
import { ROOT } from './bundle.ts';
import { gzip, tar, type TarEntry } from './tar.ts';

function ownVersion(): string {
  const manifest = readFileSync(join(ROOT, 'packages/cli/package.json'), 'utf8');
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

/** The chart as `helm install` takes it: `helm/megaplane-VERSION.tgz`. */
export async function packChart(out: string): Promise<string> {
  const version = ownVersion();
  const entries = filesBelow('deploy/helm/megaplane', 'megaplane', (path, text) =>
    path === 'Chart.yaml'
      ? text.replace(/^(version|appVersion): .*$/gm, (_all, key: string) => `${key}: ${version}`)
      : text,
  );
  return written(join(out, 'helm', `megaplane-${version}.tgz`), gzip(tar(entries)));
}

/** Units with the user that they run as, to be unpacked at `/`. */
export async function packUnits(out: string): Promise<string> {
  const places = [
    { suffix: '.service', place: 'usr/lib/systemd/system', rename: /$^/ },
    { suffix: '.sysusers.conf', place: 'usr/lib/sysusers.d', rename: /\.sysusers/ },
    { suffix: '.tmpfiles.conf', place: 'usr/lib/tmpfiles.d', rename: /\.tmpfiles/ },
  ];
  const folder = join(ROOT, 'deploy/systemd');
  const entries = places.flatMap(({ suffix, place, rename }) =>
    globSync(`*${suffix}`, { cwd: folder })
      .sort()
      .map((name): TarEntry => {
        const content = readFileSync(join(folder, name));
        const path = `${place}/${name.replace(rename, '')}`;
        return { path, kind: 'file', mode: 0o644, owner: 0, content };
      }),
  );
  return written(join(out, `megaplane-${ownVersion()}-systemd.tar.gz`), gzip(tar(entries)));
}

/** A script for each shell, in `completion/`. */
export async function packCompletions(out: string): Promise<string> {
  const commands = commandTable(makeProgram(ownVersion(), () => {}));
  const dir = join(out, 'completion');
  for (const shell of SHELLS) {
    const script = completionScript(shell, 'megaplane', commands);
    written(join(dir, `megaplane.${shell}`), Buffer.from(script));
  }
  return dir;
}

function filesBelow(
  folder: string,
  root: string,
  change: (path: string, text: string) => string,
): TarEntry[] {
  const cwd = join(ROOT, folder);
  const files = globSync('**/*', { cwd, withFileTypes: true }).filter((one) => one.isFile());
  const paths = files.map((one) => join(one.parentPath, one.name).slice(cwd.length + 1)).sort();
  return paths.map((path): TarEntry => {
    const content = Buffer.from(change(path, readFileSync(join(cwd, path), 'utf8')));
    return { path: `${root}/${path}`, kind: 'file', mode: 0o644, owner: 0, content };
  });
}

function written(path: string, content: Uint8Array): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}
