/** Why pods come and go: each has a reason that can be seen, or a controller is wrong. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { evictionLaw } from './budget-laws.ts';
import { activePods, type Audit } from './auditor.ts';
import type { Sight } from './cluster-record.ts';

/** What admission gives every pod for nodes that are not ready or cannot be reached. */
const TOLERATED_MS = 300_000;
/** Times of objects are whole seconds. */
const SECOND_MS = 1_000;
const ENDS: readonly string[] = ['Complete', 'Failed', 'SuccessCriteriaMet', 'FailureTarget'];
const TRACKING = 'batch.kubernetes.io/job-tracking';

/** A pod is made: its owner is there and wants one more. */
export function podArrives(audit: Audit, pod: Sight): void {
  const owner = audit.record.withUid(pod.controller);
  audit.check(
    owner !== undefined && (!owner.isGoing || owner.goingMs >= audit.sinceMs),
    () => `${pod.title} is made for nobody: ${JSON.stringify(pod.object)}`,
  );
  if (owner === undefined) return;
  const active = activePods(audit, owner.uid).length;
  switch (owner.kind) {
    case 'ReplicaSet': {
      const most = owner.wantedMost(audit.sinceMs) + audit.lostCreations;
      audit.check(active <= most, () => `${pod.title} is one too many of ${owner.title}`);
      break;
    }
    case 'StatefulSet':
      ordinalArrives(audit, owner, pod);
      break;
    case 'DaemonSet':
      daemonArrives(audit, owner, pod);
      break;
    case 'Job':
      workArrives(audit, owner, pod, active);
      break;
    default:
  }
}

const ordinalOf = ({ name }: Sight): number => Number(name.slice(name.lastIndexOf('-') + 1));

function isOrdered({ object }: Sight): boolean {
  return stringAt(object, 'spec', 'podManagementPolicy') !== 'Parallel';
}

function ordinalArrives(audit: Audit, owner: Sight, pod: Sight): void {
  const ordinal = ordinalOf(pod);
  audit.check(
    ordinal < owner.wantedMost(audit.sinceMs),
    () => `${pod.title} is beyond the replicas of ${owner.title}`,
  );
  if (!isOrdered(owner)) return;
  const all = [...audit.record.ownedBy(owner.uid)].filter(({ kind }) => kind === 'Pod');
  for (let i = 0; i < ordinal; i++) {
    const lower = all.find((one) => ordinalOf(one) === i);
    // One that was ready may have gone a moment ago.
    const isWell = lower === undefined || (lower.isReady && !lower.isGoing);
    const wasWell = lower === undefined ? false : lower.wasReady(audit.sinceMs);
    const wasThere = audit.past.readyMs(owner, `${owner.name}-${i}`) >= audit.sinceMs;
    audit.check(
      (lower !== undefined && isWell) || wasWell || wasThere,
      () => `${pod.title} is made before ${owner.name}-${i} is ready`,
    );
  }
}

/** The node that a daemon's pod is for. */
export function daemonNode({ object }: Sight): string {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const terms = listAt(object, 'spec', 'affinity', 'nodeAffinity', required, 'nodeSelectorTerms');
  const [field] = listAt(terms[0], 'matchFields');
  const [value] = listAt(field, 'values');
  return typeof value === 'string' ? value : '';
}

function daemonArrives(audit: Audit, owner: Sight, pod: Sight): void {
  const node = daemonNode(pod);
  const surge = stringAt(owner.object, 'spec', 'updateStrategy', 'rollingUpdate', 'maxSurge');
  const most = surge === '' || surge === '0' ? 1 : 2;
  const there = activePods(audit, owner.uid).filter((one) => daemonNode(one) === node);
  audit.check(
    there.length <= most + audit.lostCreations,
    () => `${there.map(({ name }) => name).join(', ')} of ${owner.title} are all for ${node}`,
  );
  audit.check(
    audit.record.node(node) !== undefined || audit.past.nodeMs(node) >= audit.sinceMs,
    () => `${pod.title} is made for "${node}", which is not there`,
  );
}

