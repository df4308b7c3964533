// shell: what the operating system says about this process
import { readFileSync, readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the event loop is looked at; what is shorter is not seen. */
const LOOK_MS = 20;
const loop = monitorEventLoopDelay({ resolution: LOOK_MS });
loop.enable();

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

export function processStats(): ProcessStats {
  const { user, system } = process.cpuUsage();
  const stallMs = loop.count === 0 ? 0 : Math.max(0, loop.max / 1e6 - LOOK_MS);
  loop.reset();
  limits ??= read('/proc/self/limits') || null;
  const maxFds = Number(/^Max open files\s+(\d+)/m.exec(limits ?? '')?.[1] ?? 0);
  const space = /^Max address space\s+(\d+)/m.exec(limits ?? '');
  const virtual = /^VmSize:\s+(\d+) kB/m.exec(read('/proc/self/status'));
  return {
    residentBytes: process.memoryUsage.rss(),
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
