// Each query of a dashboard or rule asks for what the programs, while they run, do show.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { request } from 'node:http';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { startCluster } from '../packages/cli/test/cluster.ts';
import { DASHBOARDS } from './monitoring/dashboards.ts';
import type { Part } from './monitoring/panels.ts';
import { grafanaJson } from './monitoring/grafana.ts';
import { askedBy, shownBy } from './monitoring/queries.ts';

const ROOT = join(import.meta.dirname, '..');
const ENTRY = join(ROOT, 'packages/cli/src/main.ts');
const RULES = join(ROOT, 'deploy/prometheus/megaplane.rules.yaml');
const folder = mkdtempSync(join(tmpdir(), 'megaplane-dashboards-'));
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Rule {
  readonly alert?: string;
  readonly expr: string;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

const rules = (parse(readFileSync(RULES, 'utf8')) as RuleFile).groups;

test('the files for Grafana are those of the source', () => {
  for (const dashboard of DASHBOARDS) {
    const file = join(ROOT, `deploy/grafana/megaplane-${dashboard.name}.json`);
    const made = readFileSync(file, 'utf8');
    assert.equal(made, grafanaJson(dashboard), 'node_modules/.bin/node tools/dashboards.ts');
  }
});

test('a query is read with the labels that it wants of each metric', () => {
  const found = askedBy(
    'sum by (code) (rate(a{verb="GET",instance="x"}[$__rate_interval])) / b{x=~"1|2"}',
  ).map(({ metric, labels }) => [metric, ...[...labels].sort()]);
  assert.deepEqual(found, [
    ['a', 'code', 'verb'],
    ['b', 'x'],
  ]);
  assert.throws(() => askedBy('sum by (code'));
});

/** Starts a command and resolves with what its ready line says. */
function starts(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('ready in ')) resolve(line);
    });
    child.once('exit', (code) => reject(new Error(`${args.join(' ')}: ${code}: ${errors}`)));
  });
}

async function page(url: string): Promise<string> {
  const answer = await fetch(`${url}/metrics`);
  assert.equal(answer.status, 200, url);
  return answer.text();
}

/** Looks until there is something; what never comes is ended by the test's own time. */
async function until<Found>(look: () => Promise<Found | undefined>): Promise<Found> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(200);
  }
}

/** Asks an API server over its socket, whose owner is administrator. */
function ask(socketPath: string, method: string, path: string, body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const asked = request({ socketPath, method, path, headers }, (answer) => {
      resolve(text(answer));
    });
    asked.on('error', reject).end(body);
  });
}

async function pagesOfCluster(): Promise<ReadonlyMap<Part, string>> {
  const cluster = await startCluster(['--nodes', '2', '--pods', '3']);
  const socket = join(cluster.dataDir, 'apiserver.sock');
  const at = (part: Part): string => {
    const log = readFileSync(join(cluster.dataDir, 'logs', `${part}.log`), 'utf8');
    return /metrics (http:\/\/[\d.]+:\d+)/.exec(log)?.[1] ?? '';
  };
  const found = (part: Part, sign: RegExp): Promise<string> =>
    until(async () => {
      const shown = await page(at(part));
      return sign.test(shown) ? shown : undefined;
    });
  try {
    const containers = [{ name: 'c', image: 'i', resources: { requests: { cpu: '5k' } } }];
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'wide' }, spec: { containers } };
    const pods = '/api/v1/namespaces/default/pods';
    await ask(socket, 'POST', pods, JSON.stringify(pod));
    return new Map<Part, string>([
      ['scheduler', await found('scheduler', /scheduler_unschedulable_pods\{/)],
      ['controllers', await found('controllers', /node_collector_evictions_total\{/)],
      ['nodes', await found('nodes', /megaplane_lease_renewals_total [1-9]/)],
      ['apiserver', await ask(socket, 'GET', '/metrics')],
    ]);
  } finally {
    await cluster.remove();
  }
}

async function pageOfStore(): Promise<string> {
  const flags = ['--data-dir', join(folder, 'store'), '--listen-client-urls', 'http://127.0.0.1:0'];
  const url = /http:\/\/[\d.]+:\d+/.exec(await starts('store', ...flags))?.[0] ?? '';
  const put = { method: 'POST', body: JSON.stringify({ key: 'YQ==', value: 'Yg==' }) };
  assert.equal((await fetch(`${url}/v3/kv/put`, put)).status, 200);
  return page(url);
}

async function pageOfFleet(): Promise<string> {
  const catalogue = join(folder, 'catalogue.yaml');
  const offer = '{ instanceType: m, zones: [a], capacityType: OnDemand, slots: 2, price: 1, ';
  writeFileSync(catalogue, `offers:\n  - ${offer}resources: { cpu: 4, memory: 16Gi } }\n`);
  const provider = ['fleet', 'provider', 'simulate', '--catalogue', catalogue];
  const line = await starts(...provider, '--listen', '127.0.0.1:0');
  const address = /127\.0\.0\.1:\d+/.exec(line)?.[0] ?? '';
  const shard = ['fleet', 'shard', '--shard-id', 's', '--provider-addr', address];
  const places = ['--data-dir', join(folder, 'shard'), '--listen', '127.0.0.1:0'];
  const ready = await starts(...shard, ...places, '--metrics-address', '127.0.0.1:0');
  const url = /metrics on (http:\/\/[\d.]+:\d+)/.exec(ready)?.[1] ?? '';
  return until(async () => {
    const shown = await page(url);
    return shown.includes('bigfleet_shard_inventory_machines{') ? shown : undefined;
  });
}

test('the programs show every metric and label that is asked for', async () => {
  const [ofCluster, store, fleet] = await Promise.all([
    pagesOfCluster(),
    pageOfStore(),
    pageOfFleet(),
  ]);
  const pages = new Map<string, string>([...ofCluster, ['store', store], ['fleet', fleet]]);
  const questions = [
    ...DASHBOARDS.flatMap(({ name, sign, rows }) => [
      { part: name, where: 'instances', query: sign, legend: '' },
      ...rows.flatMap(({ panels }) =>
        panels.flatMap(({ title, queries }) =>
          Object.entries(queries).map(([legend, query]) => {
            return { part: name, where: title, query, legend };
          }),
        ),
      ),
    ]),
    ...rules.flatMap((group) =>
      group.rules.map(({ alert = 'a record', expr }) => {
        const part = group.name.replace('megaplane-', '');
        return { part, where: alert, query: expr, legend: '' };
      }),
    ),
  ];
  const missing: string[] = [];
  for (const { part, where, query, legend } of questions) {
    const shown = shownBy(pages.get(part) ?? '');
    const inLegend = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    for (const { metric, labels } of askedBy(query)) {
      const known = shown.get(metric);
      if (known === undefined) missing.push(`${part}, ${where}: no ${metric}`);
      const wanted = new Set([...labels, ...inLegend.filter((label) => label !== 'instance')]);
      for (const label of wanted) {
        if (known !== undefined && !known.has(label)) {
          missing.push(`${part}, ${where}: ${metric} has no ${label}`);
        }
      }
    }
  }
  assert.deepEqual(missing, []);
});

test('promtool takes the rules', (t) => {
  const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', RULES], {
    encoding: 'utf8',
  });
  if (error !== undefined) {
    t.skip('no promtool: apt-get install prometheus');
    return;
  }
  assert.equal(status, 0, `${stdout}${stderr}`);
});
