// data plane: three million entries of 512 bytes, as a store keeps them
/**
 * Fills a key table, an ordered index, columns and a slab with entries, reads them by key and in
 * order, then updates 100,000 a second for a while and watches for pauses.
 *
 *     node packages/base/src/collections/entries.bench.ts [entries] [update seconds]
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { Float64Column, Uint32Column } from './column.ts';
import { LatencyHistogram } from '../metrics/histogram.ts';
import { KeyTable } from './keytable.ts';
import { OrderedIndex } from './ordered.ts';
import { Random } from '../random/random.ts';
import { Slab } from './slab.ts';

const ENTRIES = Number(process.argv[2] ?? 3_000_000);
const UPDATE_SECONDS = Number(process.argv[3] ?? 20);
const VALUE_BYTES = 512;
const KEY_BYTES = 48;
const UPDATES_PER_SECOND = 100_000;
const TURN_UPDATES_MAX = 500;
const PREFIXES = [
  '/registry/pods/default/load-',
  '/registry/leases/kube-node-lease/node-',
  '/registry/minions/node-',
];

const random = new Random(1);
const keys = new KeyTable({ random: random.fork('hash') });
const index = new OrderedIndex(keys);
const slab = new Slab();
const valueRef = new Uint32Column();
const valueLength = new Uint32Column();
const modRevision = new Float64Column();
const createRevision = new Float64Column();
const version = new Uint32Column();
const value = Buffer.alloc(VALUE_BYTES, 'x');

// Keys in the order of the requests: one request's bytes after the other, as in a socket's chunk.
const requests = Buffer.alloc(ENTRIES * KEY_BYTES);
const lengths = new Uint8Array(ENTRIES);
let keyBytes = 0;
for (let n = 0; n < ENTRIES; n++) {
  // A permutation: multiplication by an odd number modulo 2^32.
  const name = (Math.imul(n, 0x9e3779b1) >>> 0).toString(36).padStart(7, '0');
  const text = PREFIXES[n % 3]! + name;
  lengths[n] = requests.write(text, n * KEY_BYTES, 'latin1');
  keyBytes += lengths[n]!;
}

function report(what: string, count: number, startMs: number): void {
  const ms = performance.now() - startMs;
  const rate = Math.round(count / ms).toLocaleString('en');
  process.stdout.write(`${what.padEnd(34)} ${rate.padStart(8)} K/s  (${Math.round(ms)} ms)\n`);
}

// Another order for the reads: in the order of insertion they would find all in the cache.
const order = Uint32Array.from({ length: ENTRIES }, (_, n) => n);
for (let n = ENTRIES - 1; n > 0; n--) {
  const other = random.below(n + 1);
  const swapped = order[n]!;
  order[n] = order[other]!;
  order[other] = swapped;
}
const reads = Buffer.alloc(ENTRIES * KEY_BYTES);
const readLengths = new Uint8Array(ENTRIES);
for (let i = 0; i < ENTRIES; i++) {
  const start = order[i]! * KEY_BYTES;
  requests.copy(reads, i * KEY_BYTES, start, start + KEY_BYTES);
  readLengths[i] = lengths[order[i]!]!;
}

let revision = 0;

function put(n: number): void {
  const start = n * KEY_BYTES;
  const id = keys.insert(requests, start, start + lengths[n]!);
  if (keys.isNew) {
    index.insert(id);
    createRevision.set(id, ++revision);
  } else {
    slab.free(valueRef.get(id));
  }
  valueRef.set(id, slab.store(value, 0, VALUE_BYTES));
  valueLength.set(id, VALUE_BYTES);
  modRevision.set(id, revision);
  version.add(id, 1);
}

function fill(): void {
  // Fresh memory costs what the system wants for it (2 to 15 us a page on virtual machines): told
  // apart from the inserts.
  const reserveMs = performance.now();
  slab.reserve(ENTRIES * VALUE_BYTES * 1.01);
  const tookMs = Math.round(performance.now() - reserveMs);
  process.stdout.write(`taking ${slab.reservedBytes >>> 20} MiB from the system ${tookMs} ms\n`);
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  const batches = new LatencyHistogram();
  for (let n = 0; n < ENTRIES;) {
    const beforeMs = performance.now();
    for (const end = Math.min(ENTRIES, n + 100); n < end; n++) put(n);
    batches.record(performance.now() - beforeMs);
  }
  report('insert, random order, everything', ENTRIES, startMs);
  const { user, system } = process.cpuUsage(cpu);
  process.stdout.write(
    `  CPU: user ${Math.round(user / 1000)} ms, system ${Math.round(system / 1000)} ms\n`,
  );
  process.stdout.write(
    `  100 inserts: p50 ${batches.quantile(0.5).toFixed(2)} p99.9` +
      ` ${batches.quantile(0.999).toFixed(2)} max ${batches.max.toFixed(2)} ms\n`,
  );
}

function read(): void {
  let sum = 0;
  for (let round = 0; round < 3; round++) {
    let startMs = performance.now();
    for (let i = 0; i < ENTRIES; i++) {
      const start = i * KEY_BYTES;
      sum += keys.find(reads, start, start + readLengths[i]!);
    }
    report('point read: key to id', ENTRIES, startMs);
    startMs = performance.now();
    for (let i = 0; i < ENTRIES; i++) {
      const start = i * KEY_BYTES;
      const id = keys.find(reads, start, start + readLengths[i]!);
      const ref = valueRef.get(id);
      sum += slab.bytesAt(ref)[slab.startAt(ref)]! + modRevision.get(id);
    }
    report('point read: and value, revision', ENTRIES, startMs);
  }
  if (sum === 0) throw new Error('nothing was read');
}

function scan(): void {
  for (let round = 0; round < 3; round++) {
    let startMs = performance.now();
    let sum = 0;
    for (let at = index.first(); at >= 0; at = index.next(at)) sum += index.idAt(at);
    report('ordered scan: ids', ENTRIES, startMs);
    startMs = performance.now();
    for (let at = index.first(); at >= 0; at = index.next(at)) {
      const id = index.idAt(at);
      sum += valueRef.get(id) + valueLength.get(id) + modRevision.get(id);
    }
    report('ordered scan: with value, revision', ENTRIES, startMs);
    if (sum === 0) throw new Error('nothing was scanned');
  }
  const startMs = performance.now();
  let sum = 0;
  for (let n = 0; n < 300_000; n++) {
    const start = n * KEY_BYTES;
    sum += index.lowerBound(reads, start, start + readLengths[n]!);
  }
  report('rank of a key', 300_000, startMs);
  if (sum === 0) throw new Error('nothing was ranked');
}

function memory(): void {
  globalThis.gc?.();
  const columns = [valueRef, valueLength, modRevision, createRevision, version];
  const columnBytes = columns.reduce((sum, column) => sum + column.memoryBytes, 0);
  const payload = keyBytes + ENTRIES * VALUE_BYTES;
  const total =
    keys.memoryBytes + index.memoryBytes + columnBytes + slab.reservedBytes + slab.bookkeepingBytes;
  const input = requests.length + reads.length + order.byteLength + lengths.length;
  const { external, heapUsed, rss } = process.memoryUsage();
  const keyBlocks = keys.memoryBytes - keys.indexBytes - keyBytes;
  const valueBlocks = slab.reservedBytes + slab.bookkeepingBytes - ENTRIES * VALUE_BYTES;
  const per = (bytes: number): string => (bytes / ENTRIES).toFixed(1);
  process.stdout.write(
    `bytes an entry beyond key and value: ${per(total - payload)}` +
      ` (hash ${per(keys.indexBytes)}, key blocks ${per(keyBlocks)},` +
      ` order ${per(index.memoryBytes)}, columns ${per(columnBytes)},` +
      ` value blocks ${per(valueBlocks)})\n` +
      `  whole process: heap ${per(heapUsed)}, outside ${per(external - input)},` +
      ` resident ${per(rss - input)} an entry\n`,
  );
}

async function update(): Promise<void> {
  const gaps = new LatencyHistogram();
  const pauses: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) pauses.push(entry.duration);
  });
  observer.observe({ entryTypes: ['gc'] });
  const startMs = performance.now();
  const cpu = process.cpuUsage();
  let done = 0;
  let lastMs = startMs;
  let turnMsMax = 0;
  let switches = 0;
  while (lastMs - startMs < UPDATE_SECONDS * 1000) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    const nowMs = performance.now();
    const before = process.resourceUsage().involuntaryContextSwitches;
    // What the loop was blocked beyond the sleep that it asked for.
    gaps.record(nowMs - lastMs - 1);
    lastMs = nowMs;
    const wanted = ((nowMs - startMs) / 1000) * UPDATES_PER_SECOND;
    // After a stall the backlog is worked off in bounded turns, as a server does.
    for (let n = 0; n < TURN_UPDATES_MAX && done < wanted; n++) {
      revision++;
      put(random.below(ENTRIES));
      done++;
    }
    // A turn in which the system gave the core to a neighbour says nothing about this program.
    if (process.resourceUsage().involuntaryContextSwitches > before) switches++;
    else turnMsMax = Math.max(turnMsMax, performance.now() - nowMs);
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
  const { user, system } = process.cpuUsage(cpu);
  observer.disconnect();
  report(`updates for ${UPDATE_SECONDS} s`, done, startMs);
  process.stdout.write(
    `  loop late: p50 ${gaps.quantile(0.5).toFixed(2)} p99.9 ${gaps.quantile(0.999).toFixed(2)}` +
      ` max ${gaps.max.toFixed(2)} ms\n` +
      `  longest turn: ${turnMsMax.toFixed(2)} ms, without ${switches} that lost the core\n` +
      `  gc pauses: ${pauses.length}, longest ${Math.max(0, ...pauses).toFixed(2)} ms\n` +
      `  CPU: ${((user + system) / 1e4 / UPDATE_SECONDS).toFixed(0)} % of a core\n`,
  );
}

process.stdout.write(`${ENTRIES} entries of ${VALUE_BYTES} bytes, node ${process.version}\n`);
fill();
memory();
read();
scan();
if (UPDATE_SECONDS > 0) await update();
memory();
