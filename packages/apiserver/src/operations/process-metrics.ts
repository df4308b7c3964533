// shell: what the process itself takes
/** Memory, processor and start of this process, under the names that Go programs use. */
export function processMetrics(lines: string[]): void {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const startedMs = Date.now() - process.uptime() * 1000;
  const add = (name: string, kind: 'counter' | 'gauge', value: number): void => {
    lines.push(`# TYPE ${name} ${kind}`, `${name} ${value}`);
  };
  add('process_cpu_seconds_total', 'counter', (user + system) / 1e6);
  add('process_resident_memory_bytes', 'gauge', rss);
  add('process_start_time_seconds', 'gauge', startedMs / 1000);
  add('nodejs_heap_size_total_bytes', 'gauge', heapTotal);
  add('nodejs_heap_size_used_bytes', 'gauge', heapUsed);
  add('nodejs_external_memory_bytes', 'gauge', external);
}
