import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Identities } from './identities.ts';
import { NodeTable } from './node-table.ts';
import type { PodFacts } from './pod-facts.ts';
import { PodReader } from './pod-reader.ts';
import { EVICTED } from './pod-table.ts';

function setup(): { identities: Identities; nodes: NodeTable; reader: PodReader } {
  const random = new Random(1);
  const nodes = new NodeTable(random);
  const identities = new Identities(nodes.usages);
  return { identities, nodes, reader: new PodReader(identities, nodes, random) };
}

function read(reader: PodReader, pod: object): PodFacts {
  const bytes = Buffer.from(JSON.stringify(pod));
  assert.equal(reader.read(bytes, 0, bytes.length), true);
  return { ...reader.facts };
}

/** A pod as an API server stores it, with the names that it makes up. */
function stored(suffix: string, change: object = {}): object {
  const token = `kube-api-access-${suffix}`;
  const mount = { name: token, mountPath: '/var/run/secrets', readOnly: true };
  return {
    kind: 'Pod',
    metadata: { name: `p-${suffix}`, namespace: 'web', labels: { app: 'a' } },
    spec: {
      volumes: [{ name: token, projected: { sources: [] } }],
      containers: [
        {
          name: 'c',
          image: 'pause',
          resources: { requests: { cpu: '100m' } },
          volumeMounts: [mount],
        },
      ],
      schedulerName: 'default-scheduler',
      ...change,
    },
    status: { phase: 'Pending' },
  };
}

test('pods of a template are one class whatever names were made up for them', () => {
  const { reader, identities } = setup();
  const one = read(reader, stored('abcde'));
  const other = read(reader, stored('fghij'));
  assert.equal(one.podClass, other.podClass);
  assert.equal(one.labels, other.labels);
  assert.equal(identities.namespaces.get(one.namespace), 'web');
  assert.equal(identities.classes.get(one.podClass).requests.milliCpu, 100);
});

test('where a pod runs is no part of its class', () => {
  const { reader, nodes } = setup();
  const pending = read(reader, stored('a'));
  const bound = read(reader, stored('a', { nodeName: 'n1' }));
  assert.equal(pending.podClass, bound.podClass);
  assert.equal(pending.node, -1);
  assert.equal(nodes.nameOf(bound.node), 'n1');
});

test('what placement depends on makes another class', () => {
  const { reader } = setup();
  const plain = read(reader, stored('a')).podClass;
  const container = { name: 'c', image: 'pause', resources: { requests: { cpu: '200m' } } };
  const claim = { name: 'data', persistentVolumeClaim: { claimName: 'x' } };
  const changes: object[] = [
    { containers: [container] },
    { initContainers: [{ name: 'i', resources: { requests: { cpu: '2' } } }] },
    { priority: 7 },
    { nodeSelector: { disk: 'ssd' } },
    { tolerations: [{ operator: 'Exists' }] },
    { schedulingGates: [{ name: 'g' }] },
    { volumes: [claim] },
    { schedulerName: 'other' },
  ];
  const classes = changes.map((change) => read(reader, stored('a', change)).podClass);
  assert.equal(new Set([plain, ...classes]).size, changes.length + 1);
});

test('the uid, the start and the nomination are read', () => {
  const { reader } = setup();
  const facts = read(reader, {
    metadata: { name: 'p', namespace: 'n', uid: '01234567-89ab-cdef-0123-456789abcdef' },
    spec: {},
    status: { startTime: '2030-01-01T00:00:00Z', nominatedNodeName: 'n7' },
  });
  assert.deepEqual([...facts.uid], [0x01234567, 0x89abcdef, 0x01234567, 0x89abcdef]);
  assert.equal(facts.startMs, Date.UTC(2030, 0, 1));
  assert.equal(facts.nominated, 'n7');
});

test('a pod that leaves for another one is told from one that just leaves', () => {
  const { reader } = setup();
  const metadata = { name: 'p', namespace: 'n', deletionTimestamp: '2030-01-01T00:00:00Z' };
  const reason = 'PreemptionByScheduler';
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason }];
  assert.equal(read(reader, { metadata, spec: {} }).isTerminating, 1);
  assert.equal(read(reader, { metadata, spec: {}, status: { conditions } }).isTerminating, EVICTED);
});

test('a pod in the middle of a resize takes the larger of what it wants and has', () => {
  const { reader, nodes } = setup();
  const facts = read(reader, {
    metadata: { name: 'p', namespace: 'n' },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] },
    status: {
      containerStatuses: [
        {
          name: 'c',
          resources: { requests: { cpu: '3' } },
          allocatedResources: { cpu: '2' },
        },
      ],
    },
  });
  assert.equal(nodes.usages.get(facts.usage).milliCpu, 3000);
});

test('a pod whose own resources are resized takes the larger of what it wants and has', () => {
  const { reader, nodes } = setup();
  const milliCpuWith = (status: object): number => {
    const facts = read(reader, {
      metadata: { name: 'p', namespace: 'n' },
      spec: { resources: { requests: { cpu: '1' } }, containers: [{ name: 'c' }] },
      status,
    });
    return nodes.usages.get(facts.usage).milliCpu;
  };
  const resources = { requests: { cpu: '2' } };
  assert.equal(milliCpuWith({ resources, allocatedResources: { cpu: '3' } }), 3000);
  assert.equal(milliCpuWith({ resources: { requests: { cpu: '500m' } } }), 1000);
  const conditions = [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible' }];
  assert.equal(milliCpuWith({ resources: { requests: { cpu: '500m' } }, conditions }), 500);
});

test('what is no pod is refused', () => {
  const { reader } = setup();
  for (const text of ['', '[]', '{"metadata":{}}', 'x']) {
    const bytes = Buffer.from(text);
    assert.equal(reader.read(bytes, 0, bytes.length), false, text);
  }
});
