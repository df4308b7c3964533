/**
 * A start from a log in the page cache, or from the disk: fills a directory with keys in scattered
 * order, then opens it in a process of its own, as often as asked.
 *
 *     node packages/store/src/recovery/restart.bench.ts [keys] [bytes of a value] [runs]
 *     MEGAPLANE_BENCH_DIR=DIR ...     keeps the directory, and takes the one that is there
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../open/open.ts';

const OPEN_FLAG = 'open';
const BATCH = 500;

interface Figures {
  readonly ms: number;
  readonly mainMs: number;
  readonly cpuMs: number;
  readonly rssMib: number;
}

function options(dataDir: string) {
  return { dataDir, durability: 'buffered' as const, prefixes: [] };
}

async function fill(dir: string, keys: number, valueBytes: number): Promise<void> {
  const opened = openStore(options(dir));
  const { store } = opened;
  const bytes = Buffer.alloc(64 + valueBytes, 'v');
  for (let i = 0; i < keys; i++) {
    // A permutation as long as `keys` is no multiple of the prime.
    const number = String((i * 7_368_787) % keys).padStart(12, '0');
    const size = bytes.write(`/registry/things/default/${number}`, 'latin1');
    store.putIf(bytes, 0, size, -1, bytes, size, size + valueBytes, 0);
    if (i % BATCH !== BATCH - 1) continue;
    while (store.isPending) await new Promise((resolve) => setImmediate(resolve));
  }
  while (store.isPending) await new Promise((resolve) => setImmediate(resolve));
  // As a crash leaves it: closing would write a snapshot.
  process.exit(0);
}

function open(dir: string): void {
  const before = process.threadCpuUsage();
  const startMs = performance.now();
  const opened = openStore(options(dir));
  const ms = performance.now() - startMs;
  const { user, system } = process.threadCpuUsage(before);
  const whole = process.cpuUsage();
  const figures: Figures = {
    ms,
    mainMs: (user + system) / 1000,
    cpuMs: (whole.user + whole.system) / 1000,
    rssMib: process.memoryUsage.rss() / 2 ** 20,
  };
  process.stdout.write(`${JSON.stringify({ ...figures, keys: opened.store.keys.size })}\n`);
  process.exit(0);
}

function child(...args: readonly string[]): string {
  const command = [...process.execArgv, import.meta.filename, ...args];
  const result = spawnSync(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (result.status !== 0) throw new Error(`${args[0]} ended with code ${result.status}`);
  return result.stdout.toString();
}

const [first = '1000000', second = '1024', third = '3'] = process.argv.slice(2);
if (first === OPEN_FLAG) {
  open(second);
} else if (first === 'fill') {
  await fill(second, Number(third), Number(process.argv[5]));
} else {
  const kept = process.env['MEGAPLANE_BENCH_DIR'];
  const dir = kept ?? mkdtempSync(join(tmpdir(), 'megaplane-restart-'));
  try {
    if (!existsSync(join(dir, 'lock'))) child('fill', dir, first, second);
    for (let run = 0; run < Number(third); run++) process.stdout.write(child(OPEN_FLAG, dir));
  } finally {
    if (kept === undefined) rmSync(dir, { recursive: true });
  }
}
