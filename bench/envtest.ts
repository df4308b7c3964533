/**
 * What controller-runtime's envtest starts: etcd and kube-apiserver, with its flags, one after the
 * other. Ours from the directory of `megaplane envtest`, beside the real pair where there is one.
 *
 *     node bench/envtest.ts --runs 5 --parallel 20
 *     node bench/envtest.ts --real /path/with/etcd/and/kube-apiserver
 *
 * Start: from the first process until `/health` and then `/healthz` answer, asked every 10 ms.
 * Stop: SIGTERM until both are gone. Memory: two seconds after the start; pages that processes
 * share (of the runtime's own file) are counted in parts, so that the sum is what a machine needs.
 * The runs of both sides take turns. `--parallel`: so many pairs at once, their time and memory.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@megaplane/base/free-port.sim';
import { adopt } from './children.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import { cpuSeconds, machine, median, printTable, ROOT, writeResults } from './harness.ts';

const values = flagsOf({
  runs: { type: 'string', default: '5' },
  parallel: { type: 'string', default: '0' },
  assets: { type: 'string' },
  real: { type: 'string' },
  output: { type: 'string' },
});
const { runs, parallel } = wholeNumbers(values, { runs: 1, parallel: 0 });

const LOOK_MS = 10;
const READY_MS_MAX = 120_000;
const REST_MS = 2000;

interface Pair {
  readonly startMs: number;
  readonly children: readonly ChildProcess[];
  stop(): Promise<number>;
}

interface Run {
  readonly startMs: number;
  readonly stopMs: number;
  readonly cpuSeconds: number;
  readonly etcdMib: number;
  readonly serverMib: number;
}

const folder = mkdtempSync(join(tmpdir(), 'megaplane-bench-envtest-'));
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const keyFile = join(folder, 'sa.key');
writeFileSync(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });

async function answers(url: string): Promise<boolean> {
  const send = url.startsWith('https:') ? secureRequest : plainRequest;
  return new Promise((resolve) => {
    const sent = send(url, { agent: false, rejectUnauthorized: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode === 200));
    });
    sent.on('error', () => resolve(false));
    sent.end();
  });
}

async function healthy(url: string, child: ChildProcess): Promise<void> {
  const endMs = performance.now() + READY_MS_MAX;
  while (!(await answers(url))) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${url}`);
    if (performance.now() > endMs) throw new Error(`not healthy within ${READY_MS_MAX} ms: ${url}`);
    await sleep(LOOK_MS);
  }
}

async function startPair(assets: string): Promise<Pair> {
  const dir = mkdtempSync(join(folder, 'pair-'));
  mkdirSync(join(dir, 'certs'));
  const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
  const [url, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
  const start = (name: string, ...flags: string[]): ChildProcess =>
    adopt(spawn(join(assets, name), flags, { stdio: 'ignore' }));
  const startMs = performance.now();
  const etcd = start(
    'etcd',
    ...[`--advertise-client-urls=${url}`, `--listen-client-urls=${url}`],
    ...[`--listen-peer-urls=${peers}`, `--data-dir=${join(dir, 'etcd')}`, '--unsafe-no-fsync=true'],
  );
  await healthy(`${url}/health`, etcd);
  const server = start(
    'kube-apiserver',
    ...['--allow-privileged=true', '--authorization-mode=RBAC', '--bind-address=127.0.0.1'],
    ...[`--cert-dir=${join(dir, 'certs')}`, '--disable-admission-plugins=ServiceAccount'],
    ...[`--etcd-servers=${url}`, `--secure-port=${secure}`],
    ...['--service-account-issuer=https://127.0.0.1/', `--service-account-key-file=${keyFile}`],
    ...[`--service-account-signing-key-file=${keyFile}`, '--service-cluster-ip-range=10.0.0.0/24'],
  );
  await healthy(`https://127.0.0.1:${secure}/healthz`, server);
  const stop = async (): Promise<number> => {
    const fromMs = performance.now();
    for (const child of [server, etcd]) {
      const exited = child.exitCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGTERM');
      await exited;
    }
    rmSync(dir, { recursive: true, force: true });
    return performance.now() - fromMs;
  };
  return { startMs: performance.now() - startMs, children: [etcd, server], stop };
}

/** Shared pages in parts: the kernel's proportional set size. */
function shareMib(pid: number | undefined): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1]) / 1024;
}

async function runOnce(assets: string): Promise<Run> {
  const pair = await startPair(assets);
  const [etcd, server] = pair.children.map(({ pid }) => pid ?? 0);
  const seconds = cpuSeconds(etcd ?? 0) + cpuSeconds(server ?? 0);
  await sleep(REST_MS);
  const [etcdMib, serverMib] = [shareMib(etcd), shareMib(server)];
  const stopMs = await pair.stop();
  return { startMs: pair.startMs, stopMs, cpuSeconds: seconds, etcdMib, serverMib };
}

async function runMany(assets: string): Promise<{ readonly ms: number; readonly mib: number }> {
  const startMs = performance.now();
  const pairs = await Promise.all(Array.from({ length: parallel }, () => startPair(assets)));
  const ms = performance.now() - startMs;
  await sleep(REST_MS);
  const all = pairs.flatMap(({ children }) => children);
  const mib = all.reduce((sum, { pid }) => sum + shareMib(pid), 0);
  await Promise.all(pairs.map((pair) => pair.stop()));
  return { ms, mib };
}

function madeAssets(): string {
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const made = spawnSync(process.execPath, [entry, 'envtest'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (made.status !== 0) throw new Error(`envtest ended with ${made.status}`);
  return made.stdout.toString().trim();
}

const sides: (readonly [name: string, assets: string])[] = [
  ['ours', values.assets ?? madeAssets()],
];
if (values.real !== undefined) sides.push(['real', values.real]);
const found = new Map<string, Run[]>(sides.map(([name]) => [name, []]));
const manyOf: Record<string, { readonly ms: number; readonly mib: number }> = {};
try {
  for (let run = 0; run < runs; run++) {
    for (const [name, assets] of sides) found.get(name)?.push(await runOnce(assets));
  }
  if (parallel > 0) for (const [name, assets] of sides) manyOf[name] = await runMany(assets);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const COLUMNS = [
  ['start ms', (run: Run) => run.startMs],
  ['processor ms', (run: Run) => run.cpuSeconds * 1000],
  ['stop ms', (run: Run) => run.stopMs],
  ['etcd MiB', (run: Run) => run.etcdMib],
  ['kube-apiserver MiB', (run: Run) => run.serverMib],
] as const;
const middle = (name: string, read: (run: Run) => number): number =>
  median((found.get(name) ?? []).map(read));
process.stdout.write(`${machine()}; medians of ${runs}\n`);
const rows = sides.map(([name]) => [
  name,
  ...COLUMNS.map(([, read]) => middle(name, read).toFixed(0)),
]);
if (sides.length > 1) {
  const ratios = COLUMNS.map(([, read]) =>
    (middle('ours', read) / middle('real', read)).toFixed(2),
  );
  rows.push(['ours / real', ...ratios]);
}
printTable(['', ...COLUMNS.map(([name]) => name)], rows);
for (const [name, { ms, mib }] of Object.entries(manyOf)) {
  process.stdout.write(
    `${name}: ${parallel} pairs at once ${ms.toFixed(0)} ms, ${mib.toFixed(0)} MiB\n`,
  );
}
writeResults(values.output, { runs: Object.fromEntries(found), parallel: manyOf });
