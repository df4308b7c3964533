import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { keepAllocated } from './service-fields.ts';
import { givePorts, portRange, portsOfDryRun } from './service-ports.ts';
import { AllocationCounts } from '../../metrics/allocation-counts.ts';

const lowest = (): number => 0;

function service(spec: JsonObject): JsonObject {
  return { metadata: { name: 's' }, spec };
}

test('ports of one number share a node port, and a balancer has its health asked', () => {
  const ports = [
    { name: 'a', port: 53, protocol: 'TCP' },
    { name: 'b', port: 53, protocol: 'UDP' },
    { name: 'c', port: 80, protocol: 'TCP', nodePort: 30005 },
  ];
  const one = service({ type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports });
  assert.equal(
    givePorts(one, portRange(new Set([30001]), lowest, new AllocationCounts()), false),
    null,
  );
  const spec = one['spec'] as JsonObject;
  const given = (spec['ports'] as JsonObject[]).map((port) => port['nodePort']);
  assert.deepEqual(given, [30000, 30000, 30005]);
  assert.equal(spec['healthCheckNodePort'], 30002);
});

test('a node port that is taken, or out of range, is refused in upstream’s words', () => {
  const refusal = (nodePort: number): string => {
    const one = service({ type: 'NodePort', ports: [{ port: 80, nodePort }] });
    return (
      givePorts(one, portRange(new Set([30001]), lowest, new AllocationCounts()), false)?.message ??
      ''
    );
  };
  const path = 'Service "s" is invalid: spec.ports[0].nodePort: Invalid value';
  assert.equal(refusal(30001), `${path}: 30001: provided port is already allocated`);
  assert.equal(
    refusal(80),
    `${path}: 80: provided port is not in the valid range. The range of valid ports is 30000-32767`,
  );
  assert.equal(refusal(30002), '');
});

test('a dry run takes any port, and shows one beyond the range', () => {
  const one = service({ type: 'NodePort', ports: [{ port: 80 }] });
  assert.equal(givePorts(one, portsOfDryRun(new Set()), false), null);
  assert.deepEqual(one['spec'], { type: 'NodePort', ports: [{ port: 80, nodePort: 32769 }] });
});

test('a dry run refuses a port that somebody has, an update the same one twice', () => {
  const ports = [{ port: 80, nodePort: 30001, protocol: 'TCP' }];
  const taken = givePorts(
    service({ type: 'NodePort', ports }),
    portsOfDryRun(new Set([30001])),
    false,
  );
  assert.match(taken?.message ?? '', /provided port is already allocated$/);
  const twice = service({ type: 'NodePort', ports: [...ports, { ...ports[0], port: 81 }] });
  const refusal = givePorts(twice, portRange(new Set(), lowest, new AllocationCounts()), true);
  assert.equal(refusal?.message, 'duplicate nodePort: {TCP 30001}');
  assert.equal(refusal.code, 500);
});

test('a change that leaves out what was allocated keeps it', () => {
  const previous = service({
    type: 'NodePort',
    clusterIP: '10.96.0.5',
    clusterIPs: ['10.96.0.5'],
    ports: [
      { name: 'a', port: 1, nodePort: 30001 },
      { name: 'b', port: 2, nodePort: 30002 },
    ],
  });
  const ports = [
    { name: 'a', port: 3 },
    { name: 'b', port: 4, nodePort: 30005 },
  ];
  const next = service({ type: 'NodePort', ports });
  keepAllocated(next, previous);
  assert.deepEqual(next['spec'], {
    type: 'NodePort',
    clusterIP: '10.96.0.5',
    clusterIPs: ['10.96.0.5'],
    ports: [
      { name: 'a', port: 3, nodePort: 30001 },
      { name: 'b', port: 4, nodePort: 30005 },
    ],
  });
});
