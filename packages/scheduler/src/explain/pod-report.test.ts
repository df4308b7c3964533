import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from '../framework/cluster.ts';
import type { KubeObject, NodeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { createProfile } from '../framework/runtime/profile.ts';
import { reportOn, type PodReport } from './pod-report.ts';
import { reportText } from './report-text.ts';

function node(name: string, more: Partial<NodeObject> = {}): NodeObject {
  const allocatable = { cpu: '2', memory: '4Gi', pods: '3' };
  const labels = { 'kubernetes.io/hostname': name, zone: name === 'n1' ? 'a' : 'b' };
  return { kind: 'Node', metadata: { name, labels }, status: { allocatable }, ...more };
}

function pod(name: string, spec: object = {}, labels: Record<string, string> = {}): PodObject {
  return { kind: 'Pod', metadata: { name, namespace: 'default', labels }, spec };
}

const asking = (cpu: string): object => ({
  containers: [{ name: 'c', resources: { requests: { cpu } } }],
});

function report(subject: PodObject, ...objects: readonly KubeObject[]): PodReport {
  const cluster = new Cluster(true);
  for (const object of objects) cluster.apply(object);
  cluster.refresh();
  return reportOn(new PodInfo(subject), '', cluster, createProfile(), { on: () => [] });
}

/** `node plugin: remedy`, all of them. */
function remedies({ nodes }: PodReport): string[] {
  return nodes.flatMap(({ node: name, objections }) =>
    objections.flatMap((one) => one.remedies.map((text) => `${name} ${one.plugin}: ${text}`)),
  );
}

test('a node tells all that is in the way, and how much is missing', () => {
  const tainted = node('n2', {
    spec: { unschedulable: true, taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] },
  });
  const busy = pod('busy', { ...asking('1500m'), nodeName: 'n1' });
  const found = report(
    pod('p', { ...asking('1'), nodeSelector: { zone: 'b' } }),
    node('n1'),
    tainted,
    busy,
  );
  assert.deepEqual(remedies(found), [
    'n1 NodeAffinity: nodeSelector wants zone=b, the node has zone=a',
    'n1 NodeResourcesFit: asks for 1000m of cpu, 500m of 2000m are free: 500m are missing',
    'n2 NodeUnschedulable: the node is cordoned: kubectl uncordon n2',
    'n2 TaintToleration: taint k=v:NoSchedule: ' +
      'the pod would have to tolerate it, or the node lose it',
  ]);
  assert.match(found.message, /^0\/2 nodes are available/);
});

test('nodes that are too small, full or lack what affinity asks for say so', () => {
  const full = ['a', 'b', 'c'].map((name) => pod(name, { nodeName: 'n1' }));
  const term = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd', 'nvme'] }] };
  const affinity = {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
  };
  const found = report(pod('p', { ...asking('3'), affinity }), node('n1'), ...full);
  assert.deepEqual(remedies(found), [
    'n1 NodeAffinity: node affinity: the node would have to satisfy disk In (ssd, nvme)',
    'n1 NodeResourcesFit: 3 of 3 pods are there: one would have to go',
    'n1 NodeResourcesFit: asks for 3000m of cpu, 2000m of 2000m are free: ' +
      'the whole node is too small',
  ]);
});

test('skew, neighbours and ports are named', () => {
  const ports = [{ containerPort: 80, hostPort: 8080 }];
  const serving = { containers: [{ name: 'c', ports }] };
  const selector = { labelSelector: { matchLabels: { app: 'x' } }, topologyKey: 'zone' };
  const app = { app: 'x' };
  const web = pod('web', { ...serving, nodeName: 'n1' }, app);
  const constraint = { ...selector, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' };
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [selector] };
  const subject = pod(
    'p',
    { ...serving, topologySpreadConstraints: [constraint], affinity: { podAntiAffinity } },
    app,
  );
  const found = report(subject, node('n1'), node('n2'), web);
  assert.deepEqual(remedies(found), [
    'n1 NodePorts: host port 8080/TCP is taken by pod default/web',
    'n1 PodTopologySpread: zone=a has 1 such pods, b 0, and maxSkew is 1: 1 too many',
    'n1 InterPodAffinity: anti-affinity on zone: default/web would have to go',
  ]);
  assert.deepEqual(found.best, ['n2']);
  const shy = pod('shy', { affinity: { podAntiAffinity }, nodeName: 'n2' });
  const other = report(pod('q', {}, app), node('n1'), node('n2'), shy);
  assert.deepEqual(remedies(other), [
    'n2 InterPodAffinity: default/shy would have it nowhere near',
  ]);
  const podAffinity = podAntiAffinity;
  const alone = report(pod('r', { affinity: { podAffinity } }), node('n1'));
  assert.deepEqual(remedies(alone), [
    'n1 InterPodAffinity: affinity: no pod that it wants near runs in zone=a',
  ]);
});

test('the text starts with the verdict, and names victims, gates and scores', () => {
  const low = pod('low', { ...asking('2'), nodeName: 'n1' });
  const evicting = report(pod('p', { ...asking('2'), priority: 5 }), node('n1'), low);
  assert.match(reportText(evicting, 5), /room would be made on n1 by evicting default\/low/);
  const gated = report(pod('p', { schedulingGates: [{ name: 'x/y' }] }), node('n1'));
  assert.match(reportText(gated, 5), /held back: waiting for scheduling gates: \[x\/y\]/);
  const leaving = pod('p');
  const metadata = { ...leaving.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' };
  const gone = report({ ...leaving, metadata }, node('n1'));
  assert.match(reportText(gone, 5), /^default\/p is held back: it is being deleted\n/);
  const fits = reportText(report(pod('p', asking('1')), node('n1'), node('n2'), low), 1);
  assert.match(fits, /^default\/p fits; best: n2\n\nnodes that will do \(1\)\n {2}n2\n/);
  assert.match(fits, /nodes that will not \(1\)\n {2}n1\n {4}NodeResourcesFit: Insufficient cpu\n/);
});
