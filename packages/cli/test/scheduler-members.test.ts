// Who may join a scheduler as a shard, and what the others are told.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { issueCertificate, type KeyAndCertificate } from '@megaplane/apiserver/certificates';
import { ENTRY, megaplane } from './cluster.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-members-'));
const started: ChildProcess[] = [];
after(() => {
  started.forEach((one) => one.kill('SIGKILL'));
  rmSync(folder, { recursive: true, force: true });
});

const HOUR_MS = 3_600_000;
const times = { notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + HOUR_MS };

function authority(commonName: string): KeyAndCertificate {
  return issueCertificate(
    { commonName, ...times, serial: randomBytes(16), use: 'authority' },
    null,
  );
}

/** The three flags, for files that are made for them. */
function memberFlags(
  name: string,
  commonName: string,
  use: 'server' | 'client',
  issuer: KeyAndCertificate,
  trusted: KeyAndCertificate = issuer,
): readonly string[] {
  const request = { commonName, ...times, serial: randomBytes(16), use, names: ['127.0.0.1'] };
  const { certificate, key } = issueCertificate(request, issuer);
  const files = { cert: certificate, key, ca: trusted.certificate };
  return Object.entries(files).flatMap(([what, text]) => {
    const file = join(folder, `${name}.${what}`);
    writeFileSync(file, text, { mode: 0o600 });
    return [`--shard-${what}-file`, file];
  });
}

/** Nobody is there; it waits for its API server, and takes shards in meanwhile. */
const kubeconfig = join(folder, 'kubeconfig');
writeFileSync(
  kubeconfig,
  `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`,
);

interface Ended {
  readonly ready: string;
  readonly errors: string;
  readonly code: number | null;
}

/** Runs until it is ready or has ended. */
function run(...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [ENTRY, 'scheduler', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve) => {
    child.stdout.once('data', (chunk: Buffer) => {
      resolve({ ready: chunk.toString(), errors, code: null });
    });
    child.once('exit', (code) => resolve({ ready: '', errors, code }));
  });
}

const ours = authority('ours');
let root = '';

before(async () => {
  const { ready, errors } = await run(
    ...['--kubeconfig', kubeconfig, '--leader-elect=false', '--shards-address', '127.0.0.1:0'],
    ...memberFlags('root', 'system:kube-scheduler', 'server', ours),
  );
  root = /shards join (\S+)/.exec(ready)?.[1] ?? '';
  assert.notEqual(root, '', errors);
});

function shard(name: string, ...flags: readonly string[]): Promise<Ended> {
  return run('shard', '--join', root, '--name', name, '--join-timeout', '1s', ...flags);
}

test('a scheduler’s certificate of the cluster’s authority joins; no other does', async () => {
  const theirs = authority('theirs');
  const [own, kubelet, stranger, none] = await Promise.all([
    shard('own', ...memberFlags('own', 'system:kube-scheduler', 'client', ours)),
    shard('kubelet', ...memberFlags('kubelet', 'system:node:n1', 'client', ours)),
    shard('stranger', ...memberFlags('far', 'system:kube-scheduler', 'client', theirs, ours)),
    shard('none'),
  ]);
  assert.match(own.ready, /shard own/, own.errors);
  for (const other of [kubelet, stranger, none]) {
    assert.equal(other.code, 1, other.ready);
    assert.match(other.errors, /--join 127\.0\.0\.1:\d+: .+; is a scheduler/);
  }
});

test('another configuration is refused, and the difference is named', async () => {
  const flags = memberFlags('older', 'system:kube-scheduler', 'client', ours);
  const config = join(folder, 'config.yaml');
  const head = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n';
  writeFileSync(config, `${head}profiles: [{schedulerName: other}]\n`);
  const [older, other] = await Promise.all([
    shard('older', ...flags, '--emulated-version', '1.35'),
    shard('other', ...flags, '--config', config),
  ]);
  assert.equal(older.code, 1);
  assert.match(older.errors, /emulatedVersion is "1\.35", at the root it is "1\.36"/);
  assert.equal(other.code, 1);
  assert.match(
    other.errors,
    /profiles\[0\]\.schedulerName is "other", at the root it is "default-/,
  );
});

test('wrong usage of shards is named', () => {
  const says = (args: readonly string[], code: number, word: RegExp): void => {
    const { status, stderr } = megaplane('scheduler', ...args);
    assert.equal(status, code, stderr);
    assert.match(stderr, word);
  };
  const base = ['--kubeconfig', kubeconfig, '--leader-elect=false'];
  says([...base, '--shards', '0'], 2, /--shards <count>.*between 1 and 256/s);
  says(
    [...base, '--shards-address', '0.0.0.0:0'],
    1,
    /--shards-address 0\.0\.0\.0: .*certificates/,
  );
  says(['shard', '--join', '10.0.0.1:1'], 1, /--join 10\.0\.0\.1: .*certificates/);
  says(
    ['shard', '--join', '127.0.0.1:1', '--join-timeout', '200ms'],
    1,
    /127\.0\.0\.1:1.*cannot connect/,
  );
  says(['relay', '--join', '127.0.0.1:1', '--listen-address', '[::]:0'], 1, /--listen-address ::/);
  says(['shard', '--join', '127.0.0.1:1', '--name', 'a b'], 2, /--name/);
  says(['--shards', '2', 'shard', '--join', '127.0.0.1:1'], 2, /'--shards <count>' goes behind/);
});
