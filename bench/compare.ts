/**
 * The same work on ours and on the real programs, where they are found on PATH or named: the store
 * beside etcd, the API server beside kube-apiserver (`--peer FILE`), the scheduler beside
 * kube-scheduler (`--scheduler FILE`), the simulated nodes beside kwok (`--kwok FILE`). Prints the
 * ratios, how many times as much ours does, and writes them as a page with `--html FILE`. What is
 * not found is named and left out.
 *
 *     node bench/compare.ts --html compare.html
 *     node bench/compare.ts --only scheduler,nodes --scheduler ./kube-scheduler --kwok ./kwok
 *     node bench/compare.ts --peer ./kube-apiserver --leases 2000 --pods 2000 --runs 1
 *
 * Each server has core 0 for itself, the client core 1; the median of the runs counts.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@megaplane/client/client';
import * as load from './apiserver-load.ts';
import { schedulerRates, simulatorRates, type Rates } from './compare-programs.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as harness from './harness.ts';
import { usage } from './load/flags.ts';
import { startKubeApiserver } from './kube-apiserver.ts';

const values = flagsOf({
  peer: { type: 'string' },
  scheduler: { type: 'string' },
  kwok: { type: 'string' },
  /** Parts, with commas: store, apiserver, scheduler, nodes. */
  only: { type: 'string', default: '' },
  leases: { type: 'string', default: '10000' },
  pods: { type: 'string', default: '5000' },
  keys: { type: 'string', default: '100000' },
  seconds: { type: 'string', default: '3' },
  runs: { type: 'string', default: '3' },
  html: { type: 'string' },
  output: { type: 'string' },
});
const given = wholeNumbers(values, { leases: 1, pods: 1, keys: 1, seconds: 1, runs: 1 });
const CLIENT_CORE = 1;
const STORE_MODES = 'put,update,get,page';

/** One figure of both, more being better. */
interface Line {
  readonly part: string;
  readonly what: string;
  readonly ours: number;
  readonly theirs: number;
}

function found(program: string): string | undefined {
  const path = spawnSync('sh', ['-c', 'command -v "$0"', program]).stdout.toString().trim();
  return path === '' ? undefined : path;
}

