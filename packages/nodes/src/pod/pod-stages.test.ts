import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { completePatch, creatingPatch, podStage, readyPatch } from './pod-stages.ts';

const NOW = '2026-01-02T03:04:05Z';

function pod(spec: JsonObject, status: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return { metadata: { name: 'a', namespace: 'b', ...metadata }, spec, status };
}

const CONTAINERS = [{ name: 'main', image: 'nginx' }];

test('each state of a pod is due for one stage', () => {
  const job = { ownerReferences: [{ kind: 'Job', name: 'j' }] };
  const dying = { deletionTimestamp: NOW };
  assert.equal(podStage(pod({ containers: CONTAINERS })), 'ready');
  assert.equal(podStage(pod({}, { phase: 'Pending', podIP: '10.0.0.1' })), 'none');
  assert.equal(podStage(pod({}, { phase: 'Running', podIP: '10.0.0.1' })), 'none');
  assert.equal(podStage(pod({}, { phase: 'Running' }, job)), 'complete');
  assert.equal(podStage(pod({}, { phase: 'Succeeded' }, job)), 'none');
  assert.equal(podStage(pod({}, { phase: 'Running' }, { ...job, ...dying })), 'delete');
  assert.equal(podStage(pod({}, { phase: 'Pending' }, dying)), 'delete');
});

test('a pod becomes Running with its gates, sidecars and addresses', () => {
  const patch = readyPatch(
    pod({
      containers: CONTAINERS,
      readinessGates: [{ conditionType: 'example.com/gate' }],
      initContainers: [
        { name: 'setup', image: 'busybox' },
        { name: 'proxy', image: 'envoy', restartPolicy: 'Always' },
      ],
    }),
    ['10.128.0.1'],
    ['10.0.0.7', 'fd00::7'],
    NOW,
  );
  const status = patch['status'] as JsonObject;
  const types = (status['conditions'] as JsonObject[]).map((condition) => condition['type']);
  assert.deepEqual(types, [
    'PodReadyToStartContainers',
    'Initialized',
    'Ready',
    'ContainersReady',
    'example.com/gate',
  ]);
  assert.deepEqual(status['podIPs'], [{ ip: '10.0.0.7' }, { ip: 'fd00::7' }]);
  assert.equal(status['hostIP'], '10.128.0.1');
  const [setup = {}, proxy = {}] = status['initContainerStatuses'] as JsonObject[];
  assert.equal((setup['state'] as JsonObject)['running'], undefined);
  assert.deepEqual((proxy['state'] as JsonObject)['running'], { startedAt: NOW });
  assert.equal((status['containerStatuses'] as JsonObject[])[0]?.['ready'], true);
});

test('a pod on the host network has the address of its node', () => {
  const patch = readyPatch(pod({ hostNetwork: true }), ['10.128.0.1'], ['10.0.0.7'], NOW);
  assert.equal((patch['status'] as JsonObject)['podIP'], '10.128.0.1');
});

test('a pod of a Job ends with its containers terminated', () => {
  const running = pod({ containers: CONTAINERS }, { startTime: '2026-01-02T03:00:00Z' });
  const status = completePatch(running, NOW)['status'] as JsonObject;
  assert.equal(status['phase'], 'Succeeded');
  assert.deepEqual((status['containerStatuses'] as JsonObject[])[0]?.['state'], {
    terminated: {
      exitCode: 0,
      reason: 'Completed',
      startedAt: '2026-01-02T03:00:00Z',
      finishedAt: NOW,
    },
  });
});

test('containers have an id of their own once they run, told by uid and name', () => {
  const containers = [...CONTAINERS, { name: 'side', image: 'envoy' }];
  const idsOf = (patch: JsonObject): unknown[] => {
    const { containerStatuses } = patch['status'] as JsonObject;
    return (containerStatuses as JsonObject[]).map((one) => one['containerID']);
  };
  const made = (uid: string): JsonObject => pod({ containers }, {}, { uid });
  const ids = idsOf(readyPatch(made('u-1'), [], [], NOW));
  assert.equal(new Set([...ids, ...idsOf(readyPatch(made('u-2'), [], [], NOW))]).size, 4);
  for (const id of ids) assert.match(String(id), /^simulated:\/\/[0-9a-f]{16}$/);
  assert.deepEqual(idsOf(completePatch(made('u-1'), NOW)), ids);
  assert.deepEqual(idsOf(creatingPatch(made('u-1'), [], NOW)), [undefined, undefined]);
});
