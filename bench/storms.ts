/**
 * A cluster in bad weather: in the middle of registering nodes, of scaling a Deployment up and to
 * zero, of rest, of a DaemonSet's start and its rollout, and of a namespace's deletion, the API
 * server answers nothing but 429, or 500, or 403, is slow, loses its connections, is killed and
 * started again, or the clocks of all other programs are set. Nothing may be lost, and nobody may
 * ask for one object more often than `--most` times a minute.
 *
 *     node bench/storms.ts --nodes 5000 --pods 5000 --seconds 30 --weather throttle,restart
 *
 * All programs but the API server reach it through a proxy that makes the weather and counts.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@megaplane/base/free-port.sim';
import { CONTENT } from '@megaplane/client/client';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { flagsOf, namesOf, wholeNumbers } from './flags.ts';
import { cpuSeconds, machine, printTable, startMegaplane, type Server } from './harness.ts';
import { StormProxy, WEATHERS } from './load/storm-proxy.ts';

const ALL = [...WEATHERS, 'restart', 'forward', 'back'] as const;
const STEPS = ['nodes', 'up', 'rest', 'zero', 'daemons', 'rollout', 'namespace'] as const;
type Storm = (typeof ALL)[number];

const values = flagsOf({
  nodes: { type: 'string', default: '1000' },
  pods: { type: 'string', default: '1000' },
  /** How long the weather is bad. */
  seconds: { type: 'string', default: '30' },
  /** Of: throttle fail refuse slow cut restart forward back. */
  weather: { type: 'string', default: ALL.join(',') },
  /** Of: nodes up rest zero daemons rollout namespace. */
  steps: { type: 'string', default: STEPS.join(',') },
  /** Requests for one object by one verb within a minute that are bearable. */
  most: { type: 'string', default: '30' },
  /** More flags of the simulator. */
  simulator: { type: 'string', default: '' },
  'give-up': { type: 'string', default: '240' },
});
const given = wholeNumbers(values, { nodes: 1, pods: 1, seconds: 1, most: 1, 'give-up': 1 });
const chosen = namesOf('weather', values.weather, ALL);
const steps = namesOf('steps', values.steps, STEPS);

/** How far clocks are set. */
const SET_MS = 3 * 3_600_000;
const DAEMONS = '/apis/apps/v1/namespaces/default/daemonsets/web';
/** A namespace that is deleted. */
const DOOMED = 'doomed';
/** Sets the wall clock of a program by a signal, as somebody sets the machine's. */
const CLOCK = `data:text/javascript,${encodeURIComponent(`
  const real = Date.now; let by = 0;
  const Real = Date;
  Date.now = () => real() + by;
  globalThis.Date = class extends Real {
    constructor(...given) { given.length === 0 ? super(real() + by) : super(...given); }
  };
  process.on('SIGUSR2', () => { by = by === 0 ? Number(process.env.SET_MS) : 0; });
`)}`;

interface Row {
  readonly storm: Storm;
  readonly step: string;
  readonly seconds: number;
  readonly requests: number;
  readonly mostInSecond: number;
  readonly mostForOne: number;
  readonly worst: string;
  readonly fault: string;
}

