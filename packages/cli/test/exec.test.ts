// `megaplane exec` and `megaplane/testing`: what runs, what is told, and what is left behind.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createKubeClient } from '@megaplane/client/kube-client';
import { startCluster } from 'megaplane/testing';
import { ENTRY, eventually } from './cluster.ts';

const home = mkdtempSync(join(tmpdir(), 'megaplane-exec-test-'));
after(() => rmSync(home, { recursive: true, force: true }));

const SERVER = ['--components', 'apiserver', '--nodes', '0', '--'];

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Started {
  readonly child: ChildProcess;
  /** What it has written so far. */
  readonly written: () => string;
  readonly ended: Promise<Ended>;
}

/** Starts it in a group of its own, with a temporary directory that shows what it leaves. */
function exec(temporary: string, ...args: readonly string[]): Started {
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(process.execPath, [ENTRY, 'exec', ...args], { env, detached: true });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then(([status]): Ended => ({ status, stdout, stderr }));
  child.stdin.end('what the command reads');
  return { child, written: () => stdout, ended };
}

function temporaryDirectory(): string {
  return mkdtempSync(join(home, 'tmp-'));
}

/** Ids of processes that name `text` on their command line. */
function processesWith(text: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
    } catch {
      return false;
    }
  });
}

const isLinux = process.platform === 'linux';
const skip = isLinux ? false : 'needs /proc, which tells of processes that are left';

test(
  'a command has a cluster, streams and status of its own, and leaves nothing',
  { skip },
  async () => {
    const temporary = temporaryDirectory();
    const program =
      'cat; test -s "$KUBECONFIG" && echo " $1 $(grep -c server: "$KUBECONFIG")"; exit 7';
    const command = ['sh', '-c', program, 'sh', '--nodes'];
    assert.deepEqual(await exec(temporary, ...SERVER, ...command).ended, {
      status: 7,
      stdout: 'what the command reads --nodes 1\n',
      stderr: '',
    });
    assert.deepEqual(readdirSync(temporary).filter(isOfCluster), []);
    assert.deepEqual(processesWith(temporary), []);
  },
);

function isOfCluster(name: string): boolean {
  return name.startsWith('megaplane-');
}

test('commands that are not there or cannot be run have the exit codes of shells', async () => {
  const temporary = temporaryDirectory();
  const file = join(temporary, 'file');
  writeFileSync(file, '#!/bin/sh\n');
  chmodSync(file, 0o644);
  const broken = join(temporary, 'broken');
  writeFileSync(broken, '#!/no/such/interpreter\n', { mode: 0o755 });
  const statusOf = async (...args: readonly string[]): Promise<unknown> => {
    const { status, stderr } = await exec(temporary, ...args).ended;
    return [status, stderr.split('\n')[0]];
  };
  const absent = ['no-such-command', 127, 'megaplane: no-such-command: no such command'];
  for (const [command, ...told] of [
    absent,
    [file, 126, `megaplane: ${file}: it is no program that may be run`],
    [temporary, 126, `megaplane: ${temporary}: it is no program that may be run`],
  ]) {
    assert.deepEqual(await statusOf('--', String(command)), told);
  }
  assert.deepEqual(await statusOf(...SERVER, broken), [
    127,
    `megaplane: ${broken}: cannot be run (ENOENT)`,
  ]);
  assert.deepEqual(await statusOf('--'), [2, "error: missing required argument 'command'"]);
  assert.equal((await exec(temporary, '--nodes', '-1', '--', 'true').ended).status, 2);
  assert.deepEqual(readdirSync(temporary).filter(isOfCluster), []);
});

