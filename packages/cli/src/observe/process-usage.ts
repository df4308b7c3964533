// shell: reads what the kernel says of processes
/** What the processes of a cluster use: memory and processor time, as the kernel counts them. */
import { readFileSync } from 'node:fs';

/** Clock ticks per second in /proc, fixed by Linux for all programs at 100. */
const TICKS_PER_SECOND = 100;

export interface ProcessUsage {
  readonly rssMib: number;
  readonly rssPeakMib: number;
  readonly cpuSeconds: number;
}

/** Usage of one process; undefined where it is gone or the system has no /proc. */
export function processUsage(pid: number): ProcessUsage | undefined {
  const status = read(`/proc/${pid}/status`);
  const stat = read(`/proc/${pid}/stat`);
  if (status === undefined || stat === undefined) return undefined;
  // The name in brackets may hold anything, so fields are counted from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    rssMib: kib(status, 'VmRSS') / 1024,
    rssPeakMib: kib(status, 'VmHWM') / 1024,
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
  };
}

function kib(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? NaN);
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
