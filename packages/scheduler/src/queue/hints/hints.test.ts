import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject, NodeObject, PodObject } from '../../api/objects.ts';
import { SchedulerCore } from '../../core/scheduler-core.ts';

const HOST = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';

/** A machine that tells which pods it tried. */
class Watch {
  readonly #names: string[] = [];
  readonly core = new SchedulerCore({ seed: 1, keyOf: (id) => `default/${this.#names[id]}` });
  #nowMs = 0;

  node(name: string, labels: Record<string, string> = {}, spec: NodeObject['spec'] = {}): void {
    const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
    const metadata = { name, labels: { [HOST]: name, ...labels } };
    this.core.nodeSeen({ metadata, spec, status: { allocatable } }, this.#nowMs);
  }

  pod(name: string, app: string, spec: PodObject['spec'] = {}, more: object = {}): void {
    const known = this.#names.indexOf(name);
    const id = known < 0 ? this.#names.push(name) - 1 : known;
    const metadata = { name, namespace: 'default', labels: { app }, ...more };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec: { containers: [{}], ...spec } }));
    this.core.podSeen(id, known < 0, bytes, 0, bytes.length, this.#nowMs);
  }

  gone(name: string): void {
    this.core.podGone(this.#names.indexOf(name), this.#nowMs);
  }

  object(kind: string, object: object): void {
    this.core.objectSeen(kind, object as KubeObject, this.#nowMs);
  }

  /** Names of the pods that are tried now, with the node of those that found one. */
  tried(): string[] {
    this.#nowMs += 20_000;
    const tried: string[] = [];
    for (;;) {
      const attempt = this.core.attempt(this.#nowMs);
      if (attempt === null) return tried;
      const { id, kind } = attempt;
      const node = kind === 'bind' ? ` -> ${this.core.nodes.nameOf(attempt.node)}` : '';
      tried.push(`${this.#names[id]}${node}`);
    }
  }
}

const near = (app: string): PodObject['spec'] => ({
  affinity: {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: ZONE, labelSelector: { matchLabels: { app } } },
      ],
    },
  },
});

const claim = (name: string): PodObject['spec'] => ({
  volumes: [{ name: 'v', persistentVolumeClaim: { claimName: name } }],
});

test('a pod that wants company is tried when a running pod gets the labels it asks for', () => {
  const watch = new Watch();
  watch.node('n', { [ZONE]: 'z' });
  watch.pod('other', 'x', { nodeName: 'n' });
  watch.pod('p', 'a', near('wanted'));
  assert.deepEqual(watch.tried(), ['p']);
  watch.pod('other', 'y', { nodeName: 'n' });
  assert.deepEqual(watch.tried(), []);
  watch.pod('other', 'wanted', { nodeName: 'n' });
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod that wants company is not tried for pods that are none, nor for heartbeats', () => {
  const watch = new Watch();
  watch.node('n', { [ZONE]: 'z' });
  watch.pod('p', 'a', near('wanted'));
  assert.deepEqual(watch.tried(), ['p']);
  watch.pod('stranger', 'x', { nodeName: 'n' });
  watch.node('n', { [ZONE]: 'z' });
  assert.deepEqual(watch.tried(), []);
  watch.node('n', { [ZONE]: 'other' });
  assert.deepEqual(watch.tried(), ['p']);
});