test('signals reach the command, which decides what they mean', { skip }, async () => {
  const temporary = temporaryDirectory();
  const program = 'trap "echo heard; exit 3" TERM; echo runs; while :; do sleep 0.1; done';
  const patient = exec(temporary, ...SERVER, 'sh', '-c', program);
  await eventually('the command', () => patient.written() === 'runs\n' || undefined);
  patient.child.kill('SIGTERM');
  const { status, stdout } = await patient.ended;
  assert.deepEqual([status, stdout], [3, 'runs\nheard\n']);
  const plain = exec(temporary, ...SERVER, 'sh', '-c', 'echo runs; exec sleep 60');
  await eventually('the command', () => plain.written() === 'runs\n' || undefined);
  plain.child.kill('SIGINT');
  assert.equal((await plain.ended).status, 130);
  const early = exec(temporary, ...SERVER, 'sh', '-c', 'echo runs');
  await eventually('the start', () => readdirSync(temporary).find(isOfCluster));
  early.child.kill('SIGTERM');
  const given = await early.ended;
  assert(given.status === 143 || given.stdout === 'runs\n', 'given up, or already done');
  assert.deepEqual(readdirSync(temporary).filter(isOfCluster), []);
  assert.deepEqual(processesWith(temporary), []);
});

test(
  'kill -9 of exec ends the command and the cluster, and removes its files',
  { skip },
  async () => {
    const temporary = temporaryDirectory();
    const marked = `exec sleep 61 # ${temporary}`;
    const { child, written, ended } = exec(temporary, ...SERVER, 'sh', '-c', `echo $$; ${marked}`);
    const pid = await eventually('the command', () => /^\d+\n/.exec(written())?.[0].trim());
    assert.equal(readdirSync(temporary).filter(isOfCluster).length, 1);
    child.kill('SIGKILL');
    await ended;
    await eventually('the end of the command', () => !existsSync(`/proc/${pid}`) || undefined);
    await eventually('the end of all processes', () => {
      return processesWith(temporary).length === 0 || undefined;
    });
    assert.deepEqual(readdirSync(temporary).filter(isOfCluster), []);
  },
);

test('clusters of one process live side by side, and end with their blocks', { skip }, async () => {
  const config = { components: ['apiserver'], nodes: 0 } as const;
  const kubeconfigs: string[] = [];
  {
    const clusters = await Promise.all([startCluster(config), startCluster(config)]);
    await using first = clusters[0];
    await using second = clusters[1];
    assert.notEqual(first.server, second.server);
    for (const [at, cluster] of [first, second].entries()) {
      kubeconfigs.push(cluster.kubeconfig);
      assert.equal(cluster.env['KUBECONFIG'], cluster.kubeconfig);
      assert(cluster.kubeconfigText.includes(cluster.server));
      const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
      const path = '/api/v1/namespaces/default/configmaps';
      const body = JSON.stringify({ metadata: { name: `map-${at}` } });
      assert.equal((await client.request({ method: 'POST', path, body })).code, 201);
      const other = await client.request({ method: 'GET', path: `${path}/map-${1 - at}` });
      assert.equal(other.code, 404);
      client.close();
    }
  }
  assert.deepEqual(kubeconfigs.filter(existsSync), []);
});

test('a whole cluster runs pods on nodes that are ready', { skip }, async () => {
  await using cluster = await startCluster({ nodes: 2 });
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  try {
    const pods = '/api/v1/namespaces/default/pods';
    const body = JSON.stringify({
      metadata: { name: 'pod' },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    });
    assert.equal((await client.request({ method: 'POST', path: pods, body })).code, 201);
    let phase: unknown = '';
    while (phase !== 'Running') {
      const answer = await client.request({ method: 'GET', path: `${pods}/pod` });
      assert(answer.ok);
      phase = (answer.object['status'] as { readonly phase?: string } | undefined)?.phase;
    }
  } finally {
    client.close();
  }
});

test('options that say nothing are refused before anything is started', async () => {
  await assert.rejects(startCluster({ nodes: -1 }), /nodes: -1 is no number of nodes/);
  await assert.rejects(startCluster({ nodes: Number.NaN }), /nodes: NaN/);
  await assert.rejects(startCluster({ components: ['nodes'] }), /API server cannot be left out/);
  const reason = new Error('given up');
  await assert.rejects(startCluster({ signal: AbortSignal.abort(reason) }), reason);
});
