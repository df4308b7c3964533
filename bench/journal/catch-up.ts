/** A member that starts with nothing beside puts: how long until it has all, and who feels it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@megaplane/base/free-port.sim';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import * as harness from '../harness.ts';
import { fill, Load, scattered } from '../store/load.ts';
import { PATHS, writePut } from '../store/requests.ts';
import { type Cluster, leaderOf, memberCommand, Programs, ready } from './clusters.ts';

const LEASE_MS = 3000;
const VALUE = Buffer.alloc(1024, 'v');
const put = {
  path: PATHS.put,
  write: (out: Buffer, index: number): number => writePut(out, index, VALUE),
};

/** Fills `keys` of 1 KB, then starts a fourth member beside puts, 20 at once. */
export async function catchUp(
  cluster: Cluster,
  journal: string,
  keys: number,
): Promise<Readonly<Record<string, number>>> {
  const leader = await ready('a leader', () => leaderOf(cluster.ports));
  const clients = Array.from({ length: 10 }, () => grpcClient(connect({ port: leader })));
  await fill(clients, put, keys);
  const load = new Load(clients.slice(0, 1), put, scattered(keys), true);
  load.start(20);
  await sleep(1000);
  const programs = new Programs();
  const port = await freePort();
  load.latencies.length = 0;
  const startMs = performance.now();
  const answered = load.answered;
  const engine = { name: '', url: journal, programs };
  const child = programs.start(memberCommand(engine, port, 3, LEASE_MS));
  await ready('the member', () =>
    fetch(`http://127.0.0.1:${port}/health`).then((answer) => (answer.ok ? true : null)),
  );
  const elapsedMs = performance.now() - startMs;
  const sorted = load.latencies.toSorted((a, b) => a - b);
  const cpu = harness.cpuSecondsExact(child.pid ?? 0);
  const perSecond = (load.answered - answered) / (elapsedMs / 1000);
  load.isOver = true;
  await load.idle();
  for (const client of clients) client.connection.destroy();
  await programs.stop();
  return {
    'state MiB': (keys * 1.1) / 1024,
    'ready s': elapsedMs / 1000,
    'its cpu s': cpu,
    'puts/s meanwhile': perSecond,
    'put p99 ms': harness.quantile(sorted, 0.99),
    'put max ms': sorted.at(-1) ?? NaN,
  };
}
