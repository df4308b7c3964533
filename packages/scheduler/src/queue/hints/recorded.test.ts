import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Cluster } from '../../framework/cluster.ts';
import { NodeInfo } from '../../framework/node-info.ts';
import type { KubeObject, PodObject } from '../../api/objects.ts';
import { PodInfo } from '../../framework/pod-info.ts';
import { mayHelp, type ClusterChange } from './hints.ts';

/**
 * What the plugins of kube-scheduler 1.36.1 said to random changes: the hints that its default
 * profile registers, each asked about the pod. The others do not want to hear of the change.
 */
interface Recorded {
  readonly kind: string;
  /** As kube-scheduler calls the events that the change is taken for. */
  readonly events: string;
  /** A DeviceClass stands for ext.dra/gpu. */
  readonly hasClass?: boolean;
  readonly pod: PodObject;
  readonly before?: KubeObject;
  readonly after?: KubeObject;
  /** Plugins that would have the pod tried. */
  readonly queue: readonly string[];
}

const FILE = join(import.meta.dirname, 'recorded-hints.json');
const RECORDED = JSON.parse(readFileSync(FILE, 'utf8')) as readonly Recorded[];

const PLUGINS: readonly string[] = [
  ...['NodeUnschedulable', 'NodeName', 'TaintToleration', 'NodeAffinity', 'NodePorts'],
  ...['NodeResourcesFit', 'VolumeRestrictions', 'NodeVolumeLimits', 'VolumeBinding', 'VolumeZone'],
  ...['PodTopologySpread', 'InterPodAffinity', 'DynamicResources', 'NodeDeclaredFeatures'],
];

/** Where a pod is tried that kube-scheduler would leave, as it may fit. */
const TRIED: ReadonlyMap<string, string> = new Map([
  ['InterPodAffinity Node added', 'terms of others may keep it off all other nodes'],
  ['InterPodAffinity Node changed', 'a node that leaves a domain of terms of others'],
  ['InterPodAffinity Pod added', 'a term on namespaces means the pod'],
  ['InterPodAffinity Pod gone', 'one of several terms meant it, or a term on namespaces'],
  ['InterPodAffinity Pod changed', 'one of several terms meant it, or a term on namespaces'],
  ['NodeVolumeLimits Node added', 'it has no limits yet'],
  ['NodeVolumeLimits CSINode gone', 'nor are there any without'],
  ['NodeVolumeLimits CSINode changed', 'a limit that is not told any more'],
  ['NodeVolumeLimits VolumeAttachment gone', 'claims of its own were counted, too'],
  ['VolumeBinding CSIDriver gone', 'space does not matter any more'],
  ['VolumeBinding CSIDriver changed', 'space does not matter any more'],
  ['VolumeRestrictions PersistentVolumeClaim added', 'a claim made for the pod'],
  ['VolumeZone PersistentVolumeClaim added', 'a claim made for the pod'],
  ['VolumeZone PersistentVolumeClaim changed', 'a claim made for the pod'],
  ['DynamicResources ResourceSlice gone', 'the rest of the pool may be whole without it'],
  ['DynamicResources ResourceClaim gone', 'its devices are free again'],
  ['DynamicResources ResourceClaim changed', 'the same, where another claim of the pod is missing'],
]);

/** Where a pod is left that kube-scheduler would try. */
const LEFT: ReadonlyMap<string, string> = new Map([
  ['DynamicResources ResourceClaim added', 'pods hear of their own claims without hints'],
  ['DynamicResources ResourceClaim changed', 'pods hear of their own claims without hints'],
  ['InterPodAffinity Node added', 'neither the node nor its domain can have what the pod wants'],
  ['NodeResourcesFit Pod changed', 'a pod that shrinks is told of as one that leaves'],
  ['NodeVolumeLimits CSINode changed', 'a limit where there was none is no help'],
]);

