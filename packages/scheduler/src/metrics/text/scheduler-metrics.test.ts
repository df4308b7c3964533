import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject, Taint } from '../../api/objects.ts';
import { SchedulerCore } from '../../core/scheduler-core.ts';
import { SchedulerMetrics } from './scheduler-metrics.ts';

/** Buckets of upstream, by family: the first and the last edge, and how many there are. */
const BUCKETS: readonly (readonly [family: string, first: number, last: number, count: number])[] =
  [
    ['scheduler_scheduling_attempt_duration_seconds', 0.001, 16.384, 15],
    ['scheduler_scheduling_algorithm_duration_seconds', 0.001, 16.384, 15],
    ['scheduler_pod_scheduling_sli_duration_seconds', 0.01, 5242.88, 20],
    ['scheduler_pod_scheduling_attempts', 1, 16, 5],
    ['scheduler_preemption_victims', 1, 64, 7],
    ['scheduler_framework_extension_point_duration_seconds', 0.0001, 0.2048, 12],
    ['scheduler_plugin_execution_duration_seconds', 0.00001, 0.0221684, 20],
    ['scheduler_queueing_hint_execution_duration_seconds', 0.00001, 0.0221684, 20],
    ['scheduler_event_handling_duration_seconds', 0.0001, 0.2048, 12],
    ['scheduler_podgroup_scheduling_attempt_duration_seconds', 0.001, 16.384, 15],
    ['scheduler_podgroup_scheduling_algorithm_duration_seconds', 0.001, 16.384, 15],
    ['scheduler_preemption_goroutines_duration_seconds', 0.01, 5242.88, 20],
    ['scheduler_dra_bindingconditions_wait_duration_seconds', 0.1, 819.2, 14],
  ];

function bench(): { core: SchedulerCore; metrics: SchedulerMetrics } {
  const core = new SchedulerCore({ seed: 1, keyOf: (id) => `a/${id}` });
  const allocatable = { cpu: '1', memory: '1Gi', pods: '10' };
  core.nodeSeen({ metadata: { name: 'n' }, status: { allocatable } }, 0);
  return { core, metrics: new SchedulerMetrics(() => 0) };
}

test('histograms have the buckets of upstream', () => {
  const { core, metrics } = bench();
  metrics.attempted('scheduled', 'default-scheduler', 0.002);
  metrics.decided(0.001);
  metrics.scheduled(1, 0.5);
  metrics.preempted(2);
  metrics.plugins.recordPoint('Filter', 'Success', 'default-scheduler', 0.001);
  metrics.plugins.pluginEnded('NodeAffinity', 'Filter', 'Success', 0);
  metrics.plugins.hinted('NodeAffinity', 'NodeAdd', true, 0);
  metrics.plugins.handled('NodeAdd', 0);
  metrics.work.groupTried({ result: 'scheduled', profile: 'default-scheduler' }, 0.001);
  metrics.work.evicted(true, 0.01);
  metrics.work.devicesAwaited('default-scheduler', { all: ['d'], slow: ['d'] }, 'success', 1);
  const text = metrics.text(core);
  for (const [family, first, last, count] of BUCKETS) {
    const edges = [...text.matchAll(new RegExp(`^${family}_bucket\\{.*le="([^"]+)"`, 'gm'))]
      .map(([, edge]) => edge)
      .filter((edge) => edge !== '+Inf')
      .map(Number);
    assert.equal(edges.length, count, family);
    assert.equal(edges[0], first, family);
    assert.equal(edges.at(-1)?.toPrecision(6), last.toPrecision(6), family);
  }
});

test('waiting pods are counted for each plugin that rejected them', () => {
  const { core, metrics } = bench();
  for (const [id, cpu] of ['5', '5', '1'].entries()) {
    const spec = {
      schedulerName: 'default-scheduler',
      containers: [{ name: 'c', resources: { requests: { cpu } } }],
      ...(id === 2 ? { nodeSelector: { x: 'y' } } : {}),
    };
    const bytes = Buffer.from(
      JSON.stringify({ metadata: { name: `${id}`, namespace: 'a' }, spec }),
    );
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
  }
  while (core.attempt(0) !== null);
  const text = metrics.text(core);
  const line = (plugin: string): string => `{plugin="${plugin}",profile="default-scheduler"}`;
  assert.match(
    text,
    new RegExp(`^scheduler_unschedulable_pods${line('NodeResourcesFit')} 2$`, 'm'),
  );
  assert.match(text, new RegExp(`^scheduler_unschedulable_pods${line('NodeAffinity')} 1$`, 'm'));
  assert.match(text, /^scheduler_pending_pods\{queue="unschedulable"\} 3$/m);
});

