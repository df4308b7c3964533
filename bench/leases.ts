/**
 * Lease renewals through the API: PUT of JSON with the resourceVersion last seen, over TLS.
 *
 *     node bench/leases.ts --leases 100000 --seconds 10 --runs 3
 *
 * Two shapes: 64 requests in flight on 4 connections, and one request at a time on each of 200
 * connections. The server has one core, the load generator the other. Figures are renewals per
 * second of the server's processor time and of the clock.
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

const versions = new Float64Array(LEASES);
const scan = new ObjectScan();
let cursor = 0;

/** Keeps `client` busy until `isOver`, one lease after the other; resolves when all is answered. */
function renew(
  client: Client,
  isOver: () => boolean,
  count: (status: number) => void,
): Promise<void> {
  return new Promise((resolve) => {
    let inFlight = 0;
    const pump = (): void => {
      while (!isOver() && client.room() > 0) {
        const index = cursor++ % LEASES;
        const name = `node-${index}`;
        const version = versions[index] ?? 0;
        const body = leaseBody(name, UID, version, 40, microTime(Date.now()));
        const isNew = version === 0;
        const path = isNew ? LEASE_PATH : `${LEASE_PATH}/${name}`;
        const method = isNew ? 'POST' : 'PUT';
        if (!client.send(method, path, CONTENT.json, body, onAnswer, index)) break;
        inFlight++;
      }
      if (isOver() && inFlight === 0) resolve();
    };
    const onAnswer = (
      status: number,
      bytes: Uint8Array,
      start: number,
      end: number,
      index: number,
    ): void => {
      inFlight--;
      count(status);
      if (status < 300 && scan.scan(bytes, start, end)) versions[index] = scan.resourceVersion;
      pump();
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
  count: number,
  inFlight: number,
): Promise<Figure> {
  const all = await clients(kubeconfig, count, inFlight);
  let isOver = false;
  let good = 0;
  let conflicts = 0;
  const running = all.map((client) =>
    renew(
      client,
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
  ['--max-semi-space-size=32'],
);
try {
  const kubeconfig = join(dataDir, 'kubeconfig');
  await fill(kubeconfig);
  const shapes = [
    ['64 in flight on 4 connections', 1, 64],
    ['1 in flight on each of 200 connections', 200, 1],
  ] as const;
  process.stdout.write(`${harness.machine()}\n${LEASES} leases, JSON, TLS, HTTP/2\n\n`);
  const rows: string[][] = [];
  const results: Record<string, readonly Figure[]> = {};
  for (const [title, count, inFlight] of shapes) {
    const figures: Figure[] = [];
    for (let run = 0; run < Number(values.runs); run++) {
      figures.push(await measure(server.pid, kubeconfig, count, inFlight));
    }
    results[title] = figures;
    const middle = (read: (figure: Figure) => number): string =>
      harness.median(figures.map(read)).toFixed(0);
    rows.push([
      title,
      middle((one) => one.perSecond),
      middle((one) => one.perCpuSecond),
      middle((one) => one.conflicts),
    ]);
  }
  harness.printTable(['', 'renewals/s', 'per CPU second', 'conflicts'], rows);
  process.stdout.write(`\nserver: ${harness.rssMib(server.pid).toFixed(0)} MiB resident\n`);
  harness.writeResults(values.output, { leases: LEASES, results });
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
process.exit();
