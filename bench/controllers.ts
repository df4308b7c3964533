/**
 * What the controllers carry: one Deployment scaled up, to zero, and deleted with its namespace; a
 * DaemonSet over all nodes; an owner with many dependents deleted beside other work; a zone that
 * falls silent. Everything goes through `megaplane up`, whose programs share the machine.
 *
 *     node bench/controllers.ts --nodes 10000 --pods 10000 --dependents 100000 --runs 3
 *     node bench/controllers.ts --only owner --dependents 1000000
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENT, type Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import {
  cpuSeconds,
  machine,
  median,
  printTable,
  quantile,
  ROOT,
  rssMib,
  UP_PARTS,
  upPids,
  writeResults,
} from './harness.ts';
import { flagsOf } from './flags.ts';
import { adopt } from './children.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '10000' },
  pods: { type: 'string', default: '10000' },
  dependents: { type: 'string', default: '100000' },
  /** A regular expression over: deployment daemonset owner. */
  only: { type: 'string', default: '' },
  runs: { type: 'string', default: '1' },
  output: { type: 'string' },
});
const PODS = Number(values.pods);
const NODES = Number(values.nodes);
const DEPENDENTS = Number(values.dependents);
const LOOK_MS = 100;
const PROBE_MS = 20;
/** Whatever takes longer is told as such and given up. */
const STEP_MS_MAX = 280_000;
type Figures = Record<string, number>;

class Bench {
  readonly #client: Client;
  readonly #pids: readonly number[];
  readonly figures: Figures = {};

  constructor(client: Client, up: number) {
    this.#client = client;
    this.#pids = upPids(up);
  }

  async #ask(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: JsonObject) {
    const contentType = method === 'PATCH' ? CONTENT.mergePatch : CONTENT.json;
    const answer = await this.#client.request({
      ...{ method, path, contentType },
      ...(body === undefined ? {} : { body }),
    });
    if (answer.ok || answer.code === 404) return answer;
    throw new Error(`${method} ${path}: ${answer.code} ${answer.status.message ?? ''}`);
  }

  /** Until `look` says so; the seconds of the clock and of each program's processors. */
  async #measure(name: string, begin: () => Promise<unknown>, look: () => Promise<boolean>) {
    const before = this.#pids.map(cpuSeconds);
    const startMs = performance.now();
    await begin();
    while (!(await look())) {
      if (performance.now() - startMs > STEP_MS_MAX) throw new Error(`${name}: gave up`);
      await sleep(LOOK_MS);
    }
    this.figures[`${name} s`] = (performance.now() - startMs) / 1000;
    for (const part of ['apiserver', 'controllers'] as const) {
      const index = UP_PARTS.indexOf(part);
      const used = cpuSeconds(this.#pids[index] ?? 0) - (before[index] ?? 0);
      this.figures[`${name}: ${part} CPU s`] = used;
    }
  }

  async #count(path: string): Promise<number> {
    const answer = await this.#ask('GET', `${path}?limit=1`);
    if (!answer.ok) return 0;
    const more = numberAt(answer.object, 'metadata', 'remainingItemCount');
    return listAt(answer.object, 'items').length + more;
  }

  async #namespace(name: string): Promise<string> {
    const metadata = { name };
    await this.#ask('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata,
    });
    const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
    while (!(await this.#ask('GET', account)).ok) await sleep(20);
    return name;
  }

  async deployment(): Promise<void> {
    const namespace = await this.#namespace('bench-scale');
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    const spec = workload('web', { replicas: 0 });
    await this.#ask('POST', path, {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec },
    });
    const scale = (replicas: number) => () =>
      this.#ask('PATCH', `${path}/web`, { spec: { replicas } });
    const isReady = async (): Promise<boolean> => {
      const answer = await this.#ask('GET', `${path}/web`);
      return answer.ok && numberAt(answer.object, 'status', 'readyReplicas') === PODS;
    };
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const isEmpty = async (): Promise<boolean> => (await this.#count(pods)) === 0;
    await this.#measure(`${PODS} pods up`, scale(PODS), isReady);
    await this.#measure(`${PODS} pods to zero`, scale(0), isEmpty);
    await this.#measure(`${PODS} pods up again`, scale(PODS), isReady);
    const own = `/api/v1/namespaces/${namespace}`;
    await this.#measure(
      `namespace of ${PODS} pods`,
      () => this.#ask('DELETE', own),
      async () => !(await this.#ask('GET', own)).ok,
    );
  }

  async daemonset(): Promise<void> {
    const namespace = await this.#namespace('bench-daemons');
    const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
    const body = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'agent' } };
    await this.#measure(
      `daemons on ${NODES} nodes`,
      () => this.#ask('POST', path, { ...body, spec: workload('agent', {}) }),
      async () => {
        const answer = await this.#ask('GET', `${path}/agent`);
        return answer.ok && numberAt(answer.object, 'status', 'numberReady') === NODES;
      },
    );
  }

  async owner(): Promise<void> {
    const namespace = await this.#namespace('bench-owner');
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner' };
    const made = await this.#ask('POST', path, { ...owner, metadata: { name: 'owner' } });
    const uid = made.ok ? stringAt(made.object, 'metadata', 'uid') : '';
    await this.#fill(path, { ...owner, uid });
    const memory = rssMib(this.#pids[1] ?? 0);
    const probes: number[] = [];
    let isOver = false;
    const probing = (async () => {
      while (!isOver) {
        const startMs = performance.now();
        await this.#ask('GET', '/api/v1/namespaces/default');
        probes.push(performance.now() - startMs);
        await sleep(PROBE_MS);
      }
    })();
    await this.#measure(
      `owner of ${DEPENDENTS}`,
      () => this.#ask('DELETE', `${path}/owner`),
      async () => (await this.#count(path)) <= 1,
    );
    isOver = true;
    await probing;
    const sorted = probes.toSorted((a, b) => a - b);
    this.figures['other work meanwhile, p99 ms'] = quantile(sorted, 0.99);
    this.figures['controllers MiB with all dependents'] = memory;
  }

  /** Dependents, as fast as the client lets them through. */
  async #fill(path: string, owner: JsonObject): Promise<void> {
    let answered = 0;
    for (let next = 0; next < DEPENDENTS;) {
      for (; next < DEPENDENTS && this.#client.room() > 0; next++) {
        const metadata = { name: `d-${next}`, ownerReferences: [owner] };
        const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata });
        this.#client.send('POST', path, CONTENT.json, body, () => void answered++);
      }
      await sleep(2);
    }
    while (answered < DEPENDENTS) await sleep(10);
    // The graph knows them all when the last one has been seen.
    await sleep(2_000);
  }
}

