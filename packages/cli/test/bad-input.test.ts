import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { eventually, megaplane, SERVER_ONLY, startCluster } from './cluster.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-bad-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function says(args: readonly string[], exitCode: number, ...words: readonly RegExp[]): void {
  const result = megaplane(...args);
  const text = `megaplane ${args.join(' ')}: ${result.stderr}`;
  assert.equal(result.status, exitCode, text);
  for (const word of words) assert.match(result.stderr, word, text);
  assert(!/\n\s+at /.test(result.stderr), `a stack trace instead of a message: ${text}`);
}

test('wrong usage is named, with the nearest flag, and exits with 2', () => {
  says(['up', '--nodes', '-5'], 2, /--nodes/, /between 0 and/);
  says(['up', '--nodes', 'many'], 2, /--nodes/, /whole number/);
  says(['up', '--node', '5'], 2, /unknown option '--node'/, /--nodes/);
  says(['up', '--components', 'kubelet'], 2, /no component "kubelet"/);
  says(['up', '--exit-when', 'done'], 2, /ready, bound/);
  says(['down'], 2, /unknown command 'down'/);
  says(['nodes'], 2, /--kubeconfig/);
  says(['scheduler'], 2, /--kubeconfig/);
  says(['scheduler', 'explain', 'p', '--seed', '3'], 2, /unknown option '--seed'/);
  says(['scheduler', '--seed', '3', 'explain', 'p'], 2, /'--seed <number>' is not for explain/);
  says(['store', '--history-limit', '/a/=x'], 2, /--history-limit.*"x" is not a size/);
  says(['store', '--history-limit', 'many'], 2, /--history-limit.*"many" is not a size/);
  says(['store', '--durability', '/a/=none,often'], 2, /--durability.*"often" is not one of none/);
  says(['up', '--durability', 'often'], 2, /--durability.*"often" is not one of none/);
  says(['up', '--data-dir', ''], 2, /--data-dir.*a path is needed/);
  says(['up', '--data-dir', folder, '--ephemeral'], 2, /--ephemeral.* cannot be used with .*-dir/);
  says(['up', '--listen-client-urls', 'here'], 2, /--listen-client-urls.*here is no URL such as/);
  says(['up', '--pods', '5', '--components', '-scheduler'], 2, /--pods needs scheduler, which is/);
  const shards = ['up', '--scheduler-shards', '2', '--components', '-scheduler'];
  says(shards, 2, /--scheduler-shards needs scheduler, which is/);
  says(['doctor', '--connections', 'x'], 2, /--connections.*whole number/);
  says(['version', '-o', 'yaml'], 2, /-o.*text, json/);
  says(['completion', 'csh'], 2, /'csh'.*bash, zsh, fish/);
  says(['up', '--exit-when', 'ready', '--components', 'apiserver'], 2, /--exit-when needs nodes/);
});

test('a file that cannot be read is told with the flag that names it', () => {
  says(['scheduler', 'explain', '-f', folder], 1, /-f: cannot read \/.*EISDIR/);
  says(['scheduler', '--config', folder], 1, /--config: cannot read \/.*EISDIR/);
  says(['store', 'snapshot', 'status', folder], 1, /is a directory; name a snapshot file/);
  const scenario = join(folder, 'scenario');
  writeFileSync(scenario, '{');
  says(['scheduler', 'explain', '-f', scenario], 1, /scenario: is no JSON/);
});

test('an address that the machine has not is told with its own flag', () => {
  const flags = ['--data-dir', join(folder, 'address'), '--secure-port', '0'];
  says(['apiserver', ...flags, '--bind-address', '192.0.2.1'], 1, /--bind-address: cannot listen/);
});

