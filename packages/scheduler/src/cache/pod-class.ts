/**
 * Pods that placement cannot tell apart, but for their names and labels, are one class: same
 * requests, selectors, tolerations, priority. What is found out about a class serves all of them.
 */
import { PLACEMENT_MEMBERS } from '../api/placement-members.ts';
import { isBuiltIn } from '../api/volume-migration.ts';
import { HOSTNAME_KEY } from './node-facts.ts';
import { RequiredNodes, type NodeTest } from '../api/node-selector.ts';
import type { Container, NodeSelectorTerm, PodObject, Toleration, Volume } from '../api/objects.ts';
import { PodInfo, type HostPort } from '../framework/pod-info.ts';
import { podRequestsForScore, type Resources } from '../api/resources.ts';
import type { Usages } from './usage.ts';
import { imageName, volumeImages } from '../api/pod-images.ts';
import { preferredOf, namedNodes, type WeightedTerm } from '../api/node-affinity.ts';
import { requiredFeatures } from '../api/declared-features.ts';

/** Whether a node has devices for the claims of a pod. */
export interface NodeDevices {
  /** The answer changes with changes of the node only. */
  has(node: number): boolean;
  /** Full evaluation has to tell what is wrong. */
  readonly isWrong: boolean;
}

export interface PodClass {
  /** A pod of the class, without name, labels and node. */
  readonly template: PodObject;
  readonly schedulerName: string;
  readonly priority: number;
  readonly requests: Resources;
  readonly requestsNonZero: Resources;
  /** CPU and memory that the allocation score counts for a pod of the class. */
  readonly scoreMilliCpu: number;
  readonly scoreMemory: number;
  readonly tolerations: readonly Toleration[] | undefined;
  readonly nodes: NodeTest;
  readonly hasNodeTerms: boolean;
  /** The only nodes that can do, or null. */
  readonly nodeNames: ReadonlySet<string> | null;
  readonly preferred: readonly WeightedTerm[];
  /** Selectors look at the name or the host name, so that nodes of one kind may differ. */
  readonly isNameBound: boolean;
  readonly images: readonly string[];
  readonly volumeImages: readonly string[];
  readonly containerCount: number;
  readonly isGated: boolean;
  /** Host ports that a pod of the class takes. */
  readonly ports: readonly HostPort[];
  /** Placed pods of the class have a say about others: inter-pod affinity of any sort. */
  readonly hasPodTerms: boolean;
  /** Name of the PodGroup, or empty. */
  readonly group: string;
  /** Claims of its pods, as their volumes name them. */
  readonly claims: readonly string[];
  /** Volumes that may count as attached where its pods are. */
  readonly diskCount: number;
  /** Devices that claims of the pod ask for; null: none, or full evaluation looks for them. */
  readonly devices: NodeDevices | null;
  /** Why the class needs full evaluation; empty if the ranked index decides about it. */
  readonly exotic: string;
  /** The same number for classes that nodes cannot tell apart, whatever they say of other pods. */
  readonly nodeClass: number;
  /** Number of what a placed pod of the class takes; -1 until it is asked for. */
  usage: number;
}