function workArrives(audit: Audit, job: Sight, pod: Sight, active: number): void {
  const isOver = ENDS.some((one) => job.is(one));
  const parallelism = numberAt(job.object, 'spec', 'parallelism');
  audit.check(!isOver, () => `${pod.title} is made for ${job.title}, which has ended`);
  audit.check(
    active <= parallelism + audit.lostCreations,
    () => `${active} pods of ${job.title} work at a time: ${pod.name}`,
  );
}

/** A pod begins to go, or is gone at once: for one of the reasons that there are. */
export function podLeaves(audit: Audit, pod: Sight): void {
  const { record } = audit;
  if (record.namespace(pod.namespace)?.isGoing !== false) return;
  const owner = record.withUid(pod.controller);
  if (owner === undefined || owner.isGoing) return;
  const disruption = stringAt(pod.condition('DisruptionTarget'), 'reason');
  if (disruption !== '') return disrupted(audit, pod, disruption);
  audit.check(
    !isWanted(audit, owner, pod),
    () => `${pod.title} goes, and ${owner.title} wants it: ${JSON.stringify(pod.object)}`,
  );
  if (!pod.isReady) return;
  if (owner.kind === 'ReplicaSet') availabilityLaw(audit, owner);
  if (owner.kind === 'DaemonSet') daemonLaw(audit, owner, pod);
}

/** Whether nothing tells why the owner should let the pod go. */
function isWanted(audit: Audit, owner: Sight, pod: Sight): boolean {
  if (pod.hasEnded) return false;
  const active = activePods(audit, owner.uid);
  const count = active.includes(pod) ? active.length : active.length + 1;
  const isOutdated = owner.specMs >= pod.madeMs;
  switch (owner.kind) {
    case 'ReplicaSet':
      return count <= owner.wantedLeast(audit.sinceMs);
    case 'StatefulSet': {
      const above = activePods(audit, owner.uid).filter((one) => ordinalOf(one) > ordinalOf(pod));
      const isLast = above.every(({ madeMs }) => madeMs >= audit.sinceMs);
      if (ordinalOf(pod) >= owner.wantedLeast(audit.sinceMs)) return isOrdered(owner) && !isLast;
      return !isOutdated;
    }
    case 'DaemonSet':
      return (
        !isOutdated &&
        audit.record.node(daemonNode(pod)) !== undefined &&
        count <= audit.record.ofKind('Node').size
      );
    case 'Job':
      return (
        !ENDS.some((one) => owner.is(one)) && count <= numberAt(owner.object, 'spec', 'parallelism')
      );
    default:
      return false;
  }
}

function disrupted(audit: Audit, pod: Sight, reason: string): void {
  const node = audit.record.node(pod.nodeName);
  switch (reason) {
    case 'EvictionByEvictionAPI':
      return evictionLaw(audit, pod);
    case 'PreemptionByScheduler':
      return;
    case 'DeletionByTaintManager': {
      const sinceMs = audit.past.taintedMs(pod.nodeName);
      audit.check(
        audit.nowMs - sinceMs >= TOLERATED_MS - SECOND_MS,
        () => `${pod.title} is evicted from ${pod.nodeName} after ${audit.nowMs - sinceMs} ms`,
      );
      return;
    }
    case 'DeletionByPodGC':
      return audit.check(
        node === undefined || pod.isGoing,
        () => `${pod.title} is collected, and its node is there`,
      );
    default:
      audit.check(false, () => `${pod.title} is disrupted: ${reason}`);
  }
}

