/**
 * Records the terminal of the first page: `node tools/recording.ts` runs the commands for real and
 * writes `docs/pictures/terminal.svg`. It wants kubectl.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { terminalSvg, type Line } from './site/terminal.ts';

const ROOT = join(import.meta.dirname, '..');
const COMMANDS = [
  'npx megaplane up --nodes 10000 --data-dir ./cluster',
  'export KUBECONFIG=$PWD/cluster/kubeconfig',
  'kubectl get nodes | head -n 4',
  'kubectl create deployment web --image=web --replicas=500',
  'kubectl rollout status deployment/web | tail -n 1',
  'kubectl get pods -o wide | head -n 4 | cut -c 1-90',
  'npx megaplane nodes chaos kill --kubeconfig ./cluster/kubeconfig --zone zone-a --for 5m',
  'kubectl get componentstatuses 2>/dev/null',
] as const;
/** Between the end of one command and the next, for who reads. */
const PAUSE_MS = 900;

const dir = mkdtempSync(join(tmpdir(), 'megaplane-recording-'));
mkdirSync(join(dir, 'node_modules/.bin'), { recursive: true });
symlinkSync(join(ROOT, 'packages/cli/bin/megaplane.cjs'), join(dir, 'node_modules/.bin/megaplane'));
const places = [join(dir, 'node_modules/.bin'), dirname(process.execPath), process.env['PATH']];
const PATH = places.join(':');
const env = { ...process.env, PATH, HOME: dir, KUBECONFIG: join(dir, 'cluster/kubeconfig') };
const lines: Line[] = [];
let nowMs = 0;

/** Runs one command and takes down what it writes; resolves at its end, or once it stands. */
async function record(command: string): Promise<ChildProcess> {
  lines.push({ atMs: nowMs, text: `$ ${command}`, isTyped: true });
  const startMs = performance.now();
  const child = spawn('bash', ['-c', command.replace('npx megaplane up', 'exec megaplane up')], {
    ...{ cwd: dir, env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { promise: stands, resolve } = Promise.withResolvers<void>();
  const beganMs = nowMs;
  createInterface({ input: child.stdout }).on('line', (text) => {
    nowMs = beganMs + performance.now() - startMs;
    lines.push({ atMs: nowMs, text: text.replaceAll(dir, '/home/me'), isTyped: false });
    if (text.startsWith('Ctrl-C')) resolve();
  });
  await Promise.race([once(child, 'close'), stands]);
  nowMs = beganMs + performance.now() - startMs + PAUSE_MS;
  return child;
}

const [first, ...others] = COMMANDS;
const cluster = await record(first);
try {
  for (const command of others) await record(command);
} finally {
  cluster.kill('SIGINT');
  await once(cluster, 'exit');
  rmSync(dir, { recursive: true, force: true });
}
mkdirSync(join(ROOT, 'docs/pictures'), { recursive: true });
writeFileSync(
  join(ROOT, 'docs/pictures/terminal.svg'),
  terminalSvg('megaplane up and kubectl in a terminal', lines),
);