test('a pod is tried for the claim that it waits for, and not for those of others', () => {
  const watch = new Watch();
  watch.node('n');
  watch.object('StorageClass', {
    metadata: { name: 'slow' },
    provisioner: 'x',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  watch.pod('p', 'a', claim('mine'));
  assert.deepEqual(watch.tried(), ['p']);
  const made = (name: string): object => ({
    metadata: { name, namespace: 'default' },
    spec: { storageClassName: 'slow', accessModes: ['ReadWriteOnce'] },
  });
  watch.object('PersistentVolumeClaim', made('other'));
  assert.deepEqual(watch.tried(), []);
  watch.object('PersistentVolumeClaim', made('mine'));
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod above the limit of volumes is tried when a volume is detached', () => {
  const watch = new Watch();
  watch.node('n');
  const driver = { name: 'd', nodeID: 'n', allocatable: { count: 1 } };
  watch.object('CSINode', { metadata: { name: 'n' }, spec: { drivers: [driver] } });
  const source = { persistentVolumeName: 'old' };
  const attached = { attacher: 'd', nodeName: 'n', source };
  watch.object('VolumeAttachment', { metadata: { name: 'at' }, spec: attached });
  for (const name of ['old', 'new']) {
    const csi = { driver: 'd', volumeHandle: name };
    watch.object('PersistentVolume', { metadata: { name }, spec: { csi } });
  }
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
  const metadata = { name: 'mine', namespace: 'default', annotations };
  watch.object('PersistentVolumeClaim', { metadata, spec: { volumeName: 'new' } });
  watch.pod('p', 'a', claim('mine'));
  assert.deepEqual(watch.tried(), ['p']);
  watch.core.objectGone('VolumeAttachment', 'at', 0);
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod above the limit of volumes is tried when the limit is lifted', () => {
  for (const lift of ['no count', 'no driver', 'gone']) {
    const watch = new Watch();
    watch.node('n');
    const drivers = (count: object): object[] => [{ name: 'd', nodeID: 'n', ...count }];
    const see = (spec: object): void => watch.object('CSINode', { metadata: { name: 'n' }, spec });
    see({ drivers: drivers({ allocatable: { count: 0 } }) });
    const csi = { driver: 'd', volumeHandle: 'v' };
    watch.object('PersistentVolume', { metadata: { name: 'v' }, spec: { csi } });
    const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
    const metadata = { name: 'mine', namespace: 'default', annotations };
    watch.object('PersistentVolumeClaim', { metadata, spec: { volumeName: 'v' } });
    watch.pod('p', 'a', claim('mine'));
    assert.deepEqual(watch.tried(), ['p']);
    if (lift === 'gone') watch.core.objectGone('CSINode', 'n', 0);
    else see({ drivers: lift === 'no driver' ? [] : drivers({}) });
    assert.deepEqual(watch.tried(), ['p -> n'], lift);
  }
});

test('a pod that found no space is tried when its driver is asked for none any more', () => {
  const watch = new Watch();
  watch.node('n');
  watch.object('StorageClass', {
    metadata: { name: 's' },
    provisioner: 'd',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  watch.object('CSIDriver', { metadata: { name: 'd' }, spec: { storageCapacity: true } });
  const metadata = { name: 'mine', namespace: 'default' };
  watch.object('PersistentVolumeClaim', { metadata, spec: { storageClassName: 's' } });
  watch.pod('p', 'a', claim('mine'));
  assert.deepEqual(watch.tried(), ['p']);
  watch.core.objectGone('CSIDriver', 'd', 0);
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod that terms of others keep away is tried when a node leaves their domain', () => {
  const watch = new Watch();
  watch.node('n', { [ZONE]: 'z', rack: 'r' });
  watch.node('m', { [ZONE]: 'z', rack: 'r' });
  const term = { topologyKey: 'rack', labelSelector: { matchLabels: { app: 'b' } } };
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  watch.pod('old', 'a', { nodeName: 'n', affinity: { podAntiAffinity } });
  watch.pod('p', 'b', near('a'));
  assert.deepEqual(watch.tried(), ['p']);
  watch.node('m', { [ZONE]: 'z', rack: 'other' });
  assert.deepEqual(watch.tried(), ['p -> m']);
});

test('a pod that made way for one that waits for a node is tried when that one is gone', () => {
  const watch = new Watch();
  watch.node('n');
  const cpu = (amount: string): PodObject['spec'] => ({
    containers: [{ name: 'c', resources: { requests: { cpu: amount } } }],
  });
  watch.pod('old', 'x', { ...cpu('3'), nodeName: 'n' });
  watch.pod('high', 'x', { ...cpu('4'), priority: 10 });
  assert.deepEqual(watch.tried(), ['high']);
  const leaving = { deletionTimestamp: '2030-01-01T00:00:00Z' };
  watch.pod('old', 'x', { ...cpu('3'), nodeName: 'n' }, leaving);
  watch.pod('low', 'x', { ...cpu('1'), preemptionPolicy: 'Never' });
  assert.deepEqual(watch.tried(), ['low']);
  watch.gone('high');
  assert.deepEqual(watch.tried(), ['low -> n']);
});

test('a pod that found no free port is tried when a pod with that port leaves', () => {
  const watch = new Watch();
  watch.node('n');
  const port = (hostPort: number): PodObject['spec'] => ({
    containers: [{ name: 'c', ports: [{ containerPort: 1, hostPort }] }],
    priority: 5,
  });
  watch.pod('one', 'x', { ...port(80), nodeName: 'n' });
  watch.pod('two', 'x', { ...port(81), nodeName: 'n' });
  watch.pod('p', 'x', { ...port(80) });
  assert.deepEqual(watch.tried(), ['p']);
  watch.gone('two');
  assert.deepEqual(watch.tried(), []);
  watch.gone('one');
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod kept from skewing is tried when one of those counted leaves, and for no other', () => {
  const watch = new Watch();
  watch.node('n', { [ZONE]: 'z1' });
  watch.node('m', { [ZONE]: 'z2' }, { unschedulable: true });
  const topologySpreadConstraints = [
    {
      maxSkew: 1,
      topologyKey: ZONE,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'x' } },
    },
  ];
  watch.pod('one', 'x', { nodeName: 'n' });
  watch.pod('other', 'y', { nodeName: 'n' });
  watch.pod('p', 'x', { topologySpreadConstraints });
  assert.deepEqual(watch.tried(), ['p']);
  watch.gone('other');
  assert.deepEqual(watch.tried(), []);
  watch.gone('one');
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod whose own labels change is tried if a plugin that looks at labels rejected it', () => {
  const watch = new Watch();
  watch.node('n', { [ZONE]: 'z' });
  watch.pod('big', 'x', { containers: [{ name: 'c', resources: { requests: { cpu: '9' } } }] });
  watch.pod('p', 'a', near('wanted'));
  assert.deepEqual(watch.tried(), ['big', 'p']);
  watch.pod('big', 'y', { containers: [{ name: 'c', resources: { requests: { cpu: '9' } } }] });
  assert.deepEqual(watch.tried(), []);
  watch.pod('p', 'wanted', near('wanted'));
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod that terms on namespaces keep back is tried when the labels of one change', () => {
  const watch = new Watch();
  const space = (labels: object): void =>
    watch.object('Namespace', { kind: 'Namespace', metadata: { name: 'default', labels } });
  space({});
  watch.node('n', { [ZONE]: 'z' });
  watch.pod('there', 'x', { nodeName: 'n' });
  const [term] =
    near('x').affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  assert(term !== undefined);
  const selective = { ...term, namespaceSelector: { matchLabels: { team: 'a' } } };
  const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [selective] };
  watch.pod('p', 'y', { affinity: { podAffinity } });
  assert.deepEqual(watch.tried(), ['p']);
  space({});
  assert.deepEqual(watch.tried(), []);
  space({ team: 'a' });
  assert.deepEqual(watch.tried(), ['p -> n']);
});

test('a pod that shuns two labels is tried when a pod loses the one about more nodes', () => {
  const watch = new Watch();
  for (const name of ['n1', 'n2']) watch.node(name, { [ZONE]: 'z' });
  watch.pod('other', 'x', { nodeName: 'n1' }, { labels: { app: 'x', tier: 'y' } });
  const terms = [
    { topologyKey: HOST, labelSelector: { matchLabels: { app: 'x' } } },
    { topologyKey: ZONE, labelSelector: { matchLabels: { tier: 'y' } } },
  ];
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: terms };
  watch.pod('p', 'a', { affinity: { podAntiAffinity } });
  assert.deepEqual(watch.tried(), ['p']);
  watch.pod('other', 'x', { nodeName: 'n1' });
  assert.deepEqual(watch.tried(), ['p -> n2']);
});

