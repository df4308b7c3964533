/**
 * What it costs the API server to tell watches of changes, over TLS.
 *
 *     node bench/fan-out.ts --runs 3
 *
 * Objects of `--bytes` are written while watches are open; the same writes without a watch are
 * taken off. First everybody watches everything (`--watchers` on `--connections`, then each on a
 * connection of its own), then N watches share everything by shards (KEP-5866), for several N:
 * together they receive each event once, so the processor time of an event must not grow with N.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { shardOf } from '@megaplane/machinery/sharding/selector';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  objects: { type: 'string', default: '20000' },
  /** Changes while everybody watches everything, and while shards do. */
  events: { type: 'string', default: '1000' },
  changes: { type: 'string', default: '20000' },
  bytes: { type: 'string', default: '6500' },
  watchers: { type: 'string', default: '500' },
  connections: { type: 'string', default: '10' },
  shards: { type: 'string', default: '1,4,16,64,256,1024' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
});
const OBJECTS = Number(values.objects);
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const FILLER = 'x'.repeat(Math.max(0, Number(values.bytes) - 400));
const LINE_FEED = 10;

/** One watch: how many events came, and how many bytes. */
class Counter {
  events = 0;
  bytes = 0;
  isOpen = false;

  onHead(status: number): void {
    assert.equal(status, 200);
    this.isOpen = true;
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    this.bytes += end - start;
    for (let at = bytes.indexOf(LINE_FEED, start); at >= 0 && at < end;) {
      this.events++;
      at = bytes.indexOf(LINE_FEED, at + 1);
    }
  }

  onEnd(error: string | null): void {
    if (error !== null && error !== 'client closed') throw new Error(`a watch ended: ${error}`);
  }
}

/** Sends `count` requests, so many at a time, and resolves when all are answered. */
function sendAll(
  client: Client,
  count: number,
  request: (index: number) => readonly ['POST' | 'PATCH', string, string, string],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let next = 0;
    let answered = 0;
    const pump = (): void => {
      while (next < count && client.room() > 0) {
        const [method, path, type, body] = request(next);
        if (!client.send(method, path, type, body, onAnswer, next)) break;
        next++;
      }
    };
    const onAnswer = (status: number): void => {
      if (status >= 300) reject(new Error(`a write was answered ${status}`));
      if (++answered === count) resolve();
      else pump();
    };
    client.onRoom(pump);
    pump();
  });
}

const create = (writer: Client): Promise<void> =>
  sendAll(writer, OBJECTS, (index) => {
    const object = { metadata: { name: `m-${index}` }, data: { filler: FILLER, round: '0' } };
    return ['POST', CONFIG_MAPS, CONTENT.json, JSON.stringify(object)];
  });

let round = 0;
const change = (writer: Client, count: number): Promise<void> =>
  sendAll(writer, count, (index) => {
    const body = JSON.stringify({ data: { round: String(++round) } });
    return ['PATCH', `${CONFIG_MAPS}/m-${index % OBJECTS}`, CONTENT.mergePatch, body];
  });

interface Figure {
  /** Microseconds of the server's processor per change. */
  readonly cpuUs: number;
  readonly eventsPerChange: number;
  readonly bytes: readonly number[];
}