test('too few file descriptors end it with a message', () => {
  const entry = join(import.meta.dirname, '../src/main.ts');
  const size = ['--nodes', '1', '--exit-when', 'ready'];
  const args = [process.execPath, entry, 'up', '--ephemeral', '--secure-port', '0', ...size];
  const line = args.map((word) => `'${word}'`).join(' ');
  const result = spawnSync('sh', ['-c', `ulimit -n 24; exec ${line}`], { encoding: 'utf8' });
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /\w+: cannot be started: .*too many open files; raise "ulimit/);
  assert(!/\n\s+at /.test(result.stderr), result.stderr);
});

test('help and version are no errors', () => {
  for (const command of [
    'up',
    'store',
    'apiserver',
    'scheduler',
    'nodes',
    'controllers',
    'bench',
    'store snapshot status',
  ]) {
    const result = megaplane(...command.split(' '), '--help');
    assert.equal(result.status, 0, result.stderr);
    assert.match(result.stdout, /Example: megaplane /);
  }
  assert.match(megaplane('--version').stdout, /^\d+\.\d+\.\d+/);
});

test('a cluster that does not fit is refused with the memory it would take', () => {
  says(
    ['up', '--nodes', '10000000', '--ephemeral'],
    1,
    /10000000 nodes would take about \d+\.\d GiB/,
  );
});

test('a data directory that cannot be written is named', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  says(['up', '--data-dir', join(file, 'data')], 1, /--data-dir/, /cannot write/);
});

test('a kubeconfig of another cluster is left alone', () => {
  const file = join(folder, 'config');
  writeFileSync(
    file,
    'apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {}}]\n',
  );
  const before = readFileSync(file, 'utf8');
  says(['up', '--ephemeral', '--kubeconfig', file], 1, /exists already/, /production/);
  assert.equal(readFileSync(file, 'utf8'), before);
});

test('a port that is taken is named', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  says(
    ['up', '--ephemeral', '--secure-port', String(port)],
    1,
    new RegExp(String(port)),
    /another process listens there/,
  );
  const urls = `http://127.0.0.1:${port}`;
  const flags = ['--data-dir', join(folder, 'taken'), '--secure-port', '0'];
  says(
    ['apiserver', ...flags, '--listen-client-urls', urls],
    1,
    /--listen-client-urls: cannot listen on 127\.0\.0\.1:\d+: another process listens there/,
  );
});

test('a data directory in use is refused while it is, and opens again after a kill -9', async () => {
  const dataDir = join(folder, 'used');
  mkdirSync(dataDir);
  const cluster = await startCluster(SERVER_ONLY, dataDir);
  says(['up', '--data-dir', dataDir, '--secure-port', '0'], 1, /used|in use|locked/);
  await cluster.stop('SIGKILL');
  const again = await startCluster(SERVER_ONLY, dataDir);
  assert.equal(await again.stop(), 0);
});

test('a Node that is too old is told what to do', () => {
  // Without the packages of the checkout beside it, and seen from an old version.
  copyFileSync(join(import.meta.dirname, '../bin/megaplane.cjs'), join(folder, 'megaplane.cjs'));
  const script =
    `Object.defineProperty(process.versions, 'node', { value: '18.20.0' });` +
    `require(${JSON.stringify(join(folder, 'megaplane.cjs'))});`;
  const result = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', cwd: folder });
  assert.equal(result.status, 1);
  assert.match(result.stderr, /needs Node 26.*npm ci/);
});

test('who stops it before it is where it was to be is told so', async () => {
  const dataDir = join(folder, 'stopped');
  const flags = ['--nodes', '5000', '--exit-when', 'ready', '--secure-port', '0'];
  const entry = join(import.meta.dirname, '../src/main.ts');
  const up = spawn(process.execPath, [entry, 'up', '--data-dir', dataDir, ...flags]);
  let said = '';
  up.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => up.once('exit', resolve));
  await eventually(
    'its first child',
    () => existsSync(join(dataDir, 'logs/apiserver.log')) || undefined,
  );
  up.kill('SIGINT');
  assert.equal(await exited, 1, said);
  assert.match(said, /stopped before all nodes were ready/);
});
