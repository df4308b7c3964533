import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processMetrics } from './process-metrics.ts';

test('a process tells its memory, its processor time and its descriptors', () => {
  const text = processMetrics();
  const valueOf = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  assert(valueOf('process_resident_memory_bytes') > 2 ** 20);
  assert(valueOf('process_cpu_seconds_total') > 0);
  assert(valueOf('process_start_time_seconds') > 1e9);
  assert(valueOf('nodejs_heap_size_used_bytes') > 2 ** 20);
  if (process.platform === 'linux') assert(valueOf('process_open_fds') > 2);
  assert(text.startsWith('# HELP process_cpu_seconds_total'));
});
