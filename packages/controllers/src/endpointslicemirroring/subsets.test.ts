import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { planMirror } from './mirrored-slices.ts';
import { repack } from './subsets.ts';

const port = (number: number) => ({ port: number, protocol: 'TCP' });

test('subsets that say the same of addresses are one, in order; not ready beats ready', () => {
  const subsets = [
    { addresses: [{ ip: '10.0.0.3' }, { ip: '10.0.0.20' }], ports: [port(80)] },
    { addresses: [{ ip: '10.0.0.20' }, { ip: '10.0.0.3' }], ports: [port(81)] },
    { notReadyAddresses: [{ ip: '10.0.0.3' }], ports: [port(82)] },
    { addresses: [{ ip: '10.0.0.3' }, { ip: '10.0.0.1' }], ports: [port(82)] },
  ];
  const told = repack(subsets).map(({ ports, addresses }) => ({
    ports: ports.map((one) => objectAt({ one }, 'one')?.['port']),
    addresses: addresses.map(({ address, isReady }) => `${stringAt(address, 'ip')} ${isReady}`),
  }));
  assert.deepEqual(told, [
    { ports: [80, 81], addresses: ['10.0.0.20 true', '10.0.0.3 true'] },
    { ports: [82], addresses: ['10.0.0.1 true', '10.0.0.3 false'] },
  ]);
});

test('of a thousand and more addresses the first in order are copied', () => {
  const ips = Array.from({ length: 1_200 }, (_, i) => ({ ip: `10.0.${i >> 8}.${i & 255}` }));
  const endpoints = {
    metadata: { name: 's', namespace: 'd', uid: 'u' },
    subsets: [{ addresses: ips.toReversed(), ports: [port(80)] }],
  };
  const plan = planMirror(endpoints, []);
  const copied = listAt(plan.create[0], 'endpoints').map((one) => listAt(one, 'addresses')[0]);
  const sorted = ips.map(({ ip }) => ip).toSorted();
  assert.deepEqual(copied, sorted.slice(0, 1_000));
  assert.equal(plan.skipped, 200);
  assert.deepEqual(planMirror(endpoints, plan.create).update, []);
});