test('pods that are held back, tried early or flushed are told of', () => {
  const { core, metrics } = bench();
  const see = (id: number, spec: object): void => {
    const pod = { metadata: { name: `${id}`, namespace: 'a' }, spec };
    const bytes = Buffer.from(JSON.stringify(pod));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
  };
  const schedulerName = 'default-scheduler';
  see(0, { schedulerName, schedulingGates: [{ name: 'x/y' }] });
  see(1, { schedulerName, schedulingGroup: { podGroupName: 'none' } });
  see(2, { schedulerName, containers: [{ resources: { requests: { cpu: '5' } } }] });
  while (core.attempt(0) !== null);
  core.flush(400_000);
  assert.deepEqual([...core.queue.flushed], [2]);
  core.attempt(400_000);
  assert.deepEqual([...core.queue.flushed], []);
  // The pause after its second failure is not over, but nothing else is to be done.
  const allocatable = { cpu: '9', memory: '9Gi', pods: '9' };
  core.nodeSeen({ metadata: { name: 'large' }, status: { allocatable } }, 400_100);
  assert.equal(core.attempt(400_100)?.kind, 'bind');
  const text = metrics.text(core);
  const line = (plugin: string): string => `{plugin="${plugin}",profile="default-scheduler"} 1\n`;
  assert(text.includes(`scheduler_unschedulable_pods${line('SchedulingGates')}`), text);
  assert(text.includes(`scheduler_unschedulable_pods${line('GangScheduling')}`));
  assert.match(text, /incoming_pods_total\{queue="active",event="PopFromBackoffQ"\} 1\n/);
});

test('events are named as upstream names them', () => {
  const { core, metrics } = bench();
  const spec = { schedulerName: 'default-scheduler', volumes: [] as object[] };
  spec.volumes.push({ name: 'v', persistentVolumeClaim: { claimName: 'c' } });
  const bytes = Buffer.from(JSON.stringify({ metadata: { name: '0', namespace: 'a' }, spec }));
  const claim = { metadata: { name: 'c', namespace: 'a' }, spec: { storageClassName: 's' } };
  core.bell.meter = metrics.plugins;
  core.objectSeen('PersistentVolumeClaim', claim, 0);
  core.podSeen(0, true, bytes, 0, bytes.length, 0);
  core.attempt(0);
  core.objectSeen('StorageClass', { metadata: { name: 's' } }, 60_000);
  const want =
    'scheduler_queue_incoming_pods_total{queue="active",event="storage.k8s.io/StorageClassAdd"} 1';
  assert(metrics.text(core).includes(want), metrics.text(core));
  const hint = 'plugin="VolumeBinding",event="storage.k8s.io/StorageClassAdd",hint="Queue"';
  const hints = `scheduler_queueing_hint_execution_duration_seconds_count{${hint}} 1\n`;
  assert(metrics.text(core).includes(hints), metrics.text(core));
  assert.equal(core.lastEvent, 'storage.k8s.io/StorageClassAdd');
});

test('a pod that loses its last gate comes by an event of its own', () => {
  const { core, metrics } = bench();
  const see = (isNew: boolean, schedulingGates: readonly object[]): void => {
    const spec = { schedulerName: 'default-scheduler', schedulingGates };
    const bytes = Buffer.from(JSON.stringify({ metadata: { name: '0', namespace: 'a' }, spec }));
    core.podSeen(0, isNew, bytes, 0, bytes.length, 0);
  };
  see(true, [{ name: 'x/y' }]);
  assert.equal(core.lastEvent, 'UnschedulablePodAdd');
  see(false, []);
  const event = 'UnschedulablePodUpdatePodSchedulingGatesEliminated';
  const want = `scheduler_queue_incoming_pods_total{queue="active",event="${event}"} 1\n`;
  assert(metrics.text(core).includes(want), metrics.text(core));
});

test("what changed of a node is part of the event's name", () => {
  const { core, metrics } = bench();
  const node = (taints: Taint[]): NodeObject => ({
    metadata: { name: 'n' },
    spec: { taints },
    status: { allocatable: { cpu: '4', memory: '1Gi', pods: '10' } },
  });
  core.nodeSeen(node([{ key: 'k', effect: 'NoSchedule' }]), 0);
  const spec = { schedulerName: 'default-scheduler' };
  const bytes = Buffer.from(JSON.stringify({ metadata: { name: '0', namespace: 'a' }, spec }));
  core.podSeen(0, true, bytes, 0, bytes.length, 0);
  core.attempt(0);
  core.nodeSeen(node([]), 60_000);
  const want = 'scheduler_queue_incoming_pods_total{queue="active",event="NodeUpdateNodeTaint"} 1';
  assert(metrics.text(core).includes(want), metrics.text(core));
});

