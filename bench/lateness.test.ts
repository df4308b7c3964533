import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatorMetrics } from '@megaplane/nodes/simulator-metrics';
import { latenessBetween, lookAt } from './lateness.ts';

test('what was late before the first look is left out', () => {
  const metrics = new SimulatorMetrics();
  for (let at = 0; at < 1000; at++) metrics.renewed(30_000);
  const first = lookAt(metrics.text(), 0);
  assert.deepEqual(latenessBetween(first, first), { p99: NaN, max: NaN });
  for (let at = 0; at < 1000; at++) metrics.renewed(at < 995 ? 150 : 2500);
  metrics.errors = 3;
  const last = lookAt(metrics.text(), 1000);
  const { p99, max } = latenessBetween(first, last);
  assert.ok(p99 > 0.1 && p99 <= 0.15, String(p99));
  assert.equal(max, 3);
  assert.deepEqual([last.renewals - first.renewals, last.errors], [1000, 3]);
});
