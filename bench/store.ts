/**
 * The store beside Debian's etcd: the same requests by the same client, each server alone on
 * core 0, the client on core 1. The median of the runs counts; rates are per second of the
 * server's processor time where the name says so.
 *
 *     node bench/store.ts --keys 1000000 --seconds 5 --runs 3 --durability buffered
 *     node bench/store.ts --modes page,watch,restart --servers megaplane
 *
 * `put`, `get`: keys in scattered order after each was put once. `update`: Kubernetes' update of a
 * lease (Txn: if mod revision then Put else Range). `single`: updates, one in flight on each of 200
 * connections. `latency`: puts, one in flight. `page`: pages of 500 at a fixed revision. `watch`:
 * a put a millisecond for 1,000 watchers. `idle-watches`, `key-watches`, `leases`, `memory`,
 * `history` (four versions, then compacted), `restart` (on both cores): as they say. `stall`:
 * 100,000 updates a second beside compactions and a backup, the longest time that the event loop
 * was late (`--modes stall --servers megaplane --keys 3000000 --seconds 60 --runs 1`). `soak`:
 * 50,000 a second, a compaction each minute, memory in the halves behind the first sixth
 * (`--modes soak --servers megaplane --seconds 3600 --runs 1`).
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';
import { type Figures, SCENARIOS, type Setting } from './store/scenarios.ts';
import { startServer, version } from './store/servers.ts';

const values = flagsOf({
  keys: { type: 'string', default: '1000000' },
  seconds: { type: 'string', default: '5' },
  runs: { type: 'string', default: '3' },
  'value-size': { type: 'string', default: '1024' },
  connections: { type: 'string', default: '10' },
  'in-flight': { type: 'string', default: '100' },
  durability: { type: 'string', default: 'buffered' },
  servers: { type: 'string', default: 'etcd,megaplane' },
  modes: { type: 'string', default: 'put,update,get' },
  output: { type: 'string' },
});
const CLIENT_CORE = 1;

interface Run {
  readonly server: string;
  readonly mode: string;
  readonly figures: Figures;
}

async function run(server: string, mode: string): Promise<Run> {
  const scenario = SCENARIOS[mode];
  if (scenario === undefined) {
    throw new Error(`--modes: no "${mode}"; there are ${Object.keys(SCENARIOS).join(', ')}`);
  }
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-bench-store-'));
  const setting: Setting = {
    server,
    dir,
    durability: values.durability,
    keys: Number(values.keys),
    seconds: Number(values.seconds),
    valueBytes: Number(values['value-size']),
    connections: Number(values.connections),
    inFlight: Number(values['in-flight']),
  };
  const started = await startServer(server, dir, values.durability);
  try {
    return { server, mode, figures: await scenario(setting, started) };
  } finally {
    await started.kill();
    rmSync(dir, { recursive: true, force: true });
  }
}

function show(mode: string, servers: readonly string[], all: readonly Run[]): void {
  const names = Object.keys(all.find((one) => one.mode === mode)?.figures ?? {});
  const rows = servers.map((server) => {
    const found = all.filter((one) => one.mode === mode && one.server === server);
    const medians = names.map((name) =>
      harness.median(found.map((one) => one.figures[name] ?? NaN)),
    );
    const shown = medians.map((value) => (value < 100 ? value.toFixed(2) : value.toFixed(0)));
    return [mode, `${server} ${version(server, values.durability)}`, ...shown];
  });
  harness.printTable(['mode', 'server', ...names], rows);
}

async function main(): Promise<void> {
  const servers = values.servers.split(',');
  if (servers.includes('etcd') && spawnSync('etcd', ['--version']).error !== undefined) {
    throw new Error('needs etcd: apt-get install etcd-server');
  }
  harness.pinSelf(CLIENT_CORE);
  process.stdout.write(`${harness.machine()}\n`);
  const all: Run[] = [];
  for (const mode of values.modes.split(',')) {
    for (let i = 0; i < Number(values.runs); i++) {
      for (const server of servers) all.push(await run(server, mode));
    }
    show(mode, servers, all);
  }
  harness.writeResults(values.output, { runs: all });
}

await main();
// Streams of watches and connections that drain need not be waited for.
process.exit(0);