/** What the proxy shows; the programs do not look at it. */
function selfSigned(dir: string): { readonly certificate: string; readonly key: string } {
  const [key, certificate] = [join(dir, 'storm.key'), join(dir, 'storm.crt')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const files = ['-keyout', key, '-out', certificate, '-subj', '/CN=storm', '-days', '1'];
  const made = spawnSync('openssl', ['req', '-x509', ...kind, ...files]);
  if (made.status !== 0) throw new Error(`openssl makes no certificate: ${made.stderr.toString()}`);
  return { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') };
}

class Cluster {
  readonly rows: Row[] = [];
  readonly #dir: string;
  readonly #storm: Storm;
  #port = 0;
  #server: Server | null = null;
  #proxy: StormProxy | null = null;
  #client: KubeClient | null = null;
  readonly #programs: Server[] = [];

  constructor(dir: string, storm: Storm) {
    this.#dir = dir;
    this.#storm = storm;
  }

  async start(): Promise<void> {
    this.#port = await freePort();
    await this.#serve();
    const kubeconfig = join(this.#dir, 'kubeconfig');
    this.#client = await createKubeClient({ kubeconfig });
    const { tls } = this.#client.endpoint;
    const upstream = {
      url: this.#client.server,
      ca: readFileSync(join(this.#dir, 'pki', 'ca.crt'), 'utf8'),
      cert: String(tls?.cert),
      key: String(tls?.key),
    };
    this.#proxy = new StormProxy({ ...selfSigned(this.#dir), upstream });
    const port = await this.#proxy.listen();
    const cluster = { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
    const through = {
      clusters: [{ name: 'storm', cluster }],
      users: [{ name: 'storm', user: { token: 'none' } }],
      contexts: [{ name: 'storm', context: { cluster: 'storm', user: 'storm' } }],
      'current-context': 'storm',
    };
    const file = join(this.#dir, 'storm.kubeconfig');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...through }));
    const isClock = this.#storm === 'forward' || this.#storm === 'back';
    process.env['SET_MS'] = String(this.#storm === 'back' ? -SET_MS : SET_MS);
    const flags = isClock ? ['--import', CLOCK] : [];
    const run = async (args: readonly string[]): Promise<void> => {
      const all = [...args, '--kubeconfig', file];
      this.#programs.push(await startMegaplane(all, '0,1', flags));
    };
    const metrics = ['--metrics-address', '127.0.0.1:0'];
    await run(['controllers', '--leader-elect=false', ...metrics]);
    await run(['scheduler', '--leader-elect=false', ...metrics]);
    const more = values.simulator === '' ? [] : values.simulator.split(' ');
    const nodes = ['nodes', '--create', values.nodes, '--server-address', '127.0.0.1:0', ...more];
    await run(nodes);
  }

  async #serve(): Promise<void> {
    const flags = ['--data-dir', this.#dir, '--secure-port', String(this.#port)];
    this.#server = await startMegaplane(['apiserver', ...flags], '0,1');
  }

  async stop(): Promise<void> {
    for (const program of this.#programs) await program.stop();
    this.#client?.close();
    this.#proxy?.close();
    await this.#server?.stop();
  }

  async #ask(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: JsonObject,
  ): Promise<JsonObject> {
    const contentType = method === 'PATCH' ? CONTENT.mergePatch : CONTENT.json;
    const answer = await this.#client!.request({
      ...{ method, path, contentType },
      ...(body === undefined ? {} : { body }),
    });
    if (answer.ok) return answer.object;
    throw new Error(`${method} ${path}: ${answer.status.message}`);
  }

  /** Bad weather begins when `isMiddle`; it is over when `isDone` says so after it. */
  async step(
    name: string,
    begin: () => Promise<unknown>,
    count: () => Promise<number>,
    goal: number,
  ) {
    this.#proxy!.take();
    const startMs = performance.now();
    const endMs = startMs + given['give-up'] * 1000;
    const cpu = this.#programs.map(({ pid }) => cpuSeconds(pid));
    await begin();
    const from = await count();
    const middle = Math.abs(goal - from) / 3;
    while (Math.abs((await count()) - from) < middle && performance.now() < endMs) await sleep(50);
    await this.#blow();
    const calmMs = performance.now();
    while ((await count()) !== goal && performance.now() < endMs) await sleep(200);
    const found = await count();
    const afterS = (performance.now() - calmMs) / 1000;
    const fault = found === goal ? '' : `${found} of ${goal}`;
    const seconds = (performance.now() - startMs) / 1000;
    const used = this.#programs.map(({ pid }, at) => cpuSeconds(pid) - (cpu[at] ?? 0));
    process.stderr.write(
      `${this.#storm} ${name}: ${seconds.toFixed(1)} s, ${afterS.toFixed(1)} s after the storm, ` +
        `CPU ${used.map((one) => one.toFixed(1)).join(' ')} ${fault}\n`,
    );
    this.rows.push({ storm: this.#storm, step: name, seconds, ...this.#proxy!.take(), fault });
  }

  async #blow(): Promise<void> {
    const pauseMs = given.seconds * 1000;
    switch (this.#storm) {
      case 'restart': {
        process.kill(this.#server!.pid, 'SIGKILL');
        await sleep(pauseMs / 3);
        return this.#serve();
      }
      case 'forward':
      case 'back': {
        for (const { pid } of this.#programs) process.kill(pid, 'SIGUSR2');
        await sleep(pauseMs);
        for (const { pid } of this.#programs) process.kill(pid, 'SIGUSR2');
        return sleep(pauseMs / 3);
      }
      case 'throttle':
      case 'fail':
      case 'refuse':
      case 'slow':
      case 'cut': {
        this.#proxy!.turn(this.#storm);
        await sleep(pauseMs);
        this.#proxy!.turn(null);
      }
    }
  }

  async readyNodes(): Promise<number> {
    let count = 0;
    let more = '';
    do {
      const path = `/api/v1/nodes?limit=5000${more === '' ? '' : `&continue=${more}`}`;
      const page = await this.#ask('GET', path);
      for (const node of listAt(page, 'items')) {
        const conditions = listAt(node, 'status', 'conditions');
        const ready = conditions.find((one) => stringAt(one, 'type') === 'Ready');
        if (stringAt(ready, 'status') === 'True' && listAt(node, 'spec', 'taints').length === 0) {
          count++;
        }
      }
      more = stringAt(page, 'metadata', 'continue');
    } while (more !== '');
    return count;
  }

  /** Leases that were renewed within the last 20 s, by the machine's clock. */
  async freshLeases(): Promise<number> {
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const list = await this.#ask('GET', path);
    const ages = listAt(list, 'items').map(
      (lease) => Date.now() - Date.parse(stringAt(lease, 'spec', 'renewTime')),
    );
    return ages.filter((ageMs) => ageMs < 20_000).length;
  }

  async make(kind: 'Deployment' | 'DaemonSet', namespace: string, more: JsonObject) {
    const labels = { app: kind };
    const containers = [{ name: 'c', image: 'img:1' }];
    const template = { metadata: { labels }, spec: { containers } };
    await this.#ask('POST', `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`, {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name: 'web' },
      spec: { selector: { matchLabels: labels }, template, ...more },
    });
  }

  async roll(): Promise<void> {
    const template = { metadata: { annotations: { v: '2' } } };
    await this.#ask('PATCH', DAEMONS, { spec: { template } });
  }

  /** Daemons of the template as it is now that are ready. */
  async daemons(): Promise<number> {
    const set = await this.#ask('GET', DAEMONS);
    const of = (field: string): number => numberAt(set, 'status', field);
    if (of('observedGeneration') !== numberAt(set, 'metadata', 'generation')) return 0;
    return Math.min(of('updatedNumberScheduled'), of('numberReady'));
  }

  async fillNamespace(): Promise<void> {
    await this.#ask('POST', '/api/v1/namespaces', {
      ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: DOOMED } },
    });
    await this.make('Deployment', DOOMED, { replicas: given.pods });
    for (let at = 0; at < given.pods; at++) {
      const metadata = { name: `c${at}` };
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
      await this.#ask('POST', `/api/v1/namespaces/${DOOMED}/configmaps`, body);
    }
    while ((await this.runningPods(DOOMED)) < given.pods) await sleep(200);
  }

  async deleteNamespace(): Promise<void> {
    await this.#ask('DELETE', `/api/v1/namespaces/${DOOMED}`);
  }

  /** What is left of it, and itself. */
  async doomed(): Promise<number> {
    const client = this.#client!;
    const self = await client.request({ method: 'GET', path: `/api/v1/namespaces/${DOOMED}` });
    if (self.code === 404) return 0;
    return 1 + (await this.count(DOOMED, 'pods')) + (await this.count(DOOMED, 'configmaps'));
  }

  async scale(replicas: number): Promise<void> {
    const path = '/apis/apps/v1/namespaces/default/deployments/web';
    await this.#ask('PATCH', path, { spec: { replicas } });
  }

  async runningPods(namespace = 'default'): Promise<number> {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
    return numberAt(await this.#ask('GET', path), 'status', 'readyReplicas');
  }

  async count(namespace: string, plural: string): Promise<number> {
    const list = await this.#ask('GET', `/api/v1/namespaces/${namespace}/${plural}?limit=1`);
    const rest = numberAt(list, 'metadata', 'remainingItemCount');
    return listAt(list, 'items').length + rest;
  }
}

async function playMore(cluster: Cluster): Promise<void> {
  const updateStrategy = { rollingUpdate: { maxUnavailable: '34%' } };
  const make = (): Promise<void> => cluster.make('DaemonSet', 'default', { updateStrategy });
  const daemons = (): Promise<number> => cluster.daemons();
  if (steps.includes('daemons')) await cluster.step('daemons', make, daemons, given.nodes);
  const roll = (): Promise<void> => cluster.roll();
  if (steps.includes('rollout')) await cluster.step('rollout', roll, daemons, given.nodes);
  if (!steps.includes('namespace')) return;
  await cluster.fillNamespace();
  const go = (): Promise<void> => cluster.deleteNamespace();
  await cluster.step('namespace', go, () => cluster.doomed(), 0);
}

async function play(storm: Storm): Promise<readonly Row[]> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-storms-'));
  const cluster = new Cluster(dir, storm);
  running = cluster;
  const nothing = async (): Promise<void> => {};
  try {
    await cluster.start();
    const ready = (): Promise<number> => cluster.readyNodes();
    if (steps.includes('nodes')) await cluster.step('nodes', nothing, ready, given.nodes);
    else while ((await ready()) < given.nodes) await sleep(200);
    await cluster.make('Deployment', 'default', { replicas: 0 });
    const up = (): Promise<void> => cluster.scale(given.pods);
    const running = (): Promise<number> => cluster.runningPods();
    if (steps.includes('up')) await cluster.step('up', up, running, given.pods);
    if (steps.includes('rest')) {
      await cluster.step('rest', nothing, async () => given.nodes, given.nodes);
      await sleep(10_000);
      const leases = (): Promise<number> => cluster.freshLeases();
      const isFine = (await leases()) === given.nodes && (await ready()) === given.nodes;
      if (!isFine) {
        const fault = `${await leases()} leases, ${await ready()} nodes`;
        cluster.rows.push({ ...cluster.rows.at(-1)!, step: 'rest, 10 s later', fault });
      }
    }
    const zero = (): Promise<void> => cluster.scale(0);
    const pods = (): Promise<number> => cluster.count('default', 'pods');
    if (steps.includes('zero')) await cluster.step('zero', zero, pods, 0);
    await playMore(cluster);
    return cluster.rows;
  } finally {
    await cluster.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

let running: Cluster | null = null;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => void (running?.stop() ?? Promise.resolve()).then(() => process.exit(1)));
}
const rows: Row[] = [];
for (const storm of ALL) if (chosen.includes(storm)) rows.push(...(await play(storm)));
process.stdout.write(`${machine()}\n${given.nodes} nodes, ${given.pods} pods\n\n`);
printTable(
  ['storm', 'step', 's', 'requests', 'most/s', 'most for one a minute', 'which', ''],
  rows.map((row) => [
    ...[row.storm, row.step, row.seconds.toFixed(1), String(row.requests)],
    ...[String(row.mostInSecond), String(row.mostForOne), row.worst, row.fault],
  ]),
);
const isFine = rows.every(({ fault, mostForOne }) => fault === '' && mostForOne <= given.most);
process.exitCode = isFine ? 0 : 1;
