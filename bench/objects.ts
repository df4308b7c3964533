/**
 * What one more object of each kind costs each process of `megaplane up`, and what deleting it
 * gives back: memory that is held after a collection of garbage, processor time to make and to
 * delete it, and what it takes while nothing happens.
 *
 *     node bench/objects.ts --count 1000
 *     node bench/objects.ts --only definitions --count 10000
 *     node bench/objects.ts --only '^deployments$' --count 2000 --snapshots ./heaps
 *
 * Each kind: some are made and deleted first, so that code is compiled; then `--count` are, and the
 * cluster settles behind each; then the history of the store is compacted. `kept` is what is still
 * held then. A definition comes with one object of its kind; a workload with the pod that it makes,
 * which runs on one of `--nodes` simulated nodes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '@megaplane/base/free-port.sim';
import type { Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { startInspected, type Held, type Inspected, type Part } from './cost/inspected.ts';
import { HOME, KINDS, type CountedKind, type Made } from './cost/kinds.ts';
import { settled } from './cost/settled.ts';
import { compactNow } from './cost/store.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import { cpuSecondsExact, machine, printTable, writeResults } from './harness.ts';

const values = flagsOf({
  count: { type: 'string', default: '1000' },
  nodes: { type: 'string', default: '20' },
  warm: { type: 'string', default: '50' },
  'in-flight': { type: 'string', default: '16' },
  /** A regular expression over the names of kinds. */
  only: { type: 'string', default: '' },
  /** Each process's heap before and after, into this folder. */
  snapshots: { type: 'string' },
  output: { type: 'string' },
});
const numbers = wholeNumbers(values, { count: 1, nodes: 10, warm: 0, 'in-flight': 1 });
const IDLE_SECONDS = 10;
const SHOWN: readonly Part[] = ['apiserver', 'controllers', 'scheduler', 'nodes'];

interface Cost {
  readonly part: Part;
  readonly liveKib: number;
  readonly residentKib: number;
  readonly keptKib: number;
  readonly keptResidentKib: number;
  readonly makeMs: number;
  readonly deleteMs: number;
  /** Milliseconds of processor time a second that a thousand take while nothing happens. */
  readonly idleMs: number;
  readonly timersKept: number;
  readonly handlesKept: number;
}

async function must(client: Client, method: 'POST' | 'DELETE', path: string, made?: Made) {
  const body = made === undefined ? {} : { body: made.body };
  for (;;) {
    const answer = await client.request({ method, path, ...body });
    if (answer.ok || answer.code === 409) return;
    if (answer.code === 404 && method === 'DELETE') return;
    // a definition's kind is served some milliseconds after its creation
    if (answer.code !== 404) throw new Error(`${method} ${path}: ${answer.status.message ?? ''}`);
    await sleep(20);
  }
}

/** Pods are refused until their namespace has its account. */
async function accountThere(client: Client): Promise<void> {
  const path = `${HOME.path}/${HOME.name}/serviceaccounts/default`;
  while (!(await client.request({ method: 'GET', path })).ok) await sleep(20);
}

async function atOnce(from: number, to: number, each: (index: number) => Promise<void>) {
  let next = from;
  const work = async (): Promise<void> => {
    while (next < to) await each(next++);
  };
  await Promise.all(Array.from({ length: numbers['in-flight'] }, work));
}

class Bench {
  readonly #client: Client;
  readonly #cluster: Inspected;
  readonly #store: string;

  constructor(client: Client, cluster: Inspected, store: string) {
    this.#client = client;
    this.#cluster = cluster;
    this.#store = store;
  }

  async #make(kind: CountedKind, from: number, to: number): Promise<void> {
    await atOnce(from, to, async (index) => {
      for (const made of kind.made(index)) await must(this.#client, 'POST', made.path, made);
    });
    await this.#settle();
  }

  /** What was made first goes last with all that hangs on it. */
  async #delete(kind: CountedKind, from: number, to: number): Promise<void> {
    await atOnce(from, to, async (index) => {
      const [first] = kind.made(index);
      if (first !== undefined) await must(this.#client, 'DELETE', `${first.path}/${first.name}`);
    });
    await this.#settle();
  }

  async #settle(): Promise<void> {
    await settled([...this.#cluster.pids.values()]);
  }

  /** The store keeps what was deleted for five minutes: told to forget it, it does so now. */
  async #compact(): Promise<void> {
    await compactNow(this.#store);
    await this.#settle();
  }

  async #snapshots(name: string): Promise<void> {
    const { snapshots } = values;
    if (snapshots === undefined) return;
    mkdirSync(snapshots, { recursive: true });
    for (const part of SHOWN) {
      await this.#cluster.snapshot(part, join(snapshots, `${part}-${name}.heapsnapshot`));
    }
  }

