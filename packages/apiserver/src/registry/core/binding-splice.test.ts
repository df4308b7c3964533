import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { spliceBinding } from './binding-splice.ts';
import { emptyRow } from '../../storage/storage.ts';

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
  const bound = spliceBinding(rowOf(plain), {
    nodeName: 'node-1',
    uid: 'u1',
    labels: {},
    timestamp: '2026-01-02T03:04:05Z',
  });
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

const BINDING = { nodeName: 'n', uid: '', labels: {}, timestamp: 't' };
const ZONE = 'topology.kubernetes.io/zone';

test('labels of the binding join those of the pod, unless one is there already', () => {
  const creationTimestamp = '2026-01-02T03:04:05Z';
  const bind = (metadata: JsonObject): JsonObject | null => {
    const binding = { ...BINDING, labels: { [ZONE]: 'a "b"', x: '' } };
    const bound = spliceBinding(rowOf(pod({}, {}, metadata)), binding);
    if (bound === null) return null;
    const object = JSON.parse(bound.toString()) as { metadata: JsonObject; spec: JsonObject };
    assert.equal(object.spec['nodeName'], 'n');
    return object.metadata;
  };
  const base = { name: 'p', uid: 'u1', creationTimestamp };
  const added = { [ZONE]: 'a "b"', x: '' };
  const finalizers = ['a/b'];
  assert.deepEqual(bind({ creationTimestamp, finalizers }), { ...base, labels: added, finalizers });
  assert.deepEqual(bind({ creationTimestamp, labels: {}, finalizers }), {
    ...base,
    labels: added,
    finalizers,
  });
  const labels = { app: '}', z: 'x' };
  assert.deepEqual(bind({ labels, creationTimestamp }), {
    ...base,
    labels: { ...labels, ...added },
  });
  assert.equal(bind({ creationTimestamp, labels: { [ZONE]: 'c' } }), null);
  assert.equal(bind({ creationTimestamp, labels: { x: '' } }), null);
  assert.equal(bind({}), null, 'without a time there is no place for labels');
});

test('labels stand in the order of their names, as Go writes maps', () => {
  const creationTimestamp = '2026-01-02T03:04:05Z';
  const labels = { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r' };
  const textOf = (own: JsonObject): string | undefined => {
    const row = rowOf(pod({}, {}, { creationTimestamp, labels: own }));
    const bound = spliceBinding(row, { ...BINDING, labels })?.toString();
    return bound && /"labels":({.*?})/.exec(bound)?.[1]?.replaceAll('topology.kubernetes.io/', '');
  };
  assert.equal(textOf({}), '{"region":"r","zone":"z"}');
  assert.equal(textOf({ app: 'a' }), '{"app":"a","region":"r","zone":"z"}');
  assert.equal(textOf({ version: 'v' }), '{"region":"r","zone":"z","version":"v"}');
  const both = textOf({ app: 'a', track: 't', version: 'v' });
  assert.equal(both, '{"app":"a","region":"r","zone":"z","track":"t","version":"v"}');
  assert.equal(textOf({ 'topology.kubernetes.io/some': 's' }), undefined);
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
    assert.equal(spliceBinding(rowOf(object), BINDING), null, JSON.stringify(object));
  }
  assert.equal(spliceBinding(rowOf(pod({}, {})), { ...BINDING, uid: 'other' }), null);
});