test('a pod is tried for the status of its claim for devices, not for a finalizer', () => {
  const watch = new Watch();
  watch.node('n');
  const requests = [{ name: 'r', exactly: { deviceClassName: 'gpu' } }];
  const spec = { devices: { requests } };
  const metadata = { name: 'k', namespace: 'default', uid: 'u' };
  const gpu = { metadata: { name: 'gpu' }, spec: {} };
  watch.object('DeviceClass', gpu);
  watch.object('ResourceClaim', { metadata, spec });
  watch.pod('p', 'a', { resourceClaims: [{ name: 'c', resourceClaimName: 'k' }] });
  assert.deepEqual(watch.tried(), ['p']);
  const kept = { ...metadata, finalizers: ['resource.kubernetes.io/delete-protection'] };
  watch.object('ResourceClaim', { metadata: kept, spec });
  assert.deepEqual(watch.tried(), []);
  const reservedFor = [{ resource: 'pods', name: 'other', uid: 'o' }];
  watch.object('ResourceClaim', { metadata: kept, spec, status: { reservedFor } });
  assert.deepEqual(watch.tried(), ['p']);
});

test('a pod whose node is taken by a more important one looks for others to evict', () => {
  const watch = new Watch();
  for (const name of ['n1', 'n2']) watch.node(name);
  const asking = (cpu: string): PodObject['spec'] => ({
    containers: [{ name: 'c', resources: { requests: { cpu } } }],
  });
  for (const n of ['n1', 'n2']) watch.pod(`on-${n}`, 'x', { ...asking('4'), nodeName: n });
  watch.pod('low', 'x', { ...asking('3'), priority: 10 });
  assert.deepEqual(watch.tried(), ['low']);
  const first = watch.core.nominator.nodeOf(2);
  const selected = { nodeSelector: { [HOST]: first } };
  watch.pod('high', 'x', { ...asking('3'), priority: 100, ...selected });
  assert.deepEqual(watch.tried(), ['high', 'low']);
  assert.equal(watch.core.nominator.nodeOf(2), first === 'n1' ? 'n2' : 'n1');
});
