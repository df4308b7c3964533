import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ABSENT,
  conditionIn,
  FALSE,
  LABELS_DIFFER,
  NO_EXECUTE_ANY,
  NO_EXECUTE_UNREACHABLE,
  NO_SCHEDULE_MASK,
  NO_SCHEDULE_SHIFT,
  OUT_OF_SERVICE,
  TRUE,
  UNKNOWN,
  UNSCHEDULABLE,
  wantedNoSchedule,
} from './node-flags.ts';
import { NodeScan } from './node-scan.ts';

const scan = new NodeScan();

function read(object: unknown): NodeScan {
  const bytes = Buffer.from(`  ${JSON.stringify(object)}`);
  assert(scan.scan(bytes, 2, bytes.length));
  return scan;
}

test('conditions, taints and labels of a node become bits', () => {
  const bytes = Buffer.from(
    JSON.stringify({
      metadata: {
        name: 'n',
        labels: {
          'kubernetes.io/os': 'linux',
          'topology.kubernetes.io/zone': 'z1',
          'topology.kubernetes.io/region': 'r1',
        },
      },
      spec: {
        unschedulable: true,
        taints: [
          { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: 't' },
          { effect: 'NoSchedule', key: 'node.kubernetes.io/disk-pressure' },
          { key: 'node.kubernetes.io/out-of-service', value: 'x', effect: 'NoExecute' },
          { key: 'other', effect: 'NoSchedule' },
        ],
      },
      status: {
        conditions: [
          { type: 'DiskPressure', status: 'True' },
          { lastHeartbeatTime: '2026-01-01T00:00:00Z', status: 'Unknown', type: 'Ready' },
          { type: 'PIDPressure', status: 'False' },
        ],
      },
    }),
  );
  assert(scan.scan(bytes, 0, bytes.length));
  assert.equal(conditionIn(scan.bits, 0), UNKNOWN);
  assert.equal(conditionIn(scan.bits, 1), ABSENT);
  assert.equal(conditionIn(scan.bits, 2), TRUE);
  assert.equal(conditionIn(scan.bits, 3), FALSE);
  assert.equal((scan.bits & NO_SCHEDULE_MASK) >> NO_SCHEDULE_SHIFT, 8);
  const flags = NO_EXECUTE_ANY | NO_EXECUTE_UNREACHABLE | OUT_OF_SERVICE;
  assert.equal(scan.bits & flags, flags);
  assert.notEqual(scan.bits & UNSCHEDULABLE, 0);
  assert.notEqual(scan.bits & LABELS_DIFFER, 0);
  assert.equal(bytes.toString('latin1', scan.zoneStart, scan.zoneEnd), 'z1');
  assert.equal(bytes.toString('latin1', scan.regionStart, scan.regionEnd), 'r1');
  assert.equal(
    bytes.toString('latin1', scan.taintsStart, scan.taintsEnd).startsWith('[{"key"'),
    true,
  );
  assert.equal(wantedNoSchedule(scan.bits) >> NO_SCHEDULE_SHIFT, 2 | 8 | 64);
});

test('a heartbeat shows as a change, and an empty node as nothing', () => {
  const at = (lastHeartbeatTime: string): number =>
    read({ status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] } })
      .heartbeat;
  assert.equal(at('a'), at('a'));
  assert.notEqual(at('a'), at('b'));
  const empty = read({ metadata: { name: 'x' }, spec: {}, status: {} });
  assert.deepEqual([empty.bits, empty.heartbeat, empty.zoneEnd], [0, 0, 0]);
  const none = read({ spec: { taints: [] }, status: { conditions: [] } });
  assert.deepEqual([none.bits, none.heartbeat], [0, 0]);
});
