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
  readonly cpuSeconds: number;
  readonly startSeconds: number;
  /** 0 where it is not told. */
  readonly openFds: number;
  readonly maxFds: number;
  /** The longest that the event loop was late since the last call. */
  readonly stallSeconds: number;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    // There is no /proc on other systems than Linux.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

export function processStats(): ProcessStats {
  const { user, system } = process.cpuUsage();
  const stallMs = loop.count === 0 ? 0 : Math.max(0, loop.max / 1e6 - LOOK_MS);
  loop.reset();
  const limits = /^Max open files\s+(\d+)/m.exec(read('/proc/self/limits'));
  const isLinux = limits !== null;
  const virtual = /^VmSize:\s+(\d+) kB/m.exec(read('/proc/self/status'));
  return {
    residentBytes: process.memoryUsage.rss(),
    virtualBytes: Number(virtual?.[1] ?? 0) * 1024,
    cpuSeconds: (user + system) / 1e6,
    startSeconds: performance.timeOrigin / 1000,
    openFds: isLinux ? readdirSync('/proc/self/fd').length : 0,
    maxFds: Number(limits?.[1] ?? 0),
    stallSeconds: stallMs / 1000,
  };
}
