// shell: what the process itself takes
/** Memory, processor and descriptors of this process, under the names that Go programs use. */
import { readdirSync, readFileSync } from 'node:fs';
import { Exposition } from './exposition.ts';

/** The part of a page of metrics that every program has. */
export function processMetrics(): string {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const out = new Exposition();
  const add = (name: string, type: 'counter' | 'gauge', help: string, value: number): void => {
    out.family(name, type, help);
    out.value({}, value);
  };
  const startedSeconds = Date.now() / 1000 - process.uptime();
  const waiting = process.getActiveResourcesInfo().length;
  add('process_cpu_seconds_total', 'counter', 'Processor time.', (user + system) / 1e6);
  add('process_resident_memory_bytes', 'gauge', 'Resident memory.', rss);
  add('process_start_time_seconds', 'gauge', 'When the process began.', startedSeconds);
  for (const [name, help, value] of ofKernel()) add(name, 'gauge', help, value);
  add('go_goroutines', 'gauge', 'What the event loop waits for.', waiting);
  add('nodejs_heap_size_total_bytes', 'gauge', 'Heap of the engine.', heapTotal);
  add('nodejs_heap_size_used_bytes', 'gauge', 'Of it in use.', heapUsed);
  add('nodejs_external_memory_bytes', 'gauge', 'Memory outside of the heap.', external);
  return out.toString();
}

/** What Linux alone tells; nothing elsewhere. */
function ofKernel(): [name: string, help: string, value: number][] {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const most = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 0);
    const open = readdirSync('/proc/self/fd').length;
    return [
      ['process_open_fds', 'Open descriptors.', open],
      ['process_max_fds', 'Descriptors that it may open.', most],
    ];
  } catch {
    return [];
  }
}
