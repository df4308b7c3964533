// shell: what the operating system says about this process
import { readFileSync, readdirSync } from 'node:fs';
import { PerformanceObserver, monitorEventLoopDelay } from 'node:perf_hooks';
import { LatencyHistogram } from '@megaplane/base/histogram';

/** How often the event loop is looked at; what is shorter is not seen. */
const LOOK_MS = 20;
const loop = monitorEventLoopDelay({ resolution: LOOK_MS });
loop.enable();

/** Seconds that collections of garbage took, to the microsecond, and when the last one ended. */
const pauses = new LatencyHistogram(1e-6);
let collectedMs = 0;
new PerformanceObserver((list) => {
  for (const { duration, startTime } of list.getEntries()) {
    pauses.record(duration / 1000);
    collectedMs = startTime + duration;
  }
}).observe({ entryTypes: ['gc'] });

export interface ProcessStats {
  readonly residentBytes: number;
  readonly virtualBytes: number;
  readonly virtualBytesMax: number;
  readonly cpuSeconds: number;
  readonly startSeconds: number;
  /** 0 where it is not told. */
  readonly openFds: number;
  readonly maxFds: number;
  /** The longest that the event loop was late since the last call. */
  readonly stallSeconds: number;
  readonly threads: number;
  /** Bytes of the JavaScript heap, and of memory that it holds beside itself. */
  readonly heap: { readonly used: number; readonly total: number; readonly beside: number };
  /** Seconds that collections of garbage took. */
  readonly pauses: LatencyHistogram;
  /** Since 1970; the start, before the first one. */
  readonly collectedSeconds: number;
}

/** Read once: at the time of trouble no file may open. */
let limits: string | null = null;

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (isUntold(error)) return '';
    throw error;
  }
}

/** There is no /proc on other systems than Linux, and no file opens when too many are open. */
function isUntold(error: unknown): boolean {
  return ['ENOENT', 'EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** 0 where it is not told, the limit when there is none left to look. */
function openFiles(max: number): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch (error) {
    if (isUntold(error)) return max;
    throw error;
  }
}

/** What this process holds, in bytes; and how many files it may have open, 0 where not told. */
export function processSizes(): ProcessSizes {
  const { rss, heapUsed, heapTotal } = process.memoryUsage();
  return { residentBytes: rss, usedBytes: heapUsed, heapBytes: heapTotal, maxFds: maxFiles() };
}

export interface ProcessSizes {
  readonly residentBytes: number;
  /** Of the JavaScript heap. */
  readonly usedBytes: number;
  readonly heapBytes: number;
  readonly maxFds: number;
}

function maxFiles(): number {
  limits ??= read('/proc/self/limits') || null;
  return Number(/^Max open files\s+(\d+)/m.exec(limits ?? '')?.[1] ?? 0);
}

export function processStats(): ProcessStats {
  const { user, system } = process.cpuUsage();
  const stallMs = loop.count === 0 ? 0 : Math.max(0, loop.max / 1e6 - LOOK_MS);
  loop.reset();
  const maxFds = maxFiles();
  const space = /^Max address space\s+(\d+)/m.exec(limits ?? '');
  const status = read('/proc/self/status');
  const virtual = /^VmSize:\s+(\d+) kB/m.exec(status);
  const threads = /^Threads:\s+(\d+)/m.exec(status);
  const memory = process.memoryUsage();
  return {
    residentBytes: memory.rss,
    heap: { used: memory.heapUsed, total: memory.heapTotal, beside: memory.external },
    threads: Number(threads?.[1] ?? 0),
    pauses,
    collectedSeconds: (performance.timeOrigin + collectedMs) / 1000,
    virtualBytes: Number(virtual?.[1] ?? 0) * 1024,
    cpuSeconds: (user + system) / 1e6,
    startSeconds: performance.timeOrigin / 1000,
    // As Go's collector has it, which tells "unlimited" as the largest number.
    virtualBytesMax: Number(space?.[1] ?? 2 ** 64),
    openFds: openFiles(maxFds),
    maxFds,
    stallSeconds: stallMs / 1000,
  };
}
