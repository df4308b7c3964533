import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Attempt } from '../queue/attempt.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import type { KubeObject } from '../api/objects.ts';

const PROVISIONED = {
  kind: 'StorageClass',
  metadata: { name: 'slow' },
  provisioner: 'csi.example',
  volumeBindingMode: 'WaitForFirstConsumer',
};

function volume(name: string, zone: string, size: string, change: object = {}): object {
  const values = [zone];
  const matchExpressions = [{ key: 'zone', operator: 'In', values }];
  return {
    kind: 'PersistentVolume',
    metadata: { name, resourceVersion: '5' },
    spec: {
      capacity: { storage: size },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'slow',
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      ...change,
    },
    status: { phase: 'Available' },
  };
}

function claim(spec: object, metadata: object = {}): object {
  return {
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c', namespace: 'default', uid: 'u1', resourceVersion: '7', ...metadata },
    spec: {
      storageClassName: 'slow',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...spec,
    },
  };
}

function see(core: SchedulerCore, id: number, claimName = 'c'): void {
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName } }];
  const pod = { metadata: { name: `p${id}`, namespace: 'default' }, spec: { volumes } };
  const bytes = Buffer.from(JSON.stringify(pod));
  core.podSeen(id, true, bytes, 0, bytes.length, 0);
}

/** A machine with two nodes in two zones. */
function machine(...objects: readonly object[]): SchedulerCore {
  const core = new SchedulerCore({ seed: 1, keyOf: (id) => `default/p${id}` });
  for (const object of objects as KubeObject[]) core.objectSeen(object.kind ?? '', object, 0);
  for (const zone of ['a', 'b']) {
    const metadata = { name: `n${zone}`, labels: { zone } };
    core.nodeSeen({ metadata, status: { allocatable: { pods: '9' } } }, 0);
  }
  return core;
}

function decide(...objects: readonly object[]): [SchedulerCore, Attempt] {
  const core = machine(...objects);
  see(core, 0);
  const attempt = core.attempt(0);
  assert(attempt !== null);
  return [core, attempt];
}

function nodeOf([core, attempt]: readonly [SchedulerCore, Attempt]): string {
  return attempt.kind === 'bind' ? core.nodes.nameOf(attempt.node) : attempt.failure.message;
}

test('a pod goes where its bound volume is', () => {
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
  const bound = claim({ volumeName: 'v' }, { annotations });
  const decision = decide(PROVISIONED, volume('v', 'b', '1Gi'), bound);
  assert.equal(nodeOf(decision), 'nb');
  const [, attempt] = decision;
  assert(attempt.kind === 'bind');
  assert.deepEqual(attempt.reservations, []);
});

test('a claim that nobody bound keeps the pod waiting', () => {
  assert.match(nodeOf(decide(claim({ storageClassName: 'fast' }))), /unbound immediate/);
});

test('a claim that is lost is told of before a class that says nothing', () => {
  const silent = { kind: 'StorageClass', metadata: { name: 'slow' }, provisioner: 'x' };
  const core = machine(silent, claim({}), {
    ...claim({}, { name: 'e', uid: 'u2' }),
    status: { phase: 'Lost' },
  });
  const volumes = ['c', 'e'].map((claimName) => ({
    name: claimName,
    persistentVolumeClaim: { claimName },
  }));
  const pod = { metadata: { name: 'p0', namespace: 'default' }, spec: { volumes } };
  const bytes = Buffer.from(JSON.stringify(pod));
  core.podSeen(0, true, bytes, 0, bytes.length, 0);
  const attempt = core.attempt(0);
  assert(attempt?.kind === 'failed');
  assert.match(attempt.failure.message, /"e" bound to non-existent persistentvolume ""/);
});

test('a volume that its driver cannot understand is an error, where a driver is asked', () => {
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
  const bound = claim({ volumeName: 'v' }, { annotations });
  const disk = { gcePersistentDisk: { pdName: 'd' }, nodeAffinity: undefined };
  const labels = { 'topology.kubernetes.io/zone': 'a__b' };
  const odd = { ...volume('v', 'b', '1Gi', disk), metadata: { name: 'v', labels } };
  const migrated = { 'storage.alpha.kubernetes.io/migrated-plugins': 'kubernetes.io/gce-pd' };
  const left = { kind: 'CSINode', metadata: { name: 'na', annotations: migrated }, spec: {} };
  assert.match(nodeOf(decide(PROVISIONED, odd, bound)), /^n[ab]$/);
  assert.match(
    nodeOf(decide(PROVISIONED, odd, bound, left)),
    /"VolumeBinding" filter plugin: could not translate pv: failed to get region from zones: /,
  );
});

test('the smallest volume that is large enough is taken, and the pod goes to it', () => {
  const none = { ...PROVISIONED, provisioner: 'kubernetes.io/no-provisioner' };
  const decision = decide(
    none,
    volume('large', 'a', '9Gi'),
    volume('tiny', 'a', '1Mi'),
    volume('right', 'b', '2Gi'),
    claim({}),
  );
  // The pod may go to either zone; what is bound there is the smallest of that zone.
  const [core, attempt] = decision;
  assert(attempt.kind === 'bind');
  const [reservation] = attempt.reservations;
  const name = nodeOf(decision) === 'na' ? 'large' : 'right';
  assert.equal(reservation?.writes[0]?.path, `/api/v1/persistentvolumes/${name}`);
  const written = reservation.writes[0].change(
    core.objects.object('PersistentVolume', name) as unknown as JsonObject,
    0,
  );
  // Seen as bound already, so that nobody else takes it.
  assert.equal(written, null);
  assert.equal(reservation.isReady(core.objects, 0), false);
});

