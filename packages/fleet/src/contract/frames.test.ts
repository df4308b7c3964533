import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { messageTables } from '../../tools/message-tables.ts';
import { explainLine } from '../explain.ts';
import { frameJson, frameOf } from './frames.ts';
import { CapacityProvider } from './tables/provider.ts';
import { Shard } from './tables/shard.ts';

function proto(path: string): string {
  return readFileSync(new URL(`../../proto/${path}`, import.meta.url), 'utf8');
}

test('the tables say what the proto files say', () => {
  for (const [name, text] of messageTables(proto)) {
    const table = readFileSync(new URL(`tables/${name}`, import.meta.url), 'utf8');
    assert.equal(table, text, `${name}: run node packages/fleet/tools/generate.ts`);
  }
});

/** Frames written by hand from the numbers of the fields. */
const FRAMES: readonly (readonly [string, string, object])[] = [
  ['Hello', '0a026331' + '1a087631616c70686131', { clusterId: 'c1', protocolVersion: 'v1alpha1' }],
  [
    'CapacityNeed',
    '0a080a016b10011a0176' + '18feffffffffffffffff01' + '4a0167',
    {
      requirements: [{ key: 'k', operator: 'OPERATOR_IN', values: ['v'] }],
      priority: -2,
      group: 'g',
    },
  ],
  [
    'Machine',
    '0a016d' + '1003' + '39000000000000e03f' + '5800',
    { id: 'm', state: 'MACHINE_STATE_IDLE', pricePerHour: 0.5 },
  ],
  ['ListFilter', '0a020301', { states: ['MACHINE_STATE_IDLE', 'MACHINE_STATE_SPECULATIVE'] }],
  ['SnapshotSaveChunk', '1200', { data: '' }],
  [
    'TransitionAck',
    '0a016f' + '12050a016d1002',
    { operationId: 'o', machine: { id: 'm', state: 'MACHINE_STATE_CREATING' } },
  ],
];

test('frames mean what their numbers say', () => {
  for (const [name, hex, json] of FRAMES) {
    const bytes = Buffer.from(hex, 'hex');
    assert.deepEqual(frameJson(`bigfleet.v1alpha1.${name}`, bytes), json, name);
  }
});

test('numbers that are reserved are passed over, and so are unknown ones', () => {
  const bytes = Buffer.from('0a0131' + '1207' + '61'.repeat(7) + 'a00601', 'hex');
  assert.deepEqual(frameJson('bigfleet.v1alpha1.Hello', bytes), { clusterId: '1' });
});

test('what is no frame is refused with a reason, and ends nothing', () => {
  const ask = (question: object): { error?: string; hex?: string; json?: object } =>
    JSON.parse(explainLine(JSON.stringify(question)));
  const message = 'bigfleet.v1alpha1.Hello';
  assert.match(ask({ kind: 'decode', message, hex: '0aff' }).error ?? '', /./);
  assert.match(ask({ kind: 'decode', message, hex: '0' }).error ?? '', /pairs of hexadecimal/);
  assert.match(ask({ kind: 'decode', message: 'Nope', hex: '' }).error ?? '', /no message/);
  assert.match(
    ask({ kind: 'encode', message, json: { clusterId: 7 } }).error ?? '',
    /clusterId|string/,
  );
  assert.match(ask({ kind: 'encode', json: {} }).error ?? '', /full name/);
  assert.deepEqual(ask({ kind: 'encode', message, json: { clusterId: 'a' } }), { hex: '0a0161' });
});

test('each message goes through bytes and JSON unharmed', () => {
  const name = 'bigfleet.v1alpha1.NodeStateUpdate';
  const json = {
    machineId: 'm',
    labels: { __proto__x: '1', '': 'empty' },
    taints: [{ key: 'k', effect: 'NoSchedule' }],
  };
  assert.deepEqual(frameJson(name, frameOf(name, json)), json);
});

test('the published services have the published names', () => {
  assert.equal(Shard.typeName, 'bigfleet.v1alpha1.Shard');
  assert.equal(Shard.method.session.methodKind, 'bidi_streaming');
  assert.deepEqual(
    CapacityProvider.methods.map(({ name }) => name),
    ['Create', 'Configure', 'Drain', 'Delete', 'Get', 'List'],
  );
});
