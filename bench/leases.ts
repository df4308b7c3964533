/**
 * Lease renewals through the API: PUT of JSON with the resourceVersion last seen, over TLS.
 *
 *     node bench/leases.ts --leases 100000 --seconds 10 --runs 3
 *
 * Four shapes: 64 requests in flight on 4 connections; 8,000 on 8, as of the simulator when the
 * server is behind; one request at a time on each of 200 connections; and as many as kubelets of
 * 100,000 nodes send, those of 20 ms at once, as the simulator sends them. The server has one core,
 * the load generator the other. Figures are renewals per second of the server's processor time and
 * of the clock, and its share of a core.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { LEASE_PATH, leaseBody, microTime } from '@megaplane/nodes/lease-object';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  leases: { type: 'string', default: '100000' },
  seconds: { type: 'string', default: '10' },
  /** Renewals a second of the third shape. */
  rate: { type: 'string', default: '10000' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
});
const LEASES = Number(values.leases);
const UID = '5f0c3a8e-7d0b-4a60-9d39-0d5f5b0f8d11';

interface Figure {
  readonly perSecond: number;
  readonly perCpuSecond: number;
  readonly conflicts: number;
}

interface Shape {
  readonly title: string;
  readonly connections: number;
  readonly inFlight: number;
  /** Renewals a second; Infinity: as many as go. */
  readonly rate: number;
}

const TURN_MS = 20;

const versions = new Float64Array(LEASES);
/** Those whose renewal is not answered yet. */
const busy = new Uint8Array(LEASES);
const scan = new ObjectScan();
let cursor = 0;

/**
 * Keeps `client` busy until `isOver`, one lease after the other, with at most `rate` a second;
 * resolves when all is answered.
 */
function renew(
  client: Client,
  rate: number,
  isOver: () => boolean,
  count: (status: number) => void,
): Promise<void> {
  return new Promise((resolve) => {
    let inFlight = 0;
    const startMs = performance.now();
    let sent = 0;
    let allowed = Infinity;
    const turn = (): void => {
      allowed = ((performance.now() - startMs) * rate) / 1000;
      pump();
    };
    const timer = rate === Infinity ? undefined : setInterval(turn, TURN_MS);
    if (timer !== undefined) allowed = 0;
    const pump = (): void => {
      while (!isOver() && client.room() > 0 && sent < allowed) {
        const index = cursor++ % LEASES;
        // as a kubelet, which waits for its answer
        if (busy[index] === 1) continue;
        sent++;
        const name = `node-${index}`;
        const version = versions[index] ?? 0;
        const body = leaseBody(name, UID, version, 40, microTime(Date.now()));
        const isNew = version === 0;
        const path = isNew ? LEASE_PATH : `${LEASE_PATH}/${name}`;
        const method = isNew ? 'POST' : 'PUT';
        if (!client.send(method, path, CONTENT.json, body, onAnswer, index)) break;
        busy[index] = 1;
        inFlight++;
      }
      if (!isOver() || inFlight > 0) return;
      clearInterval(timer);
      resolve();
    };
    const onAnswer = (
      status: number,
      bytes: Uint8Array,
      start: number,
      end: number,
      index: number,
    ): void => {
      inFlight--;
      busy[index] = 0;
      count(status);
      if (status < 300 && scan.scan(bytes, start, end)) versions[index] = scan.resourceVersion;
      if (timer === undefined || isOver()) pump();
    };
    client.onRoom(pump);
    pump();
  });
}

async function clients(kubeconfig: string, count: number, inFlight: number): Promise<Client[]> {
  const limits = { connections: count === 1 ? 4 : 1, inFlightMax: inFlight, queueMax: inFlight };
  return Promise.all(Array.from({ length: count }, () => createKubeClient({ kubeconfig, limits })));
}

async function measure(
  pid: number,
  kubeconfig: string,
  { connections, inFlight, rate }: Shape,
): Promise<Figure> {
  const all = await clients(kubeconfig, connections, inFlight);
  let isOver = false;
  let good = 0;
  let conflicts = 0;
  const running = all.map((client) =>
    renew(
      client,
      rate / all.length,
      () => isOver,
      (status) => {
        if (status === 200) good++;
        else if (status === 409) conflicts++;
        else throw new Error(`a renewal was answered ${status}`);
      },
    ),
  );
  await sleep(2000);
  const startMs = performance.now();
  const startCpu = harness.cpuSeconds(pid);
  const startGood = good;
  await sleep(Number(values.seconds) * 1000);
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = harness.cpuSeconds(pid) - startCpu;
  const counted = good - startGood;
  isOver = true;
  await Promise.all(running);
  for (const client of all) client.close();
  return { perSecond: counted / seconds, perCpuSecond: counted / cpu, conflicts };
}

/** Creates the leases once. */
async function fill(kubeconfig: string): Promise<void> {
  const [client] = await clients(kubeconfig, 1, 256);
  if (client === undefined) throw new Error('no client');
  let made = 0;
  await renew(
    client,
    Infinity,
    () => made >= LEASES || cursor >= LEASES,
    () => made++,
  );
  client.close();
}

harness.pinSelf(1);
const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
const server = await harness.startMegaplane(
  ['apiserver', '--data-dir', dataDir, '--secure-port', '0'],
  0,
);
try {
  // not the administrator's, whose requests no queue holds back
  const kubeconfig = join(dataDir, 'nodes.kubeconfig');
  await fill(kubeconfig);
  const rate = Number(values.rate);
  const asSent = `${rate} a second on 4 connections`;
  const shapes: readonly Shape[] = [
    { title: '64 in flight on 4 connections', connections: 1, inFlight: 64, rate: Infinity },
    { title: '8000 in flight on 8 connections', connections: 8, inFlight: 1000, rate: Infinity },
    {
      title: '1 in flight on each of 200 connections',
      connections: 200,
      inFlight: 1,
      rate: Infinity,
    },
    { title: asSent, connections: 1, inFlight: 4096, rate },
  ];
  process.stdout.write(`${harness.machine()}\n${LEASES} leases, JSON, TLS, HTTP/2\n\n`);
  const rows: string[][] = [];
  const results: Record<string, readonly Figure[]> = {};
  for (const shape of shapes) {
    const figures: Figure[] = [];
    for (let run = 0; run < Number(values.runs); run++) {
      figures.push(await measure(server.pid, kubeconfig, shape));
    }
    results[shape.title] = figures;
    const middle = (read: (figure: Figure) => number): string =>
      harness.median(figures.map(read)).toFixed(0);
    rows.push([
      shape.title,
      middle((one) => one.perSecond),
      middle((one) => one.perCpuSecond),
      harness.median(figures.map((one) => (100 * one.perSecond) / one.perCpuSecond)).toFixed(1),
      middle((one) => one.conflicts),
    ]);
  }
  harness.printTable(['', 'renewals/s', 'per CPU second', '% of a core', 'conflicts'], rows);
  process.stdout.write(`\nserver: ${harness.rssMib(server.pid).toFixed(0)} MiB resident\n`);
  harness.writeResults(values.output, { leases: LEASES, results });
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
process.exit();
