/** What a pod's group has to do with it: whether enough of them find nodes together. */
import type { Cluster } from '../framework/cluster.ts';
import type { Nominations } from '../framework/runtime/cycle.ts';
import { Evaluator } from '../placement/evaluator.ts';
import type { PodGroupObject } from '../podgroup/pod-groups.ts';
import type { PodInfo } from '../framework/pod-info.ts';
import { DEFAULT_SCHEDULER_NAME, type Profile } from '../framework/runtime/profile.ts';

export interface GangReport {
  /** `namespace/name` of the group. */
  readonly group: string;
  /** Why none of its pods is tried, or empty. */
  readonly problem: string;
  /** Pods that must have nodes for any to get one; 0: each goes alone. */
  readonly minCount: number;
  /** Its pods that are there, and those of them that have nodes. */
  readonly pods: number;
  readonly placed: number;
  /** Of those without a node: how many would get one now, all together. */
  readonly fitting: number;
}

function groupOf(pod: PodInfo): string {
  const name = pod.pod.spec.schedulingGroup?.podGroupName ?? '';
  return name === '' ? '' : `${pod.namespace}/${name}`;
}

function isBefore(one: PodInfo, other: PodInfo): number {
  const [since, otherSince] = [one, other].map(({ pod }) => pod.metadata.creationTimestamp ?? '');
  return other.priority - one.priority || ((since ?? '') < (otherSince ?? '') ? -1 : 1);
}

/** How many of some pods find nodes, each beside those before it; the cluster is as before then. */
function countFitting(
  waiting: readonly PodInfo[],
  cluster: Cluster,
  profile: Profile,
  nominations: Nominations,
): number {
  const moved: PodInfo[] = [];
  for (const pod of waiting.toSorted(isBefore)) {
    cluster.refresh();
    const decision = new Evaluator(100).decide(pod, cluster, profile, nominations);
    const nodeName = decision.kind === 'placed' ? decision.best[0] : undefined;
    if (nodeName === undefined) continue;
    const placed = { ...pod.pod, kind: 'Pod', spec: { ...pod.pod.spec, nodeName } };
    cluster.apply(placed);
    moved.push(pod);
  }
  for (const pod of moved) {
    cluster.delete('Pod', pod.key);
    cluster.apply({ ...pod.pod, kind: 'Pod' });
  }
  cluster.refresh();
  return moved.length;
}

/** Null for a pod without a group; `cluster` must not hold the pod itself. `isOn`: its node. */
export function gangReportOn(
  pod: PodInfo,
  isOn: string,
  cluster: Cluster,
  profile: Profile,
  nominations: Nominations,
): GangReport | null {
  const group = groupOf(pod);
  if (group === '') return null;
  const others = [...cluster.pods].filter((other) => groupOf(other) === group);
  const isOurs = ({ pod: { spec } }: PodInfo): boolean =>
    (spec.schedulerName ?? DEFAULT_SCHEDULER_NAME) === profile.schedulerName;
  const waiting = others.filter((other) => other.nodeName === '' && isOurs(other));
  const placed = others.filter(({ nodeName }) => nodeName !== '').length + (isOn === '' ? 0 : 1);
  const all = isOn === '' ? [pod, ...waiting] : waiting;
  const pods = placed + all.length;
  const object: PodGroupObject | undefined = cluster.object('PodGroup', group);
  const minCount = object?.spec?.schedulingPolicy?.gang?.minCount ?? 0;
  const about = { group, minCount, pods, placed };
  if (object === undefined) return { ...about, problem: 'the group is not there', fitting: 0 };
  if (pods < minCount) {
    return { ...about, problem: `it has ${pods} of the ${minCount} pods it needs`, fitting: 0 };
  }
  if (placed >= minCount) return { ...about, problem: '', fitting: 0 };
  const fitting = countFitting(all, cluster, profile, nominations);
  if (isOn === '') cluster.delete('Pod', pod.key);
  cluster.refresh();
  return { ...about, problem: '', fitting };
}

/** For people; empty where the group holds nothing back. */
export function gangText({ group, problem, minCount, pods, placed, fitting }: GangReport): string {
  if (problem !== '') return `it waits with its pod group ${group}: ${problem}`;
  const missing = minCount - placed;
  if (missing <= 0) return '';
  const need = `pod group ${group} needs ${minCount} of its ${pods} pods placed together`;
  const enough = fitting >= missing ? 'enough of them' : 'too few, so none of them is placed';
  return `${need}: ${placed} are, and ${fitting} more would find nodes now, ${enough}`;
}