function workload(app: string, more: JsonObject): JsonObject {
  const containers = [{ name: 'c', image: 'img:1' }];
  const spec = { containers, terminationGracePeriodSeconds: 1 };
  const template = { metadata: { labels: { app } }, spec };
  return { selector: { matchLabels: { app } }, template, ...more };
}

async function run(dataDir: string): Promise<Figures> {
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const flags = ['--nodes', values.nodes, '--data-dir', dataDir, '--secure-port', '0'];
  const up = adopt(
    spawn(process.execPath, [entry, 'up', ...flags, '--output', 'json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  try {
    const [chunk] = (await once(up.stdout, 'data')) as [Buffer];
    const { kubeconfig } = JSON.parse(chunk.toString()) as { kubeconfig: string };
    const client = await createKubeClient({ kubeconfig });
    const bench = new Bench(client, up.pid ?? 0);
    const chosen = new RegExp(values.only);
    for (const part of ['deployment', 'daemonset', 'owner'] as const) {
      if (chosen.test(part)) await bench[part]();
    }
    client.close();
    return bench.figures;
  } finally {
    up.kill('SIGINT');
    await once(up, 'exit');
  }
}

const runs: Figures[] = [];
for (let index = 0; index < Number(values.runs); index++) {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  try {
    runs.push(await run(dataDir));
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
process.stdout.write(`${machine()}\n${values.nodes} nodes\n\n`);
printTable(
  ['', 'median', ...runs.map((_, index) => `run ${index + 1}`)],
  Object.keys(runs[0] ?? {}).map((name) => {
    const all = runs.map((figures) => figures[name] ?? NaN);
    return [name, ...[median(all), ...all].map((figure) => figure.toFixed(2))];
  }),
);
writeResults(values.output, { nodes: NODES, pods: PODS, dependents: DEPENDENTS, runs });