/** What a rollout takes away leaves as many ready pods as its strategy promises. */
function availabilityLaw(audit: Audit, set: Sight): void {
  const deployment = audit.record.withUid(set.controller);
  if (deployment === undefined || deployment.isGoing || deployment.kind !== 'Deployment') return;
  const { object } = deployment;
  const strategy = objectAt(object, 'spec', 'strategy', 'rollingUpdate');
  if (strategy === undefined) return;
  let ready = 0;
  for (const one of audit.record.ownedBy(deployment.uid)) {
    for (const pod of activePods(audit, one.uid)) if (pod.wasReady(audit.sinceMs)) ready++;
  }
  const least = deployment.wantedLeast(audit.sinceMs) - numberAt(strategy, 'maxUnavailable');
  audit.check(
    ready >= least,
    () => `a rollout leaves ${ready} ready pods of ${deployment.title}, and promised ${least}`,
  );
}

/** An update leaves a ready pod on each node, or on as many nodes as it promised. */
function daemonLaw(audit: Audit, set: Sight, pod: Sight): void {
  if (audit.record.node(daemonNode(pod)) === undefined) return;
  const limits = objectAt(set.object, 'spec', 'updateStrategy', 'rollingUpdate');
  const served = new Set<string>();
  for (const one of activePods(audit, set.uid)) {
    if (one !== pod && one.wasReady(audit.sinceMs)) served.add(daemonNode(one));
  }
  const nodes = [...audit.record.ofKind('Node')];
  // A node that is called silent has no part in an update.
  const wanted = nodes.filter(({ object }) => listAt(object, 'spec', 'taints').length === 0);
  const down = wanted.filter(({ name }) => !served.has(name)).length;
  const most = Math.max(1, Math.ceil((parseInt(shareOf(limits), 10) / 100) * nodes.length));
  audit.check(
    shareOf(limits) === '0' ? served.has(daemonNode(pod)) : down <= most,
    () => `${pod.title} goes, and ${down} nodes are without one; ${most} may be`,
  );
}

function shareOf(limits: JsonObject | undefined): string {
  const unavailable = limits?.['maxUnavailable'];
  return typeof unavailable === 'string' ? unavailable : String(Number(unavailable ?? 0));
}

/** What changes about a pod that is there. */
export function podChanges(audit: Audit, pod: Sight, before: JsonObject): void {
  const nodeBefore = stringAt(before, 'spec', 'nodeName');
  if (nodeBefore !== pod.nodeName) {
    audit.check(
      nodeBefore === '',
      () => `${pod.title} moves from ${nodeBefore} to ${pod.nodeName}`,
    );
    audit.check(
      audit.record.node(pod.nodeName) !== undefined ||
        audit.past.nodeMs(pod.nodeName) >= audit.sinceMs,
      () => `${pod.title} is bound to ${pod.nodeName}, which is not there`,
    );
  }
  const isTracked = (one: JsonObject): boolean =>
    listAt(one, 'metadata', 'finalizers').includes(TRACKING);
  if (isTracked(before) && !isTracked(pod.object)) released(audit, pod);
}

/** A Job's pod that ended may go once the Job has written down how. */
function released(audit: Audit, pod: Sight): void {
  const job = audit.record.withUid(pod.controller);
  if (job === undefined || job.isGoing || !pod.hasEnded) return;
  // Pods of a Job whose end is decided are let go as they are.
  const isOver = ENDS.some((one) => job.is(one));
  const index = Number(annotation(pod, 'batch.kubernetes.io/job-completion-index') || -1);
  const done = pod.phase === 'Succeeded' ? stringAt(job.object, 'status', 'completedIndexes') : '';
  audit.check(
    isOver || audit.past.wasCounted(pod.uid) || isAmong(index, done),
    () => `${pod.title} is let go and was not counted by ${job.title}`,
  );
}

const annotation = ({ object }: Sight, name: string): string =>
  stringAt(object, 'metadata', 'annotations', name);

/** Indexes as a Job tells them: `0,2-4`. */
function isAmong(index: number, told: string): boolean {
  return told.split(',').some((range) => {
    const [first = '', last = first] = range.split('-');
    return first !== '' && index >= Number(first) && index <= Number(last);
  });
}