/** Plugins that could have rejected the pod; the others are never asked. */
function couldReject(plugin: string, { pod, ports, requests }: PodInfo): boolean {
  const { spec } = pod;
  const volumes = spec.volumes ?? [];
  const hasClaims = volumes.some((one) => one.persistentVolumeClaim ?? one.ephemeral);
  switch (plugin) {
    case 'PodTopologySpread':
      return (spec.topologySpreadConstraints ?? []).some(
        ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
      );
    case 'NodePorts':
      return ports.length > 0;
    case 'VolumeBinding':
    case 'VolumeZone':
      return hasClaims;
    case 'NodeVolumeLimits':
      return hasClaims || volumes.some((one) => one.gcePersistentDisk ?? one.awsElasticBlockStore);
    case 'VolumeRestrictions':
      return volumes.length > 0;
    case 'DynamicResources':
      return spec.resourceClaims !== undefined || requests.scalars.has('ext.dra/gpu');
    default:
      return true;
  }
}

function changeOf({ kind, before, after }: Recorded): ClusterChange {
  if (kind === 'Node') {
    const nodeOf = (object: KubeObject): NodeInfo => new NodeInfo(object, new Map());
    if (before !== undefined && after !== undefined) {
      return { event: 'nodeChanged', before: nodeOf(before), after: nodeOf(after) };
    }
    if (after !== undefined) return { event: 'nodeAdded', node: nodeOf(after) };
    assert(before !== undefined);
    return { event: 'nodeRemoved', node: nodeOf(before) };
  }
  if (kind !== 'Pod') return { event: 'object', kind, before, after };
  if (before === undefined) return { event: 'podAdded', pod: new PodInfo(after as PodObject) };
  if (after === undefined) return { event: 'podRemoved', pod: new PodInfo(before as PodObject) };
  const [was, is] = [new PodInfo(before as PodObject), new PodInfo(after as PodObject)];
  return { event: 'podChanged', before: was, after: is };
}

function clusterOf({ kind, after, hasClass }: Recorded): Cluster {
  const cluster = new Cluster();
  cluster.apply({ kind: 'Namespace', metadata: { name: 'a', labels: { team: 'x' } } });
  cluster.apply({ kind: 'Namespace', metadata: { name: 'b', labels: {} } });
  const spec = { extendedResourceName: 'ext.dra/gpu' };
  const gpu = { kind: 'DeviceClass', metadata: { name: 'gpu' }, spec };
  if (hasClass === true) cluster.apply(gpu);
  if (after !== undefined && kind !== 'Pod') cluster.apply({ ...after, kind });
  cluster.refresh();
  return cluster;
}

test('hints are those of kube-scheduler, but where it is said why not', () => {
  const seen = new Set<string>();
  const wrong: string[] = [];
  let answers = 0;
  for (const [index, recorded] of RECORDED.entries()) {
    const cluster = clusterOf(recorded);
    const change = changeOf(recorded);
    const pod = new PodInfo(recorded.pod);
    const { before, after, events } = recorded;
    const what = before === undefined ? 'added' : after === undefined ? 'gone' : 'changed';
    for (const plugin of PLUGINS) {
      if (!couldReject(plugin, pod)) continue;
      answers++;
      const isTried = mayHelp(change, plugin, pod, cluster);
      if (isTried === recorded.queue.includes(plugin)) continue;
      // Whoever registers new nodes is told of taints, too, whatever it says to them.
      if (!isTried && events.includes('NodeUpdateNodeTaint')) continue;
      const key = `${plugin} ${recorded.kind} ${what}`;
      if ((isTried ? TRIED : LEFT).has(key)) seen.add(`${isTried} ${key}`);
      else wrong.push(`${index}: ${key}: ${isTried ? 'tried' : 'left'}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(answers > 1000, `${answers} answers`);
  const unused = [
    ...[...TRIED.keys()].filter((key) => !seen.has(`true ${key}`)),
    ...[...LEFT.keys()].filter((key) => !seen.has(`false ${key}`)),
  ];
  assert.deepEqual(unused, []);
});
