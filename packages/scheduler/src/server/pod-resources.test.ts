import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodObject } from '../api/objects.ts';
import { limitsOf, podResourceLines, requestsOf } from './pod-resources.ts';

// The lines are those of kube-scheduler v1.36.1 for the same pods.
const POD = {
  metadata: { name: 'many', namespace: 'default' },
  spec: {
    schedulerName: 'default-scheduler',
    priority: 0,
    initContainers: [
      {
        name: 'i',
        resources: { requests: { cpu: 2, memory: '1Gi' }, limits: { cpu: 3, memory: '2Gi' } },
      },
      {
        name: 's',
        restartPolicy: 'Always',
        resources: {
          requests: { cpu: '100m', memory: '1Mi' },
          limits: { cpu: '100m', memory: '1Mi' },
        },
      },
    ],
    containers: [
      {
        name: 'c',
        resources: {
          requests: { cpu: '1500m', memory: '1Gi', 'ephemeral-storage': '2G', 'a.com/foo': 3 },
          limits: { cpu: '1500m', memory: '1Gi', 'hugepages-2Mi': '4Mi', 'a.com/foo': 3 },
        },
      },
    ],
  },
} as PodObject;

const values = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replace(/^.*resource="([^"]+)".*unit="(.*)"} /, '$1 $2 '));

test('requests and limits of a pod are told by resource, with sidecars and init containers', () => {
  const requests = podResourceLines('f', POD, requestsOf(POD));
  assert.equal(
    requests[1],
    'f{namespace="default",node="",pod="many",priority="0",resource="cpu",' +
      'scheduler="default-scheduler",unit="cores"} 2',
  );
  assert.deepEqual(values(requests), [
    'a.com/foo  3',
    'cpu cores 2',
    'ephemeral-storage bytes 2000000000',
    'memory bytes 1074790400',
  ]);
  assert.deepEqual(values(podResourceLines('f', POD, limitsOf(POD))), [
    'a.com/foo  3',
    'cpu cores 3',
    'hugepages-2Mi bytes 4194304',
    'memory bytes 2147483648',
  ]);
});

test('overhead adds to limits only where there are some', () => {
  const containers = [{ name: 'c', resources: { limits: { cpu: 1 } } }];
  const overhead = { cpu: '250m', memory: '10Mi' };
  const pod = { ...POD, spec: { containers, overhead, resources: { limits: { memory: 0 } } } };
  assert.deepEqual(values(podResourceLines('f', pod, limitsOf(pod))), ['cpu cores 1.25']);
  assert.deepEqual(values(podResourceLines('f', pod, requestsOf(pod))), [
    'cpu cores 0.25',
    'memory bytes 10485760',
  ]);
});
