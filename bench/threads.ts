/**
 * Connection threads: what each thread of the API server spends on each kind of request, over TLS.
 *
 *     node bench/threads.ts --threads 0,1,2 --runs 3 [--only pattern]
 *
 * Each run starts a server with each number of threads, in turns. All of its threads share a core,
 * the load has the other. Figures are microseconds of processor time of one request, by the
 * kernel's count of each thread: of the thread that serves, of all connection threads together, and
 * of the whole process. `against 0` is what is left for the thread that serves, and what all
 * threads spend, as a part of what the process without threads spends.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as load from './apiserver-load.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  threads: { type: 'string', default: '0,1,2' },
  pods: { type: 'string', default: '6000' },
  leases: { type: 'string', default: '10000' },
  /** Of the clients with one request in flight. */
  connections: { type: 'string', default: '500' },
  runs: { type: 'string', default: '3' },
  only: { type: 'string', default: '' },
  /** Of the server. */
  cores: { type: 'string', default: '0' },
  output: { type: 'string' },
});
const given = wholeNumbers(values, { pods: 1, leases: 1, runs: 1, connections: 1 });
const COUNTS = values.threads.split(',').map(Number);
const ONLY = new RegExp(values.only);
const JSON_TYPE = 'application/json';
const WATCHES = 100;
const WATCH_EVENTS = 300;
const LISTS = 60;

/** Milliseconds that the threads of a process have worked. */
interface Worked {
  /** The one that serves. */
  readonly main: number;
  readonly connections: number;
  /** With those of the engine, the log and the kernel's calls. */
  readonly all: number;
}

