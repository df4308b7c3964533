import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ServiceSliceMetrics } from '../endpointslice/endpoint-metrics.ts';
import { MetricsRegistry } from './metrics-registry.ts';

/** Without what people read. */
function valuesOf(board: MetricsRegistry): string[] {
  return board
    .text()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# HELP'));
}

test('what has no labels is told from the start, the rest once it is counted', () => {
  const board = new MetricsRegistry();
  const plain = board.counter('plain_total', 'p');
  const labelled = board.counter('labelled_total', 'l', ['who']);
  assert.deepEqual(valuesOf(board), ['# TYPE plain_total counter', 'plain_total 0']);
  plain.add();
  labelled.add(['a "b"\\c\n']);
  board.counter('labelled_total', 'the same again', ['who']).add(['d'], 2);
  assert.deepEqual(valuesOf(board), [
    '# TYPE labelled_total counter',
    'labelled_total{who="a \\"b\\"\\\\c\\n"} 1',
    'labelled_total{who="d"} 2',
    '# TYPE plain_total counter',
    'plain_total 1',
  ]);
});

test('gauges tell of nothing that is there no more, and are read when somebody asks', () => {
  const board = new MetricsRegistry();
  const gauge = board.gauge('there', 't', ['what']);
  gauge.add(['x']);
  gauge.add(['x'], -1);
  gauge.set(['y'], 7);
  let count = 1;
  board.reading('read', 'r', [], () => [[[], count]]);
  count = 5;
  const told = ['# TYPE read gauge', 'read 5', '# TYPE there gauge', 'there{what="y"} 7'];
  assert.deepEqual(valuesOf(board), told);
});

test('buckets are named as the Go client names them', () => {
  const board = new MetricsRegistry();
  board.histogram('h', 'h', [0.00001, 0.5, 1_048_576]).record(0.5);
  assert.deepEqual(valuesOf(board), [
    '# TYPE h histogram',
    'h_bucket{le="1e-05"} 0',
    'h_bucket{le="0.5"} 1',
    'h_bucket{le="1.048576e+06"} 1',
    'h_bucket{le="+Inf"} 1',
    'h_sum 0.5',
    'h_count 1',
  ]);
});

test('slices tell what a sync added, removed and changed, and how many there are', () => {
  const slice = (name: string, ...addresses: string[]): JsonObject => ({
    metadata: { name },
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  });
  const board = new MetricsRegistry();
  const metrics = new ServiceSliceMetrics(board, 2);
  const before = [slice('a', '10.0.0.1', '10.0.0.2'), slice('b', '10.0.0.3')];
  const changes = { create: [], update: [slice('b', '10.0.0.3', '10.0.0.4')], gone: [] };
  const spec = { trafficDistribution: 'PreferClose' };
  metrics.served('n/s', { spec }, before, changes, false);
  metrics.ended(true);
  const values = valuesOf(board).filter((line) => !/_bucket|_count |# /.test(line));
  const name = 'endpoint_slice_controller';
  const distribution = 'traffic_distribution="PreferClose"';
  assert.deepEqual(values, [
    `${name}_changes{operation="update"} 1`,
    `${name}_desired_endpoint_slices 2`,
    `${name}_endpoints_added_per_sync_sum 1`,
    `${name}_endpoints_desired 4`,
    `${name}_endpoints_removed_per_sync_sum 0`,
    `${name}_endpointslices_changed_per_sync_sum{topology="Disabled",${distribution}} 1`,
    `${name}_endpointslices_changed_per_sync_count{topology="Disabled",${distribution}} 1`,
    `${name}_num_endpoint_slices 2`,
    `${name}_services_count_by_traffic_distribution{${distribution}} 1`,
    `${name}_syncs{result="success"} 1`,
  ]);
  metrics.forget('n/s');
  assert(valuesOf(board).includes(`${name}_num_endpoint_slices 0`));
});
