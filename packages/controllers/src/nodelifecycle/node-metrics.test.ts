import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zoneLines } from './node-metrics.ts';
import { Zone } from './zones.ts';

test('zones are told under the names of upstream', () => {
  const some = new Zone('r:z1', 0.1);
  some.ready = 3;
  some.notReady = 1;
  some.evictions = 2;
  const none = new Zone(':', 0.1);
  const lost = new Zone(':', 0.1);
  lost.evictions = 1;
  assert.deepEqual(
    zoneLines([some, none, lost]).filter((line) => !line.startsWith('#')),
    [
      'node_collector_evictions_total{zone="r:\0:z1"} 2',
      'node_collector_evictions_total{zone=""} 1',
      'node_collector_unhealthy_nodes_in_zone{zone="r:\0:z1"} 1',
      'node_collector_unhealthy_nodes_in_zone{zone=""} 0',
      'node_collector_zone_health{zone="r:\0:z1"} 75',
      'node_collector_zone_health{zone=""} 100',
      'node_collector_zone_size{zone="r:\0:z1"} 4',
      'node_collector_zone_size{zone=""} 0',
    ],
  );
});
