/**
 * What a simulated kubelet does about a pod: kwok's fast stages as code.
 *
 * | stage | when | does |
 * |---|---|---|
 * | pod-delete | it is being deleted, with grace | deletes it with grace 0; finalizers stay |
 * | pod-ready | Pending, no podIP, not being deleted | Running: conditions, containers, IPs |
 * | pod-complete | Running and owned by a Job | Succeeded: containers exit with 0 |
 */
import { containerId } from '../gotemplate/container-id.ts';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';

/** Stage to play for a pod in this state. */
export type PodStage = 'none' | 'ready' | 'complete' | 'delete';

/** Which stage a pod (as the API shows it) is due for. */
export function podStage(pod: JsonObject): PodStage {
  const metadata = object(pod['metadata']);
  const status = object(pod['status']);
  if (metadata['deletionTimestamp'] !== undefined) {
    // without grace the server itself removes it, when its last finalizer goes
    return metadata['deletionGracePeriodSeconds'] === 0 ? 'none' : 'delete';
  }
  const phase = status['phase'] ?? 'Pending';
  if (phase === 'Pending' && status['podIP'] === undefined) return 'ready';
  const owners = objects(metadata['ownerReferences']);
  if (phase === 'Running' && owners.some((owner) => owner['kind'] === 'Job')) return 'complete';
  return 'none';
}

/** What a kubelet says first of a pod that it has just seen: its containers are being made. */
export function creatingPatch(
  pod: JsonObject,
  hostIps: readonly string[],
  now: string,
): JsonObject {
  const spec = object(pod['spec']);
  const names = objects(spec['containers']).map((container) => text(container['name']));
  const reason = 'ContainersNotReady';
  const message = `containers with unready status: [${names.join(' ')}]`;
  const unready = (type: string): JsonObject => ({
    ...{ type, status: 'False', lastProbeTime: null, lastTransitionTime: now, reason, message },
  });
  const waiting: JsonObject = { waiting: { reason: 'ContainerCreating' } };
  return {
    status: {
      phase: 'Pending',
      conditions: [
        condition('PodReadyToStartContainers', now, 'False'),
        condition('Initialized', now),
        unready('Ready'),
        unready('ContainersReady'),
      ],
      containerStatuses: containerStatuses(pod, waiting, false),
      ...addressesOf('hostIP', hostIps),
      startTime: now,
    },
  };
}

/** The status patch (strategic merge) that makes a pod Running at `now`. */
export function readyPatch(
  pod: JsonObject,
  hostIps: readonly string[],
  podIps: readonly string[],
  now: string,
): JsonObject {
  const spec = object(pod['spec']);
  const gates = objects(spec['readinessGates']).map((gate) =>
    condition(text(gate['conditionType']), now),
  );
  const running: JsonObject = { running: { startedAt: now } };
  const status: JsonObject = {
    phase: 'Running',
    conditions: [
      condition('PodReadyToStartContainers', now),
      condition('Initialized', now),
      condition('Ready', now),
      condition('ContainersReady', now),
      ...gates,
    ],
    containerStatuses: containerStatuses(pod, running, true),
    ...addressesOf('hostIP', hostIps),
    ...addressesOf('podIP', spec['hostNetwork'] === true ? hostIps : podIps),
    startTime: now,
  };
  const inits = objects(spec['initContainers']);
  if (inits.length > 0) {
    status['initContainerStatuses'] = inits.map((container) => {
      const isSidecar = container['restartPolicy'] === 'Always';
      return containerStatus(pod, container, isSidecar ? running : completed(now, now), true);
    });
  }
  return { status };
}

/** `hostIP` and `hostIPs`, or `podIP` and `podIPs`; nothing where there are none. */
function addressesOf(field: string, texts: readonly string[]): JsonObject {
  if (texts.length === 0) return {};
  return { [field]: texts[0] ?? '', [`${field}s`]: texts.map((ip) => ({ ip })) };
}

/** What a kubelet says next: the pod has its sandbox and its network. */
export function sandboxPatch(now: string): JsonObject {
  return { status: { conditions: [condition('PodReadyToStartContainers', now)] } };
}

/** The patch, saying of which generation of the pod it and its conditions are. */
export function withGeneration(patch: JsonObject, pod: JsonObject): JsonObject {
  const { generation } = object(pod['metadata']);
  if (typeof generation !== 'number') return patch;
  const status = object(patch['status']);
  const own = { observedGeneration: generation };
  if (status['conditions'] === undefined) return { ...patch, status: { ...status, ...own } };
  const conditions = objects(status['conditions']).map((one) => ({ ...one, ...own }));
  return { ...patch, status: { ...status, conditions, ...own } };
}

/** The patch, with what earlier conditions gave as their reasons taken away. */
export function withoutReasons(patch: JsonObject): JsonObject {
  const status = object(patch['status']);
  const conditions = objects(status['conditions']).map((one) => ({
    ...{ reason: null, message: null },
    ...one,
  }));
  return { ...patch, status: { ...status, conditions } };
}

/** The status patch that ends a pod well at `now`. */
export function completePatch(pod: JsonObject, now: string): JsonObject {
  const startedAt = text(object(pod['status'])['startTime']) || now;
  return {
    status: {
      phase: 'Succeeded',
      conditions: [
        condition('Initialized', now, 'True', 'PodCompleted'),
        condition('Ready', now, 'False', 'PodCompleted'),
        condition('ContainersReady', now, 'False', 'PodCompleted'),
      ],
      containerStatuses: containerStatuses(pod, completed(startedAt, now), false),
    },
  };
}

function condition(type: string, now: string, status = 'True', reason?: string): JsonObject {
  const value: JsonObject = { type, status, lastProbeTime: null, lastTransitionTime: now };
  if (reason !== undefined) value['reason'] = reason;
  return value;
}

function completed(startedAt: string, finishedAt: string): JsonObject {
  return { terminated: { exitCode: 0, reason: 'Completed', startedAt, finishedAt } };
}

function containerStatuses(pod: JsonObject, state: JsonObject, isReady: boolean): JsonValue[] {
  const { containers } = object(pod['spec']);
  return objects(containers).map((container) => containerStatus(pod, container, state, isReady));
}

function containerStatus(
  pod: JsonObject,
  container: JsonObject,
  state: JsonObject,
  isReady: boolean,
): JsonObject {
  const isRunning = state['running'] !== undefined;
  const name = text(container['name']);
  const status: JsonObject = {
    name,
    image: container['image'] ?? '',
    imageID: '',
    ready: isReady,
    started: isRunning,
    restartCount: 0,
    state,
  };
  if (state['waiting'] === undefined)
    status['containerID'] = containerId(text(object(pod['metadata'])['uid']), name);
  return status;
}

function object(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function objects(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter((item) => isObject(item)) : [];
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
