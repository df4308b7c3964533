/** Constraints of topology spreading, made ready: the pod's own, or the defaults of the profile. */
import { putMembers } from '@megaplane/base/members';
import type { LabelSelector, Requirement } from '@megaplane/machinery/selectors';
import type {
  KubeObject,
  BareLabels,
  Labels,
  OwnerObject,
  SpreadConstraint,
} from '../../api/objects.ts';
import { namespaceOf } from '../../api/objects.ts';
import type { NodeInfo } from '../node-info.ts';
import { RequiredNodes } from '../../api/node-selector.ts';
import { selectorOf, selects, type PodInfo } from '../pod-info.ts';
import { hasUntolerated } from './taint-toleration.ts';
import type { Snapshot } from '../snapshot.ts';

/** What of a node the policies look at. */
export interface PolicyNode extends Pick<NodeInfo, 'name' | 'labels'> {
  readonly node: Pick<NodeInfo['node'], 'spec'>;
}

export class SpreadRule {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly selector: LabelSelector;
  readonly #pod: PodInfo;
  readonly #nodes: RequiredNodes;
  readonly #honorsAffinity: boolean;
  readonly #honorsTaints: boolean;

  constructor(constraint: SpreadConstraint, selector: LabelSelector, pod: PodInfo) {
    this.topologyKey = constraint.topologyKey;
    this.maxSkew = constraint.maxSkew;
    this.minDomains = constraint.minDomains ?? 1;
    this.selector = selector;
    this.#pod = pod;
    this.#nodes = new RequiredNodes(pod.pod);
    this.#honorsAffinity = constraint.nodeAffinityPolicy !== 'Ignore';
    this.#honorsTaints = constraint.nodeTaintsPolicy === 'Honor';
  }

  /** The same text for rules that include the same nodes. */
  get policy(): string {
    const { nodeSelector, affinity, tolerations } = this.#pod.pod.spec;
    const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const nodes = this.#honorsAffinity ? [nodeSelector, required] : [];
    return JSON.stringify([nodes, this.#honorsTaints ? (tolerations ?? []) : null]);
  }

  /** Whether the pods of a node are counted (nodeAffinityPolicy, nodeTaintsPolicy). */
  includes(node: PolicyNode): boolean {
    if (this.#honorsAffinity && !this.#nodes.matches(node)) return false;
    const { tolerations } = this.#pod.pod.spec;
    return !this.#honorsTaints || !hasUntolerated(node.node.spec?.taints, tolerations);
  }
}

/** Those keys of matchLabelKeys that the pod has narrow the selector. */
function withLabelKeys(
  selector: LabelSelector,
  keys: readonly string[] | undefined,
  labels: BareLabels,
): LabelSelector {
  if (selector.nothing === true) return selector;
  const added: Requirement[] = [];
  for (const key of keys ?? []) {
    const value = labels[key];
    if (value !== undefined) added.push({ key, operator: '=', values: [value] });
  }
  return { requirements: [...selector.requirements, ...added] };
}

export function ownRules(pod: PodInfo, action: string): SpreadRule[] {
  return (pod.pod.spec.topologySpreadConstraints ?? [])
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
    .map((constraint) => {
      const selector = selectorOf(constraint.labelSelector);
      const merged = withLabelKeys(selector, constraint.matchLabelKeys, pod.labels);
      return new SpreadRule(constraint, merged, pod);
    });
}

export function defaultRules(
  pod: PodInfo,
  snapshot: Siblings,
  defaults: readonly SpreadConstraint[],
  action: string,
): SpreadRule[] {
  const wanted = defaults.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action);
  if (wanted.length === 0) return [];
  const selector = defaultSelector(pod, snapshot);
  if (selector.nothing !== true && selector.requirements.length === 0) return [];
  return wanted.map((constraint) => new SpreadRule(constraint, selector, pod));
}

/** Who says which pods belong together. */
export interface Siblings extends Pick<Snapshot, 'object' | 'objects'> {
  /** Objects of one namespace, where they can be found without a look at all. */
  objectsIn?(kind: string, namespace: string): Iterable<KubeObject>;
}

function mapRequirements(labels: Labels): Requirement[] {
  return Object.entries(labels).map(([key, value]) => ({ key, operator: '=', values: [value] }));
}

/** What the pod's siblings have in common: its Services' selectors and its controller's. */
export function defaultSelector(pod: PodInfo, snapshot: Siblings): LabelSelector {
  const labels: Record<string, string> = {};
  const near = snapshot.objectsIn?.('Service', pod.namespace) ?? snapshot.objects('Service');
  for (const service of near as Iterable<OwnerObject>) {
    const selector = service.spec?.selector as Labels | undefined;
    if (selector === undefined || namespaceOf(service) !== pod.namespace) continue;
    if (!selects({ requirements: mapRequirements(selector) }, pod.labels)) continue;
    putMembers(labels, selector);
  }
  const owner = pod.pod.metadata.ownerReferences?.find(({ controller }) => controller === true);
  const requirements = (): Requirement[] => mapRequirements(labels);
  if (owner === undefined) return { requirements: requirements() };
  const found: OwnerObject | undefined = snapshot.object(
    owner.kind,
    `${pod.namespace}/${owner.name}`,
  );
  switch (`${owner.apiVersion ?? ''} ${owner.kind}`) {
    case 'v1 ReplicationController':
      putMembers(labels, found?.spec?.selector as Labels | undefined);
      break;
    case 'apps/v1 ReplicaSet':
    case 'apps/v1 StatefulSet': {
      if (found === undefined) break;
      const own = selectorOf(found.spec?.selector);
      // A controller that selects nothing adds no requirement: that is how upstream adds them.
      if (own.nothing === true) break;
      return { requirements: [...requirements(), ...own.requirements] };
    }
  }
  return { requirements: requirements() };
}