function workedOf(pid: number): Worked {
  let [main, connections, all] = [0, 0, 0];
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const at = `/proc/${pid}/task/${thread}`;
    const ms = Number(readFileSync(`${at}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
    all += ms;
    if (Number(thread) === pid) main += ms;
    else if (readFileSync(`${at}/comm`, 'utf8').trim() === 'connections') connections += ms;
  }
  return { main, connections, all };
}

/** Microseconds of one request. */
type Figures = { readonly [Part in keyof Worked]: number[] };

const rows = new Map<string, Map<number, Figures>>();

function note(title: string, threads: number, count: number, from: Worked, to: Worked): void {
  const byThreads = rows.get(title) ?? new Map<number, Figures>();
  rows.set(title, byThreads);
  const figures = byThreads.get(threads) ?? { main: [], connections: [], all: [] };
  byThreads.set(threads, figures);
  for (const part of ['main', 'connections', 'all'] as const) {
    figures[part].push(((to[part] - from[part]) * 1000) / count);
  }
}

/** A server, and what is asked of it. */
class Rig {
  readonly #pid: number;
  readonly #threads: number;
  readonly #kubeconfig: string;
  readonly #many: readonly Client[];
  readonly #leases = new load.Leases(given.leases);

  constructor(pid: number, threads: number, kubeconfig: string, many: readonly Client[]) {
    this.#pid = pid;
    this.#threads = threads;
    this.#kubeconfig = kubeconfig;
    this.#many = many;
  }

  async #measure(title: string, count: number, work: () => Promise<void>): Promise<void> {
    const from = workedOf(this.#pid);
    await work();
    note(title, this.#threads, count, from, workedOf(this.#pid));
  }

  #shoot(title: string, shotOf: (index: number) => load.Shot, seen?: load.Seen): Promise<void> {
    const count = given.pods;
    return this.#measure(title, count, () => load.shoot(this.#many, count, shotOf, seen));
  }

  async renewals(): Promise<void> {
    const all = this.#leases;
    const shotOf = (index: number): load.Shot => all.shot(index);
    await load.shoot(this.#many, given.leases, shotOf, all.seen);
    // the engine compiles what is hot
    await load.shoot(this.#many, 3 * given.leases, shotOf, all.seen);
    const count = 3 * given.leases;
    await this.#measure('renewal, 64 in flight on 4 connections', count, () =>
      load.shoot(this.#many, count, shotOf, all.seen),
    );
    const single = await load.openClients(this.#kubeconfig, given.connections, 1, 1);
    await load.shoot(single, 2 * given.connections, shotOf, all.seen);
    const title = `renewal, one at a time on ${given.connections} connections`;
    await this.#measure(title, given.leases, () =>
      load.shoot(single, given.leases, shotOf, all.seen),
    );
    for (const client of single) client.close();
  }

  /** What is listed and watched, where it was not measured. */
  async fill(): Promise<void> {
    await load.shoot(this.#many, given.pods + 1, load.podShot);
  }

  async pods(): Promise<void> {
    await load.shoot(this.#many, 1, load.podShot);
    const podShot = (index: number): load.Shot => load.podShot(index + 1);
    await this.#shoot('pod create, 2 KB', podShot);
    await this.#shoot('binding', (index) => load.bindShot(index + 1));
    await load.shoot(this.#many, 2000, (index) => load.statusShot(index + 1, 1, false));
    await this.#shoot('status PUT', (index) => load.statusShot(index + 1, 2, false));
    const getShot = (index: number): load.Shot => {
      const path = `${load.PODS}/pod-${index + 1}`;
      return { method: 'GET', path, type: JSON_TYPE, body: null };
    };
    await load.shoot(this.#many, 2000, getShot);
    await this.#shoot('get by name, 5.6 KB', getShot);
  }

  async lists(): Promise<void> {
    const [client] = await load.openClients(this.#kubeconfig, 1, 1, 10);
    if (client === undefined) return;
    const path = `${load.PODS}?limit=1000`;
    for (let index = 0; index < LISTS / 3; index++) await load.fetchAll(client, path, JSON_TYPE);
    await this.#measure('list of 1,000 pods', LISTS, async () => {
      for (let index = 0; index < LISTS; index++) await load.fetchAll(client, path, JSON_TYPE);
    });
    client.close();
  }

  async watches(connections: number): Promise<void> {
    const clients = await load.openClients(this.#kubeconfig, connections, 1, 100);
    let events = 0;
    for (let index = 0; index < WATCHES; index++) {
      clients[index % connections]?.stream(`${load.PODS}?watch=true&timeoutSeconds=600`, {
        onHead: () => undefined,
        onData: (bytes, start, end) => {
          for (let at = start; at < end; at++) if (bytes[at] === 0x0a) events++;
        },
        onEnd: () => undefined,
      });
    }
    // each begins with all pods
    const before = (given.pods + 1) * WATCHES;
    await until(() => events >= before);
    const title = `watch event, ${WATCHES} watches on ${connections} connections`;
    const round = 10 + connections;
    await this.#measure(title, WATCHES * WATCH_EVENTS, async () => {
      const shotOf = (index: number): load.Shot => load.statusShot(index + 1, round, true);
      await load.shoot(this.#many, WATCH_EVENTS, shotOf);
      await until(() => events >= before + WATCHES * WATCH_EVENTS);
    });
    for (const client of clients) client.close();
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(20);
}

const resident = new Map<number, number[]>();

async function run(threads: number): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  const args = ['apiserver', '--data-dir', dataDir, '--secure-port', '0'];
  const all = [...args, '--threads', String(threads), '--log-level', 'error'];
  const server = await harness.startMegaplane(all, values.cores);
  try {
    resident.set(threads, [...(resident.get(threads) ?? []), harness.rssMib(server.pid)]);
    const kubeconfig = join(dataDir, 'kubeconfig');
    const many = await load.openClients(kubeconfig, 1, 4, 64);
    const path = '/api/v1/namespaces/default/serviceaccounts';
    const body = { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } };
    await many[0]?.request({ method: 'POST', path, body });
    const rig = new Rig(server.pid, threads, kubeconfig, many);
    if (ONLY.test('renewals')) await rig.renewals();
    if (ONLY.test('pods')) await rig.pods();
    else await rig.fill();
    if (ONLY.test('lists')) await rig.lists();
    if (ONLY.test('watches')) {
      await rig.watches(5);
      await rig.watches(WATCHES);
    }
    for (const client of many) client.close();
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

harness.pinSelf(1);
for (let index = 0; index < given.runs; index++) {
  for (const threads of COUNTS) {
    process.stderr.write(`run ${index + 1}, --threads ${threads} ...\n`);
    await run(threads);
  }
}
const head = ['us of one', '--threads', 'serves', 'connections', 'process'];
const table: string[][] = [];
for (const [title, byThreads] of rows) {
  const alone = byThreads.get(0);
  for (const [threads, figures] of byThreads) {
    const [main, connections, whole] = [
      harness.median(figures.main),
      harness.median(figures.connections),
      harness.median(figures.all),
    ];
    const against = (part: number, before: number[] | undefined): string =>
      before === undefined ? '' : (part / harness.median(before)).toFixed(2);
    table.push([
      title,
      String(threads),
      ...[main, connections, whole].map((each) => each.toFixed(1)),
      against(main, alone?.main),
      against(whole, alone?.all),
    ]);
  }
}
process.stdout.write(`${harness.machine()}\n${given.runs} runs in turns, medians\n\n`);
harness.printTable([...head, 'serves, against 0', 'process, against 0'], table);
for (const [threads, figures] of resident) {
  process.stdout.write(`--threads ${threads}: ${harness.median(figures).toFixed(0)} MiB at rest\n`);
}
harness.writeResults(values.output, {
  rows: [...rows].map(([title, byThreads]) => ({ title, byThreads: [...byThreads] })),
  resident: [...resident],
});
process.exit();