/** Opens watches with the given queries, spread over `connections`, and changes objects. */
async function measure(
  pid: number,
  kubeconfig: string,
  writer: Client,
  { queries, connections, changes }: Case,
): Promise<Figure> {
  const readers = await Promise.all(
    Array.from({ length: connections }, () =>
      createKubeClient({ kubeconfig, limits: { connections: 1 } }),
    ),
  );
  const list = await writer.request({ method: 'GET', path: `${CONFIG_MAPS}?limit=1` });
  assert(list.ok);
  const { resourceVersion } = list.object['metadata'] as { resourceVersion: string };
  const counters = queries.map((query, index) => {
    const counter = new Counter();
    const path = `${CONFIG_MAPS}?watch=1&resourceVersion=${resourceVersion}&${query}`;
    readers[index % connections]?.stream(path, counter);
    return counter;
  });
  while (counters.some(({ isOpen }) => !isOpen)) await sleep(20);
  const perWatch = queries.some((query) => query !== '') ? 1 : queries.length;
  const told = (): number => counters.reduce((sum, { events }) => sum + events, 0);
  const startCpu = harness.cpuSeconds(pid);
  await change(writer, changes);
  const wanted = queries.length === 0 ? 0 : changes * perWatch;
  const deadlineMs = performance.now() + 60_000;
  while (told() < wanted && performance.now() < deadlineMs) await sleep(10);
  assert.equal(told(), wanted, 'each event reaches each watch that selects it, once');
  const cpuUs = ((harness.cpuSeconds(pid) - startCpu) * 1e6) / changes;
  for (const reader of readers) reader.close();
  await sleep(200);
  return { cpuUs, eventsPerChange: wanted / changes, bytes: counters.map(({ bytes }) => bytes) };
}

interface Case {
  readonly name: string;
  readonly queries: readonly string[];
  readonly connections: number;
  readonly changes: number;
}

function cases(): Case[] {
  const watchers = Number(values.watchers);
  const everybody = Array.from({ length: watchers }, () => '');
  const connections = Number(values.connections);
  const changes = Number(values.changes);
  const all = { queries: everybody, changes: Number(values.events) };
  const found: Case[] = [
    { name: 'writes alone', queries: [], connections: 1, changes },
    { name: `${watchers} of everything, ${connections} connections`, ...all, connections },
    { name: `${watchers} of everything, a connection each`, ...all, connections: watchers },
  ];
  for (const count of values.shards.split(',').map(Number)) {
    const queries = Array.from(
      { length: count },
      (_, index) => `shardSelector=${encodeURIComponent(shardOf(index, count))}`,
    );
    found.push({
      name: `${count} shards`,
      queries,
      connections: Math.min(count, connections),
      changes,
    });
  }
  return found;
}

/** How far the bytes of a shard are from its share, at most, in parts of the share. */
function spread(bytes: readonly number[]): number {
  const share = bytes.reduce((sum, one) => sum + one, 0) / bytes.length;
  return Math.max(...bytes.map((one) => Math.abs(one - share) / share));
}

async function runAll(): Promise<Map<string, Figure[]>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-fan-out-'));
  const flags = ['apiserver', '--data-dir', dataDir, '--secure-port', '0'];
  const server = await harness.startMegaplane(flags, 0);
  const figures = new Map<string, Figure[]>();
  try {
    harness.pinSelf(1);
    const kubeconfig = join(dataDir, 'kubeconfig');
    const limits = { connections: 2, inFlightMax: 16, queueMax: 16 };
    const writer = await createKubeClient({ kubeconfig, limits });
    await create(writer);
    await change(writer, OBJECTS);
    for (let run = 0; run < Number(values.runs); run++) {
      for (const one of cases()) {
        const figure = await measure(server.pid, kubeconfig, writer, one);
        figures.set(one.name, [...(figures.get(one.name) ?? []), figure]);
      }
    }
    writer.close();
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
  return figures;
}

const figures = await runAll();
const medianUs = (runs: readonly Figure[] = []): number =>
  harness.median(runs.map(({ cpuUs }) => cpuUs));
const alone = medianUs(figures.get('writes alone'));
process.stdout.write(`${harness.machine()}\nchanges of objects of ${values.bytes} B\n\n`);
const rows = [...figures].map(([name, runs]) => {
  const [first] = runs;
  if (first === undefined || first.eventsPerChange === 0) return [name, `${alone.toFixed(0)} us`];
  const cpuUs = medianUs(runs) - alone;
  return [
    name,
    `${cpuUs.toFixed(0)} us`,
    String(Math.round((first.eventsPerChange / cpuUs) * 1e6)),
    name.endsWith('shards') ? `${(100 * spread(first.bytes)).toFixed(1)} %` : '',
  ];
});
harness.printTable(['watches', 'CPU of a change', 'events per CPU second', 'off its share'], rows);
harness.writeResults(values.output, { figures: Object.fromEntries(figures) });
