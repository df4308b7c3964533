// A clean directory, one package, and nothing of the repository: what a newcomer has.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'megaplane-pack-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const PACKED_BYTES_MAX = 12 * 2 ** 20;
const IMAGE_BYTES_MAX = 180 * 2 ** 20;
const WAIT_MS_MAX = 110_000;
const isLong = process.env['MEGAPLANE_LONG'] === '1';
const ofLongRun = isLong ? false : 'MEGAPLANE_LONG=1 npm test makes executables and images';

/** `PATH` with the pinned runtime, the system's programs, and nothing of this checkout. */
const PATH = [dirname(process.execPath), dirname(whereIs('npm')), '/usr/bin', '/bin'].join(':');
const ENV = { PATH, HOME: folder, npm_config_cache: join(folder, 'cache') };

function whereIs(program: string): string {
  const { stdout } = spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' });
  return stdout.trim();
}

function run(cwd: string, words: readonly string[], env = {}): SpawnSyncReturns<string> {
  const [program = '', ...args] = words;
  const options = { cwd, env: { ...ENV, ...env }, timeout: WAIT_MS_MAX } as const;
  return spawnSync(program, args, { ...options, encoding: 'utf8' });
}

function says(cwd: string, ...words: readonly string[]): string {
  const { status, stdout, stderr } = run(cwd, words);
  assert.equal(status, 0, `${words.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

function pack(...words: readonly string[]): SpawnSyncReturns<string> {
  const args = [join(ROOT, 'tools/pack.ts'), ...words, '--out', folder];
  return spawnSync(process.execPath, args, { encoding: 'utf8', timeout: WAIT_MS_MAX });
}

function packed(...words: readonly string[]): string {
  const { status, stdout, stderr } = pack(...words);
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

/** A cluster that is brought up and down again by `program`. */
function bringsUp(cwd: string, ...program: readonly string[]): void {
  const size = ['--nodes', '3', '--pods', '5', '--ephemeral', '--secure-port', '0'];
  const end = ['--exit-when', 'bound', '--stages', 'general', '--output', 'json'];
  const found: unknown = JSON.parse(says(cwd, ...program, 'up', ...size, ...end));
  assert.equal(typeof (found as { readonly podsRunningMs: unknown }).podsRunningMs, 'number');
}

test('one npm package installs without the repository and brings a cluster up', () => {
  const tarball = packed('npm');
  assert(statSync(tarball).size < PACKED_BYTES_MAX);
  const clean = join(folder, 'clean');
  mkdirSync(clean);
  writeFileSync(join(clean, 'package.json'), '{"private": true}');
  // The runtime is the pinned one already; nothing is asked of a network.
  const quiet = ['--offline', '--no-audit', '--no-fund', '--omit=optional'];
  says(clean, 'npm', 'install', ...quiet, tarball);
  const place = join(clean, 'node_modules/megaplane');
  const files = globSync('**/*', { cwd: place });
  const sizes = files.map((file) => statSync(join(place, file)).size);
  assert(sizes.reduce((sum, size) => sum + size, 0) < PACKED_BYTES_MAX, 'unpacked');
  assert.deepEqual(
    files.filter((file) => /(?<!\.d)\.ts$|\.test\./.test(file)),
    [],
  );
  assert(!existsSync(join(clean, 'node_modules/commander')), 'all is inside');
  assert.match(says(clean, 'npx', 'megaplane', 'version', '-o', 'json'), /"kubernetes":"v1\./);
  bringsUp(clean, 'npx', 'megaplane');
  assert.match(says(clean, 'npx', 'megaplane', 'fleet', 'definitions'), /CapacityRequest/);
});

test('the page is inside the package', async () => {
  const clean = join(folder, 'clean');
  const program = join(clean, 'node_modules/megaplane/bin/megaplane.cjs');
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const size = ['--nodes', '1', '--ephemeral', '--secure-port', '0', '--output', 'json'];
  const args = [program, 'up', ...size, '--page-port', `${port}`];
  const up = spawn(process.execPath, args, { cwd: clean, env: ENV });
  try {
    const [summary] = (await once(up.stdout, 'data')) as [Buffer];
    const { page } = JSON.parse(summary.toString()) as { readonly page: string };
    const first = await fetch(page, { redirect: 'manual' });
    const cookie = (first.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const script = await fetch(new URL('/page.js', page), { headers: { cookie } });
    assert.equal(script.status, 200);
    assert((await script.text()).length > 20_000);
  } finally {
    up.kill('SIGINT');
    await once(up, 'exit');
  }
});

test('the package tells of its licences and of what is inside', () => {
  const dir = join(folder, 'npm');
  const bill = JSON.parse(readFileSync(join(dir, 'sbom.cdx.json'), 'utf8')) as {
    readonly specVersion: string;
    readonly components: readonly { readonly name: string; readonly hashes?: readonly object[] }[];
  };
  assert.equal(bill.specVersion, '1.6');
  const names = bill.components.map(({ name }) => name);
  for (const name of ['commander', 'yaml', 're2js', 'preact', 'uplot'])
    assert(names.includes(name), name);
  assert(!names.includes('typescript') && !names.some((name) => name.startsWith('@megaplane')));
  assert(bill.components.every(({ hashes = [] }) => hashes.length === 1));
  const notices = readFileSync(join(dir, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
  for (const name of names) assert(notices.includes(`${name} `), name);
});

test('programs import the testing entry of the package with its types', (t) => {
  if (!existsSync(join(ROOT, 'packages/cli/src/testing.ts'))) {
    t.skip('there is no megaplane/testing yet');
    return;
  }
  const clean = join(folder, 'clean');
  const text =
    "import { startCluster } from 'megaplane/testing';\n" +
    'await using cluster = await startCluster({ nodes: 1 });\n' +
    'const server: string = cluster.server;\n' +
    'console.log(server);\n';
  writeFileSync(join(clean, 'use.mts'), text);
  assert.match(says(clean, 'node', 'use.mts'), /^https:\/\/127\.0\.0\.1:\d+/);
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext'];
  const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')];
  says(clean, tsc, ...flags, ...types, 'use.mts');
  writeFileSync(join(clean, 'wrong.mts'), text.replace('nodes: 1', "nodes: 'one'"));
  assert.notEqual(run(clean, [tsc, ...flags, ...types, 'wrong.mts']).status, 0);
});

test('what cannot be made is told with what would help', () => {
  const other = process.arch === 'x64' ? 'arm64' : 'x64';
  const cases: readonly [readonly string[], number, RegExp][] = [
    [['oci', '--arch', other], 1, /oci: an image for linux-.*C library.*deploy\/Dockerfile/],
    [['oci', '--arch', 'mips'], 2, /--arch: "mips" is none of x64, arm64/],
    [['rpm'], 2, /"rpm" to make\nusage:/],
    [['--nothing'], 2, /'--nothing'[^]*usage:/],
  ];
  for (const [words, status, text] of cases) {
    const result = pack(...words);
    assert.equal(result.status, status, result.stderr);
    assert.match(result.stderr, text);
  }
});

test('one file is the whole program, with its children and threads', { skip: ofLongRun }, () => {
  const executable = packed('executable');
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const program = join(empty, 'megaplane');
  says(empty, 'mv', executable, program);
  const env = { PATH: '/usr/bin:/bin', HOME: empty };
  const version = run(empty, [program, 'version', '-o', 'json'], env);
  assert.match(version.stdout, /"megaplane":"\d/, version.stderr);
  bringsUp(empty, program);
  // A store with its log's thread, which is started again and reads with another one.
  const store = ['store', '--data-dir', './data', '--listen-client-urls', 'http://127.0.0.1:0'];
  for (const _turn of [1, 2]) {
    const words = ['-c', '"$0" "$@" & sleep 3; kill -TERM $!; wait $!', program, ...store];
    const result = run(empty, ['sh', ...words], env);
    assert.equal(result.status, 0, result.stderr);
    assert.match(result.stdout, /^ready in/m);
  }
  const notices = readFileSync(`${executable}.NOTICES.txt`, 'utf8');
  assert.match(notices, /^node-linux-/m);
});

test('the image is small, whole and runs as nobody on a read-only root', (t) => {
  if (!isLong) {
    t.skip(String(ofLongRun));
    return;
  }
  const archive = packed('oci');
  const dir = join(folder, 'unpacked');
  mkdirSync(join(dir, 'root'), { recursive: true });
  says(dir, 'tar', '-xf', archive);
  const blob = (digest: string): string => join(dir, 'blobs', digest.replace(':', '/'));
  const read = (path: string): Record<string, unknown> =>
    JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  const index = read(join(dir, 'index.json')) as { manifests: { digest: string }[] };
  const manifest = read(blob(index.manifests[0]?.digest ?? '')) as {
    readonly config: { readonly digest: string };
    readonly layers: readonly { readonly digest: string; readonly size: number }[];
  };
  const [layer = { digest: '', size: 0 }] = manifest.layers;
  for (const { digest } of [layer, manifest.config]) {
    const found = createHash('sha256')
      .update(readFileSync(blob(digest)))
      .digest('hex');
    assert.equal(`sha256:${found}`, digest);
  }
  const { config } = read(blob(manifest.config.digest)) as { config: { User: string } };
  assert.equal(config.User, '65532:65532');
  const root = join(dir, 'root');
  says(dir, 'tar', '-xzf', blob(layer.digest), '-C', root);
  const size = Number(says(dir, 'du', '-sb', root).split('\t')[0]);
  assert(size < IMAGE_BYTES_MAX, `${size} octets`);
  if (process.getuid?.() !== 0 || whereIs('unshare') === '') {
    t.skip('running the image wants root and unshare (apt-get install util-linux)');
    return;
  }
  const up = 'up --nodes 2 --data-dir /data/t --secure-port 0 --page-port 0 --exit-when ready';
  const script = [
    `mount --bind ${root} ${root}; mount -o remount,ro,bind ${root}`,
    `mount -t proc none ${root}/proc; mount -t tmpfs -o uid=65532 none ${root}/data`,
    `mkdir ${root}/data/t; chown 65532 ${root}/data/t`,
    `exec chroot --userspec=65532:65532 ${root} /usr/bin/megaplane ${up} --output json`,
  ].join('\n');
  const result = run(dir, ['unshare', '-m', 'sh', '-c', script], {
    ...{ HOME: '/data', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  assert.match(result.stdout, /"nodesReadyMs":\d/, result.stderr);
});
