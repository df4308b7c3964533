/**
 * An image of the Open Container Initiative, as a layout in a directory and as an archive of it. No
 * daemon and no other program builds it: the root has the executable, the C library that it wants,
 * and nothing else. It runs as nobody in particular, on a root that may be read-only.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { packExecutable, type Architecture } from './executable.ts';
import { gzip, tar, type TarEntry } from './tar.ts';

const USER = 65_532;
const PLATFORMS = { x64: 'amd64', arm64: 'arm64' } as const;
const EPOCH = '1970-01-01T00:00:00Z';
const OF_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const OF_CONFIG = 'application/vnd.oci.image.config.v1+json';
const OF_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

interface Blob {
  readonly digest: string;
  readonly size: number;
}

/**
 * Makes `image/` and `megaplane-VERSION-linux-ARCHITECTURE.oci.tar` in `out`; returns the path of
 * the archive. Throws where this machine is of another kind: its C library goes into the image.
 */
export async function packImage(out: string, architecture: Architecture): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== architecture) {
    const here = `${process.platform}-${process.arch}`;
    throw new Error(
      `oci: an image for linux-${architecture} takes the C library of such a machine, and this ` +
        `is ${here}; run it there, or build deploy/Dockerfile with --platform`,
    );
  }
  const executable = await packExecutable(out, architecture);
  const [, version = ''] = /^megaplane-(.+)-linux-/.exec(basename(executable)) ?? [];
  const dir = join(out, 'image');
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, 'blobs/sha256'), { recursive: true });
  const rootTar = tar(rootEntries(executable));
  const layer = put(dir, gzip(rootTar));
  const labels = {
    'org.opencontainers.image.title': 'megaplane',
    'org.opencontainers.image.description': 'A Kubernetes control plane that holds a million nodes',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0',
  };
  const diffId = `sha256:${createHash('sha256').update(rootTar).digest('hex')}`;
  const config = put(dir, configOf(architecture, diffId, labels));
  const manifest = put(
    dir,
    json({
      schemaVersion: 2,
      mediaType: OF_MANIFEST,
      config: { mediaType: OF_CONFIG, ...config },
      layers: [{ mediaType: OF_LAYER, ...layer }],
      annotations: labels,
    }),
  );
  const platform = { architecture: PLATFORMS[architecture], os: 'linux' };
  const name = { 'org.opencontainers.image.ref.name': version };
  const index = [{ mediaType: OF_MANIFEST, ...manifest, platform, annotations: name }];
  writeFileSync(join(dir, 'index.json'), json({ schemaVersion: 2, manifests: index }));
  writeFileSync(join(dir, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  const archive = `${executable}.oci.tar`;
  writeFileSync(archive, tar(layoutEntries(dir)));
  return archive;
}

function configOf(architecture: Architecture, diffId: string, labels: object): Buffer {
  return json({
    created: EPOCH,
    architecture: PLATFORMS[architecture],
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '6443/tcp': {}, '2379/tcp': {}, '8080/tcp': {} },
      Env: ['PATH=/usr/bin', 'HOME=/data'],
      Entrypoint: ['/usr/bin/megaplane'],
      Cmd: ['--help'],
      Volumes: { '/data': {} },
      WorkingDir: '/data',
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created: EPOCH, created_by: 'tools/pack.ts oci' }],
  });
}

/** What stands in the image. */
function rootEntries(executable: string): TarEntry[] {
  const files = new Map<string, Uint8Array | string>([
    ['etc/passwd', `megaplane:x:${USER}:${USER}::/data:/usr/bin/megaplane\n`],
    ['etc/group', `megaplane:x:${USER}:\n`],
    ['etc/nsswitch.conf', 'hosts: files dns\n'],
    ['usr/share/doc/megaplane/NOTICES.txt', readFileSync(`${executable}.NOTICES.txt`)],
    ['usr/share/doc/megaplane/sbom.cdx.json', readFileSync(`${executable}.cdx.json`)],
  ]);
  for (const path of librariesOf(executable)) {
    files.set(path.slice(1), readFileSync(path));
    for (const text of copyrightsOf(path)) files.set(text.slice(1), readFileSync(text));
  }
  files.set('usr/bin/megaplane', readFileSync(executable));
  const folders = new Set<string>(['tmp', 'data', 'proc', 'sys', 'dev']);
  for (const path of files.keys()) {
    for (let at = dirname(path); at !== '.'; at = dirname(at)) folders.add(at);
  }
  const directories = [...folders].sort().map((path): TarEntry => {
    const mode = path === 'tmp' ? 0o1777 : 0o755;
    return { path, kind: 'directory', mode, owner: path === 'data' ? USER : 0 };
  });
  const contents = [...files].map(([path, content]): TarEntry => {
    const isProgram = path.startsWith('usr/bin/') || /\.so[.\d]*$/.test(path);
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    return { path, kind: 'file', mode: isProgram ? 0o755 : 0o644, owner: 0, content: bytes };
  });
  return [...directories, ...contents];
}

/** Paths at which the executable looks for the C library and its like. */
function librariesOf(executable: string): string[] {
  const found = spawnSync('ldd', [executable], { encoding: 'utf8' });
  if (found.status !== 0) {
    throw new Error('oci: ldd tells which libraries are wanted; apt-get install libc-bin');
  }
  const paths = [...found.stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path = '']) => path);
  if (paths.length === 0) throw new Error(`oci: ldd names no library: ${found.stdout}`);
  return paths;
}

/** What Debian keeps of a library's licence. */
function copyrightsOf(library: string): string[] {
  const real = realpathSync(library);
  const owner = spawnSync('dpkg-query', ['-S', real], { encoding: 'utf8' });
  const name = /^([^:\s]+)/.exec(owner.stdout ?? '')?.[1] ?? '';
  const text = `/usr/share/doc/${name}/copyright`;
  return name !== '' && existsSync(text) ? [text] : [];
}

function put(dir: string, bytes: Uint8Array): Blob {
  const digest = createHash('sha256').update(bytes).digest('hex');
  writeFileSync(join(dir, 'blobs/sha256', digest), bytes);
  return { digest: `sha256:${digest}`, size: bytes.length };
}

function layoutEntries(dir: string): TarEntry[] {
  const files = globSync(['oci-layout', 'index.json', 'blobs/sha256/*'], { cwd: dir }).sort();
  const directories = ['blobs', 'blobs/sha256'].map((path): TarEntry => ({
    path,
    kind: 'directory',
    mode: 0o755,
    owner: 0,
  }));
  const contents = files.map((path): TarEntry => {
    return { path, kind: 'file', mode: 0o644, owner: 0, content: readFileSync(join(dir, path)) };
  });
  return [...directories, ...contents];
}

function json(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}
