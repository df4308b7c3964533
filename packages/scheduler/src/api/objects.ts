/**
 * The parts of API objects that placement looks at, as they stand in JSON. Everything is optional:
 * what comes from a server has been defaulted, what comes from a scenario has not.
 */
import { bareOf, type Bare } from '@megaplane/base/members';

export type Labels = Readonly<Record<string, string>>;

/** Labels to look up by any key: `constructor` and `toString` are keys like others. */
export type BareLabels = Labels & Bare;

const NO_LABELS: BareLabels = bareOf<Labels>({});

export function labelsOf(labels: Labels | undefined): BareLabels {
  if (labels === undefined) return NO_LABELS;
  return isBare(labels) ? labels : bareOf(labels);
}

function isBare(labels: Labels): labels is BareLabels {
  return Object.getPrototypeOf(labels) === null;
}

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly labels?: Labels;
  readonly annotations?: Labels;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly deletionTimestamp?: string;
  readonly creationTimestamp?: string;
  readonly resourceVersion?: string;
}

export interface OwnerReference {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly name: string;
  readonly uid?: string;
  readonly controller?: boolean;
}

export interface KubeObject {
  readonly kind?: string;
  readonly metadata: Metadata;
}

export type Quantities = Readonly<Record<string, string | number>>;

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

export interface NodeObject extends KubeObject {
  readonly spec?: {
    readonly unschedulable?: boolean;
    readonly taints?: readonly Taint[];
  };
  readonly status?: {
    readonly allocatable?: Quantities;
    readonly declaredFeatures?: readonly string[];
    readonly images?: readonly {
      readonly names?: readonly string[];
      readonly sizeBytes?: number;
    }[];
  };
}

export interface SelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface LabelSelectorObject {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly SelectorRequirement[];
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly SelectorRequirement[];
  readonly matchFields?: readonly SelectorRequirement[];
}

export interface NodeSelectorObject {
  readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
}

export interface PreferredNodeTerm {
  readonly weight: number;
  readonly preference: NodeSelectorTerm;
}

export interface NodeAffinityObject {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: NodeSelectorObject;
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly PreferredNodeTerm[];
}

export interface PodTermObject {
  readonly labelSelector?: LabelSelectorObject;
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: LabelSelectorObject;
  readonly topologyKey: string;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

export interface WeightedPodTerm {
  readonly weight: number;
  readonly podAffinityTerm: PodTermObject;
}

export interface PodAffinityObject {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodTermObject[];
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodTerm[];
}

export interface SpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: string;
  readonly labelSelector?: LabelSelectorObject;
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
  readonly matchLabelKeys?: readonly string[];
}

export interface ContainerPort {
  readonly hostIP?: string;
  readonly hostPort?: number;
  readonly containerPort?: number;
  readonly protocol?: string;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly ports?: readonly ContainerPort[];
  readonly resources?: {
    readonly requests?: Quantities;
    readonly limits?: Quantities;
    readonly claims?: readonly unknown[];
  };
  readonly restartPolicy?: string;
  readonly restartPolicyRules?: readonly { readonly action: string }[];
}

export interface Volume {
  readonly name: string;
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean };
  readonly ephemeral?: object;
  readonly gcePersistentDisk?: { readonly pdName: string; readonly readOnly?: boolean };
  readonly awsElasticBlockStore?: { readonly volumeID: string; readonly readOnly?: boolean };
  readonly iscsi?: { readonly iqn: string; readonly readOnly?: boolean };
  readonly rbd?: {
    readonly monitors: readonly string[];
    readonly pool?: string;
    readonly image: string;
    readonly readOnly?: boolean;
  };
  readonly csi?: { readonly driver: string };
  readonly image?: { readonly reference?: string };
}

export interface ContainerStatus {
  readonly name: string;
  readonly resources?: { readonly requests?: Quantities };
  readonly allocatedResources?: Quantities;
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}

export interface PodObject extends KubeObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly schedulerName?: string;
    readonly priority?: number;
    readonly preemptionPolicy?: string;
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
    readonly hostNetwork?: boolean;
    readonly hostUsers?: boolean;
    readonly overhead?: Quantities;
    readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
    readonly nodeSelector?: Labels;
    readonly affinity?: {
      readonly nodeAffinity?: NodeAffinityObject;
      readonly podAffinity?: PodAffinityObject;
      readonly podAntiAffinity?: PodAffinityObject;
    };
    readonly tolerations?: readonly Toleration[];
    readonly topologySpreadConstraints?: readonly SpreadConstraint[];
    readonly schedulingGates?: readonly { readonly name: string }[];
    readonly volumes?: readonly Volume[];
    readonly schedulingGroup?: { readonly podGroupName?: string };
    readonly resourceClaims?: readonly {
      readonly name: string;
      readonly resourceClaimName?: string;
      readonly resourceClaimTemplateName?: string;
    }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly startTime?: string;
    readonly nominatedNodeName?: string;
    /** Claims that were made for the pod; without a name where none is needed. */
    readonly resourceClaimStatuses?: readonly {
      readonly name: string;
      readonly resourceClaimName?: string;
    }[];
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    /** In effect for the pod as a whole (KEP-5419). */
    readonly resources?: { readonly requests?: Quantities };
    readonly allocatedResources?: Quantities;
  };
}

export interface BudgetObject extends KubeObject {
  readonly spec?: { readonly selector?: LabelSelectorObject };
  readonly status?: {
    readonly disruptionsAllowed?: number;
    readonly disruptedPods?: Readonly<Record<string, string>>;
  };
}

/** Service and ReplicationController select by a map, ReplicaSet and StatefulSet by a selector. */
export interface OwnerObject extends KubeObject {
  readonly spec?: { readonly selector?: LabelSelectorObject | Labels };
}

/** `namespace/name`; `name` alone for what has no namespace. */
export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** Pods live in `default` unless they say otherwise. */
export function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? 'default';
}