test('two pods do not get one volume', () => {
  const none = { ...PROVISIONED, provisioner: 'kubernetes.io/no-provisioner' };
  const core = machine(
    none,
    volume('v', 'b', '2Gi'),
    claim({}),
    claim({}, { name: 'e', uid: 'u2' }),
  );
  see(core, 0);
  see(core, 1, 'e');
  assert.equal(core.attempt(0)?.kind, 'bind');
  const second = core.attempt(0);
  assert(second?.kind === 'failed');
  assert.match(second.failure.message, /2 node\(s\) didn't find available persistent volumes/);
  // The first pod does not get its node after all: the volume is free again.
  core.bindFailed(core.pods.tagOf(0), 1);
  see(core, 2, 'e');
  assert.equal(core.attempt(2)?.kind, 'bind');
});

test('a volume that is to be made is asked for on the node, and waited for', () => {
  const decision = decide(PROVISIONED, claim({}));
  const [core, attempt] = decision;
  assert(attempt.kind === 'bind');
  const [reservation] = attempt.reservations;
  const before = claim({}) as JsonObject;
  const written = reservation?.writes[0]?.change(before, 0) as unknown as KubeObject;
  const node = nodeOf(decision);
  assert.equal(written.metadata.annotations?.['volume.kubernetes.io/selected-node'], node);
  assert.equal(reservation?.isReady(core.objects, 0), false);
  const annotations = {
    'volume.kubernetes.io/selected-node': node,
    'pv.kubernetes.io/bind-completed': 'yes',
  };
  const zone = node.slice(1);
  core.objectSeen('PersistentVolume', volume('made', zone, '1Gi') as KubeObject, 1);
  const bound = claim({ volumeName: 'made' }, { annotations, resourceVersion: '9' });
  core.objectSeen('PersistentVolumeClaim', bound as KubeObject, 1);
  assert.equal(reservation?.isReady(core.objects, 1), true);
});

test('a provisioner that gives up is heard', () => {
  const [core, attempt] = decide(PROVISIONED, claim({}));
  assert(attempt.kind === 'bind');
  const refused = claim({}, { annotations: {}, resourceVersion: '9' });
  core.objectSeen('PersistentVolumeClaim', refused as KubeObject, 1);
  assert.equal(
    attempt.reservations[0]?.isReady(core.objects, 1),
    'binding volumes: provisioning failed for PVC "c"',
  );
});

test('where volumes are yet to be made, the index follows what classes and drivers say', () => {
  const core = machine(PROVISIONED, claim({}), claim({}, { name: 'd' }), claim({}, { name: 'e' }));
  const seen = (object: object): void => core.objectSeen('StorageClass', object as KubeObject, 0);
  const only = (zone: string): object => {
    const matchLabelExpressions = [{ key: 'zone', values: [zone] }];
    return { ...PROVISIONED, allowedTopologies: [{ matchLabelExpressions }] };
  };
  const nodes: string[] = [];
  for (const [id, zone] of ['a', 'b', 'a'].entries()) {
    seen(only(zone));
    see(core, id, 'cde'[id]);
    const attempt = core.attempt(0);
    assert(attempt?.kind === 'bind');
    assert.equal(attempt.reservations.length, 1);
    nodes.push(core.nodes.nameOf(attempt.node));
  }
  assert.deepEqual(nodes, ['na', 'nb', 'na']);
  assert.equal(core.placement.metrics.evaluated, 0);
  // A volume that is there already is not for the index.
  core.objectSeen('PersistentVolume', volume('v', 'b', '2Gi') as KubeObject, 0);
  core.objectSeen('PersistentVolumeClaim', claim({}, { name: 'f' }) as KubeObject, 0);
  see(core, 3, 'f');
  const last = core.attempt(0);
  assert(last?.kind === 'bind');
  assert.equal(core.placement.metrics.evaluated, 1);
});

test('where storage is counted, a node without enough of it is left out', () => {
  const driver = { kind: 'CSIDriver', metadata: { name: 'csi.example' } };
  const space = (name: string, zone: string, capacity: string): object => ({
    kind: 'CSIStorageCapacity',
    metadata: { name, namespace: 'kube-system' },
    storageClassName: 'slow',
    capacity,
    nodeTopology: { matchLabels: { zone } },
  });
  const objects = [
    PROVISIONED,
    { ...driver, spec: { storageCapacity: true } },
    space('a', 'a', '1Mi'),
    space('b', 'b', '10Gi'),
  ];
  assert.equal(nodeOf(decide(...objects, claim({}))), 'nb');
  const huge = claim({ resources: { requests: { storage: '1Ti' } } });
  assert.match(nodeOf(decide(...objects, huge)), /2 node\(s\) did not have enough free storage/);
});
