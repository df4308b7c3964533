import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { eventually, SERVER_ONLY, startCluster } from './cluster.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-orphans-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const STARTER = join(import.meta.dirname, '../bin/megaplane.cjs');
const skip = existsSync('/proc/self/stat') ? false : 'needs /proc';

/** A Node that cannot replace itself by another program, as older ones. */
const older = join(folder, 'older.cjs');
writeFileSync(older, 'process.execve = undefined;\n');

function childOf({ pid }: ChildProcess): number {
  const found = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout;
  const [child = ''] = found.split('\n');
  assert.notEqual(child, '', 'the starter has a child');
  return Number(child);
}

function isGone(pid: number): true | undefined {
  try {
    // Who waits for it in a container may be nobody.
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) ? true : undefined;
  } catch {
    return true;
  }
}

async function start(args: readonly string[]): Promise<ChildProcess> {
  const env = { ...process.env, NODE_OPTIONS: '' };
  const starter = spawn(process.execPath, ['-r', older, STARTER, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  });
  await once(starter.stdout ?? process.stdin, 'data');
  return starter;
}

test('the store ends with a starter that is killed', { skip }, async () => {
  const dir = join(folder, 'store');
  const flags = ['--data-dir', dir, '--listen-client-urls', 'http://127.0.0.1:0'];
  const starter = await start(['store', ...flags]);
  const child = childOf(starter);
  starter.kill('SIGKILL');
  await eventually('the end of the store', () => isGone(child));
  assert(!existsSync(join(dir, 'lock')), 'it stopped in good order');
});

test('a starter that is told to stop passes it on', { skip }, async () => {
  const dir = join(folder, 'told');
  const flags = ['--data-dir', dir, '--listen-client-urls', 'http://127.0.0.1:0'];
  const starter = await start(['store', ...flags]);
  const ended = once(starter, 'exit');
  starter.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});

test('the processes of a cluster end with the one that is killed', { skip }, async () => {
  const cluster = await startCluster(SERVER_ONLY);
  const child = cluster.pidOf('apiserver');
  try {
    await cluster.stop('SIGKILL');
    await eventually('the end of the API server', () => isGone(child));
    assert(!existsSync(join(cluster.dataDir, 'lock')), 'it stopped in good order');
  } finally {
    await cluster.remove();
  }
});

/** What `npx megaplane` is: npm, perhaps its shell, and this program by one way or the other. */
const NPM = `
  const { spawn } = require('node:child_process');
  spawn('sh', ['-c', process.argv[1]], { stdio: ['ignore', 'inherit', 'inherit'] });
`;

for (const [way, flags, end] of [
  ['a shell and the starter', ['-r', older], '; true'],
  ['a shell', [], '; true'],
  ['nothing', [], ''],
] as const) {
  test(`with ${way} between, the store ends with the npx that is killed`, { skip }, async () => {
    const dir = mkdtempSync(join(folder, 'npx-'));
    const where = ['--data-dir', dir, '--listen-client-urls', 'http://127.0.0.1:0'];
    const words = [process.execPath, ...flags, STARTER, 'store', ...where];
    const npm = { npm_lifecycle_event: 'npx', npm_lifecycle_script: "'megaplane'" };
    const npx = spawn(process.execPath, ['-e', NPM, `${words.join(' ')}${end}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '', ...npm },
    });
    await once(npx.stdout, 'data');
    assert(existsSync(join(dir, 'lock')));
    npx.kill('SIGKILL');
    await eventually('the end of the store', () => !existsSync(join(dir, 'lock')) || undefined);
  });
}
