// shell: what the process itself takes
import { printFamily } from './metric-families.ts';
import { readdirSync, readFileSync } from 'node:fs';

const PAGE_BYTES = 4096;

/** Memory, processor and start of this process, under the names that Go programs use. */
export function processMetrics(lines: string[]): void {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const startedMs = Date.now() - process.uptime() * 1000;
  const add = (name: string, value: number): void => {
    printFamily(lines, name);
    lines.push(`${name} ${value}`);
  };
  add('process_cpu_seconds_total', (user + system) / 1e6);
  add('process_resident_memory_bytes', rss);
  add('process_start_time_seconds', startedMs / 1000);
  for (const [name, value] of fromKernel()) add(name, value);
  add('go_goroutines', process.getActiveResourcesInfo().length);
  add('go_memstats_alloc_bytes', heapUsed);
  add('go_memstats_heap_inuse_bytes', heapTotal);
  add('nodejs_heap_size_total_bytes', heapTotal);
  add('nodejs_heap_size_used_bytes', heapUsed);
  add('nodejs_external_memory_bytes', external);
}

/** As Go's collector tells "unlimited": the largest number of 64 bits. */
function addressSpace(limits: string): number {
  const [, most = 'unlimited'] = /^Max address space +(\S+)/m.exec(limits) ?? [];
  return most === 'unlimited' ? 2 ** 64 : Number(most);
}

/** Of the network namespace: the kernel counts for all who are in it, which upstream tells, too. */
function networkBytes(): [string, number][] {
  const text = readFileSync('/proc/self/net/netstat', 'latin1');
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith('IpExt:'))
    .map((line) => line.split(' '));
  const [received = '', sent = ''] = ['InOctets', 'OutOctets'].map(
    (name) => values[names.indexOf(name)],
  );
  if (received === '' || sent === '') return [];
  return [
    ['process_network_receive_bytes_total', Number(received)],
    ['process_network_transmit_bytes_total', Number(sent)],
  ];
}

/** What Linux alone tells; nothing elsewhere. */
function fromKernel(): [string, number][] {
  try {
    const [pages = '0'] = readFileSync('/proc/self/statm', 'latin1').split(' ');
    const limits = readFileSync('/proc/self/limits', 'latin1');
    const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
    return [
      ['process_open_fds', readdirSync('/proc/self/fd').length],
      ...(most === undefined ? [] : [['process_max_fds', Number(most)] as [string, number]]),
      ['process_virtual_memory_bytes', Number(pages) * PAGE_BYTES],
      ['process_virtual_memory_max_bytes', addressSpace(limits)],
      ...networkBytes(),
    ];
  } catch {
    return [];
  }
}
