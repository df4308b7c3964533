import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { spliceBinding } from './binding-splice.ts';
import { emptyRow } from './storage.ts';

function rowOf(object: JsonObject) {
  const row = emptyRow();
  // bytes of a neighbour on both sides, as in a slab
  row.bytes = Buffer.concat([Buffer.from('{"x":1}'), encodeCanonical(object), Buffer.from('{}')]);
  row.start = 7;
  row.end = row.bytes.length - 2;
  return row;
}

function pod(spec: JsonObject, status: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'p', uid: 'u1', ...metadata },
    spec: { containers: [{ name: 'c', image: 'i' }], serviceAccount: 'default', ...spec },
    status: { phase: 'Pending', ...status },
  };
}

test('an ordinary pod is bound by inserting bytes where upstream has the fields', () => {
  const plain = pod({ securityContext: {}, tolerations: [] }, { qosClass: 'BestEffort' });
  const bound = spliceBinding(rowOf(plain), 'node-1', 'u1', '2026-01-02T03:04:05Z');
  assert.deepEqual(JSON.parse(bound?.toString() ?? ''), {
    ...plain,
    spec: { ...(plain['spec'] as JsonObject), nodeName: 'node-1' },
    status: {
      phase: 'Pending',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'True',
          lastProbeTime: null,
          lastTransitionTime: '2026-01-02T03:04:05Z',
        },
      ],
      qosClass: 'BestEffort',
    },
  });
  assert.match(bound?.toString() ?? '', /"serviceAccount":"default","nodeName":"node-1","security/);
});

test('bound, gated, deleted, tried or foreign pods are left to the parser', () => {
  const unusual = [
    pod({ nodeName: 'n' }, {}),
    pod({ schedulingGates: [{ name: 'g' }] }, {}),
    pod({}, {}, { deletionTimestamp: '2026-01-02T03:04:05Z' }),
    pod({}, { conditions: [] }),
    pod({}, { nominatedNodeName: 'n' }),
  ];
  for (const object of unusual) {
    assert.equal(spliceBinding(rowOf(object), 'n', '', 't'), null, JSON.stringify(object));
  }
  assert.equal(spliceBinding(rowOf(pod({}, {})), 'n', 'other', 't'), null);
});