test('plugins of full evaluations are counted and timed as upstream counts them', () => {
  const { core, metrics } = bench();
  core.placement.meter = metrics.plugins;
  const allocatable = { cpu: '4', memory: '1Gi', pods: '10' };
  core.nodeSeen({ metadata: { name: 'm' }, status: { allocatable } }, 0);
  core.nodeSeen({ metadata: { name: 'o' }, status: { allocatable } }, 0);
  // Claims of volumes are evaluated in full.
  const spec = {
    schedulerName: 'default-scheduler',
    containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }],
    volumes: [{ name: 'v', awsElasticBlockStore: { volumeID: 'vol-1' } }],
  };
  const bytes = Buffer.from(JSON.stringify({ metadata: { name: '1', namespace: 'a' }, spec }));
  core.podSeen(1, true, bytes, 0, bytes.length, 0);
  assert.equal(core.attempt(0)?.kind, 'bind');
  const text = metrics.text(core);
  const count = (plugin: string, point: string): number => {
    const labels = `plugin="${plugin}",extension_point="${point}",profile="default-scheduler"`;
    const line = text.split('\n').find((one) => one.includes(`evaluation_total{${labels}}`));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  assert.equal(count('NodeResourcesFit', 'PreFilter'), 1);
  assert.equal(count('NodeResourcesFit', 'Filter'), 3);
  // One node was too small before.
  assert.equal(count('VolumeRestrictions', 'Filter'), 2);
  assert.equal(count('NodePorts', 'PreFilter'), 0);
  // These have nothing to prepare.
  assert.equal(count('NodeName', 'PreFilter'), 0);
  assert.equal(count('NodeName', 'Filter'), 3);
  assert.equal(count('ImageLocality', 'PreScore'), 0);
  assert.equal(count('ImageLocality', 'Score'), 2);
  assert.equal(count('NodeResourcesFit', 'Score'), 2);
  for (const point of ['PreFilter', 'Filter', 'PreScore', 'Score']) {
    const labels = `extension_point="${point}",status="Success",profile="default-scheduler"`;
    assert(text.includes(`framework_extension_point_duration_seconds_count{${labels}} 1`), point);
    assert(text.includes(`plugin="NodeResourcesFit",extension_point="${point}"`), point);
  }
  assert(text.includes('kubernetes_feature_enabled{name="GenericWorkload",stage="ALPHA"} 0'));
});

test('pods are counted where they come to the queue or are held back', () => {
  const { core, metrics } = bench();
  core.gatekeeper.meter = metrics.plugins;
  for (const [id, schedulingGates] of [[], [{ name: 'g' }], []].entries()) {
    const spec = { schedulerName: id === 2 ? 'other' : 'default-scheduler', schedulingGates };
    const pod = { metadata: { name: `${id}`, namespace: 'a' }, spec };
    const bytes = Buffer.from(JSON.stringify(pod));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
  }
  const counted = /_point_duration_seconds_count\{extension_point="PreEnqueue",(.*)\} (\d+)/g;
  const found = [...metrics.text(core).matchAll(counted)].map(([, labels, count]) => [
    labels,
    count,
  ]);
  const profile = 'profile="default-scheduler"';
  assert.deepEqual(found, [
    [`status="Success",${profile}`, '1'],
    [`status="UnschedulableAndUnresolvable",${profile}`, '1'],
  ]);
});

test('changes of nodes are called what kube-scheduler calls them', () => {
  const { core } = bench();
  const status = { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } };
  const more = { allocatable: { ...status.allocatable, cpu: '2' } };
  const spec = { taints: [{ key: 'k', effect: 'NoSchedule' }] };
  const metadata = { name: 'n', labels: { zone: 'a' } };
  const events = [
    { metadata: { name: 'n' }, status },
    { metadata: { name: 'n' }, status: more },
    { metadata, status: more },
    { metadata, status: more, spec },
    { metadata: { name: 'm' }, status },
  ].map((node) => {
    core.nodeSeen(node, 0);
    return core.lastEvent;
  });
  assert.deepEqual(events, [
    '',
    'NodeUpdateNodeAllocatable',
    'NodeUpdateNodeLabel',
    'NodeUpdateNodeTaint',
    'NodeAdd',
  ]);
});
