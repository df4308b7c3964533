// Plays what controller-runtime's envtest does with the directory of KUBEBUILDER_ASSETS.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pauseMs } from '@megaplane/base/deferred';
import { freePort } from '@megaplane/base/free-port.sim';
import { issueCertificate, type KeyAndCertificate } from '@megaplane/apiserver/certificates';
import { cacheDirectory } from '../src/service/launchers.ts';
import { megaplane } from './cluster.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-envtest-'));
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const LOOK_MS = 50;
const LOOKS_MAX = 600;
const CACHE = join(folder, 'cache');
const assets = megaplane('envtest', '--cache-dir', CACHE).stdout.trim();

function made(
  use: 'authority' | 'client' | 'server',
  commonName: string,
  issuer: KeyAndCertificate | null,
): KeyAndCertificate {
  const times = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const serial = Buffer.alloc(16, commonName.length);
  const organizations = use === 'client' ? ['system:masters'] : [];
  const names = use === 'server' ? { names: ['127.0.0.1'] } : {};
  return issueCertificate({ commonName, organizations, ...times, use, serial, ...names }, issuer);
}

interface Asked {
  readonly status: number;
  readonly text: string;
}

function ask(url: string, tls: object = {}, body?: object): Promise<Asked | undefined> {
  const send = url.startsWith('https:') ? secureRequest : plainRequest;
  const method = body === undefined ? 'GET' : 'POST';
  const headers = { 'content-type': 'application/json' };
  return new Promise((resolve) => {
    const options = { method, headers, agent: false, rejectUnauthorized: false, ...tls };
    const sent = send(url, options, (answer) => {
      let text = '';
      answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.on('error', () => resolve(undefined));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function start(name: string, ...args: readonly string[]): ChildProcess {
  const child = spawn(join(assets, name), args, { stdio: 'ignore' });
  children.push(child);
  return child;
}

async function isHealthy(url: string, child: ChildProcess): Promise<void> {
  for (let look = 0; look < LOOKS_MAX; look++) {
    assert.equal(child.exitCode, null, `it ended before ${url} was healthy`);
    if ((await ask(url))?.status === 200) return;
    await pauseMs(LOOK_MS);
  }
  assert.fail(`${url} is not healthy`);
}

async function end(child: ChildProcess): Promise<number | null> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  return child.exitCode;
}

test('the directory is made once, and holds the programs', () => {
  assert.equal(megaplane('envtest', '--cache-dir', CACHE).stdout.trim(), assets);
  assert.deepEqual(readdirSync(CACHE).length, 1);
  const names = readdirSync(assets).filter((name) => !/^(kubectl$|worker-)/.test(name));
  const compiled = ['code-apiserver', 'code-store'];
  const programs = ['etcd', 'etcd.help', 'kube-apiserver', 'kube-apiserver.help'];
  assert.deepEqual(
    names,
    [...compiled, ...programs.slice(0, 2), 'index.json', ...programs.slice(2), 'text'].sort(),
  );
  const help = (name: string): string =>
    spawnSync(join(assets, name), ['--help']).stdout.toString();
  assert.match(help('etcd'), /^\s*--unsafe-no-fsync\b/m);
  assert(!/^\s*--insecure-port\b/m.test(help('kube-apiserver')));
  const version = spawnSync(join(assets, 'kube-apiserver'), ['--version']).stdout.toString();
  assert.equal(version, 'Kubernetes v1.36.1\n');
  const unknown = spawnSync(join(assets, 'kube-apiserver'), ['--no-such-flag'], {
    timeout: 30_000,
  });
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr.toString(), /unknown option '--no-such-flag'/);
});

test('nothing is compiled at a start', async () => {
  const env = { ...process.env, MEGAPLANE_DEBUG: '1' };
  const port = await freePort();
  for (const [name, flags, url] of [
    ['etcd', etcdFlags(port), `http://127.0.0.1:${port}/health`],
    [
      'kube-apiserver',
      ['--bind-address=127.0.0.1', `--secure-port=${port}`, `--cert-dir=${join(folder, 'kube')}`],
      `https://127.0.0.1:${port}/healthz`,
    ],
  ] as const) {
    const child = spawn(join(assets, name), flags, { stdio: ['ignore', 'ignore', 'pipe'], env });
    children.push(child);
    let told = '';
    child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));
    await isHealthy(url, child);
    await end(child);
    const [, compiled, all] = /compiled (\d+) of (\d+) modules/.exec(told) ?? [];
    assert(Number(all) > 100, told);
    // those of a way that the first run has not gone
    assert(Number(compiled) <= Number(all) / 20, `${name}: ${compiled} of ${all}`);
  }
});

test('what was removed or broken is made anew', () => {
  rmSync(join(assets, 'etcd'));
  assert.equal(megaplane('envtest', '--cache-dir', CACHE).stdout.trim(), assets);
  assert(existsSync(join(assets, 'etcd')));
  assert.deepEqual(readdirSync(CACHE).length, 1);
});

test('etcd and kube-apiserver start with the flags of envtest, serve, and stop on SIGTERM', async () => {
  const certDir = mkdtempSync(join(folder, 'certs-'));
  const put = (name: string, text: string): string => {
    writeFileSync(join(certDir, name), text);
    return join(certDir, name);
  };
  const clients = made('authority', 'clients', null);
  const admin = made('client', 'admin', clients);
  const authority = made('authority', 'envtest', null);
  const serving = made('server', 'localhost', authority);
  put('apiserver.crt', serving.certificate);
  put('apiserver.key', serving.key);
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keyFile = put('sa.pub', String(accounts.publicKey.export({ type: 'spki', format: 'pem' })));
  const signer = String(accounts.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const signingFile = put('sa.key', signer);
  const [client, peer, secure] = await Promise.all([freePort(), freePort(), freePort()]);
  const etcdUrl = `http://127.0.0.1:${client}`;
  const etcd = start(
    'etcd',
    ...[`--advertise-client-urls=${etcdUrl}`, `--listen-client-urls=${etcdUrl}`],
    ...[`--listen-peer-urls=http://127.0.0.1:${peer}`, '--unsafe-no-fsync=true'],
    `--data-dir=${mkdtempSync(join(folder, 'etcd-'))}`,
  );
  await isHealthy(`${etcdUrl}/health`, etcd);
  const server = start(
    'kube-apiserver',
    ...['--allow-privileged=true', '--authorization-mode=RBAC', '--bind-address=127.0.0.1'],
    ...[`--cert-dir=${certDir}`, `--client-ca-file=${put('client-ca.crt', clients.certificate)}`],
    ...['--disable-admission-plugins=ServiceAccount', `--etcd-servers=${etcdUrl}`],
    ...[`--secure-port=${secure}`, '--service-account-issuer=https://127.0.0.1/'],
    ...[`--service-account-key-file=${keyFile}`, '--service-cluster-ip-range=10.0.0.0/24'],
    `--service-account-signing-key-file=${signingFile}`,
  );
  const url = `https://127.0.0.1:${secure}`;
  await isHealthy(`${url}/healthz`, server);
  // The certificate of the directory is what clients are shown and believe.
  const tls = { rejectUnauthorized: true, ca: authority.certificate };
  const identity = { ...tls, cert: admin.certificate, key: admin.key };
  const maps = `${url}/api/v1/namespaces/default/configmaps`;
  assert.equal((await ask(maps, identity, { metadata: { name: 'a' } }))?.status, 201);
  assert.match((await ask(`${maps}/a`, identity))?.text ?? '', /"name":"a"/);
  assert.equal((await ask(maps, tls))?.status, 403);
  assert.equal(await end(server), 0);
  assert.equal(await end(etcd), 0);
});

test('a port in use, and directories that cannot be written, are told of', async () => {
  const port = await freePort();
  const first = start('etcd', ...etcdFlags(port));
  await isHealthy(`http://127.0.0.1:${port}/health`, first);
  const second = spawnSync(join(assets, 'etcd'), etcdFlags(port), { timeout: 30_000 });
  assert.equal(second.status, 1);
  assert.match(second.stderr.toString(), /another process listens there/);
  await end(first);
  writeFileSync(join(folder, 'file'), '');
  const refused = megaplane('envtest', '--cache-dir', join(folder, 'file', 'below'));
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /--cache-dir: cannot write .* \(ENOTDIR\); name a directory/);
  assert.equal(refused.stdout, '');
  const closed = join(folder, 'closed');
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  const isRoot = process.getuid?.() === 0;
  if (!isRoot) assert.equal(megaplane('envtest', '--cache-dir', closed).status, 1);
});

function etcdFlags(port: number): string[] {
  const url = `http://127.0.0.1:${port}`;
  const dataDir = mkdtempSync(join(folder, 'etcd-'));
  return [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`, `--data-dir=${dataDir}`];
}

test("the user's cache is where the system has it", () => {
  assert.equal(cacheDirectory({ XDG_CACHE_HOME: '/x' }, 'linux'), '/x/megaplane');
  assert.equal(cacheDirectory({ HOME: '/h' }, 'linux'), '/h/.cache/megaplane');
  assert.equal(cacheDirectory({ HOME: '/h', XDG_CACHE_HOME: 'x' }, 'linux'), '/h/.cache/megaplane');
  assert.equal(cacheDirectory({ HOME: '/h' }, 'darwin'), '/h/Library/Caches/megaplane');
  assert.throws(() => cacheDirectory({ HOME: '' }, 'linux'), /--cache-dir: there is no home/);
});
