import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventVersionOf } from './event-recorder.ts';

test('events name the version of an object that kubectl asks for', () => {
  const versions = [
    ['Pod', 'v1'],
    ['Node', 'v1'],
    ['Deployment', 'apps/v1'],
    ['StatefulSet', 'apps/v1'],
    ['Job', 'batch/v1'],
    ['PodDisruptionBudget', 'policy/v1'],
    ['HorizontalPodAutoscaler', 'autoscaling/v2'],
    ['Widget', ''],
  ];
  for (const [kind = '', version] of versions) assert.equal(eventVersionOf(kind), version, kind);
});