/** Commands, environments and mounts are of no concern here. */
function containerTemplate(container: Container): Container {
  const { image, ports, resources, restartPolicy, restartPolicyRules } = container;
  const taken = (ports ?? []).filter(({ hostPort }) => (hostPort ?? 0) > 0);
  const requests = resources?.requests;
  return {
    name: '',
    ...(image === undefined ? {} : { image }),
    ...(taken.length === 0 ? {} : { ports: taken }),
    ...(requests === undefined ? {} : { resources: { requests } }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    ...(restartPolicyRules === undefined ? {} : { restartPolicyRules }),
  };
}

/** What of a pod counts for its class; `nodeName` is what placement will add. */
export function templateOf(pod: PodObject): PodObject {
  const spec: Record<string, unknown> = {};
  for (const member of PLACEMENT_MEMBERS) {
    if (pod.spec[member] !== undefined) spec[member] = pod.spec[member];
  }
  spec['containers'] = (pod.spec.containers ?? []).map(containerTemplate);
  const init = pod.spec.initContainers ?? [];
  if (init.length > 0) spec['initContainers'] = init.map(containerTemplate);
  const volumes = (pod.spec.volumes ?? []).filter(
    (volume) => isBinding(volume) || volume.image !== undefined,
  );
  if (volumes.length > 0) spec['volumes'] = volumes;
  return { metadata: { name: '' }, spec };
}

/** Nothing else than claims for devices is exotic about a class. */
export const ONLY_CLAIMS = 'resource claims';

/** The number of what a placed pod of a class takes; the class keeps it. */
export function usageOf(podClass: PodClass, usages: Usages): number {
  if (podClass.usage < 0) {
    podClass.usage = usages.acquire(podClass.requests, podClass.requestsNonZero);
  }
  return podClass.usage;
}

/** What of a pod counts for one node after another, as text; its say about others is left out. */
export function nodeClassKey({ spec }: PodObject): string {
  const { containers, initContainers, overhead, resources, nodeSelector, tolerations } = spec;
  const own = [containers, initContainers, overhead, resources, nodeSelector, tolerations];
  const features = requiredFeatures({ metadata: { name: '' }, spec });
  const images = volumeImages({ metadata: { name: '' }, spec });
  return JSON.stringify([
    ...own,
    spec.affinity?.nodeAffinity,
    spec.schedulerName,
    features,
    images,
  ]);
}

export function createPodClass(template: PodObject, nodeClass: number): PodClass {
  const { spec } = template;
  const info = new PodInfo(template);
  const score = podRequestsForScore(template);
  const affinity = spec.affinity?.nodeAffinity;
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution;
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const volumes = spec.volumes ?? [];
  const terms = [
    ...(required?.nodeSelectorTerms ?? []),
    ...(preferred ?? []).map(({ preference }) => preference),
  ];
  return {
    template,
    schedulerName: spec.schedulerName ?? 'default-scheduler',
    priority: spec.priority ?? 0,
    requests: info.requests,
    requestsNonZero: info.requestsNonZero,
    scoreMilliCpu: score.milliCpu,
    scoreMemory: score.memory,
    tolerations: spec.tolerations,
    nodes: new RequiredNodes(template),
    hasNodeTerms: required !== undefined || spec.nodeSelector !== undefined,
    nodeNames: namedNodes(template),
    preferred: preferredOf(affinity) ?? [],
    isNameBound: spec.nodeSelector?.[HOSTNAME_KEY] !== undefined || terms.some(isNameTerm),
    images: containers.map(({ image }) => imageName(image ?? '')),
    volumeImages: volumeImages(template),
    containerCount: containers.length,
    ports: info.ports,
    group: spec.schedulingGroup?.podGroupName ?? '',
    isGated: (spec.schedulingGates ?? []).length > 0,
    hasPodTerms: info.hasAffinityTerms,
    claims: volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []),
    diskCount: volumes.filter(isDisk).length,
    devices: null,
    exotic: exoticPart(template, info),
    nodeClass,
    usage: -1,
  };
}

function isNameTerm({ matchExpressions, matchFields }: NodeSelectorTerm): boolean {
  if ((matchFields ?? []).length > 0) return true;
  return (matchExpressions ?? []).some(({ key }) => key === HOSTNAME_KEY);
}

/** Volumes that say something about nodes. */
function isBinding(volume: Volume): boolean {
  return isDisk(volume) || volume.iscsi !== undefined || volume.rbd !== undefined;
}

/** Volumes that are attached to nodes, and counted there. */
function isDisk(volume: Volume): boolean {
  const { persistentVolumeClaim, ephemeral } = volume;
  return isBuiltIn(volume) || persistentVolumeClaim !== undefined || ephemeral !== undefined;
}

function exoticPart({ spec }: PodObject, info: PodInfo): string {
  const isClaim = (volume: Volume): boolean => volume.persistentVolumeClaim !== undefined;
  if ((spec.volumes ?? []).some((volume) => isBinding(volume) && !isClaim(volume))) {
    return 'volumes';
  }
  if (requiredFeatures({ metadata: { name: '' }, spec }).length > 0) return 'features of kubelets';
  const wrong = preferredOf(spec.affinity?.nodeAffinity)?.some(
    ({ term }) => term.errors.length > 0,
  );
  if (wrong === true) return 'a preferred node term that cannot be parsed';
  if (info.requests.scalars.size > SCALARS_MAX) return 'many kinds of resources';
  if (namedNodes({ metadata: { name: '' }, spec })?.size === 0) return 'conflicting node names';
  return (spec.resourceClaims ?? []).length > 0 ? ONLY_CLAIMS : '';
}

/** Scalar resources of one class that fit into the mask; classes with more are exotic. */
export const SCALARS_MAX = 16;
