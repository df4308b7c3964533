import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PodAddresses } from './pod-addresses.ts';
import { PodCensus } from './pod-census.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

test('a pod begins once; what comes to its row later begins anew', () => {
  const metrics = new SimulatorMetrics();
  const census = new PodCensus(metrics, new PodAddresses('10.0.0.0/24'));
  const see = (isNew: boolean, phase: string): void => {
    const bytes = Buffer.from(JSON.stringify({ metadata: { name: 'p' }, status: { phase } }));
    census.handler.onUpsert(3, isNew, bytes, 0, bytes.length);
  };
  see(true, 'Pending');
  assert.equal(census.begins(3), true);
  see(false, 'Running');
  assert.equal(census.begins(3), false);
  assert.deepEqual([metrics.podsBound, metrics.podsRunning], [1, 1]);
  census.handler.onDelete(3, Buffer.alloc(0), 0, 0);
  see(true, 'Pending');
  assert.equal(census.begins(3), true);
  assert.deepEqual([metrics.podsBound, metrics.podsRunning], [1, 0]);
});