/** The store beside etcd, by the benchmark that compares them. */
function storeLines(): Line[] {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-compare-'));
  const file = join(dir, 'store.json');
  const flags = ['--modes', STORE_MODES, '--runs', values.runs, '--keys', values.keys];
  const program = join(import.meta.dirname, 'store.ts');
  const args = [program, ...flags, '--seconds', values.seconds, '--output', file];
  try {
    const { status } = spawnSync(process.execPath, args, {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (status !== 0) throw new Error(`bench store ended with ${status}`);
    const { runs } = JSON.parse(readFileSync(file, 'utf8')) as { readonly runs: readonly Run[] };
    const modes = [...new Set(runs.map(({ mode }) => mode))];
    return modes.flatMap((mode) => {
      const names = Object.keys(runs.find((run) => run.mode === mode)?.figures ?? {});
      const figure = (server: string, name: string): number =>
        harness.median(
          runs
            .filter((run) => run.mode === mode && run.server === server)
            .map(({ figures }) => figures[name] ?? NaN),
        );
      return names
        .filter((name) => /\/s|per/.test(name))
        .map((name) => ({
          part: 'store',
          what: `${mode}: ${name}`,
          ours: figure('megaplane', name),
          theirs: figure('etcd', name),
        }));
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
}

interface Run {
  readonly server: string;
  readonly mode: string;
  readonly figures: Readonly<Record<string, number>>;
}

/** What an API server does of the same work, per second of its (and its etcd's) processor. */
async function ratesOf(start: (dir: string) => Promise<load.Started>): Promise<Rates> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-compare-'));
  const server = await start(dir);
  const clients = await load.openClients(server.kubeconfig, 1, 4, 400);
  const rates = new Map<string, number>();
  const note = async (what: string, count: number, work: () => Promise<void>): Promise<void> => {
    const rate = await load.rateOf(server.pids, count, work);
    rates.set(`${what}, by the clock`, rate.perSecond);
    rates.set(`${what}, per processor second`, rate.perCpuSecond);
  };
  try {
    const leases = new load.Leases(given.leases);
    const shoot = (count: number, shotOf: (index: number) => load.Shot): Promise<void> =>
      load.shoot(clients, count, shotOf);
    const renew = (): Promise<void> =>
      load.shoot(clients, given.leases, (index) => leases.shot(index), leases.seen);
    await note('leases created', given.leases, renew);
    await note('leases renewed', given.leases, renew);
    await makeAccount(clients[0]);
    await note('pods created', given.pods, () => shoot(given.pods, load.podShot));
    const read = (index: number): load.Shot => {
      return { method: 'GET', path: `${load.PODS}/pod-${index}`, type: '', body: null };
    };
    await note('pods read', given.pods, () => shoot(given.pods, read));
    const list: load.Shot = { method: 'GET', path: load.PODS, type: '', body: null };
    await note('pods listed', given.pods * 3, () => shoot(3, () => list));
    return rates;
  } finally {
    for (const client of clients) client.close();
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Pods want it, and no controller makes it here. */
async function makeAccount(client: Client | undefined): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  const path = '/api/v1/namespaces/default/serviceaccounts';
  const made = await client?.request({ method: 'POST', path, body });
  if (made?.ok === false && made.code !== 409) throw new Error(made.status.message ?? path);
}

async function ours(dir: string): Promise<load.Started> {
  const server = await harness.startMegaplane(
    ['apiserver', '--data-dir', dir, '--secure-port', '0'],
    0,
  );
  return { ...server, pids: [server.pid], kubeconfig: join(dir, 'kubeconfig') };
}

async function serverLines(peer: string): Promise<Line[]> {
  return linesOf(
    'API server',
    () => ratesOf(ours),
    () => ratesOf((dir) => startKubeApiserver(peer, dir, 0)),
  );
}

/** Both in turns, and the median of each figure. */
async function linesOf(
  name: string,
  ourRates: () => Promise<Rates>,
  theirRates: () => Promise<Rates>,
): Promise<Line[]> {
  const all: { readonly ours: Rates; readonly theirs: Rates }[] = [];
  for (let run = 0; run < given.runs; run++) {
    all.push({ ours: await ourRates(), theirs: await theirRates() });
  }
  const names = [...(all[0]?.ours.keys() ?? [])];
  return names.map((what) => ({
    part: name,
    what,
    ours: harness.median(all.map((run) => run.ours.get(what) ?? NaN)),
    theirs: harness.median(all.map((run) => run.theirs.get(what) ?? NaN)),
  }));
}

function shown(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : '-';
}

function times({ ours: one, theirs }: Line): string {
  const ratio = one / theirs;
  return Number.isFinite(ratio) ? `${ratio.toFixed(ratio < 10 ? 1 : 0)} x` : '-';
}

function page(lines: readonly Line[], missing: readonly string[]): string {
  const cell = (text: string): string =>
    `<td>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</td>`;
  const rows = lines.map((line) => {
    const cells = [line.part, line.what, shown(line.ours), shown(line.theirs), times(line)];
    return `<tr>${cells.map(cell).join('')}</tr>`;
  });
  const heads = ['part', 'work', 'ours', 'theirs', 'times'].map((one) => `<th>${one}</th>`);
  const style =
    'body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:40px auto;padding:0 16px}' +
    'table{border-collapse:collapse;width:100%}td,th{padding:6px 12px;text-align:right;' +
    'border-bottom:1px solid #8884}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}';
  return `<!doctype html><meta charset="utf-8"><title>Megaplane beside the real programs</title>
<meta name="color-scheme" content="light dark"><style>${style}</style>
<h1>Beside the real programs</h1>
<p>${harness.machine()}. More is better; the median of ${given.runs}.</p>
<table><thead><tr>${heads.join('')}</tr></thead><tbody>${rows.join('\n')}</tbody></table>
${missing.map((one) => `<p>${one}</p>`).join('')}
`;
}

/** A part that fails is named, and the others go on. */
async function part(name: string, measure: () => Promise<readonly Line[]>): Promise<void> {
  try {
    lines.push(...(await measure()));
  } catch (error) {
    missing.push(`${name}: ${(error as Error).message}`);
  }
}

const missing: string[] = [];
const lines: Line[] = [];
const PARTS = ['store', 'apiserver', 'scheduler', 'nodes'] as const;
const wanted = values.only === '' ? [...PARTS] : values.only.split(',');
for (const name of wanted) {
  if (!PARTS.some((one) => one === name)) usage(`--only: ${name} is none of ${PARTS.join(', ')}`);
}
const etcd = found('etcd');
if (wanted.includes('store')) {
  if (etcd === undefined) missing.push('etcd is not found (apt-get install etcd-server): left out');
  else await part('store', async () => storeLines());
}
// the store's benchmark pins its own children
harness.pinSelf(CLIENT_CORE);
if (wanted.includes('apiserver')) {
  const peer = values.peer ?? found('kube-apiserver');
  if (peer === undefined || etcd === undefined) {
    missing.push('kube-apiserver with etcd is not found (on PATH, or --peer FILE): left out');
  } else await part('API server', () => serverLines(peer));
}
if (wanted.includes('scheduler')) {
  const peer = values.scheduler ?? found('kube-scheduler');
  const rates = (program?: string): Promise<Rates> => schedulerRates(program, given.pods);
  if (peer === undefined) {
    missing.push('kube-scheduler is not found (on PATH, or --scheduler FILE): left out');
  } else await part('scheduler', () => linesOf('scheduler', rates, () => rates(peer)));
}
if (wanted.includes('nodes')) {
  const peer = values.kwok ?? found('kwok');
  const rates = (program?: string): Promise<Rates> => simulatorRates(program, given.pods);
  if (peer === undefined) missing.push('kwok is not found (on PATH, or --kwok FILE): left out');
  else await part('nodes', () => linesOf('nodes', rates, () => rates(peer)));
}
for (const one of missing) process.stderr.write(`${one}\n`);
if (lines.length === 0) throw new Error('there is nothing to compare with');
process.stdout.write(`${harness.machine()}\n`);
harness.printTable(
  ['part', 'work', 'ours', 'theirs', 'times'],
  lines.map((line) => [line.part, line.what, shown(line.ours), shown(line.theirs), times(line)]),
);
if (values.html !== undefined) writeFileSync(values.html, page(lines, missing));
harness.writeResults(values.output, { lines, missing });
