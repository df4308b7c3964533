import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually, kubectlOf, kubectls, megaplane, NO_KUBECTL } from './cluster.ts';
import { SERVER_ONLY, startCluster } from './cluster.ts';

const [kubectl] = kubectls();
const skip = kubectl === undefined ? NO_KUBECTL : false;
/** Beside the log there must be room for certificates, kubeconfigs and logs. */
const DISK_MIB = 12;

/** A disk of a few MiB, or why there can be none. */
function smallDisk(): { readonly path: string; remove(): void } | string {
  const path = mkdtempSync(join(tmpdir(), 'megaplane-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', path]);
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  if (mounted.status !== 0) {
    remove();
    return 'needs the right to mount a small disk: run as root of the machine';
  }
  return {
    path,
    remove: () => {
      execFileSync('umount', ['--lazy', path]);
      remove();
    },
  };
}

function logFile(dataDir: string): string {
  const logs = readdirSync(dataDir).filter((name) => /^log-\d+\.mpl$/.test(name));
  const sizes = logs.map((name) => [statSync(join(dataDir, name)).size, name] as const);
  sizes.sort(([a], [b]) => b - a);
  return join(dataDir, sizes[0]?.[1] ?? 'none');
}

test(
  'a full disk is named, nothing acknowledged is lost, and space cures it',
  { skip },
  async (t) => {
    const disk = smallDisk();
    if (typeof disk === 'string') return t.skip(disk);
    const dataDir = join(disk.path, 'data');
    // Room that the operator frees later.
    writeFileSync(join(disk.path, 'ballast'), Buffer.alloc(4 << 20));
    let cluster = await startCluster(['--nodes', '2'], dataDir);
    try {
      let said = '';
      cluster.up.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
      let made = 0;
      const run = kubectlOf(kubectl ?? '', cluster);
      for (; made < 40; made++) {
        const text = Array.from({ length: 70_000 }, (_, i) => `${made} ${i * 7919}`).join(' ');
        const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: `c${made}` } };
        const body = JSON.stringify({ ...object, data: { text } });
        const file = join(tmpdir(), `megaplane-large-${process.pid}.json`);
        writeFileSync(file, body);
        const args = ['--kubeconfig', cluster.kubeconfig, 'create', '-f', file];
        const created = spawnSync(kubectl ?? '', args, { encoding: 'utf8' });
        rmSync(file);
        if (created.status !== 0) break;
      }
      assert(made > 1 && made < 40, `${made} objects until the disk was full`);
      await eventually('the report', () =>
        /disk is full; free space/.test(said) ? said : undefined,
      );
      assert.equal(cluster.up.exitCode, null, 'it waits for space');
      rmSync(join(disk.path, 'ballast'));
      await eventually('the return', () => {
        const args = ['--kubeconfig', cluster.kubeconfig, 'get', '--raw=/readyz'];
        return spawnSync(kubectl ?? '', args).status === 0 ? true : undefined;
      });
      const names = run('get', 'configmaps', '-o', 'name').split('\n');
      for (let i = 0; i < made; i++) assert(names.includes(`configmap/c${i}`), `c${i} is there`);
      assert.equal(await cluster.stop(), 0);
      cluster = await startCluster(SERVER_ONLY, dataDir);
    } finally {
      await cluster.stop();
      disk.remove();
    }
  },
);

test('a torn tail is cut off, a flipped byte in the middle is refused with its place', async () => {
  // Nodes write after what every start writes at once: there is something behind the middle.
  const cluster = await startCluster(['--nodes', '5', '--components', 'apiserver,nodes']);
  const { dataDir } = cluster;
  try {
    // No closing snapshot takes the place of the log.
    await cluster.kill();
    const log = logFile(dataDir);
    const whole = readFileSync(log);
    // The file is longer than what was written.
    const end = whole.findLastIndex((byte) => byte !== 0) + 1;
    writeFileSync(log, whole.subarray(0, end - 7));
    const again = await startCluster(SERVER_ONLY, dataDir);
    await again.kill();
    assert.match(readFileSync(join(dataDir, 'logs/apiserver.log'), 'utf8'), /are cut off and kept/);

    const flipped = Buffer.from(whole);
    const middle = Math.floor(end / 2);
    flipped[middle] = (flipped[middle] ?? 0) ^ 0x10;
    writeFileSync(log, flipped);
    const refused = megaplane('up', ...SERVER_ONLY, '--data-dir', dataDir, '--secure-port', '0');
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /log-\d+\.mpl is damaged at byte \d+.*Restore a backup/s);
    assert.deepEqual(readFileSync(log), flipped, 'what is left is not touched');
  } finally {
    await cluster.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
