/**
 * What a snapshot costs the thread that answers: fills a store with keys in scattered order, then
 * writes it out as often as asked, beside nothing else.
 *
 *     node packages/store/src/snapshot/snapshots.bench.ts \
 *       [keys] [value bytes] [runs] [ordered|scattered]
 *     MEGAPLANE_BENCH_DIR=DIR ...     keeps the directory, to start from it
 *
 * `ordered`: keys are put in their own order, so that neighbours lie beside each other. Before the
 * second run history is compacted: what it writes is found by another way.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../open/open.ts';

const BATCH = 500;
const SETTLE_MS = 2000;

const [keys = 1_000_000, valueBytes = 400, runs = 3] = process.argv.slice(2, 5).map(Number);
const step = process.argv[5] === 'ordered' ? 1 : 7_368_787;

const kept = process.env['MEGAPLANE_BENCH_DIR'];
const dir = kept ?? mkdtempSync(join(tmpdir(), 'megaplane-snapshots-'));
const opened = openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
const { store } = opened;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const bytes = Buffer.alloc(64 + valueBytes, 'v');
for (let i = 0; i < keys; i++) {
  // A permutation as long as `keys` is no multiple of the prime.
  const number = String((i * step) % keys).padStart(12, '0');
  const size = bytes.write(`/registry/things/default/${number}`, 'latin1');
  store.putIf(bytes, 0, size, -1, bytes, size, size + valueBytes, 0);
  if (i % BATCH === BATCH - 1) while (store.isPending) await turn();
}
while (store.isPending) await turn();
await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));

const { log } = opened;
// The store's own timers keep nobody awake.
const awake = setInterval(() => {}, SETTLE_MS);
for (let run = 0; run < runs; run++) {
  if (run === 1) store.compact(store.appliedRevision);
  while (store.sweep.hasGarbage) await turn();
  const named = new Promise<void>((resolve) => {
    const onSnapshot = log?.onSnapshot;
    if (log !== null) {
      log.onSnapshot = () => {
        onSnapshot?.();
        log.onSnapshot = onSnapshot ?? (() => {});
        resolve();
      };
    }
  });
  const before = process.threadCpuUsage();
  const startMs = performance.now();
  opened.snapshot();
  await named;
  const { user, system } = process.threadCpuUsage(before);
  const mainMs = (user + system) / 1000;
  const mib = (log?.snapshotBytes ?? 0) / 2 ** 20;
  const tookMs = performance.now() - startMs;
  const perRecord = (mainMs * 1000) / keys;
  process.stdout.write(
    `${mib.toFixed(0)} MiB: ${mainMs.toFixed(0)} ms of the thread ` +
      `(${perRecord.toFixed(2)} us a record), ${tookMs.toFixed(0)} ms\n`,
  );
}
clearInterval(awake);
await opened.close();
if (kept === undefined) rmSync(dir, { recursive: true });
