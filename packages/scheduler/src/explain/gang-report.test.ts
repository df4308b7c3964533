import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from '../framework/cluster.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { createProfile } from '../framework/runtime/profile.ts';
import { gangReportOn, gangText } from './gang-report.ts';

function pod(name: string, cpu: string, more: object = {}): PodObject {
  const containers = [{ name: 'c', resources: { requests: { cpu } } }];
  const schedulingGroup = { podGroupName: 'g' };
  const spec = { containers, schedulingGroup, ...more };
  return { kind: 'Pod', metadata: { name, namespace: 'default' }, spec };
}

const group: KubeObject = {
  kind: 'PodGroup',
  metadata: { name: 'g', namespace: 'default' },
  ...{ spec: { schedulingPolicy: { gang: { minCount: 3 } } } },
};

/** What is said of pod `a` among others, on one node with some CPUs. */
function said(cpu: string, ...others: readonly KubeObject[]): string {
  const cluster = new Cluster(true);
  const allocatable = { cpu, memory: '1Gi', pods: '10' };
  cluster.apply({ kind: 'Node', metadata: { name: 'n' }, ...{ status: { allocatable } } });
  for (const object of others) cluster.apply(object);
  cluster.refresh();
  const before = [...cluster.pods].map(({ key, nodeName }) => `${key} ${nodeName}`).toSorted();
  const subject = new PodInfo(pod('a', '1'));
  const report = gangReportOn(subject, '', cluster, createProfile(), { on: () => [] });
  const after = [...cluster.pods].map(({ key, nodeName }) => `${key} ${nodeName}`).toSorted();
  assert.deepEqual(after, before);
  return report === null ? 'no group' : gangText(report);
}

test('a pod that fits is told when its gang does not', () => {
  const others = [group, pod('b', '1'), pod('c', '1')];
  const need = 'pod group default/g needs 3 of its 3 pods placed together: ';
  assert.equal(
    said('2', ...others),
    `${need}0 are, and 2 more would find nodes now, too few, so none of them is placed`,
  );
  assert.equal(
    said('3', ...others),
    `${need}0 are, and 3 more would find nodes now, enough of them`,
  );
  const placed = [group, pod('b', '1', { nodeName: 'n' }), pod('c', '1')];
  assert.equal(
    said('3', ...placed),
    `${need}1 are, and 2 more would find nodes now, enough of them`,
  );
});

test('a pod waits for its group, and for enough pods of it that somebody schedules', () => {
  assert.equal(said('9'), 'it waits with its pod group default/g: the group is not there');
  const others = [group, pod('b', '1'), pod('c', '1', { schedulerName: 'other' })];
  assert.equal(
    said('9', ...others),
    'it waits with its pod group default/g: it has 2 of the 3 pods it needs',
  );
});