  async #idle(): Promise<Map<Part, number>> {
    const { pids } = this.#cluster;
    const before = new Map([...pids].map(([part, pid]) => [part, cpuSecondsExact(pid)]));
    await sleep(IDLE_SECONDS * 1000);
    const used = [...pids].map(([part, pid]): [Part, number] => {
      return [part, ((cpuSecondsExact(pid) - (before.get(part) ?? 0)) / IDLE_SECONDS) * 1000];
    });
    return new Map(used);
  }

  async cost(kind: CountedKind): Promise<Cost[]> {
    const { count, warm } = numbers;
    await this.#make(kind, count, count + warm);
    await this.#delete(kind, count, count + warm);
    await this.#compact();
    await this.#snapshots('before');
    const restMs = await this.#idle();
    const before = await this.#cluster.held();
    const startCpu = this.#cpu();
    await this.#make(kind, 0, count);
    const madeCpu = this.#cpu();
    const idleMs = await this.#idle();
    const there = await this.#cluster.held();
    await this.#snapshots('there');
    const deleteCpu = this.#cpu();
    await this.#delete(kind, 0, count);
    const endCpu = this.#cpu();
    await this.#compact();
    const after = await this.#cluster.held();
    await this.#snapshots('after');
    return SHOWN.map((part): Cost => {
      const [first, middle, last] = [before, there, after].map((held) => held.get(part));
      const each = (from: Held | undefined, to: Held | undefined, of: keyof Held): number =>
        ((to?.[of] ?? NaN) - (from?.[of] ?? NaN)) / count;
      const spent = (from: ReadonlyMap<Part, number>, to: ReadonlyMap<Part, number>): number =>
        (((to.get(part) ?? NaN) - (from.get(part) ?? NaN)) / count) * 1000;
      return {
        part,
        liveKib: each(first, middle, 'liveKib'),
        residentKib: each(first, middle, 'residentKib'),
        keptKib: each(first, last, 'liveKib'),
        keptResidentKib: each(first, last, 'residentKib'),
        makeMs: spent(startCpu, madeCpu),
        deleteMs: spent(deleteCpu, endCpu),
        idleMs: (((idleMs.get(part) ?? NaN) - (restMs.get(part) ?? NaN)) / count) * 1000,
        timersKept: each(first, last, 'timers') * count,
        handlesKept: each(first, last, 'handles') * count,
      };
    });
  }

  #cpu(): Map<Part, number> {
    return new Map([...this.#cluster.pids].map(([part, pid]) => [part, cpuSecondsExact(pid)]));
  }
}

/** Each kind's rows are told once they are measured: a run of all kinds may take an hour. */
function tell(name: string, costs: readonly Cost[]): void {
  printTable(
    [
      ...['kind', 'process', 'live KiB', 'resident KiB', 'kept KiB', 'kept resident KiB'],
      ...['make ms', 'delete ms', 'idle ms/s of 1000', 'timers kept', 'handles kept'],
    ],
    costs.map((cost) => [
      ...[name, cost.part],
      ...[cost.liveKib, cost.residentKib, cost.keptKib, cost.keptResidentKib].map((figure) =>
        figure.toFixed(2),
      ),
      ...[cost.makeMs, cost.deleteMs, cost.idleMs].map((figure) => figure.toFixed(2)),
      ...[cost.timersKept, cost.handlesKept].map((figure) => figure.toFixed(0)),
    ]),
  );
}

process.stdout.write(`${machine()}; ${numbers.count} of each kind, ${numbers.nodes} nodes\n`);
const found: Record<string, Cost[]> = {};
const chosen = KINDS.filter(({ name }) => new RegExp(values.only).test(name));
for (const kind of chosen) {
  // a cluster of its own: what one kind leaves behind does not count for the next
  const port = await freePort();
  const store = `http://127.0.0.1:${port}`;
  const cluster = await startInspected(numbers.nodes, ['--listen-client-urls', store]);
  try {
    const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
    await must(client, 'POST', HOME.path, HOME);
    await accountThere(client);
    const costs = await new Bench(client, cluster, store).cost(kind);
    found[kind.name] = costs;
    tell(kind.name, costs);
    writeResults(values.output, { ...numbers, kinds: found });
    client.close();
  } catch (error) {
    // the others have figures all the same
    process.stdout.write(`${kind.name}: ${error instanceof Error ? error.message : ''}\n`);
    process.exitCode = 1;
  } finally {
    await cluster.stop();
  }
}
process.exit();
