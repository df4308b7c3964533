/**
 * A pass over a million nodes:
 * `node packages/controllers/src/nodelifecycle/node-lifecycle.bench.ts`.
 */
import { Random } from '@megaplane/base/random';
import { NodeLifecycle } from './node-lifecycle.ts';
import { NodeScan } from '../columns/node-scan.ts';
import { NodeTable } from '../columns/node-table.ts';

const NODES = 1_000_000;
const PASSES = 20;

const table = new NodeTable(new Random(1));
const nothing = (): void => {};
const machine = new NodeLifecycle(
  table,
  {
    periodMs: 5_000,
    graceMs: 50_000,
    startupGraceMs: 60_000,
    evictionRate: 0.1,
    secondaryEvictionRate: 0.01,
    unhealthyThreshold: 0.55,
    largeClusterSize: 50,
  },
  {
    confirm: nothing,
    syncNoSchedule: nothing,
    syncNoExecute: nothing,
    syncLabels: nothing,
    registered: nothing,
    disruption: nothing,
  },
);
const scan = new NodeScan();
const conditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
  type,
  status: type === 'Ready' ? 'True' : 'False',
  lastHeartbeatTime: '2026-01-01T00:00:00Z',
}));
const node = Buffer.from(JSON.stringify({ metadata: { name: 'n' }, status: { conditions } }));
let started = process.cpuUsage();
for (let i = 0; i < NODES; i++) {
  const key = Buffer.from(`node-${i}`);
  scan.scan(node, 0, node.length);
  machine.upsert(table.rowOf(key, 0, key.length), scan, `zone-${i % 10}`);
}
report('upsert of a node, us', started, NODES);
const before = process.memoryUsage().arrayBuffers;
started = process.cpuUsage();
for (let pass = 0; pass < PASSES; pass++) machine.pass(pass * 5_000);
report('pass over a million nodes, ms', started, PASSES * 1000);
process.stdout.write(`bytes per node outside the heap: ${Math.round(before / NODES)}\n`);

function report(what: string, from: NodeJS.CpuUsage, count: number): void {
  const used = process.cpuUsage(from);
  process.stdout.write(`${what}: ${((used.user + used.system) / count).toFixed(2)}\n`);
}
